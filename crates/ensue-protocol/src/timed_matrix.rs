//! The family of a matrix and a time: `matrix.rs`, and the highest update time that a session has seen.
//!
//! Dependencies are a matrix alone: the time of a write is its stamp.

use crate::matrix::{self, Matrix};
use crate::{Family, Malformed, Past, StabilityState, Visibility};
use ensue_types::{Causes, LogicalTime, OperationId, Rule, Source, TimeVector};

/// The family.
#[derive(Clone, Copy, Debug)]
pub struct TimedMatrix;

impl Family for TimedMatrix {
    fn record_reads(&self, context: &mut Causes, read: &[Source], settled: &[Source]) {
        let mut session = context.take_timed_matrix();
        matrix::raise(&mut session.elements, read);
        let times = read.iter().chain(settled).map(|source| source.stamp.time);
        session.time = times.fold(session.time, LogicalTime::max);
        *context = session.into();
    }

    fn record_write(&self, context: &mut Causes, write: &Source) {
        let mut session = context.take_timed_matrix();
        session.elements = matrix::after(write);
        session.time = session.time.max(write.stamp.time);
        *context = session.into();
    }

    fn dependencies(&self, context: &Causes, observed: &[Source]) -> Causes {
        let mut elements = context.timed_matrix().map(|session| session.elements.clone()).unwrap_or_default();
        matrix::raise(&mut elements, observed);
        elements.into()
    }

    fn visibility(&self, operation: OperationId, dependencies: &Causes) -> Result<Visibility, Malformed> {
        Matrix.visibility(operation, dependencies)
    }

    fn merge(&self, context: &mut Causes, other: &Causes) -> Result<(), Malformed> {
        let other = other.timed_matrix()?;
        let mut session = context.take_timed_matrix();
        session.time = session.time.max(other.time);
        matrix::join(&mut session.elements, &other.elements);
        *context = session.into();
        Ok(())
    }

    fn past(&self, context: &Causes) -> Result<Past, Malformed> {
        Ok(Past::Operations(context.timed_matrix()?.elements.clone()))
    }

    fn has_all(&self, vector: &TimeVector, state: &StabilityState<'_>) -> bool {
        !Rule::ReadsWaitForThePast.holds() || state.applied.covers_but(state.datacenter, vector)
    }
}

/// The highest time that a session has seen or written.
pub fn time_of(context: &Causes) -> LogicalTime {
    context.timed_matrix().map(|session| session.time).unwrap_or_default()
}
