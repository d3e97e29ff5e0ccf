//! What comes before the log is read, or before its lost tail is back: kept in order, and taken up when the partition can.
//!
//! Partitions say again what they are not answered, and send no more than their windows let them: what comes of them is kept.
//! A session gives up what it asked after `request-timeout`, and tells its client so: older requests are dropped. Only what
//! it asks about its past waits as long as the client wants. What sessions ask is kept up to a bound in bytes, and refused beyond.

use super::Partition;
use bytes::Bytes;
use ensue_types::{Args, Now, Part, limits};
use ensue_wire::{Address, Envelope, Message};
use std::collections::VecDeque;

/// Messages with their times of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Early {
    waiting: VecDeque<(u64, Envelope)>,
    /// What those of sessions take.
    session_bytes: usize,
}

impl Early {
    /// Keeps a message; gives it back if what sessions asked takes too much already.
    pub(super) fn keep(&mut self, now: Now, envelope: Envelope) -> Option<Envelope> {
        if is_of_session(&envelope) {
            if self.session_bytes >= limits::EARLY_BYTES_MAX {
                return Some(envelope);
            }
            self.session_bytes += bytes_of(&envelope.message);
        }
        self.waiting.push_back((now.monotonic_us, envelope));
        None
    }

    /// Drops what is not to be taken up.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&Envelope) -> bool) {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting = waiting.into_iter().filter(|(_, envelope)| is_kept(envelope)).collect();
        let of_sessions = self.waiting.iter().filter(|(_, envelope)| is_of_session(envelope));
        self.session_bytes = of_sessions.map(|(_, envelope)| bytes_of(&envelope.message)).sum();
    }

    /// All of them, but for requests of sessions that have waited for so long.
    fn take(&mut self, now_us: u64, timeout_us: u64) -> impl Iterator<Item = Envelope> + use<> {
        let Early { waiting, .. } = std::mem::take(self);
        let is_asked = move |(came_us, envelope): &(u64, Envelope)| {
            let is_late = now_us.saturating_sub(*came_us) >= timeout_us;
            !is_late || !is_of_session(envelope) || is_about_the_past(&envelope.message)
        };
        waiting.into_iter().filter(is_asked).map(|(_, envelope)| envelope)
    }
}

impl Partition {
    /// It cannot be taken yet.
    pub(super) fn keep_early(&mut self, envelope: Envelope) {
        if let Some(envelope) = self.early.keep(self.now, envelope) {
            let reason = format!(
                "UNAVAILABLE partition {} is still reading its log, and too much waits for it already",
                self.id
            );
            self.refuse(&envelope, &reason);
        }
    }

    /// Begins to serve, or to refuse: what came early is taken now.
    pub(super) fn take_early(&mut self) {
        let timeout_us = 1_000 * self.config.tuning.request_timeout_ms;
        for envelope in self.early.take(self.now.monotonic_us, timeout_us) {
            self.on_message(self.now, envelope);
        }
    }
}

fn is_of_session(envelope: &Envelope) -> bool {
    matches!(envelope.from, Address::Core { .. })
}

/// Whether a session waits for the answer as long as its client says.
fn is_about_the_past(message: &Message) -> bool {
    matches!(
        message,
        Message::CheckDependencies { .. }
            | Message::AwaitTimes { .. }
            | Message::AwaitReplicas { .. }
            | Message::CountReplicas { .. }
    )
}

/// What a session's message takes in memory, but for small change.
fn bytes_of(message: &Message) -> usize {
    let of = |args: &Args| args.iter().map(|argument| argument.len() + size_of::<Bytes>()).sum::<usize>();
    let of_part = |part: &Part| part.commands.iter().map(|(_, args)| of(args)).sum::<usize>();
    let asked = match message {
        Message::Execute { commands, context, .. } => {
            commands.iter().map(of).sum::<usize>() + context.facts.0.len()
        }
        Message::ReadFirst { commands, .. } | Message::ReadAt { commands, .. } => {
            commands.iter().map(of).sum()
        }
        Message::Transact { parts, context, .. } | Message::ReadCut { parts, context, .. } => {
            parts.iter().map(of_part).sum::<usize>() + context.facts.0.len()
        }
        Message::ContextMerge { context, .. } => context.facts.0.len(),
        Message::CheckDependencies { dependencies, .. }
        | Message::AwaitReplicas { dependencies, .. }
        | Message::CountReplicas { dependencies, .. } => size_of_val(dependencies.as_slice()),
        _ => 0,
    };
    size_of::<Envelope>() + asked
}
