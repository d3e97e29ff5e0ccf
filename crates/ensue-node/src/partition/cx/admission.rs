//! What may be believed of what others say: entries of the own stream, and names that this partition issued.

use super::Cx;
use crate::admission::{Admission, Arrival, Verdict};
use ensue_store::entry::Entry;
use ensue_types::{DatacenterId, Dependency, Extent, LogicalTime, OperationId, Position, Rule};
use ensue_wire::Address;

impl Cx {
    /// Judges an own entry that comes back: it counts whatever the clock of this machine says.
    pub(in crate::partition) fn check_own(&self, entry: &Entry) -> Verdict {
        let (own, origin, position) = (self.id, self.datacenter, entry.position);
        let (latest, is_final) = (LogicalTime::MAX, |_| true);
        self.admission().entry(Arrival { own, origin, position, latest, is_final: &is_final }, entry)
    }

    pub(crate) fn admission(&self) -> Admission<'_> {
        Admission { topology: &self.config.topology, protocols: &self.protocols }
    }

    /// Whether a session asks about something that this partition has not issued. Other partitions ask for entries of
    /// other datacenters: there is nothing to wait for, and all datacenters must show the same.
    pub(in crate::partition) fn is_refused_as_never_issued(
        &self,
        from: Address,
        operation: &OperationId,
    ) -> bool {
        matches!(from, Address::Core { .. })
            && operation.datacenter == self.datacenter
            && operation.position > self.position
            && Rule::RefuseWhatWasNeverIssued.holds()
    }

    pub(in crate::partition) fn something_of(&self, datacenter: DatacenterId) -> Dependency {
        let operation = OperationId {
            datacenter,
            incarnation: self.incarnation,
            partition: self.id,
            position: Position(0),
        };
        Dependency { operation, extent: Extent::Through }
    }
}
