//! The few transactions that cannot be put in an order, and the sentence that says why.

use super::Span;
use super::blocks::{Block, Blocks};
use crate::explain::{place, value_text};
use crate::fast::evidence::Evidence;
use crate::fast::reads::INITIAL;
use crate::history::{History, Key, Operation, TransactionIndex, Value};
use crate::report::{Pattern, Relation, RelationKind};

/// A transaction that wrote or read a value, by the place of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub value: usize,
    pub span: Span,
}

/// One ended before the other began, so the value of the first comes before that of the second.
#[derive(Clone, Copy, Debug)]
struct Before {
    ended: Place,
    began: Place,
}

pub(in crate::fast) fn read_before_write(history: &History, key: u32, write: Span, read: Span) -> Evidence {
    let detail = format!(
        "`{}` was read as {} ({}) before anybody began to write that ({})",
        history.keys[key as usize],
        value_of_writer(history, key, write.transaction),
        place(history, TransactionIndex(read.transaction)),
        place(history, TransactionIndex(write.transaction))
    );
    let mut evidence = Evidence::new(Pattern::ReadBeforeWrite, detail);
    add(&mut evidence, read, write, RelationKind::RealTime, true);
    add(&mut evidence, write, read, RelationKind::ReadsFrom(Key(key)), true);
    evidence
}

pub(super) fn two_at_once(blocks: &Blocks<'_>, reader: u32, values: [usize; 2]) -> Evidence {
    let reader = Span::of(blocks.history, reader);
    let [one, other] = values.map(|at| value(blocks, at));
    let detail =
        format!("`{}` was read as {one} and as {other} in one step ({})", name(blocks), line(blocks, reader));
    let mut evidence = Evidence::new(Pattern::FracturedRead, detail);
    for at in values {
        add(&mut evidence, blocks.held[at].write, reader, RelationKind::ReadsFrom(Key(blocks.key)), true);
    }
    evidence
}

pub(super) fn replaced_twice(blocks: &Blocks<'_>, at: usize, by: [usize; 2]) -> Evidence {
    let detail = format!(
        "the value {} of `{}` was read and replaced in one step twice: by {} and by {}",
        value(blocks, at),
        name(blocks),
        line(blocks, blocks.held[by[0]].write),
        line(blocks, blocks.held[by[1]].write)
    );
    let mut evidence = Evidence::new(Pattern::ReplacedTwice, detail);
    for by in by {
        let kind = RelationKind::ReadsFrom(Key(blocks.key));
        add(&mut evidence, blocks.held[at].write, blocks.held[by].write, kind, true);
    }
    evidence
}

/// Values each of which replaced the one before it, and the first of them the last.
pub(super) fn circle(blocks: &Blocks<'_>, at: usize) -> Evidence {
    let chain = blocks.chain(at);
    let detail = format!("values of `{}` replaced each other in a circle, each in one step", name(blocks));
    let mut evidence = Evidence::new(Pattern::NoOrder, detail);
    for (place, &one) in chain.iter().enumerate() {
        let next = chain[(place + 1) % chain.len()];
        let kind = RelationKind::ReadsFrom(Key(blocks.key));
        add(&mut evidence, blocks.held[one].write, blocks.held[next].write, kind, true);
    }
    evidence
}

/// A value that replaced another one, and had to come before it.
pub(super) fn contradicts_itself(blocks: &Blocks<'_>, ended: Place, began: Place) -> Evidence {
    let detail = format!(
        "no order of the operations on `{}` explains them all: it was {}; but {} was replaced by {}, each value in one \
         step",
        name(blocks),
        demand(blocks, Before { ended, began }),
        value(blocks, began.value),
        value(blocks, ended.value)
    );
    let mut evidence = Evidence::new(Pattern::NoOrder, detail);
    add(&mut evidence, ended.span, began.span, RelationKind::RealTime, true);
    add_steps(&mut evidence, blocks, began.value, ended.value);
    add_own_writes(&mut evidence, blocks, &[ended, began]);
    evidence
}

/// Two blocks each of which has something that ended before something of the other began.
pub(super) fn before_each_other(blocks: &Blocks<'_>, one: Block, other: Block) -> Evidence {
    let (ones, others) = (candidates(blocks, one), candidates(blocks, other));
    let is_before = |ended: Place, began: Place| ended.span.end < began.span.start;
    let mut best: Option<(usize, [Before; 2])> = None;
    for (ended, began) in pairs(&ones, &others).filter(|&(ended, began)| is_before(ended, began)) {
        let first = Before { ended, began };
        for (ended, began) in pairs(&others, &ones).filter(|&(ended, began)| is_before(ended, began)) {
            let demands = [first, Before { ended, began }];
            let cost = cost(demands);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, demands));
            }
        }
    }
    let (_, mut demands) = best.expect("the times of the blocks are among the candidates");
    demands.sort_by_key(|before| before.ended.span.end);
    let words = demands.map(|before| demand(blocks, before));
    let mut detail = format!(
        "no order of the operations on `{}` explains them all: it was {}; and it was {}",
        name(blocks),
        words[0],
        words[1]
    );
    let is_joined = |of: Before, then: Before| of.began.value != then.ended.value;
    if is_joined(demands[0], demands[1]) || is_joined(demands[1], demands[0]) {
        detail.push_str("; values that were replaced in one step stand one behind the other");
    }
    let mut evidence = Evidence::new(Pattern::NoOrder, detail);
    for (before, then) in [(demands[0], demands[1]), (demands[1], demands[0])] {
        add(&mut evidence, before.ended.span, before.began.span, RelationKind::RealTime, true);
        let (at, to) = (before.began.value, then.ended.value);
        let (first, last) = if blocks.chain(at).contains(&to) { (at, to) } else { (to, at) };
        add_steps(&mut evidence, blocks, first, last);
    }
    let places = demands.map(|before| [before.ended, before.began]).concat();
    add_own_writes(&mut evidence, blocks, &places);
    evidence
}

/// What is shown rather than another: few transactions, and few values.
fn cost(demands: [Before; 2]) -> usize {
    let places = demands.map(|before| [before.ended, before.began]).concat();
    let mut transactions: Vec<u32> = places.iter().map(|place| place.span.transaction).collect();
    transactions.sort_unstable();
    transactions.dedup();
    let mut values: Vec<usize> = places.iter().map(|place| place.value).collect();
    values.sort_unstable();
    values.dedup();
    values.len() * 8 + transactions.len()
}

fn pairs<'a>(ones: &'a [Place], others: &'a [Place]) -> impl Iterator<Item = (Place, Place)> + 'a {
    ones.iter().flat_map(move |&one| others.iter().map(move |&other| (one, other)))
}

/// The transactions of a block that may show it best: its two times, and the same of their values with the writes.
fn candidates(blocks: &Blocks<'_>, block: Block) -> Vec<Place> {
    let mut places = vec![block.ended_first, block.began_last];
    for value in [block.ended_first.value, block.began_last.value] {
        let held = &blocks.held[value];
        places.extend(
            [held.write, held.ended_first, held.began_last].into_iter().map(|span| Place { value, span }),
        );
    }
    places
}

fn demand(blocks: &Blocks<'_>, before: Before) -> String {
    let Before { ended, began } = before;
    let (one, other) = (value(blocks, ended.value), value(blocks, began.value));
    match ended.span.transaction {
        INITIAL => format!("{one} before all"),
        _ => format!(
            "{one} before it was {other}, since {} ended before {} began",
            line(blocks, ended.span),
            line(blocks, began.span)
        ),
    }
}

/// The steps by which the first value was replaced, and so on until the last.
fn add_steps(evidence: &mut Evidence, blocks: &Blocks<'_>, first: usize, last: usize) {
    for pair in blocks.chain(first).windows(2).take_while(|pair| pair[0] != last) {
        let kind = RelationKind::ReadsFrom(Key(blocks.key));
        add(evidence, blocks.held[pair[0]].write, blocks.held[pair[1]].write, kind, true);
    }
}

/// Which of the transactions read from which other.
fn add_own_writes(evidence: &mut Evidence, blocks: &Blocks<'_>, places: &[Place]) {
    for place in places {
        let write = blocks.held[place.value].write;
        let is_shown = evidence.transactions.contains(&write.transaction);
        if is_shown && write.transaction != place.span.transaction {
            add(evidence, write, place.span, RelationKind::ReadsFrom(Key(blocks.key)), false);
        }
    }
}

fn add(evidence: &mut Evidence, from: Span, to: Span, kind: RelationKind, on_cycle: bool) {
    let of = [from.transaction, to.transaction];
    evidence.transactions.extend(of.into_iter().filter(|&transaction| transaction != INITIAL));
    if of.contains(&INITIAL) {
        return;
    }
    let [from, to] = of.map(TransactionIndex);
    let relation = Relation { from, to, kind, on_cycle };
    if !evidence.relations.iter().any(|known| (known.from, known.to) == (from, to)) {
        evidence.relations.push(relation);
    }
}

fn name<'a>(blocks: &'a Blocks<'_>) -> &'a str {
    &blocks.history.keys[blocks.key as usize]
}

fn line(blocks: &Blocks<'_>, span: Span) -> String {
    place(blocks.history, TransactionIndex(span.transaction))
}

fn value<'a>(blocks: &'a Blocks<'_>, at: usize) -> &'a str {
    value_of_writer(blocks.history, blocks.key, blocks.held[at].write.transaction)
}

/// What a transaction left at a key.
pub(in crate::fast) fn value_of_writer(history: &History, key: u32, writer: u32) -> &str {
    if writer == INITIAL {
        return value_text(history, Value::ABSENT);
    }
    let operations = &history.transactions[writer as usize].operations;
    let written = operations.iter().rev().find_map(|operation| match *operation {
        Operation::Write { key: of, value } if of.0 == key => Some(value),
        _ => None,
    });
    value_text(history, written.expect("a writer wrote the key"))
}
