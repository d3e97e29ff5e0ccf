//! Final reads: whether they agree, and whether none returns what had been overwritten.

use super::clocks::{self, Clocks};
use super::index::Index;
use super::reads::INITIAL;
use super::{Evidence, Finding};
use crate::history::{Key, Operation, Outcome, TransactionIndex, Value};
use crate::report::{Pattern, Reason, Relation, RelationKind};
use crate::tables::{Map, Set};

pub(super) fn judge(index: &Index<'_>, order: Option<&[u32]>) -> Finding {
    let history = index.history;
    let is_final = |transaction: &&crate::history::Transaction| {
        transaction.is_final && transaction.outcome == Outcome::Committed
    };
    if !history.transactions.iter().any(|transaction| is_final(&transaction)) {
        return Finding::NotApplicable("the history has no final reads".into());
    }
    if let Some(evidence) = diverged(index) {
        return Finding::Violated(evidence);
    }
    match stale(index, order) {
        Some(Some(evidence)) => return Finding::Violated(evidence),
        Some(None) => {}
        None => {
            let text = "the causal past is cyclic, and too long to say what is newest in it".into();
            return Finding::Undecided(Reason { text, line: 0 });
        }
    }
    let committed = history.transactions.iter().filter(|of| of.outcome == Outcome::Committed);
    let used: Set<Option<u16>> = committed.map(|transaction| transaction.datacenter).collect();
    let read: Set<Option<u16>> =
        history.transactions.iter().filter(is_final).map(|transaction| transaction.datacenter).collect();
    let mut missing: Vec<u16> = used.difference(&read).copied().flatten().collect();
    missing.sort_unstable();
    if let (Some(&missing), false) = (missing.first(), read.contains(&None)) {
        let text = format!("there is no final read in {}", history.datacenters[usize::from(missing)]);
        return Finding::Undecided(Reason { text, line: 0 });
    }
    Finding::Holds
}

/// What a final read found, of a register or a counter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Register(u32),
    Counter(i64),
}

fn diverged(index: &Index<'_>) -> Option<Evidence> {
    let history = index.history;
    let mut first: Map<(u32, bool), (Content, u32)> = Map::default();
    for (reader, transaction) in history.transactions.iter().enumerate() {
        if !transaction.is_final || transaction.outcome != Outcome::Committed {
            continue;
        }
        for operation in &transaction.operations {
            let (key, content) = match *operation {
                Operation::Read { key, value } if returned(index, reader as u32, key, value) => {
                    (key, Content::Register(value.0))
                }
                Operation::Count { key, value } => (key, Content::Counter(value)),
                _ => continue,
            };
            let is_counter = matches!(content, Content::Counter(_));
            let (earlier, other) = *first.entry((key.0, is_counter)).or_insert((content, reader as u32));
            if earlier != content {
                let detail = format!("final reads of `{}` differ", history.key_name(key));
                let mut evidence = Evidence::new(Pattern::Diverged, detail);
                evidence.transactions = vec![other, reader as u32];
                return Some(evidence);
            }
        }
    }
    None
}

/// Whether the read is an external one whose write is known.
fn returned(index: &Index<'_>, reader: u32, key: Key, value: Value) -> bool {
    index.reads_of(reader).iter().filter(|read| read.key == key.0).any(|read| match read.writer {
        INITIAL => value == Value::ABSENT,
        writer => {
            let operations = &index.history.transactions[writer as usize].operations;
            let last = operations.iter().rev().find_map(|operation| match *operation {
                Operation::Write { key: written, value } if written == key => Some(value),
                _ => None,
            });
            last == Some(value)
        }
    })
}

/// Nothing if it cannot be said; else what shows that a final read is stale, if one is.
fn stale(index: &Index<'_>, order: Option<&[u32]>) -> Option<Option<Evidence>> {
    let history = index.history;
    let mut targets: Map<(u32, u32), u32> = Map::default();
    for read in index.reads.iter().filter(|read| history.transactions[read.reader as usize].is_final) {
        targets.entry((read.key, read.writer)).or_insert(read.reader);
    }
    let mut targets: Vec<_> =
        targets.into_iter().map(|((key, writer), reader)| (key, writer, reader)).collect();
    targets.sort_unstable();
    for &(key, writer, reader) in targets.iter().filter(|target| target.1 == INITIAL) {
        if let Some(group) = index.writes.groups(key).first() {
            let newer = index.writes.transactions[group.start as usize];
            return Some(Some(stale_read(index, (key, writer, reader), newer)));
        }
    }
    for block in Clocks::blocks(index) {
        let clocks = clocks::causal(index, order, block)?;
        for &(key, writer, reader) in targets.iter().filter(|target| target.1 != INITIAL) {
            let session = index.session[writer as usize];
            let position = index.position[writer as usize];
            if !clocks.sessions.contains(&session) {
                continue;
            }
            for group in index.writes.groups(key) {
                let newer = &index.writes.transactions[group.start as usize..group.end as usize];
                let newer = newer
                    .iter()
                    .find(|&&newer| clocks.entry(newer, session).is_some_and(|known| known > position));
                if let Some(&newer) = newer {
                    return Some(Some(stale_read(index, (key, writer, reader), newer)));
                }
            }
        }
    }
    Some(None)
}

fn stale_read(index: &Index<'_>, (key, writer, reader): (u32, u32, u32), newer: u32) -> Evidence {
    let name = &index.history.keys[key as usize];
    let detail = format!("a final read of `{name}` returned what had been overwritten");
    let mut evidence = Evidence::new(Pattern::FinalStale, detail);
    if writer != INITIAL {
        evidence.relations.push(Relation {
            from: TransactionIndex(writer),
            to: TransactionIndex(reader),
            kind: RelationKind::ReadsFrom(Key(key)),
            on_cycle: true,
        });
        evidence.add_path(index, crate::Property::Convergence, writer, newer, true);
        evidence.transactions.push(writer);
    }
    evidence.transactions.extend([newer, reader]);
    evidence
}
