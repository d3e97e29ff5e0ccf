//! Entries that are not in memory any more, read from the log: for a datacenter that lags, for one that lost the tail
//! of its own stream, for a survivor that lacks the end of a dead one's.

use super::Replication;
use crate::partition::cx::Cx;
use crate::partition::journal::{NextRead, ReadFor};
use bytes::Bytes;
use ensue_types::{DatacenterId, LogicalTime, Position};
use ensue_wire::{Address, Message};

impl Replication {
    /// Everything logged is synced, so what stands now is durable: the end of most turns under `always`.
    pub(in crate::partition) fn all_is_durable(&mut self, shown: LogicalTime) {
        self.acknowledgements.note_shown(shown);
        for (datacenter, set) in self.applied.sets() {
            self.acknowledgements.note_applied(datacenter, (set.watermark.incarnation(), set.watermark));
        }
        for (datacenter, receiver) in &mut self.receivers {
            let received = receiver.received();
            self.acknowledgements.note_received(*datacenter, receiver, received);
        }
    }

    pub(in crate::partition) fn read_old_entries(&mut self, cx: &mut Cx) {
        while let Some(next) = cx.journal.next_read() {
            let purpose = match next {
                NextRead::Disk(op) => return cx.disk_ops.push_back(op),
                NextRead::Unwritten(purpose) => purpose,
            };
            // What was asked for is not written yet: it is asked for again.
            match purpose {
                ReadFor::Stream(datacenter) => {
                    if let Some(sender) = self.senders.get_mut(&datacenter) {
                        sender.reading = false;
                    }
                }
                ReadFor::TailFetch(datacenter, after) => self.send_tail(cx, datacenter, after, Vec::new()),
                ReadFor::PassOn(to, origin) => cx.pass_on(to, origin, Vec::new()),
                ReadFor::Compare(..) => {}
            }
        }
    }

    /// Another datacenter lost the tail of its stream. It is told how far it was received here, and given what follows.
    pub(in crate::partition) fn on_tail_fetch(&mut self, cx: &mut Cx, origin: DatacenterId, after: Position) {
        let Some(receiver) = self.receivers.get(&origin) else { return };
        if receiver.received() <= after {
            return self.send_tail(cx, origin, after, Vec::new());
        }
        cx.journal.read_received_after(origin, after);
        self.read_old_entries(cx);
    }

    /// Answers with the entries read, as many as fit into one message.
    pub(in crate::partition) fn send_tail(
        &mut self,
        cx: &mut Cx,
        origin: DatacenterId,
        after: Position,
        read: Vec<(Position, Bytes)>,
    ) {
        let received = self.receivers.get(&origin).map(|receiver| receiver.received()).unwrap_or_default();
        let most = cx.config.tuning.stream_batch_entries;
        let entries = read.into_iter().map(|(_, entry)| entry).take(most).collect();
        let to = Address::Partition { datacenter: origin, partition: cx.id };
        cx.send(to, Message::TailFetched { after, received, entries });
    }
}
