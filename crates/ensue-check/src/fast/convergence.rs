//! Final reads: whether they agree, and whether none returns what had been overwritten.

use super::clocks::{self, Clocks};
use super::index::Index;
use super::reads::{INITIAL, Read};
use super::{Evidence, Finding};
use crate::history::{History, Key, Operation, Outcome, Transaction, TransactionIndex, Value};
use crate::report::{Pattern, Reason, Relation, RelationKind};
use crate::tables::{Map, Set};

pub(super) fn judge(index: &Index<'_>, order: Option<&[u32]>) -> Finding {
    let history = index.history;
    // What queues held in the end says nothing of registers and counters.
    let is_of_queues = |of: &Transaction| of.operations.iter().any(|operation| operation.is_of_queue());
    let reads_registers = |of: &Transaction| {
        of.operations.iter().any(|operation| !operation.is_of_queue()) || !is_of_queues(of)
    };
    if !history.transactions.iter().any(|of| is_final(of) && reads_registers(of)) {
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
    let finals = history.transactions.iter().filter(|of| is_final(of));
    let read: Set<Option<u16>> = finals.map(|transaction| transaction.datacenter).collect();
    let mut missing: Vec<u16> = used.difference(&read).copied().flatten().collect();
    missing.sort_unstable();
    if let (Some(&missing), false) = (missing.first(), read.contains(&None)) {
        let text = format!("there is no final read in {}", history.datacenters[usize::from(missing)]);
        return Finding::Undecided(Reason { text, line: 0 });
    }
    match half_read(history, &used) {
        Some((key, datacenter)) if !read.contains(&None) => {
            let place = &history.datacenters[usize::from(datacenter)];
            let text = format!("there is no final read of `{}` in {place}", history.key_name(key));
            Finding::Undecided(Reason { text, line: 0 })
        }
        _ => Finding::Holds,
    }
}

/// A key that is finally read in one datacenter and not in another one that was used.
fn half_read(history: &History, used: &Set<Option<u16>>) -> Option<(Key, u16)> {
    let mut read: Map<Option<u16>, Set<Key>> = Map::default();
    for transaction in history.transactions.iter().filter(|of| is_final(of)) {
        let keys = transaction.operations.iter().filter_map(|operation| match *operation {
            Operation::Read { key, .. } | Operation::Count { key, .. } => Some(key),
            _ => None,
        });
        read.entry(transaction.datacenter).or_default().extend(keys);
    }
    let nothing = Set::default();
    let datacenters: Vec<u16> = used.iter().copied().flatten().collect();
    let lacking = |key: &Key| {
        let is_lacking = |at: &&u16| !read.get(&Some(**at)).unwrap_or(&nothing).contains(key);
        datacenters.iter().filter(is_lacking).min().map(|at| (*key, *at))
    };
    read.values().flatten().filter_map(lacking).min()
}

/// What a final read found, of a register or a counter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Register(u32),
    Counter(i64),
}

fn diverged(index: &Index<'_>) -> Option<Evidence> {
    let mut first: Map<(u32, bool), (Content, u32)> = Map::default();
    registers(index).chain(counters(index.history)).find_map(|(reader, key, content)| {
        let is_counter = matches!(content, Content::Counter(_));
        let (earlier, other) = *first.entry((key, is_counter)).or_insert((content, reader));
        (earlier != content).then(|| {
            let detail = format!("final reads of `{}` differ", index.history.keys[key as usize]);
            let mut evidence = Evidence::new(Pattern::Diverged, detail);
            evidence.transactions = vec![other, reader];
            evidence
        })
    })
}

/// What final transactions read from others: by reader and key.
fn registers(index: &Index<'_>) -> impl Iterator<Item = (u32, u32, Content)> {
    let values = returned(index);
    final_reads(index)
        .map(move |read| (read.reader, read.key, Content::Register(values[&(read.writer, read.key)].0)))
}

/// What final transactions counted: by reader and key.
fn counters(history: &History) -> impl Iterator<Item = (u32, u32, Content)> {
    let readers = history.transactions.iter().enumerate().filter(|(_, reader)| is_final(reader));
    readers.flat_map(|(reader, transaction)| {
        transaction.operations.iter().filter_map(move |operation| match *operation {
            Operation::Count { key, value } => Some((reader as u32, key.0, Content::Counter(value))),
            _ => None,
        })
    })
}

/// The values that final reads returned, by writer and key: the last that the writer gave the key.
fn returned(index: &Index<'_>) -> Map<(u32, u32), Value> {
    let mut values: Map<(u32, u32), Value> =
        final_reads(index).map(|read| ((read.writer, read.key), Value::ABSENT)).collect();
    let writers: Set<u32> = values.keys().map(|(writer, _)| *writer).collect();
    for writer in writers.into_iter().filter(|&writer| writer != INITIAL) {
        for operation in &index.history.transactions[writer as usize].operations {
            let Operation::Write { key, value } = *operation else { continue };
            if let Some(returned) = values.get_mut(&(writer, key.0)) {
                *returned = value;
            }
        }
    }
    values
}

fn final_reads<'a>(index: &'a Index<'_>) -> impl Iterator<Item = &'a Read> {
    index.reads.iter().filter(|read| is_final(&index.history.transactions[read.reader as usize]))
}

fn is_final(transaction: &Transaction) -> bool {
    transaction.is_final && transaction.outcome == Outcome::Committed
}

/// Nothing if it cannot be said; else what shows that a final read is stale, if one is.
fn stale(index: &Index<'_>, order: Option<&[u32]>) -> Option<Option<Evidence>> {
    let mut targets: Map<(u32, u32), u32> = Map::default();
    for read in final_reads(index) {
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
