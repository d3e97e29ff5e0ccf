//! `orbe-dm`: causal+ by matrices of update counts; a write waits where it arrives, and its origin's writes keep their
//! order.
//!
//! Du, Elnikety, Roy, Zwaenepoel, "Orbe: Scalable Causal Consistency Using Dependency Matrices and Physical Clocks",
//! SoCC 2013, sections 3, 5.1 and 6. The rules:
//!
//! - A session has a sparse matrix, one row a partition, one column a datacenter: how many updates of that replica it
//!   may depend on. A read raises the element of what it read (3.2).
//! - A write carries the matrix; then the matrix is that write alone (3.2). A count of a replica is a position of its
//!   stream.
//! - A write from elsewhere shows after the row of its own partition, and then the other partitions' version vectors,
//!   cover its matrix; and after everything before it in its origin's stream (3.2).
//! - A write carries what it replaced at its writer. Where it replaces, or is beaten by, something else, the two are in
//!   conflict, and it is counted; the last writer stays (3.4).
//! - A read returns the newest that shows, and never waits. Reads of several keys are parallel reads.
//! - Dependency cleaning: what every datacenter has applied is not remembered (section 6). The acknowledgements of the
//!   streams already carry what each datacenter has durably applied of every origin, so it costs no message.
//!
//! Where we differ from the paper:
//! - Counts do not arbitrate (trap 20): the newest is the one with the highest stamp, which is above everything that
//!   its session had seen.
//! - The item dependency timestamp is the identity of the write that was replaced, and that write is a dependency, as
//!   in COPS-CD (section 5.3): else a write that overtakes what it replaced would be told from a conflict by nothing.
//! - It finds conflicts but must not resolve them: it is not transitive (trap 21). Nor is it needed to converge.
//! - The matrix is reset by what was sent with the write, since a session's commands are executed in order (trap 19).
//! - An update is cleaned when every datacenter has applied it durably (trap 29).
//! - Counts carry the incarnation of the stream, so none is used twice (trap 27); an incarnation's first entry says
//!   what was lost before it, and waits for nothing.

use crate::matrix::Matrix;
use crate::{Capabilities, Family, Needs, Options, Profile, Promises, Protocol, Registration, SnapshotReads};

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "orbe-dm",
    capabilities: Capabilities {
        snapshot_reads: SnapshotReads::None,
        write_transactions: false,
        causality: true,
        available: true,
    },
    promises: Promises::CAUSAL_SINGLE_KEYS,
    make: |options| Box::new(OrbeDm::new(options)),
};

/// The protocol.
#[derive(Debug)]
struct OrbeDm {
    profile: Profile,
}

impl OrbeDm {
    fn new(options: Options) -> OrbeDm {
        let remembers_settled = !options.dependency_cleaning;
        let needs = Needs { previous_versions: true, remembers_settled, ..Needs::default() };
        OrbeDm { profile: REGISTRATION.profile(needs) }
    }
}

impl Protocol for OrbeDm {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &Matrix
    }
}
