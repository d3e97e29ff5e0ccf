//! The family of the vectors: a past is times, a write is merged where it arrives, and a read chooses.

use crate::{Family, Malformed, Needs, Options, Past, StabilityState, Visibility};
use ensue_types::{Causes, LogicalTime, OperationId, Rule, Source, Stamp, TimeVector, Vector};

/// The family.
#[derive(Clone, Copy, Debug)]
pub struct Times;

impl Family for Times {
    fn record_reads(&self, context: &mut Causes, read: &[Source], _settled: &[Source]) {
        record_reads(context, read);
    }

    fn record_write(&self, context: &mut Causes, write: &Source) {
        record_reads(context, std::slice::from_ref(write));
    }

    fn dependencies(&self, context: &Causes, observed: &[Source]) -> Causes {
        let mut dependencies = context.clone();
        record_reads(&mut dependencies, observed);
        dependencies
    }

    fn visibility(&self, _operation: OperationId, dependencies: &Causes) -> Result<Visibility, Malformed> {
        dependencies.times()?;
        Ok(Visibility::Now)
    }

    fn merge(&self, context: &mut Causes, other: &Causes) -> Result<(), Malformed> {
        merge(context, other)
    }

    /// What the session gave up by falling back does not come back under its name.
    fn merge_shared(&self, context: &mut Causes, shared: &Causes) -> Result<(), Malformed> {
        let shared = shared.times()?;
        let mut vector = context.take_times();
        let is_given_up = |datacenter, time| time <= vector.abandoned.at(datacenter);
        let times = shared.times.entries();
        let times =
            times.map(|(d, time)| if is_given_up(d, time) { LogicalTime::ZERO } else { time }).collect();
        vector.take_over(&Vector { times, ..shared.clone() });
        *context = vector.into();
        Ok(())
    }

    fn past(&self, context: &Causes) -> Result<Past, Malformed> {
        Ok(Past::Times(context.times()?.times.clone()))
    }

    fn has_all(&self, vector: &TimeVector, state: &StabilityState<'_>) -> bool {
        is_received(vector, state)
    }

    fn goes_by_times(&self) -> bool {
        true
    }
}

/// What the protocols of this family need of a node.
pub fn needs(stabilization_ms: u64, patience_ms: u64) -> Needs {
    Needs {
        versions: true,
        snapshot_vectors: true,
        heartbeats: true,
        stabilization_ms: Some(stabilization_ms),
        remembers_settled: true,
        patience_ms,
        ..Needs::default()
    }
}

/// The times of a context or of dependencies that this protocol made, or that were looked at when they came in.
pub fn known(causes: &Causes) -> &Vector {
    static NOTHING: Causes = Causes::Nothing;
    causes.times().or_else(|_| NOTHING.times()).expect("nothing is of every family")
}

/// The session has read these: their pasts become its own (POCC, algorithm 1, lines 4 and 5).
fn record_reads(context: &mut Causes, sources: &[Source]) {
    if sources.is_empty() {
        return;
    }
    let mut vector = context.take_times();
    for source in sources {
        let Stamp { datacenter, time, .. } = source.stamp;
        vector.take_over_write(known(source.carried()), datacenter, time);
    }
    *context = vector.into();
}

/// Joins the times of two pasts; the mode stays the session's.
pub(crate) fn merge(context: &mut Causes, other: &Causes) -> Result<(), Malformed> {
    let other = other.times()?;
    let mut vector = context.take_times();
    vector.take_over(other);
    *context = vector.into();
    Ok(())
}

/// Whether a version and its whole past lie at or below these times.
pub fn is_within(source: &Source, times: &TimeVector) -> bool {
    // By its own time alone is wrong: broken on purpose.
    source.stamp.time <= times.at(source.stamp.datacenter)
        && (times.covers(&known(source.carried()).times) || !Rule::CutsHoldWholePasts.holds())
}

/// Whether a partition has received all that the other datacenters wrote in it up to these times. What the own
/// datacenter wrote is there (POCC, algorithm 2, line 2).
pub fn is_received(times: &TimeVector, state: &StabilityState<'_>) -> bool {
    !Rule::ReadsWaitForThePast.holds() || state.received.covers_but(state.datacenter, times)
}

/// How long a read waits that has nothing to fall back on: a little less than its client does, to say what was missing.
pub fn patience_ms(options: &Options) -> u64 {
    options.request_timeout_ms - options.request_timeout_ms / 5
}
