//! `eiger`: causal+ with read-only and write-only transactions, by one-hop dependencies on operations.
//!
//! Lloyd, Freedman, Kaminsky, Andersen, "Stronger Semantics for Low-Latency Geo-Replicated Storage", NSDI 2013. The rules:
//!
//! - On a read: add the operations that wrote what was read to the context (3.2). A counter was written by at most one
//!   operation a datacenter that matter, since each addition follows the one before (3.3).
//! - On a write: attach the context; then the context is that write alone (one-hop, 3.2).
//! - On a write from elsewhere: show it after a `dep_check` of each dependency (3.1).
//! - On a first round: if the highest earliest valid time is at or below the lowest latest valid time, the values belong
//!   together (4.1). Otherwise the effective time is the lowest latest valid time at or above it, and every share that
//!   was not valid then is read again as of it (4.2, figure 5).
//! - On an undecided transaction: the first round says only how far its promise goes; the second asks the coordinator (5.4).
//!
//! Where we differ from the paper:
//! - Figure 5 compares with `>` where the text says "at or above"; with `>` the effective time can be infinite (trap 9).
//!   And it would accept a pending answer whose latest valid time reaches the effective time (trap 8): such a share is
//!   always read again.
//! - The paper's client library holds the context; here the server's session does, for stock Redis clients.
//! - A context above its bound folds into one watermark a stream: stronger than one-hop, and bounded.
//! - Operations known to be durably applied in every datacenter are left out; the node filters them.
//! - A write that reads to write (`INCR`, `APPEND`) depends on what it read; the paper has only blind writes and `add`.

use crate::{
    Again, Capabilities, Judgement, Malformed, Options, Past, Protocol, Share, SnapshotReads, Verdict, facts,
};
use ensue_types::{Dependency, Extent, LogicalTime, Opaque, OperationId, Rule, Rules, Source};

/// The protocol, with its bound on contexts.
#[derive(Debug)]
pub struct Eiger {
    options: Options,
    rules: Rules,
}

impl Eiger {
    pub fn new(options: Options, rules: Rules) -> Eiger {
        Eiger { options, rules }
    }

    fn add(&self, context: &mut Opaque, more: impl IntoIterator<Item = Dependency>) {
        add(context, more, self.options.context_operations_max, self.rules);
    }
}

/// Adds to a context, which folds above its bound.
pub(crate) fn add(
    context: &mut Opaque,
    more: impl IntoIterator<Item = Dependency>,
    bound: usize,
    rules: Rules,
) {
    // A context is made by its protocol alone: what came from outside was decoded when it came in.
    let mut set = facts::decode(context).unwrap_or_default();
    facts::add(&mut set, more, bound);
    if !rules.hold(Rule::FoldCoversAll) {
        // Broken on purpose: what is too much is left out.
        set.retain(|dependency| dependency.extent == Extent::Exact);
    }
    *context = facts::encode(&set);
}

/// Adds another's past to a context.
pub(crate) fn join(
    context: &mut Opaque,
    other: &Opaque,
    bound: usize,
    rules: Rules,
) -> Result<(), Malformed> {
    if other.is_empty() {
        return Ok(());
    }
    let more = facts::decode(other)?;
    if !rules.hold(Rule::JoinKeepsBoth) {
        *context = Opaque::default();
    }
    add(context, more, bound, rules);
    Ok(())
}

/// A context, and what a write itself read, which is never folded.
pub(crate) fn carried(context: &Opaque, observed: &[Source], rules: Rules) -> Opaque {
    if observed.is_empty() || !rules.hold(Rule::DependOnWhatWasRead) {
        return context.clone();
    }
    let mut set = facts::decode(context).unwrap_or_default();
    facts::add(&mut set, observed.iter().map(exactly), usize::MAX);
    facts::encode(&set)
}

/// After each of these.
pub(crate) fn verdict(dependencies: &Opaque) -> Result<Verdict, Malformed> {
    let dependencies = facts::decode(dependencies)?;
    Ok(if dependencies.is_empty() { Verdict::Now } else { Verdict::After(dependencies) })
}

pub(crate) fn exactly(source: &Source) -> Dependency {
    Dependency { operation: source.operation, extent: Extent::Exact }
}

impl Protocol for Eiger {
    fn name(&self) -> &'static str {
        "eiger"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshot_reads: SnapshotReads::TwoRounds,
            write_transactions: true,
            causality: true,
            available: true,
        }
    }

    fn observe(&self, context: &mut Opaque, sources: &[Source]) {
        if !sources.is_empty() {
            self.add(context, sources.iter().map(exactly));
        }
    }

    fn remembers_settled(&self) -> bool {
        false
    }

    fn wrote(&self, context: &mut Opaque, write: &Source) {
        *context = facts::encode(&[exactly(write)]);
    }

    fn join(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        join(context, other, self.options.context_operations_max, self.rules)
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        facts::decode(context).map(Past::Operations)
    }

    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque {
        carried(context, observed, self.rules)
    }

    fn verdict(&self, _operation: OperationId, dependencies: &Opaque) -> Result<Verdict, Malformed> {
        verdict(dependencies)
    }

    fn reads_past_undecided(&self) -> bool {
        false
    }

    fn judge(&self, shares: &[Share<'_>]) -> Judgement {
        judge(shares, self.rules)
    }

    fn keeps_old_versions(&self) -> bool {
        true
    }
}

/// Whether the shares of a first round belong together, by logical time.
pub(crate) fn judge(shares: &[Share<'_>], rules: Rules) -> Judgement {
    let at = effective_time(shares, rules);
    let pending = |share: &Share<'_>| share.earliest.is_none() && rules.hold(Rule::PendingIsReadAgain);
    let again = |share: &Share<'_>| pending(share) || share.latest < at;
    let stale = (0..shares.len()).filter(|&index| again(&shares[index]));
    let stale: Vec<Again> = stale.map(|share| Again { share, at, with: Vec::new() }).collect();
    if stale.is_empty() { Judgement::Consistent } else { Judgement::ReadAgain(stale) }
}

/// The lowest latest valid time at or above every earliest one.
fn effective_time(shares: &[Share<'_>], rules: Rules) -> LogicalTime {
    let earliest = shares.iter().filter_map(|share| share.earliest);
    let earliest = earliest.filter(|_| rules.hold(Rule::EffectiveTimeCoversAll));
    let max_earliest = earliest.max().unwrap_or(LogicalTime::ZERO);
    let latest = || shares.iter().map(|share| share.latest);
    if !rules.hold(Rule::EqualTimesWillDo) {
        // Broken on purpose, as figure 5 has it: the least of no times is infinite.
        let infinite = LogicalTime(LogicalTime::MAX.0 - 1);
        return latest().filter(|&latest| latest > max_earliest).min().unwrap_or(infinite);
    }
    // Every answered share's latest valid time is at or above its earliest, so the share with the highest earliest
    // qualifies; only pending shares can leave none, and then the highest promise is the time to ask for.
    let effective = latest().filter(|&latest| latest >= max_earliest).min();
    effective.or_else(|| latest().max()).unwrap_or(LogicalTime::ZERO).max(max_earliest)
}
