//! The oracle and the checker judge the same run, and neither knows the other's method.
//!
//! Demanded in one direction: what the checker sees violated, the oracle must see, or their disagreement is a violation
//! of its own. The other direction is told, not demanded (`Witnesses`): the oracle also judges private keys, deadlines,
//! times, liveness and bounds, of which the checker's history says nothing. A run in which a power failure took
//! acknowledged writes, as `everysec` and `no` allow, is the oracle's alone: no definition of the checker knows such
//! writes.

use crate::oracle::history::History;
use crate::oracle::recording::record;
use crate::oracle::{self, Final, Violation, property};
use ensue_check::reference::{self, Finding};
use ensue_check::report::Report;
use ensue_check::{Options, Property, explain};
use ensue_protocol::Promises;
use std::fmt;

/// The reference checker judges histories of at most so many transactions: it takes cubic time.
const REFERENCE_TRANSACTIONS_MAX: usize = 120;

/// Who saw a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Witnesses {
    Oracle,
    Checker,
    Both,
}

/// Judges by both. What the oracle says goes first.
pub fn judge(history: &History, finals: &[Final]) -> Result<(), Violation> {
    compare(oracle::judge(history, finals), history, finals)
}

/// What the oracle said, or what it should have said.
pub(crate) fn compare(
    oracle: Result<(), Violation>,
    history: &History,
    finals: &[Final],
) -> Result<(), Violation> {
    oracle?;
    if oracle::power_took(history, finals) {
        return Ok(());
    }
    let recorded = record(history, finals);
    let quick = Options { properties: quick(history.promises), explain: false };
    if ensue_check::check(&recorded, &quick).violations().next().is_none() {
        return Ok(());
    }
    let words = words(&recorded, &check(&recorded, history.promises));
    Err(Violation::new(
        property::DISAGREEMENT,
        format!("the oracle sees nothing wrong; the checker:\n{words}"),
    ))
}

/// Everything that the checker says of what was promised, explained.
pub fn check(recorded: &ensue_check::History, promises: Promises) -> Report {
    ensue_check::check(recorded, &Options { properties: promised(promises), explain: true })
}

/// Who saw the violation of a run.
pub fn witnesses(violation: &Violation, history: &History, finals: &[Final]) -> Witnesses {
    if violation.property == property::DISAGREEMENT {
        return Witnesses::Checker;
    }
    if oracle::power_took(history, finals) {
        return Witnesses::Oracle;
    }
    let options = Options { properties: quick(history.promises), explain: false };
    let recorded = record(history, finals);
    match ensue_check::check(&recorded, &options).violations().next() {
        Some(_) => Witnesses::Both,
        None => Witnesses::Oracle,
    }
}

/// Whether the reference checker sees a violation; nothing if the history is too large for it.
pub fn reference_sees(recorded: &ensue_check::History, promises: Promises) -> Option<bool> {
    if recorded.transactions.len() > REFERENCE_TRANSACTIONS_MAX {
        return None;
    }
    let judgement = reference::judge(recorded).ok()?;
    Some(promised(promises).into_iter().any(|property| judgement.of(property) == Finding::InNone))
}

/// The violations in words.
pub fn words(recorded: &ensue_check::History, report: &Report) -> String {
    let violations = report.violations().map(|(property, violation)| {
        let lines = explain::lines(recorded, violation);
        format!("{property}: {}: {}\n{}", violation.pattern, violation.summary, lines.join("\n"))
    });
    violations.collect::<Vec<_>>().join("\n")
}

/// What a protocol promises, in the checker's terms.
///
/// Reads that need not see one state, and writes that need not take effect together, are transactions of their own in
/// the checker's history, so of these causality asks nothing more. Without causality: sessions stay in one datacenter,
/// whose owner of a key never goes back, and each write comes after all that its session had seen. Where a datacenter's
/// writes come in its order and are read at one moment, that moment may have a write of one datacenter and not what its
/// session had read of another one's.
pub fn promised(promises: Promises) -> Vec<Property> {
    if promises.causality {
        return Property::DEFAULT.to_vec();
    }
    let mut promised = vec![
        Property::ReadIntegrity,
        Property::ReadYourWrites,
        Property::MonotonicReads,
        Property::MonotonicWrites,
        Property::WritesFollowReads,
        Property::Convergence,
    ];
    promised.retain(|property| !(promises.one_stream && *property == Property::WritesFollowReads));
    promised
}

/// As `promised`, without what another of them implies.
fn quick(promises: Promises) -> Vec<Property> {
    let implied = |property: &Property| {
        !matches!(
            property,
            Property::ReadYourWrites
                | Property::MonotonicReads
                | Property::MonotonicWrites
                | Property::WritesFollowReads
                | Property::ReadAtomic
                | Property::Causal
                | Property::SnapshotReads
        )
    };
    let all = promised(promises);
    match all.contains(&Property::CausalConvergent) {
        true => all.into_iter().filter(implied).collect(),
        false => all,
    }
}

impl fmt::Display for Witnesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Witnesses::Oracle => "oracle",
            Witnesses::Checker => "checker",
            Witnesses::Both => "both",
        })
    }
}

#[cfg(test)]
mod tests;
