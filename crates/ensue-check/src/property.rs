//! What a history is judged by. Each is defined in `docs/checking.md`, and both checkers implement that text.

use std::fmt;

/// A promise that a history keeps or breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    ReadIntegrity,
    ReadYourWrites,
    MonotonicReads,
    MonotonicWrites,
    WritesFollowReads,
    ReadAtomic,
    Causal,
    CausalConvergent,
    SnapshotReads,
    Counters,
    Convergence,
    /// About real time, so not among those that a causal store promises.
    Linearizable,
    DelayOnce,
    /// About queues.
    PoppedOnce,
    PoppedAtLeastOnce,
}

impl Property {
    /// Every property.
    pub const ALL: [Property; 15] = [
        Property::ReadIntegrity,
        Property::ReadYourWrites,
        Property::MonotonicReads,
        Property::MonotonicWrites,
        Property::WritesFollowReads,
        Property::ReadAtomic,
        Property::Causal,
        Property::CausalConvergent,
        Property::SnapshotReads,
        Property::Counters,
        Property::Convergence,
        Property::Linearizable,
        Property::DelayOnce,
        Property::PoppedOnce,
        Property::PoppedAtLeastOnce,
    ];

    /// What is judged unless something else is asked for: what a causal store promises of registers and counters.
    pub const DEFAULT: [Property; 11] = *Property::ALL.first_chunk().expect("there are so many");

    /// As the command line and files name it.
    pub fn name(self) -> &'static str {
        match self {
            Property::ReadIntegrity => "read-integrity",
            Property::ReadYourWrites => "read-your-writes",
            Property::MonotonicReads => "monotonic-reads",
            Property::MonotonicWrites => "monotonic-writes",
            Property::WritesFollowReads => "writes-follow-reads",
            Property::ReadAtomic => "read-atomic",
            Property::Causal => "causal",
            Property::CausalConvergent => "causal-convergent",
            Property::SnapshotReads => "snapshot-reads",
            Property::Counters => "counters",
            Property::Convergence => "convergence",
            Property::Linearizable => "linearizable",
            Property::DelayOnce => "delay-once",
            Property::PoppedOnce => "popped-once",
            Property::PoppedAtLeastOnce => "popped-at-least-once",
        }
    }

    /// As people call it.
    pub fn title(self) -> &'static str {
        match self {
            Property::ReadIntegrity => "read integrity",
            Property::ReadYourWrites => "read your writes",
            Property::MonotonicReads => "monotonic reads",
            Property::MonotonicWrites => "monotonic writes",
            Property::WritesFollowReads => "writes follow reads",
            Property::ReadAtomic => "read atomic",
            Property::Causal => "causal consistency (CC)",
            Property::CausalConvergent => "causal consistency with convergence (CCv)",
            Property::SnapshotReads => "snapshot reads",
            Property::Counters => "counters",
            Property::Convergence => "convergence of final reads",
            Property::Linearizable => "linearizable registers",
            Property::DelayOnce => "delay-once linearizable registers",
            Property::PoppedOnce => "elements of queues popped once",
            Property::PoppedAtLeastOnce => "elements of queues popped at least once",
        }
    }

    pub fn from_name(name: &str) -> Option<Property> {
        Property::ALL.into_iter().find(|property| property.name() == name)
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}
