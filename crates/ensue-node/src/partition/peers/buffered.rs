//! What comes before the log is read, or before its lost tail is back: kept in order, and taken up when the partition
//! can.
//!
//! Partitions of this datacenter say again what they are not answered: what comes of them is kept. What other
//! datacenters say of themselves they say again and again, for as long as a lost tail is waited for: of that the latest
//! is kept. They send no entries before they were asked to; what comes of such beyond a bound is dropped, and asked for
//! when the partition serves. Sessions are refused at once (`LOADING`): a start may take long, and their clients can
//! ask again. Only what a session asks about a past that it takes over is kept, up to a bound in bytes, and whether a
//! core wants to be told of changes.

use super::Peers;
use crate::partition::cx::Cx;
use bytes::Bytes;
use ensue_types::limits;
use ensue_wire::{Address, Envelope, Message};
use std::collections::VecDeque;

/// Messages in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(in crate::partition) struct Buffered {
    waiting: VecDeque<Envelope>,
    /// What those of sessions take.
    session_bytes: usize,
    /// What entries of other datacenters take.
    entry_bytes: usize,
}

impl Buffered {
    /// Keeps a message; gives it back if what sessions asked takes too much already.
    pub(crate) fn keep(&mut self, envelope: Envelope) -> Option<Envelope> {
        let is_wish = |one: &Envelope| matches!(one.message, Message::ReportChanges { .. });
        if is_wish(&envelope) {
            self.retain(|old| !is_wish(old) || old.from != envelope.from);
        }
        if is_of_session(&envelope) {
            // There is one wish a core, and nobody says it again.
            if self.session_bytes >= limits::BUFFERED_BYTES_MAX && !is_wish(&envelope) {
                return Some(envelope);
            }
            self.session_bytes += bytes_of(&envelope.message);
        }
        self.waiting.push_back(envelope);
        None
    }

    /// Keeps a message that could not be taken yet.
    pub(in crate::partition) fn put_back(&mut self, envelope: Envelope) {
        self.waiting.push_back(envelope);
    }

    /// Keeps what another datacenter says, in place of what it said of the same before.
    fn keep_foreign(&mut self, envelope: Envelope) {
        match entry_bytes_of(&envelope.message) {
            0 => {
                let is_older = |old: &Envelope| {
                    old.from == envelope.from && is_of_the_same(&old.message, &envelope.message)
                };
                self.waiting.retain(|waiting| !is_older(waiting));
            }
            bytes if self.entry_bytes + bytes > limits::BUFFERED_BYTES_MAX => return,
            bytes => self.entry_bytes += bytes,
        }
        self.waiting.push_back(envelope);
    }

    /// Panics if the bytes are counted wrong: the bounds would refuse too much or nothing.
    pub(in crate::partition) fn check_invariants(&self) -> usize {
        let of_sessions = self.waiting.iter().filter(|envelope| is_of_session(envelope));
        let session_bytes: usize = of_sessions.map(|envelope| bytes_of(&envelope.message)).sum();
        let entry_bytes: usize = self.waiting.iter().map(|envelope| entry_bytes_of(&envelope.message)).sum();
        let counted = (self.session_bytes, self.entry_bytes);
        assert_eq!(counted, (session_bytes, entry_bytes), "buffered messages are counted wrong");
        self.waiting.len()
    }

    /// Hands out everything, in the order in which it came.
    pub(in crate::partition) fn take_all(&mut self) -> VecDeque<Envelope> {
        std::mem::take(self).waiting
    }

    /// Drops what is not to be taken up.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&Envelope) -> bool) {
        self.waiting.retain(is_kept);
        let of_sessions = self.waiting.iter().filter(|envelope| is_of_session(envelope));
        self.session_bytes = of_sessions.map(|envelope| bytes_of(&envelope.message)).sum();
        self.entry_bytes = self.waiting.iter().map(|envelope| entry_bytes_of(&envelope.message)).sum();
    }
}

impl Peers {
    /// The log is not read yet: who can ask again is told so.
    pub(in crate::partition) fn on_message_reading(&mut self, cx: &mut Cx, envelope: Envelope) {
        let is_read = matches!(envelope.message, Message::ReadSnapshotPart { .. });
        let is_asked = is_of_session(&envelope) && !waits_for_the_log(&envelope.message);
        if is_read || is_asked {
            return cx.refuse_loading(&envelope);
        }
        self.buffer(cx, envelope);
    }

    /// It cannot be taken yet.
    pub(in crate::partition) fn buffer(&mut self, cx: &mut Cx, envelope: Envelope) {
        if envelope.from.datacenter() != cx.datacenter {
            return self.buffered.keep_foreign(envelope);
        }
        if let Some(envelope) = self.buffered.keep(envelope) {
            cx.refuse_loading(&envelope);
        }
    }
}

pub(in crate::partition) fn is_of_session(envelope: &Envelope) -> bool {
    matches!(envelope.from, Address::Core { .. })
}

/// Bytes of the entries that come with a message.
fn entry_bytes_of(message: &Message) -> usize {
    let (Message::StreamEntries { entries, .. }
    | Message::PassedOn { entries, .. }
    | Message::TailFetched { entries, .. }) = message
    else {
        return 0;
    };
    let each = entries.iter().map(|entry| entry.len() + size_of::<Bytes>());
    size_of::<Envelope>() + each.sum::<usize>()
}

/// Whether a datacenter says of the same thing how it is now.
fn is_of_the_same(old: &Message, new: &Message) -> bool {
    match (old, new) {
        (
            Message::DatacenterFailed { datacenter: old, .. },
            Message::DatacenterFailed { datacenter: new, .. },
        ) => old == new,
        (Message::PassOn { origin: old, .. }, Message::PassOn { origin: new, .. }) => old == new,
        (old, new) => std::mem::discriminant(old) == std::mem::discriminant(new),
    }
}

/// What a session's message takes in memory, but for small change.
fn bytes_of(message: &Message) -> usize {
    let asked = match message {
        Message::CheckDependencies { dependencies, .. } => size_of_val(dependencies.as_slice()),
        _ => 0,
    };
    size_of::<Envelope>() + asked
}

/// A token that is merged waits like a partition does; that a core wants to be told of changes it says once.
pub(in crate::partition) fn waits_for_the_log(message: &Message) -> bool {
    matches!(
        message,
        Message::CheckDependencies { .. } | Message::AwaitTimes { .. } | Message::ReportChanges { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::{DatacenterId, Incarnation, LogicalTime, PartitionId, Position};

    fn keep(buffered: &mut Buffered, message: Message) {
        let at = |datacenter| Address::Partition {
            datacenter: DatacenterId(datacenter),
            partition: PartitionId(0),
        };
        let envelope = Envelope { from: at(1), to: at(0), time: LogicalTime::ZERO, message };
        buffered.keep_foreign(envelope);
    }

    #[test]
    fn of_what_a_datacenter_says_of_itself_the_latest_is_kept() {
        let mut buffered = Buffered::default();
        for number in 0..1_000 {
            keep(&mut buffered, Message::Heartbeat { end: Position(number) });
            keep(&mut buffered, Message::AskTime);
            let (datacenter, time) = (DatacenterId(2 + number as u8 % 2), LogicalTime(number));
            let received = Position(number);
            keep(&mut buffered, Message::DatacenterFailed { datacenter, received, time, ended: None });
        }
        let said: Vec<Message> =
            std::mem::take(&mut buffered).waiting.into_iter().map(|envelope| envelope.message).collect();
        let dead = |datacenter, number| Message::DatacenterFailed {
            datacenter: DatacenterId(datacenter),
            received: Position(number),
            time: LogicalTime(number),
            ended: None,
        };
        let heartbeat = Message::Heartbeat { end: Position(999) };
        assert_eq!(said, [dead(2, 998), heartbeat, Message::AskTime, dead(3, 999)]);
    }

    #[test]
    fn entries_that_nobody_asked_for_are_kept_up_to_a_bound() {
        let mut buffered = Buffered::default();
        for number in 1..=100 {
            let entries = vec![Bytes::from(vec![0; 1 << 20])];
            let first = Position(number);
            keep(&mut buffered, Message::StreamEntries { incarnation: Incarnation(1), first, entries });
        }
        let kept = std::mem::take(&mut buffered).waiting.len();
        assert!((10..=limits::BUFFERED_BYTES_MAX >> 20).contains(&kept), "{kept}");
        assert_eq!(buffered.entry_bytes, 0);
    }
}
