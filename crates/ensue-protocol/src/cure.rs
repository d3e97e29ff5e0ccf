//! `cure`: causal+ with one-round snapshots, by vectors of physical time; remote writes show when they are stable.
//!
//! Cure as it is told in Spirovska, Didona, Zwaenepoel, "Optimistic Causal Consistency for Geo-Replicated Key-Value Stores",
//! sections 7.2 and 8. The rules:
//!
//! - A session has a vector, one time a datacenter; a write carries it (Algorithm 1).
//! - The partitions of a datacenter tell each other what they have received; the least of it is the globally stable
//!   snapshot. A version from elsewhere is visible when its own time and its whole vector are at or below that. A
//!   version of this datacenter is visible at once, since it depends on stable ones only (7.2).
//! - A snapshot is read at the stable snapshot with the present as the own datacenter's entry; every partition returns the
//!   newest version within it.
//! - A version is folded away when a newer one is below the oldest cut that is or may be read at.
//!
//! Where we differ from the paper:
//! - What a session may see includes its own past: the stable snapshot of the partition that it meets can be older than
//!   the one that it read from (trap 3). A session that came with a token may have to wait for it.
//! - A version is compared with its own time too, not with its dependencies alone (trap 34), so that what was written
//!   together is seen together, and a snapshot can be repeated.
//! - A write waits as a read does: it covers what it has seen, deletions and additions included.
//! - The "wait until the clock is past the dependencies" costs nothing: the clock is a hybrid one.
//! - One partition gathers what all have received and tells the result, so a round is two messages a partition.

use crate::{
    Capabilities, Choice, Malformed, Needs, Options, Past, Protocol, Sight, SnapshotReads, Standing, Verdict,
    vector,
};
use ensue_types::{Opaque, OperationId, Rule, Rules, Source, TimeVector};

/// The protocol, with its interval.
#[derive(Debug)]
pub struct Cure {
    options: Options,
    rules: Rules,
}

impl Cure {
    pub fn new(options: Options, rules: Rules) -> Cure {
        Cure { options, rules }
    }
}

impl Protocol for Cure {
    fn name(&self) -> &'static str {
        "cure"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshot_reads: SnapshotReads::OneRound,
            write_transactions: false,
            causality: true,
            available: true,
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            versions: true,
            cuts: true,
            heartbeats: true,
            stabilization_ms: Some(self.options.stabilization_ms),
            ..Needs::default()
        }
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
        stable_choice(&vector::known(context).times, standing, self.rules)
    }

    fn shows(&self, sight: &Sight, source: &Source) -> bool {
        let local = source.stamp.datacenter == sight.datacenter && !sight.whole;
        local || vector::is_within(source, &sight.times, self.rules)
    }

    fn proves_stable(&self, dependencies: &Opaque) -> TimeVector {
        vector::known(dependencies).times
    }

    fn patience_ms(&self) -> u64 {
        vector::patience_ms(&self.options)
    }

    fn goes_by_times(&self) -> bool {
        true
    }

    fn cut(&self, context: &Opaque, standing: &Standing<'_>) -> TimeVector {
        stable_cut(&vector::known(context).times, standing, self.rules)
    }

    fn serves(&self, cut: &TimeVector, standing: &Standing<'_>) -> bool {
        vector::is_received(cut, standing, self.rules)
    }

    fn keeps_old_versions(&self) -> bool {
        false
    }

    fn floor(&self, standing: &Standing<'_>) -> TimeVector {
        standing.with_present(standing.stable)
    }
}

/// What a session of this past may read of one partition, seeing only what is stable.
pub(crate) fn stable_choice(past: &TimeVector, standing: &Standing<'_>, rules: Rules) -> Choice {
    if !vector::is_received(past, standing, rules) {
        return Choice::Wait;
    }
    Choice::Shown(Sight {
        datacenter: standing.datacenter,
        times: stable_cut(past, standing, rules),
        whole: false,
    })
}

/// What it may read of several.
pub(crate) fn stable_cut(past: &TimeVector, standing: &Standing<'_>, rules: Rules) -> TimeVector {
    let mut times = standing.with_present(standing.stable);
    if rules.hold(Rule::SnapshotsHoldTheSession) {
        times.join(past);
    }
    times
}
