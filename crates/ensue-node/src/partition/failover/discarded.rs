//! What a dead datacenter took with it, for the protocols that go by times: what may depend on that is discarded.
//!
//! The streams of the dead one's partitions end at different times. What is here of it may depend on something later
//! that is nowhere (POCC, section 7.1), and what others have written since may depend on that in turn. When all
//! partitions of this datacenter have the ends (`dead`), partition 0 gathers them in two rounds: up to when everything
//! is whole, and which is the first write left that names something later. Both are the same in every survivor, since
//! the streams are. Then each partition by itself takes out what its protocol says may depend on what was lost,
//! whatever has arrived and whatever arrives later; keeps a list of it for the operator (`listing`); and from then on
//! the dead one's time counts as here for ever. Sessions that may have seen something of it are told once.
//!
//! The list is also that of the protocols which name operations, whose entries are discarded by their names
//! (`unrecoverable`).

mod listing;

use super::failed::{FailedDatacenters, StreamEnd};
use crate::partition::cx::Cx;
use ensue_protocol::Loss;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_store::record::Record;
use ensue_types::{
    Causes, DatacenterId, DatacenterSet, KeyspaceId, LogicalTime, OperationId, PartitionId, Position, Reply,
    Rule, TimeVector,
};
use ensue_wire::Message;
pub use listing::describe_write;
use std::collections::BTreeMap;

/// The partition that gathers what all say.
pub(in crate::partition) const GATHERER: PartitionId = PartitionId(0);

/// The losses, and what was discarded with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discarded {
    losses: Vec<Loss>,
    /// By the names of the writes, so that none is listed twice.
    writes: BTreeMap<OperationId, DiscardedWrite>,
    /// Entries of dead datacenters that are gone and have no effects on rows of their own: flushes, and those that
    /// named transactions.
    others: BTreeMap<(DatacenterId, Position), Entry>,
    /// At partition 0: what each partition has said.
    gathered: BTreeMap<DatacenterId, Gathered>,
}

#[derive(Clone, Debug, Default)]
struct Gathered {
    whole: BTreeMap<PartitionId, LogicalTime>,
    /// Who had failed before one of them had the end of its stream.
    failed: DatacenterSet,
    doubtful: BTreeMap<PartitionId, LogicalTime>,
}

#[derive(Clone, Debug)]
struct DiscardedWrite {
    lost: DatacenterId,
    entry: Entry,
}

impl Discarded {
    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether what depends on what this datacenter took with it is discarded here.
    pub(crate) fn knows(&self, datacenter: DatacenterId) -> bool {
        self.loss_of(datacenter).is_some()
    }

    pub(in crate::partition) fn losses(&self) -> impl Iterator<Item = Loss> + '_ {
        self.losses.iter().copied()
    }

    pub(in crate::partition) fn add_loss(&mut self, loss: Loss) {
        self.losses.push(loss);
    }

    /// Whether anything was lost for good with a dead datacenter.
    pub(in crate::partition) fn has_losses(&self) -> bool {
        !self.losses.is_empty()
    }

    pub(in crate::partition) fn loss_of(&self, datacenter: DatacenterId) -> Option<Loss> {
        self.losses.iter().find(|loss| loss.datacenter == datacenter).copied()
    }

    /// What a checkpoint must hold of it.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        let losses = self.losses.iter().map(|loss| {
            let Loss { datacenter, whole, doubtful, failed } = *loss;
            Record::Lost { datacenter, whole, doubtful, failed }
        });
        let writes = self.writes.values().map(|write| Record::Discarded {
            datacenter: write.lost,
            entry: layout::encode_entry(&write.entry),
        });
        let others = self.others.iter().map(|(&(datacenter, _), entry)| Record::Discarded {
            datacenter,
            entry: layout::encode_entry(entry),
        });
        losses.chain(writes).chain(others)
    }

    /// An entry of a dead datacenter that is gone.
    pub(in crate::partition) fn add_unrecoverable(&mut self, operation: OperationId, entry: Entry) {
        let origin = entry.stamp.datacenter;
        match &entry.change {
            Change::Effects { transaction, .. } => self.add(origin, transaction.unwrap_or(operation), entry),
            _ => drop(self.others.insert((origin, entry.position), entry)),
        }
    }

    pub(in crate::partition) fn add(&mut self, lost: DatacenterId, operation: OperationId, mut entry: Entry) {
        let Change::Effects { transaction, effects, .. } = &mut entry.change else { return };
        *transaction = Some(operation);
        let effects = std::mem::take(effects);
        let write = self.writes.entry(operation).or_insert(DiscardedWrite { lost, entry });
        let Change::Effects { effects: known, .. } = &mut write.entry.change else { return };
        for effect in effects {
            if !known.contains(&effect) {
                known.push(effect);
            }
        }
        known.sort_by(|one, other| (&one.key, &one.column).cmp(&(&other.key, &other.column)));
    }
}

/// What is said of a loss that is known.
pub(in crate::partition) fn loss_message(loss: Loss) -> Message {
    let Loss { datacenter, whole, doubtful, failed } = loss;
    Message::Lost { datacenter, whole, failed, doubtful: Some(doubtful) }
}

impl FailedDatacenters {
    /// A dead datacenter's stream has its end here, and in every other survivor. It is said by who knows the loss, too:
    /// partition 0 may have lost it with the end of its log.
    pub(in crate::partition) fn report_ended(&mut self, cx: &mut Cx, datacenter: DatacenterId) {
        let cuts = cx.protocols.iter().any(|protocol| protocol.needs().snapshot_vectors);
        let Some(StreamEnd { whole, failed, everywhere: true }) = self.end(datacenter) else { return };
        if cuts {
            cx.send_local(GATHERER, Message::Ended { datacenter, whole, failed, doubtful: None });
        }
    }

    /// Partition 0 may have restarted, and forgotten what it was told.
    pub(in crate::partition) fn report_ended_again(&mut self, cx: &mut Cx) {
        for datacenter in self.datacenters().collect::<Vec<_>>() {
            self.report_ended(cx, datacenter);
        }
    }
}

impl Discarded {
    /// At partition 0.
    pub(in crate::partition) fn on_ended(
        &mut self,
        cx: &mut Cx,
        from: PartitionId,
        datacenter: DatacenterId,
        whole: LogicalTime,
        failed: DatacenterSet,
        doubtful: Option<LogicalTime>,
    ) {
        if let Some(loss) = self.loss_of(datacenter) {
            return cx.send_local(from, loss_message(loss));
        }
        let partitions = usize::from(cx.config.topology.partitions);
        let gathered = self.gathered.entry(datacenter).or_default();
        let least = |said: &BTreeMap<PartitionId, LogicalTime>| {
            (said.len() == partitions).then(|| said.values().copied().min()).flatten()
        };
        match doubtful {
            None => {
                gathered.whole.insert(from, whole);
                gathered.failed = gathered.failed.union(failed);
            }
            Some(doubtful) => drop(gathered.doubtful.insert(from, doubtful)),
        }
        let (Some(whole), failed) = (least(&gathered.whole), gathered.failed) else { return };
        let all_doubtful = least(&gathered.doubtful);
        if doubtful.is_some() && all_doubtful.is_none() {
            return;
        }
        // Asked anew, all answer anew: one of them may not have heard.
        let doubtful = doubtful.and(all_doubtful);
        for partition in (0..cx.config.topology.partitions).map(PartitionId) {
            cx.send_local(partition, Message::Lost { datacenter, whole, failed, doubtful });
        }
    }

    /// The first of a dead datacenter's times through which a write that was discarded with another one may depend on
    /// what was lost: in whatever order the losses are decided, all count.
    pub(in crate::partition) fn first_doubtful(&self, cx: &Cx, loss: &Loss) -> Option<LogicalTime> {
        let from = |write: &DiscardedWrite| {
            let Entry { stamp, dependencies, .. } = &write.entry;
            cx.protocol(write.entry.keyspace()).doubtful_from(*stamp, dependencies, loss)
        };
        self.writes.values().filter_map(from).min()
    }

    /// Whether an entry that has just come is discarded; then it is listed.
    pub(in crate::partition) fn discards(&mut self, cx: &Cx, operation: OperationId, entry: &Entry) -> bool {
        let Change::Effects { keyspace, .. } = &entry.change else { return false };
        if self.losses.is_empty() || !Rule::DiscardWhatDependsOnLost.holds() {
            return false;
        }
        let protocol = cx.protocols[usize::from(keyspace.0)].as_ref();
        let depends =
            |loss: &&Loss| protocol.depends_on_lost(entry.stamp.datacenter, &entry.dependencies, loss);
        let Some(loss) = self.losses.iter().find(depends) else { return false };
        self.add(loss.datacenter, operation, entry.clone());
        true
    }

    /// A session that may have seen what was discarded is told, and is a new one.
    pub(in crate::partition) fn reset_if_lost(
        &self,
        cx: &Cx,
        keyspace: KeyspaceId,
        causes: &mut Causes,
    ) -> Result<(), Reply> {
        if !Rule::PartFromTheLost.holds() {
            return Ok(());
        }
        let protocol = cx.protocol(keyspace);
        self.losses.iter().try_for_each(|loss| protocol.reset_if_lost(causes, loss))
    }

    /// What leaves this partition as a past is whole again.
    pub(in crate::partition) fn strip_lost(&self, cx: &Cx, keyspace: KeyspaceId, causes: &mut Causes) {
        for loss in &self.losses {
            cx.protocol(keyspace).strip_lost(causes, loss);
        }
    }

    /// Whether a cut was drawn by a partition that did not know of a loss yet; then it is told.
    pub(in crate::partition) fn report_unknown_loss(
        &mut self,
        cx: &mut Cx,
        keyspace: KeyspaceId,
        snapshot: &TimeVector,
        to: ensue_wire::Address,
    ) -> bool {
        let protocol = cx.protocol(keyspace);
        let Some(loss) = self.losses.iter().find(|loss| protocol.shows_lost(snapshot, loss)) else {
            return false;
        };
        let message = loss_message(*loss);
        cx.send(to, message);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ensue_types::{Column, Effect, Incarnation, RowEffect, Seen, Stamp};

    /// One of the entries by which a write came: each partition, and each turn of a replay, brings a share of its
    /// effects.
    fn share(keys: &[&'static str]) -> Entry {
        let effect = |key: &&'static str| RowEffect {
            key: Bytes::from_static(key.as_bytes()),
            column: Column::Text,
            effect: Effect::Delete { seen: Seen::default() },
        };
        let effects = keys.iter().map(effect).collect();
        let change = Change::Effects { keyspace: KeyspaceId(0), transaction: None, effects };
        let (position, stamp) = (Position(1), Stamp::ZERO);
        Entry { position, stamp, dependencies: Causes::Nothing, change, previous: Vec::new() }
    }

    #[test]
    fn a_write_is_listed_once_with_all_its_effects_each_once() {
        let operation = OperationId {
            datacenter: DatacenterId(1),
            incarnation: Incarnation(1),
            partition: PartitionId(0),
            position: Position(1),
        };
        let mut discarded = Discarded::default();
        assert!(!discarded.knows(DatacenterId(1)));
        for keys in [&["b"][..], &["a", "b"], &["c", "a"]] {
            discarded.add(DatacenterId(1), operation, share(keys));
        }
        assert_eq!(discarded.len(), 1);
        let Change::Effects { effects, transaction, .. } = &discarded.writes[&operation].entry.change else {
            panic!("a write has effects");
        };
        let keys: Vec<&[u8]> = effects.iter().map(|effect| &effect.key[..]).collect();
        assert_eq!((keys, *transaction), (vec![&b"a"[..], b"b", b"c"], Some(operation)));
    }
}
