//! What this partition and the same partitions of other datacenters say to each other, at every stage.

pub(in crate::partition) mod introductions;
pub(in crate::partition) mod old_entries;
pub(in crate::partition) mod siblings;
pub(in crate::partition) mod streams;

use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::peers::Peers;
use crate::partition::persistence::Persistence;
use crate::partition::transactions::Transactions;
use crate::partition::visibility::Visibility;
use crate::trace::Trace;
use ensue_types::{DatacenterId, LogicalTime};
use ensue_wire::Message;

/// A machine over parts of the partition, for as long as it runs.
pub(crate) struct Peering<'a> {
    pub(in crate::partition) cx: &'a mut Cx,
    pub(in crate::partition) others: &'a mut Others,
    pub(in crate::partition) keyspaces: &'a mut Keyspaces,
    pub(in crate::partition) transactions: &'a mut Transactions,
    pub(in crate::partition) durability: &'a mut Persistence,
    pub(in crate::partition) peers: &'a mut Peers,
}

impl Peering<'_> {
    pub(in crate::partition) fn visibility(&mut self) -> Visibility<'_> {
        Visibility {
            cx: self.cx,
            others: self.others,
            keyspaces: self.keyspaces,
            transactions: self.transactions,
        }
    }

    /// Takes what a datacenter says of its streams and directories; anything else is handed back.
    pub(in crate::partition) fn dispatch(
        &mut self,
        from: DatacenterId,
        time: LogicalTime,
        message: Message,
    ) -> Option<Message> {
        match message {
            Message::Introduce(introduction) => self.on_introduce(from, &introduction),
            Message::TailFetch { after } => self.others.replication.on_tail_fetch(self.cx, from, after),
            Message::StreamResume { received, .. } => self.on_stream_resume(from, received),
            Message::StreamEntries { first, entries, .. } => self.on_stream_entries(from, first, entries),
            Message::StreamAcknowledge(acknowledge) => self.on_stream_acknowledge(from, &acknowledge, time),
            Message::PassedOn { origin, entries } => self.on_passed_on(from, origin, entries),
            Message::BranchFetched { keyspace, rebuilt } => self.on_branch_fetched(from, keyspace, rebuilt),
            Message::CopyFetch { copy, part, again } => self.on_copy_fetch(from, (copy, part, again)),
            message => return Some(message),
        }
        None
    }

    /// What a datacenter has sent is dropped.
    pub(in crate::partition) fn refuse_from(&mut self, from: DatacenterId, what: &'static str) {
        self.peers.count_refused(self.cx, from);
        self.cx.trace(Trace::Refused { what });
    }
}
