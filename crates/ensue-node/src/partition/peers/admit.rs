//! What only a partition's own state can tell of what comes from other datacenters, and how often each of them was
//! refused.

use crate::partition::Partition;
use crate::trace::Trace;
use ensue_types::DatacenterId;

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
