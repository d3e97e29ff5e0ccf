//! The second checker: every property as its definition, word for word, with no thought of speed.
//!
//! A small [`History`] and a [`Property`] arrive; yes or no leaves. Relations are tables of yes and no, quantifiers are
//! loops, and where a read does not say which write it saw, every possibility is tried. It exists to be read beside
//! the definitions, and to be compared with the fast checker, from which it shares nothing but the form of a history.
//!
//! The words, over transactions `a`, `b`, `c`, with an initial transaction that wrote nothing to every key:
//!
//! - `a so b`: `a` stands before `b` in its session, or `b` was shown a token of `a`; and whatever follows from these by
//!   chaining. The initial transaction is before all.
//! - `a wr b`: `b` read what `a` wrote. Only the last write of a key in a transaction can be read by others; a read
//!   after a write of its own transaction concerns nobody else.
//! - `hb`: one or more steps of `so` and `wr`.
//! - A transaction counts if it was answered, or if its outcome is unknown and somebody read a write of it.
//! - The **axiom** of a relation `past`: there is a total order of all transactions that contains `so` and `wr`, in which
//!   for every `a wr c` over a key, each other writer `b` of the key with `b past c` stands before `a`. Such an order
//!   exists exactly if what must be before what has no cycle; for tiny histories both are computed and compared.
//!
//! What each property asks is said beside its name below.

mod counters;
mod relation;
mod resolved;

use crate::history::History;
use relation::Relation;
use resolved::{Resolved, Source};

/// What a store may promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// Every value read was written, by a transaction that did not fail and as its last word on the key; and a read after
    /// an own write in the same transaction returns that write.
    Integrity,
    /// The axiom, past: `b so c`.
    ReadYourWrites,
    /// The axiom, past: `b wr d so c`.
    MonotonicReads,
    /// The axiom, past: `b so d wr c`.
    MonotonicWrites,
    /// The axiom, past: `b wr d so e wr c`, where `d` may be `e`.
    WritesFollowReads,
    /// The axiom, past: `b so c` or `b wr c`.
    ReadAtomic,
    /// The axiom, past: `b wr c` or `b hb d wr c`.
    Snapshot,
    /// No cycle of `so` and `wr`, and for no `a wr c` over a key is there a writer `b` of it with `a hb b hb c`.
    Causal,
    /// The axiom, past: `b hb c`.
    CausalConvergent,
    /// Every counter reads as the sum of some additions: of all in its past, of none that began after it ended, of none that
    /// failed; at rest, of all that were answered.
    Counters,
    /// At rest, every key reads the same everywhere, and as a write that no other write of the key follows in `hb`.
    Convergence,
}

impl Property {
    pub const ALL: [Property; 11] = [
        Property::Integrity,
        Property::ReadYourWrites,
        Property::MonotonicReads,
        Property::MonotonicWrites,
        Property::WritesFollowReads,
        Property::ReadAtomic,
        Property::Snapshot,
        Property::Causal,
        Property::CausalConvergent,
        Property::Counters,
        Property::Convergence,
    ];
}

/// The history has more possibilities than are tried here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// Most ways to say who read from whom that are tried.
pub const POSSIBILITIES_MAX: usize = 20_000;
/// Most transactions, the initial one included, of which all total orders are tried.
const ORDERED_MAX: usize = 6;

/// For each property, in the order of [`Property::ALL`], whether there is a way to say who read from whom in which the
/// history has it.
///
/// Reads of values that nobody wrote have no place in `wr`; they count against [`Property::Integrity`] alone.
pub fn judge(history: &History) -> Result<Vec<(Property, bool)>, TooLarge> {
    let mut verdicts: Vec<(Property, bool)> = Property::ALL.map(|property| (property, false)).into();
    resolved::for_each(history, &mut |resolved| {
        for (property, holds) in &mut verdicts {
            *holds = *holds || has(history, resolved, *property);
        }
    })?;
    Ok(verdicts)
}

/// Whether a history has a property if the reads saw these writes.
fn has(history: &History, resolved: &Resolved<'_>, property: Property) -> bool {
    let Resolved { so, wr, hb, .. } = resolved;
    match property {
        Property::Integrity => integrity(history),
        Property::ReadYourWrites => axiom(resolved, so),
        Property::MonotonicReads => axiom(resolved, &wr.then(so)),
        Property::MonotonicWrites => axiom(resolved, &so.then(wr)),
        Property::WritesFollowReads => {
            let so_or_same = so.or(&Relation::identity(so.count()));
            axiom(resolved, &wr.then(&so_or_same).then(wr))
        }
        Property::ReadAtomic => axiom(resolved, &so.or(wr)),
        Property::Snapshot => axiom(resolved, &wr.or(&hb.then(wr))),
        Property::Causal => causal(resolved),
        Property::CausalConvergent => axiom(resolved, hb),
        Property::Counters => counters::hold(history, resolved),
        Property::Convergence => converged(history, resolved),
    }
}

fn integrity(history: &History) -> bool {
    resolved::reads(history).all(|read| match read.source {
        Source::Own(value) => value == read.value,
        Source::Others => !resolved::candidates(history, &read).is_empty(),
    })
}

/// The axiom of a past.
fn axiom(resolved: &Resolved, past: &Relation) -> bool {
    let mut before = resolved.so.or(&resolved.wr);
    for read in &resolved.reads {
        for other in 0..resolved.count() {
            if other != read.writer && resolved.writes(other, read.key) && past.has(other, read.reader) {
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

fn causal(resolved: &Resolved) -> bool {
    let overwritten = |read: &resolved::Read| {
        (0..resolved.count()).any(|other| {
            resolved.writes(other, read.key)
                && resolved.hb.has(read.writer, other)
                && resolved.hb.has(other, read.reader)
        })
    };
    resolved.hb.is_acyclic() && !resolved.reads.iter().any(overwritten)
}

fn converged(history: &History, resolved: &Resolved) -> bool {
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
