//! The second checker: every property as `docs/checking.md` defines it, with no thought of speed.
//!
//! A small [`History`] arrives; for each property a [`Finding`] leaves. Relations are tables of yes and no, quantifiers
//! are loops, and where a read does not say which write it saw, every possibility is tried. It exists to be read beside
//! the definitions, and to be compared with the fast checker, from which it shares nothing but the form of a history
//! and the names of the properties. Its words, as in the definitions: `so`, `wr`, `hb`; a transaction that *counts*.
//!
//! An axiom holds if a total order of all transactions exists that contains `so` and `wr`, in which whoever wrote what
//! a read had to know of stands before the writer that it read from. Such an order exists exactly if what must stand
//! before what has no cycle: that is what is computed. For tiny histories all orders are tried too, and must agree.

mod counters;
mod relation;
mod resolved;

use crate::history::History;
use crate::property::Property;
use relation::Relation;
use resolved::{Resolved, Source};

/// Whether a property holds, over all ways to say which writes the reads saw, and what a recording that broke off has
/// not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    InEvery,
    InSome,
    InNone,
}

/// What is known of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// In the order of [`Property::DEFAULT`].
    pub findings: Vec<(Property, Finding)>,
    /// How many ways there are to say which writes the reads saw.
    pub resolutions: usize,
    /// In how many of them the causal past is cyclic.
    pub cyclic: usize,
}

impl Judgement {
    pub fn of(&self, property: Property) -> Finding {
        let found = self.findings.iter().find(|(of, _)| *of == property);
        found.map(|(_, finding)| *finding).expect("every property of the default is judged")
    }
}

/// The history has more resolutions than are tried here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// Most resolutions that are tried.
pub const RESOLUTIONS_MAX: usize = 1_024;
/// Most transactions, the initial one included, of which all total orders are tried.
const ORDERED_MAX: usize = 6;

/// Judges every property in every resolution.
pub fn judge(history: &History) -> Result<Judgement, TooLarge> {
    let (mut resolutions, mut cyclic) = (0, 0);
    let mut holding = [0; Property::DEFAULT.len()];
    resolved::for_each(history, &mut |resolved| {
        resolutions += 1;
        cyclic += usize::from(!resolved.hb.is_acyclic());
        for (place, property) in Property::DEFAULT.into_iter().enumerate() {
            holding[place] += usize::from(holds(history, resolved, property));
        }
    })?;
    let is_whole = history.truncated_at_line.is_none();
    let finding = |(property, count): (Property, usize)| match count {
        0 if is_whole || !may_hold_with_more(history, property) => Finding::InNone,
        count if is_whole && count == resolutions => Finding::InEvery,
        _ => Finding::InSome,
    };
    let judged = Property::DEFAULT.into_iter().zip(holding);
    let findings = judged.map(|judged| (judged.0, finding(judged))).collect();
    Ok(Judgement { findings, resolutions, cyclic })
}

/// Whether what a history lacks may be in the missing part of its recording: additions, and the write of a value that
/// was read.
fn may_hold_with_more(history: &History, property: Property) -> bool {
    match property {
        Property::ReadIntegrity => resolved::reads(history).all(|read| match read.source {
            Source::Own(value) => value == read.value,
            Source::Others => {
                !resolved::candidates(history, &read).is_empty() || !resolved::is_written(history, &read)
            }
        }),
        Property::Counters => true,
        _ => false,
    }
}

/// Whether a history has a property if the reads saw these writes.
fn holds(history: &History, resolved: &Resolved<'_>, property: Property) -> bool {
    let Resolved { so, wr, hb, .. } = resolved;
    match property {
        Property::ReadIntegrity => integrity(history),
        Property::ReadYourWrites => axiom(resolved, so),
        Property::MonotonicReads => axiom(resolved, &wr.then(so)),
        Property::MonotonicWrites => axiom(resolved, &so.then(wr)),
        Property::WritesFollowReads => {
            let so_or_same = so.or(&Relation::identity(so.count()));
            axiom(resolved, &wr.then(&so_or_same).then(wr))
        }
        Property::ReadAtomic => axiom(resolved, &so.or(wr)),
        Property::SnapshotReads => axiom(resolved, &wr.or(&hb.then(wr))),
        Property::Causal => causal(resolved),
        Property::CausalConvergent => axiom(resolved, hb),
        Property::Counters => counters::hold(history, resolved),
        Property::Convergence => converged(history, resolved),
        Property::Linearizable | Property::DelayOnce => unreachable!("neither is judged here"),
        Property::PoppedOnce | Property::PoppedAtLeastOnce => unreachable!("queues are not judged here"),
    }
}

fn integrity(history: &History) -> bool {
    resolved::reads(history).all(|read| match read.source {
        Source::Own(value) => value == read.value,
        Source::Others => !resolved::candidates(history, &read).is_empty(),
    })
}

/// The axiom: whoever wrote the key and is in this relation to the reader stands before the writer that was read.
fn axiom(resolved: &Resolved<'_>, known: &Relation) -> bool {
    let mut before = resolved.so.or(&resolved.wr);
    for read in &resolved.reads {
        for other in 0..resolved.count() {
            let is_third = other != read.writer && other != read.reader;
            if is_third && resolved.writes(other, read.key) && known.has(other, read.reader) {
                before.add(other, read.writer);
            }
        }
    }
    let acyclic = before.is_acyclic();
    if before.count() <= ORDERED_MAX {
        assert_eq!(acyclic, before.has_total_order(), "an order exists exactly if there is no cycle");
    }
    acyclic
}

fn causal(resolved: &Resolved<'_>) -> bool {
    let overwritten = |read: &resolved::Read| {
        (0..resolved.count()).any(|other| {
            resolved.writes(other, read.key)
                && resolved.hb.has(read.writer, other)
                && resolved.hb.has(other, read.reader)
        })
    };
    resolved.hb.is_acyclic() && !resolved.reads.iter().any(overwritten)
}

fn converged(history: &History, resolved: &Resolved<'_>) -> bool {
    let is_final = |node: usize| resolved::transaction_of(history, node).is_some_and(|t| t.is_final);
    let finals: Vec<&resolved::Read> = resolved.reads.iter().filter(|read| is_final(read.reader)).collect();
    let agree = finals.iter().all(|a| finals.iter().all(|b| a.key != b.key || a.value == b.value));
    let newest = finals.iter().all(|read| {
        !(0..resolved.count())
            .any(|other| resolved.writes(other, read.key) && resolved.hb.has(read.writer, other))
    });
    agree && newest && counters::agree(history)
}

#[cfg(test)]
mod tests;
