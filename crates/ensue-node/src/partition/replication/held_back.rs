//! What a partition does not say after its start: its directory may be an old copy, which cannot be seen there.
//!
//! Who has received what an old copy lacks says so when it introduces itself. As long as somebody has not, a third
//! datacenter, which may lack the same, is sent no entry that was written since the start, for its position may be
//! taken, and is promised no time, for what will be taken back has older stamps. Whoever has introduced itself has
//! shown that it lacks nothing. That ends after a while: beside a datacenter that cannot be reached the others go on.

use super::Replication;
use ensue_types::{DatacenterId, Position};
use std::collections::BTreeSet;

/// See the module.
#[derive(Clone, Debug)]
pub(in crate::partition) struct HeldBack {
    /// The end of the own stream at the start.
    after: Position,
    /// Datacenters that have not said how much of the own stream they have.
    unreported: BTreeSet<DatacenterId>,
    until_us: u64,
}

impl HeldBack {
    fn concerns(&self, datacenter: DatacenterId) -> bool {
        self.unreported.iter().any(|unreported| *unreported != datacenter)
    }
}

impl Replication {
    /// The partition begins to serve; these datacenters have not said how much they have.
    pub(in crate::partition) fn hold_back(
        &mut self,
        after: Position,
        unreported: BTreeSet<DatacenterId>,
        until_us: u64,
    ) {
        self.held_back = (!unreported.is_empty()).then_some(HeldBack { after, unreported, until_us });
    }

    /// Whether a datacenter may be told up to when everything was sent to it.
    pub(in crate::partition) fn may_close_time(&self, datacenter: DatacenterId) -> bool {
        self.held_back.as_ref().is_none_or(|held| !held.concerns(datacenter))
    }

    /// The last position that may be sent to a datacenter, of those up to `end`.
    pub(in crate::partition) fn end_for(&self, datacenter: DatacenterId, end: Position) -> Position {
        match &self.held_back {
            Some(held) if held.concerns(datacenter) => end.min(held.after),
            _ => end,
        }
    }

    /// A datacenter has said how much it has, or is not waited for any more. What may be sent from now on leaves at the
    /// end of the turn.
    pub(in crate::partition) fn note_reported(&mut self, datacenter: DatacenterId) {
        let Some(held) = &mut self.held_back else { return };
        let was_awaited = held.unreported.remove(&datacenter);
        if held.unreported.is_empty() {
            self.held_back = None;
        }
        if was_awaited {
            // A time is due to everybody.
            self.acknowledgements.acknowledge_all_soon();
        }
    }

    /// Who has not said how much it has, of those that are living, if nobody is waited for any longer.
    pub(in crate::partition) fn overdue_reports(&self, now_us: u64) -> Vec<DatacenterId> {
        let late = self.held_back.as_ref().filter(|held| now_us >= held.until_us);
        late.into_iter().flat_map(|held| &held.unreported).copied().collect()
    }

    /// Who is waited for.
    pub(in crate::partition) fn unreported(&self) -> impl Iterator<Item = DatacenterId> {
        self.held_back.iter().flat_map(|held| &held.unreported).copied()
    }
}
