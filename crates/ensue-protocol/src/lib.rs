//! The six questions that every causally consistent store answers, as a trait, and one module a protocol.
//!
//! Everything else in the system is mechanism: a node asks these questions and never knows which protocol answers. What
//! a protocol remembers is a value of `Causes`, which has bytes only outside of a node. Nothing here does I/O, and
//! nothing here has state: a protocol is a set of rules, the state is the session's context and the write's
//! dependencies.
//!
//! Two halves:
//!
//! - `Protocol` (`protocol.rs`) is what each protocol answers itself: above all which versions a read returns, how
//!   several keys are read as of one moment, and what may be thrown away.
//! - `Family` (`family.rs`) is the machinery that several protocols share: how a past is remembered, carried, waited
//!   for and merged. Lists and matrices name operations, and a write waits where it arrives. Vectors name times, a
//!   write is merged where it arrives, and a read chooses. States are those of a graph, and their keyspaces are not
//!   made of rows.
//!
//! Each module registers its protocol as one value (`registry.rs`): name, capabilities, promises, and how it is made.

mod answers;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod cops;
mod cops_cd;
mod cops_gt;
mod cure;
mod eiger;
mod eventual;
mod family;
mod ha_pocc;
mod lists;
mod log;
mod loss;
mod matrix;
mod operations;
mod orbe_clock;
mod orbe_dm;
mod pocc;
mod profile;
mod promises;
mod protocol;
mod registry;
mod stability;
mod states;
mod tardis;
mod timed_matrix;
pub mod vector;

pub use answers::{Again, Choice, Late, Past, Share, SnapshotCheck, Visibility};
pub use ensue_types::Malformed;
pub use family::{Family, Nothing};
pub use lists::ListsFamily;
pub use loss::Loss;
pub use matrix::Matrix;
pub use operations::Operations;
pub use profile::{Capabilities, Needs, Options, Profile, SnapshotReads};
pub use promises::{Availability, Promises, Recency, SeveralWrites};
pub use protocol::Protocol;
pub use registry::{ALL_NAMES, NAMES, REGISTRY, Registration, Registry, by_name, find, find_in};
pub use stability::{StabilityState, VisibilityPredicate};
pub use states::States;
pub use timed_matrix::TimedMatrix;

#[cfg(test)]
mod tests;
