//! Which cores of the datacenter can be asked: a node that is known to be down is answered for at once.
//!
//! - On a command that needs a partition of a core without a link: `UNAVAILABLE`, before anything of it is sent
//!   anywhere. So
//!   nothing of it is executed, a write neither.
//! - On a link that breaks while an answer is waited for: `exchange`.

use super::failure::{Failure, Reason};
use super::turn::Turn;
use ensue_types::{CoreId, PartitionId};
use std::collections::BTreeSet;

/// The cores besides the own one to which there is a link.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    up: BTreeSet<CoreId>,
}

impl Links {
    pub(super) fn on_up(&mut self, core: CoreId) {
        self.up.insert(core);
    }

    pub(super) fn on_down(&mut self, core: CoreId) {
        self.up.remove(&core);
    }

    pub(super) fn reaches(&self, own: CoreId, core: CoreId) -> bool {
        core == own || self.up.contains(&core)
    }
}

impl Turn<'_> {
    /// Ends the exchange that was just begun, if one of the partitions that it needs cannot be asked. Nothing of it
    /// may have
    /// been sent yet.
    pub(super) fn is_refused(&mut self, needed: impl IntoIterator<Item = PartitionId>) -> bool {
        let Some(partition) = needed.into_iter().find(|partition| !self.reaches(*partition)) else {
            return false;
        };
        let datacenter = self.desk.config.topology.datacenter;
        self.fail(&Failure::NoAnswer { datacenter, partition, reason: Reason::Away });
        true
    }

    /// Whether a partition can be asked.
    pub(super) fn reaches(&self, partition: PartitionId) -> bool {
        let config = &self.desk.config;
        let owner = config.topology.owner(config.topology.datacenter, partition);
        self.desk.links.reaches(config.core, owner)
    }
}
