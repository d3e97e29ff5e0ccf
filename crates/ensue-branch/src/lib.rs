//! A keyspace whose state forks when transactions conflict, and merges when the application says so (TARDiS).
//!
//! Every commit makes a *state* above those it came from; a branch is a state with its ancestors. A transaction reads
//! one state, or several if it merges them, and commits below the newest state that its end constraint allows: that a
//! state gets a second child is how a conflict shows, not an error. Commits of other sites arrive and are put where
//! they were made.
//!
//! One file a noun: `id` names states, `chain` says which state sees which, by maps that are `shared`, `dag` holds the
//! states and `records` what they wrote; `constraint` is what transactions ask for, `begin` and `ripple` find the state
//! that satisfies it, `transaction` is one that runs; `fork` compares branches, in so many `steps`; `ceiling` and
//! `collect` forget; `waiting` holds what came before its parents; `branches` is the whole of it, and all that others
//! use. `commit` and `image` have the bytes.
//! Nothing here does I/O or reads a clock, and a value is bytes whose meaning is the caller's.
//!
//! # Where we differ from the paper
//!
//! - Branches are named by place on a chain, and no state is ever given another label (trap 10); fork paths (section
//!   6.1.3) number children in the order of their arrival, which differs from site to site.
//! - A commit state is the newest state, from the read state down, *at which* the end constraint holds (6.1.2 has both
//!   this and a check of the read state first, by which No Branching could never let a transaction go past another
//!   one's commit).
//! - Rippling over a merge state counts everything that it brings from the other branches.
//! - Of several suitable read states the one with the newest merge in its past is taken, then the newest, not a random
//!   one: a machine that replays must choose the same, and sessions must come together.
//! - Fork points have weights, so that counters are merged rightly after merges that crossed (5.1 has a single fork
//!   point).
//! - A version that was promoted keeps the id of the state that wrote it: which of two unordered versions is the newer
//!   must not depend on what was collected where.
//! - A promoted state is never a parent. What comes late for one is asked for whole (6.4), and every site
//!   keeps a state until all have it for good: who is asked must have it, and not only what took it over.

mod begin;
mod branches;
mod ceiling;
mod chain;
mod collect;
mod commit;
mod constraint;
mod dag;
mod error;
mod fork;
mod id;
mod image;
mod late;
mod records;
mod ripple;
mod shared;
mod steps;
mod transaction;
mod waiting;

pub use branches::{Branches, Committed, Metrics, Offered, Options, StateView, Tag, TransactionId};
pub use ceiling::Collection;
pub use commit::{Commit, Note, Rebuilt, Write};
pub use constraint::{Constraint, Term};
pub use error::{Abort, Malformed};
pub use id::StateId;
pub use transaction::Mode;

/// The name of a record.
pub type Key = bytes::Bytes;
/// What a record holds; nothing if it was deleted.
pub type Value = Option<bytes::Bytes>;

#[cfg(test)]
mod tests;
