//! How protocols remember: the machinery that several of them share, given once.
//!
//! | family | a past is | protocols |
//! |---|---|---|
//! | `Nothing` | nothing | `eventual`, `log` |
//! | `Operations` (`operations.rs`) | a set of operations, the nearest | `eiger`, `cops`, `cops-cd` |
//! | `Lists` (`lists.rs`) | all operations, the nearest apart | `cops-gt` |
//! | `Matrix` (`matrix.rs`) | a count for each replica | `orbe-dm` |
//! | `TimedMatrix` (`timed_matrix.rs`) | the same, and a time | `orbe-clock` |
//! | `Times` (`vector.rs`) | a time for each datacenter | `cure`, `pocc`, `ha-pocc` |
//! | `States` (`states.rs`) | states of a graph | `tardis` |
//!
//! A family is a value without state but its bounds. What it remembers is a value of `Causes`. A protocol names one;
//! one whose past is none of these brings its own, and its own bytes as `Causes::Extension`.

use crate::{Malformed, Past, StabilityState, Visibility};
use ensue_types::{Causes, OperationId, Source, TimeVector};
use std::fmt;

/// What is done with contexts and dependencies.
pub trait Family: fmt::Debug + Send + Sync {
    /// The usual answer to question 1: see `Protocol::record_reads`.
    fn record_reads(&self, context: &mut Causes, read: &[Source], settled: &[Source]);

    /// The usual answer to question 1: see `Protocol::record_write`.
    fn record_write(&self, context: &mut Causes, write: &Source);

    /// The usual answer to question 2: see `Protocol::dependencies`.
    fn dependencies(&self, context: &Causes, observed: &[Source]) -> Causes;

    /// The usual answer to question 3: see `Protocol::visibility`.
    fn visibility(&self, operation: OperationId, dependencies: &Causes) -> Result<Visibility, Malformed>;

    /// The session takes over another's past: a token, a shared context, or what a share of a read saw.
    fn merge(&self, context: &mut Causes, other: &Causes) -> Result<(), Malformed>;

    /// The session takes over the past that is shared under its name, which holds what the session itself gave before.
    fn merge_shared(&self, context: &mut Causes, shared: &Causes) -> Result<(), Malformed> {
        self.merge(context, shared)
    }

    /// What must have come before this past may be shown in a datacenter.
    fn past(&self, context: &Causes) -> Result<Past, Malformed>;

    /// Whether a partition has everything that a snapshot at this vector may show.
    fn has_all(&self, _vector: &TimeVector, _state: &StabilityState<'_>) -> bool {
        true
    }

    /// Whether a past is `Past::Times` in `Causes::Times`: then a loss is met as a loss of times (`loss.rs`).
    fn goes_by_times(&self) -> bool {
        false
    }
}

/// Nothing is remembered, nothing is carried, and nothing waits.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Family for Nothing {
    fn record_reads(&self, _context: &mut Causes, _read: &[Source], _settled: &[Source]) {}

    fn record_write(&self, _context: &mut Causes, _write: &Source) {}

    fn dependencies(&self, _context: &Causes, _observed: &[Source]) -> Causes {
        Causes::Nothing
    }

    fn visibility(&self, _operation: OperationId, _dependencies: &Causes) -> Result<Visibility, Malformed> {
        Ok(Visibility::Now)
    }

    fn merge(&self, _context: &mut Causes, _other: &Causes) -> Result<(), Malformed> {
        Ok(())
    }

    fn past(&self, _context: &Causes) -> Result<Past, Malformed> {
        Ok(Past::Operations(Vec::new()))
    }
}
