//! What only a partition's own state can tell of what comes from other datacenters, and how often each of them was
//! refused.

use super::Peers;
use crate::admission::{Admission, Arrival, Verdict};
use crate::partition::Partition;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::transactions::Transactions;
use crate::trace::Trace;
use ensue_branch::Note;
use ensue_store::entry::{Change, Entry};
use ensue_types::{DatacenterId, LogicalTime, Position};

impl Peers {
    /// How often this datacenter was refused.
    pub(crate) fn refused(&self, from: DatacenterId) -> u64 {
        self.refused.get(&from).copied().unwrap_or(0)
    }
}

impl Cx {
    /// Judges an own entry that comes back: it counts whatever the clock of this machine says.
    pub(in crate::partition) fn judge_own(&self, entry: &Entry) -> Verdict {
        let (own, origin, position) = (self.id, self.datacenter, entry.position);
        let (latest, is_final) = (LogicalTime::MAX, |_| true);
        self.admission().entry(Arrival { own, origin, position, latest, is_final: &is_final }, entry)
    }

    pub(crate) fn admission(&self) -> Admission<'_> {
        Admission { topology: &self.config.topology, protocols: &self.protocols }
    }
}

impl Transactions {
    /// Judges an entry of a datacenter's stream before it is logged.
    pub(in crate::partition) fn judge_entry(
        &self,
        cx: &Cx,
        others: &Others,
        keyspaces: &Keyspaces,
        origin: DatacenterId,
        position: Position,
        entry: &Entry,
    ) -> Verdict {
        let latest_ms = cx.now.wall_ms.saturating_add(cx.config.tuning.clock_ahead_ms_max);
        let latest = LogicalTime(LogicalTime::from_ms(latest_ms.saturating_add(1)).0.saturating_sub(1));
        let is_final = |datacenter: DatacenterId| others.failover.dead.contains(datacenter);
        let own = cx.id;
        cx.admission().entry(Arrival { own, origin, position, latest, is_final: &is_final }, entry)?;
        match &entry.change {
            Change::Effects { transaction: Some(transaction), .. }
                if self.replicated_parts.contains_key(transaction) =>
            {
                Err("a second part of a transaction")
            }
            Change::Branch { keyspace, note } => match Note::decode(note.clone()) {
                Ok(Note::Commit(commit)) if !keyspaces.branching.may_follow(*keyspace, &commit) => {
                    Err("a state far above all that are known")
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

impl Partition {
    /// Something that a datacenter said was refused.
    pub(crate) fn count_refused(&mut self, from: DatacenterId) {
        // The names of those that there are not would be as many as somebody likes.
        if usize::from(from.0) < self.cx.config.topology.datacenters.len() {
            *self.peers.refused.entry(from).or_default() += 1;
        }
    }

    /// What a datacenter has sent is dropped.
    pub(in crate::partition) fn refuse_from(&mut self, from: DatacenterId, what: &'static str) {
        self.count_refused(from);
        self.cx.trace(Trace::Refused { what });
    }
}
