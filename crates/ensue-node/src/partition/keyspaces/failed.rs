//! What a failed datacenter takes with it: what may depend on that is taken out of the rows.

use super::Keyspaces;
use crate::partition::cx::Cx;
use crate::partition::failover::discarded::{GATHERER, loss_message};
use crate::partition::failover::retirement::EVERYTHING;
use crate::partition::others::Others;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_protocol::Loss;
use ensue_store::entry::{Change, Entry};
use ensue_store::record::Record;
use ensue_types::{
    Carried, DatacenterId, DatacenterSet, KeyspaceId, LogicalTime, Reply, RowEffect, Rule, Source,
};
use ensue_wire::Message;

impl Keyspaces {
    /// From now on nothing is taken from this datacenter itself. Who declares it has everything of it up to this time.
    pub(in crate::partition) fn declare_dead(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        datacenter: DatacenterId,
        known_until: LogicalTime,
    ) {
        if others.failover.failed.contains(datacenter) || !others.replication.knows(datacenter) {
            return;
        }
        let is_retired = known_until == EVERYTHING && Rule::NothingIsLostWithTheRetired.holds();
        let received = others.stable_time.times.received().at(datacenter);
        let time = if is_retired { EVERYTHING } else { received };
        cx.journal.log(&Record::Dead { datacenter, time });
        others.failover.failed.declare(datacenter, time, cx.journal.log_end());
        self.branching.hear_again();
        others.replication.stop_streams(datacenter);
        cx.trace(Trace::DeclaredDead { partition: cx.id, datacenter });
        others.release_received(cx);
        others.answer_replica_waits(cx);
    }

    /// An operator asks what is known of a datacenter, or confirms that it is lost for good.
    pub(in crate::partition) fn execute_dead(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        name: &Bytes,
        confirmed: bool,
    ) -> Reply {
        let Some(datacenter) = cx.config.topology.datacenter_named(name) else {
            return Reply::error("ERR there is no datacenter of this name");
        };
        if !confirmed {
            return others.state_of(cx, datacenter);
        }
        self.declare_dead(cx, others, datacenter, LogicalTime::ZERO);
        Reply::OK
    }

    /// The first of a dead datacenter's times through which a write here may depend on what was lost: on something
    /// after `whole`. Those that were discarded with another dead datacenter count, too.
    fn first_doubtful(&self, cx: &Cx, others: &Others, loss: &Loss) -> LogicalTime {
        let mut first = others.failover.discarded.first_doubtful(cx, loss).unwrap_or(LogicalTime::MAX);
        for (rows, protocol) in self.keyspaces.iter().zip(cx.protocols.iter()) {
            let versions = rows.whole_rows().flat_map(|row| row.versions());
            for version in versions.flat_map(|versions| versions.unsettled()) {
                let Source { stamp, dependencies, .. } = &version.source;
                let from = |carried: &Carried| protocol.doubtful_from(*stamp, carried.causes(), loss);
                first = dependencies.as_deref().and_then(from).map_or(first, |time| first.min(time));
            }
        }
        first
    }

    /// Partition 0 says what was lost, or asks what may depend on it.
    pub(in crate::partition) fn on_lost(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        datacenter: DatacenterId,
        whole: LogicalTime,
        failed: DatacenterSet,
        doubtful: Option<LogicalTime>,
    ) {
        if let Some(loss) = others.failover.discarded.loss_of(datacenter) {
            // What was discarded is not here any more, so the question cannot be answered a second time.
            if doubtful.is_none() {
                cx.send_local(GATHERER, loss_message(loss));
            }
            return;
        }
        if others.failover.failed.end(datacenter).is_none() {
            return;
        }
        match doubtful {
            None => {
                // What these wrote may be doubtful: it is said again when all of it is here.
                if !failed.iter().all(|dead| others.failover.failed.is_settled(dead)) {
                    return;
                }
                let loss = Loss { datacenter, whole, doubtful: LogicalTime::MAX, failed };
                let doubtful = Some(self.first_doubtful(cx, others, &loss));
                cx.send_local(GATHERER, Message::Ended { datacenter, whole, failed, doubtful });
            }
            Some(doubtful) => {
                cx.journal.log(&Record::Lost { datacenter, whole, doubtful, failed });
                self.take_loss(cx, others, Loss { datacenter, whole, doubtful, failed });
                others.stable_time.look_again();
            }
        }
    }

    /// From here on what may depend on what was lost is as if it had never been.
    pub(in crate::partition) fn take_loss(&mut self, cx: &mut Cx, others: &mut Others, loss: Loss) {
        if others.failover.discarded.loss_of(loss.datacenter).is_some() {
            return;
        }
        others.failover.discarded.add_loss(loss);
        for number in 0..self.keyspaces.len() {
            self.discard_versions(cx, others, KeyspaceId(number as u8), &loss);
        }
        others.stable_time.note_lost(loss.datacenter);
        let protocols = cx.protocols.clone();
        for (keyspace, shared) in self.contexts.each() {
            // What its members will be told each for themselves must not come back with the name.
            drop(protocols[usize::from(keyspace.0)].reset_if_lost(&mut shared.causes, &loss));
        }
        others.note_all_applied(loss.datacenter);
        cx.trace(Trace::Discarded { partition: cx.id, count: others.failover.discarded.len() as u64 });
    }

    fn discard_versions(&mut self, cx: &Cx, others: &mut Others, keyspace: KeyspaceId, loss: &Loss) {
        let number = usize::from(keyspace.0);
        let protocol = cx.protocols[number].as_ref();
        if !protocol.needs().snapshot_vectors || !Rule::DiscardWhatDependsOnLost.holds() {
            return;
        }
        let depends = |source: &Source| {
            let carried = source.dependencies.as_deref();
            carried.is_some_and(|carried| {
                protocol.depends_on_lost(source.stamp.datacenter, carried.causes(), loss)
            })
        };
        for (key, column, version) in self.keyspaces[number].discard(&depends) {
            let dependencies = version.source.carried().clone();
            let Source { operation, stamp, .. } = version.source;
            let Some(effect) = version.effect else { continue };
            let effects = vec![RowEffect { key, column, effect }];
            let change = Change::Effects { keyspace, transaction: Some(operation), effects };
            let entry = Entry {
                position: operation.position,
                stamp,
                dependencies,
                previous: Default::default(),
                change,
            };
            others.failover.discarded.add(loss.datacenter, operation, entry);
        }
    }
}
