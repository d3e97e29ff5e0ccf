//! A datacenter is removed in good order while clients work.
//!
//! An operator says so at one of its nodes. When all its partitions have said that they are done, its machines are
//! switched off, and never come back: whatever was acknowledged there must be elsewhere then.

use super::World;
use crate::world::shape::Site;
use ensue_node::Trace;
use ensue_types::{CoreId, PartitionId};
use std::collections::BTreeSet;

/// How far it is.
#[derive(Debug, Default)]
pub(super) struct Retiring {
    /// Somebody has said so.
    is_begun: bool,
    done: BTreeSet<PartitionId>,
    is_off: bool,
}

impl World {
    /// An operator begins to have the last datacenter removed. False if that has begun.
    pub fn retire(&mut self) -> bool {
        let Some(datacenter) = self.options.retiree().filter(|_| !self.growth.retiring.is_begun) else {
            return false;
        };
        self.growth.retiring.is_begun = true;
        self.operate_removal(self.options.shape.site(datacenter, CoreId(0)), datacenter);
        true
    }

    /// Whether the machines of the one that was removed have been switched off.
    pub fn has_retired(&self) -> bool {
        self.growth.retiring.is_off
    }

    /// Whether clients of a datacenter may be refused, since it is being removed.
    pub(super) fn is_retiring(&self, datacenter: ensue_types::DatacenterId) -> bool {
        self.growth.retiring.is_begun && self.options.retiree() == Some(datacenter)
    }

    /// Whether a partition stops because its datacenter was removed; then that is noted.
    pub(super) fn note_retired(&mut self, site: Site, trace: &Trace) -> bool {
        let Trace::PartitionStopped { partition, reason } = trace else { return false };
        let is_done = reason.starts_with("RETIRED ") && self.is_retiring(self.options.shape.datacenter(site));
        if is_done {
            self.growth.retiring.done.insert(*partition);
        }
        is_done
    }

    /// When all are done the machines go.
    pub(super) fn switch_off_the_retired(&mut self) {
        let is_done = self.growth.retiring.done.len() == usize::from(self.options.shape.partitions);
        if let Some(datacenter) = self.options.retiree().filter(|_| is_done && !self.growth.retiring.is_off) {
            self.growth.retiring.is_off = true;
            self.lose(datacenter);
        }
    }
}
