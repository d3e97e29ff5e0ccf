//! Whether an entry of another datacenter's stream can be what it says.

use super::Transactions;
use crate::admission::{Arrival, Verdict};
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use ensue_branch::Note;
use ensue_store::entry::{Change, Entry};
use ensue_types::{DatacenterId, LogicalTime, Position};

impl Transactions {
    /// Judges an entry of a datacenter's stream before it is logged.
    pub(in crate::partition) fn check_entry(
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
        let is_final = |datacenter: DatacenterId| others.failover.failed.contains(datacenter);
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
