//! What only a partition's own state can tell of what comes from other datacenters, and how often each of them was
//! refused.

use super::Partition;
use crate::admission::{Admission, Arrival, Verdict};
use crate::trace::Trace;
use ensue_branch::Note;
use ensue_store::entry::{Change, Entry};
use ensue_types::{DatacenterId, LogicalTime, Position};

impl Partition {
    /// Something that a datacenter said was refused.
    pub(crate) fn count_refused(&mut self, from: DatacenterId) {
        // The names of those that there are not would be as many as somebody likes.
        if usize::from(from.0) < self.config.topology.datacenters.len() {
            *self.refused.entry(from).or_default() += 1;
        }
    }

    /// How often this datacenter was refused.
    pub(super) fn refused(&self, from: DatacenterId) -> u64 {
        self.refused.get(&from).copied().unwrap_or(0)
    }

    /// What a datacenter has sent is dropped.
    pub(super) fn refuse_from(&mut self, from: DatacenterId, what: &'static str) {
        self.count_refused(from);
        self.trace(Trace::Refused { what });
    }

    /// Judges an entry of a datacenter's stream before it is logged.
    pub(super) fn judge_entry(&self, origin: DatacenterId, position: Position, entry: &Entry) -> Verdict {
        let latest_ms = self.now.wall_ms.saturating_add(self.config.tuning.clock_ahead_ms_max);
        let latest = LogicalTime(LogicalTime::from_ms(latest_ms.saturating_add(1)).0.saturating_sub(1));
        let is_final = |datacenter: DatacenterId| self.dead.contains(datacenter);
        let own = self.id;
        self.admission().entry(Arrival { own, origin, position, latest, is_final: &is_final }, entry)?;
        match &entry.change {
            Change::Effects { transaction: Some(transaction), .. }
                if self.transactions.replicated_parts.contains_key(transaction) =>
            {
                Err("a second part of a transaction")
            }
            Change::Branch { keyspace, note } => match Note::decode(note.clone()) {
                Ok(Note::Commit(commit)) if !self.branching.may_follow(*keyspace, &commit) => {
                    Err("a state far above all that are known")
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Judges an own entry that comes back: it counts whatever the clock of this machine says.
    pub(super) fn judge_own(&self, entry: &Entry) -> Verdict {
        let (own, origin, position) = (self.id, self.datacenter, entry.position);
        let (latest, is_final) = (LogicalTime::MAX, |_| true);
        self.admission().entry(Arrival { own, origin, position, latest, is_final: &is_final }, entry)
    }

    fn admission(&self) -> Admission<'_> {
        Admission { topology: &self.config.topology, protocols: &self.protocols }
    }
}
