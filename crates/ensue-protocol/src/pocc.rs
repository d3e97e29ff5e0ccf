//! `pocc`: causal+ with one-round snapshots, by vectors of physical time; everything received shows, and a read waits for
//! what its session depends on.
//!
//! Spirovska, Didona, Zwaenepoel, "Optimistic Causal Consistency for Geo-Replicated Key-Value Stores", sections 4 and 5. The rules:
//!
//! - A session has a vector, one time a datacenter; a write carries it (Algorithm 1).
//! - A version from elsewhere is merged when it is received (Algorithm 3, lines 5 to 7).
//! - A read waits until its partition has received everything up to the session's vector, then returns the newest version
//!   (Algorithm 2, lines 2 and 3): no read of one key is ever stale.
//! - A snapshot is read at the higher of what the first partition has received and what the session depends on. Every
//!   partition waits until it has received that much, and returns the newest version within it (lines 14 to 31).
//! - A partition that is silent tells the others its time (Algorithm 3, lines 8 to 17).
//! - A version is folded away when a newer one is below the oldest cut that is or may be read at (5.3).
//!
//! Where we differ from the paper:
//! - A version is within a cut when its own time is, too, not its dependencies alone (trap 34).
//! - The text has each partition send the highest of its active cuts for collection; it must be the lowest (trap 35), and
//!   cuts whose slices are still on their way count.
//! - The paper's item has one version. A counter, a hash or a set is put together of several, and a value with a deadline of two:
//!   what is not whole yet is shown as of the newest cut that is, in one partition without waiting.
//! - A write waits as a read does: it covers what it has seen, deletions and additions included.
//! - A received time only rises (trap 40), and a heartbeat counts after the entries that went before it (trap 24).
//! - The "wait until the clock is past the dependencies" costs nothing: the clock is a hybrid one.
//! - A clock that is behind is asked to move past what somebody waits for (trap 39).
//! - A read does not wait for ever: shortly before its client gives up it is told what is missing.

use crate::{
    Capabilities, Choice, Malformed, Needs, Options, Past, Protocol, Sight, SnapshotReads, Standing, Verdict,
    vector,
};
use ensue_types::{Opaque, OperationId, Rule, Rules, Source, TimeVector};

/// Rounds in which only the floor is looked for are this much rarer than those that show something.
pub(crate) const FLOOR_INTERVALS: u64 = 20;

/// The protocol, with its intervals.
#[derive(Debug)]
pub struct Pocc {
    options: Options,
    rules: Rules,
}

impl Pocc {
    pub fn new(options: Options, rules: Rules) -> Pocc {
        Pocc { options, rules }
    }
}

impl Protocol for Pocc {
    fn name(&self) -> &'static str {
        "pocc"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshot_reads: SnapshotReads::OneRound,
            write_transactions: false,
            causality: true,
            available: false,
        }
    }

    fn needs(&self) -> Needs {
        let stabilization_ms = Some(FLOOR_INTERVALS * self.options.stabilization_ms);
        Needs { versions: true, cuts: true, heartbeats: true, stabilization_ms, ..Needs::default() }
    }

    fn observe(&self, context: &mut Opaque, sources: &[Source]) {
        vector::observe(context, sources);
    }

    fn remembers_settled(&self) -> bool {
        true
    }

    fn wrote(&self, context: &mut Opaque, write: &Source) {
        vector::observe(context, std::slice::from_ref(write));
    }

    fn join(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        vector::join(context, other)
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        Ok(Past::Times(vector::Vector::decode(context)?.times))
    }

    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque {
        let mut dependencies = context.clone();
        vector::observe(&mut dependencies, observed);
        dependencies
    }

    fn verdict(&self, _operation: OperationId, dependencies: &Opaque) -> Result<Verdict, Malformed> {
        vector::Vector::decode(dependencies)?;
        Ok(Verdict::Now)
    }

    fn choose(&self, context: &mut Opaque, standing: &Standing<'_>) -> Choice {
        newest_choice(&vector::known(context).times, standing, self.rules)
    }

    fn partitions_are_snapshots(&self) -> bool {
        false
    }

    fn shows(&self, sight: &Sight, source: &Source) -> bool {
        vector::is_within(source, &sight.times, self.rules)
    }

    fn patience_ms(&self) -> u64 {
        vector::patience_ms(&self.options)
    }

    fn goes_by_times(&self) -> bool {
        true
    }

    fn cut(&self, context: &Opaque, standing: &Standing<'_>) -> TimeVector {
        received_cut(&vector::known(context).times, standing, self.rules)
    }

    fn serves(&self, cut: &TimeVector, standing: &Standing<'_>) -> bool {
        vector::is_received(cut, standing, self.rules)
    }

    fn keeps_old_versions(&self) -> bool {
        false
    }

    fn floor(&self, standing: &Standing<'_>) -> TimeVector {
        standing.with_present(standing.received)
    }
}

/// What a session of this past may read of one partition: the newest, once its past is here.
pub(crate) fn newest_choice(past: &TimeVector, standing: &Standing<'_>, rules: Rules) -> Choice {
    if !vector::is_received(past, standing, rules) {
        return Choice::Wait;
    }
    let times = received_cut(past, standing, rules);
    Choice::NewestIfWhole(Sight { datacenter: standing.datacenter, times, whole: true })
}

/// What it may read of several: what the first has received, and the session's past.
pub(crate) fn received_cut(past: &TimeVector, standing: &Standing<'_>, rules: Rules) -> TimeVector {
    let mut times = standing.with_present(standing.received);
    if rules.hold(Rule::SnapshotsHoldTheSession) {
        times.join(past);
    }
    times
}
