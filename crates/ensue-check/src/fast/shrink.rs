//! The smallest set of operations that still shows a violation: leaves out what can be left out, until nothing can.

use super::evidence::Evidence;
use super::is_violated;
use super::reads::{INITIAL, Read};
use crate::history::{History, Key, Operation, Session, Transaction, TransactionIndex, Value};
use crate::property::Property;
use crate::tables::Map;

/// With more operations than this, a violation is shown as it was found.
const ITEMS_MAX: usize = 2_000;
/// How often a part of the history is checked again at most.
const CHECKS_MAX: usize = 5_000;

/// Something that can be left out.
#[derive(Clone, Copy, Debug)]
struct Item {
    transaction: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Operation {
        place: u32,
        rests_on: Option<usize>,
    },
    /// The tokens that were shown to it.
    Merges,
}

/// The evidence of a part of the history that is as small as can be; the given one if that does not work out. The
/// others are transactions that show other violations, the fewest first.
pub(super) fn shrink(
    history: &History,
    certain: &[Read],
    property: Property,
    evidence: Evidence,
    others: &[Vec<u32>],
) -> Evidence {
    match property {
        Property::ReadIntegrity
        | Property::Counters
        | Property::Convergence
        | Property::Linearizable
        | Property::DelayOnce
        | Property::PoppedOnce
        | Property::PoppedAtLeastOnce => return evidence,
        _ => {}
    }
    // What shows that another property is violated often shows this one, too, and may be shorter.
    for transactions in others.iter().filter(|of| of.len() < evidence.transactions.len()) {
        let items = items(history, certain, transactions);
        if let Some(found) = Part::new(history, &items, &vec![true; items.len()]).evidence(property) {
            return shrink(history, certain, property, found, &[]);
        }
    }
    let items = items(history, certain, &evidence.transactions);
    if items.len() > ITEMS_MAX {
        return evidence;
    }
    let mut keep = vec![true; items.len()];
    let Some(mut smallest) = Part::new(history, &items, &keep).evidence(property) else { return evidence };
    let mut checks = 0;
    let mut chunk = items.len().div_ceil(2);
    while chunk > 0 && checks < CHECKS_MAX {
        let mut is_smaller = false;
        for start in (0..items.len()).step_by(chunk) {
            let range = start..items.len().min(start + chunk);
            if !keep[range.clone()].contains(&true) {
                continue;
            }
            let mut without = keep.clone();
            without[range].fill(false);
            checks += 1;
            if let Some(found) = Part::new(history, &items, &without).evidence(property) {
                (keep, smallest, is_smaller) = (without, found, true);
            }
        }
        if chunk > 1 {
            chunk = chunk.div_ceil(2);
        } else if !is_smaller {
            chunk = 0;
        }
    }
    smallest
}

/// Everything that the transactions did and that is known to be what it seems.
fn items(history: &History, certain: &[Read], transactions: &[u32]) -> Vec<Item> {
    let mut chosen = transactions.to_vec();
    chosen.sort_unstable();
    chosen.dedup();
    let mut items = Vec::new();
    let mut writes: Map<(u32, u32, u32), usize> = Map::default();
    for &transaction in &chosen {
        let of = &history.transactions[transaction as usize];
        if !of.merges.is_empty() {
            items.push(Item { transaction, what: What::Merges });
        }
        for (place, operation) in of.operations.iter().enumerate() {
            if let Operation::Write { key, value } = *operation {
                writes.insert((transaction, key.0, value.0), items.len());
            }
            let what = What::Operation { place: place as u32, rests_on: None };
            items.push(Item { transaction, what });
        }
    }
    let mut writers: Map<(u32, u32), Vec<u32>> = Map::default();
    for &transaction in &chosen {
        let first = certain.partition_point(|read| read.reader < transaction);
        for read in certain[first..].iter().take_while(|read| read.reader == transaction) {
            writers.entry((transaction, read.key)).or_default().push(read.writer);
        }
    }
    // A read whose write is not among them would be one of a value that nobody wrote.
    let mut kept = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let What::Operation { place, .. } = item.what else {
            kept.push((at, *item));
            continue;
        };
        let operations = &history.transactions[item.transaction as usize].operations;
        let Operation::Read { key, value } = operations[place as usize] else {
            kept.push((at, *item));
            continue;
        };
        for &writer in writers.get(&(item.transaction, key.0)).into_iter().flatten() {
            let rests_on = match writer {
                INITIAL if value == Value::ABSENT => None,
                writer => match writes.get(&(writer, key.0, value.0)) {
                    Some(&write) => Some(write),
                    None => continue,
                },
            };
            let what = What::Operation { place, rests_on };
            kept.push((at, Item { what, ..*item }));
            break;
        }
    }
    let places: Map<usize, usize> = kept.iter().enumerate().map(|(new, (old, _))| (*old, new)).collect();
    let moved = |(_, item): (usize, Item)| match item.what {
        What::Operation { place, rests_on } => {
            let rests_on = rests_on.map(|old| places[&old]);
            Item { what: What::Operation { place, rests_on }, ..item }
        }
        What::Merges => item,
    };
    kept.into_iter().map(moved).collect()
}

/// A part of a history, and where its transactions stand in the whole.
struct Part {
    history: History,
    whole: Vec<u32>,
    /// Beside each key: its place in the whole.
    whole_keys: Vec<u32>,
}

impl Part {
    fn new(history: &History, items: &[Item], keep: &[bool]) -> Part {
        let mut part = History { values: history.values[..1].to_vec(), ..History::default() };
        let mut whole: Vec<u32> = Vec::new();
        let mut keys: Map<u32, u32> = Map::default();
        let is_kept = |at: usize| match items[at].what {
            What::Operation { rests_on: Some(write), .. } => keep[at] && keep[write],
            _ => keep[at],
        };
        for at in (0..items.len()).filter(|&at| is_kept(at)) {
            let item = items[at];
            let of = &history.transactions[item.transaction as usize];
            if whole.last() != Some(&item.transaction) {
                whole.push(item.transaction);
                let operations = Vec::new();
                part.transactions.push(Transaction { operations, merges: Vec::new(), ..of.clone() });
            }
            let Some(last) = part.transactions.last_mut() else { continue };
            match item.what {
                What::Merges => last.merges.clone_from(&of.merges),
                What::Operation { place, .. } => {
                    let mut operation = of.operations[place as usize];
                    let (Operation::Read { key, .. }
                    | Operation::Write { key, .. }
                    | Operation::Add { key, .. }
                    | Operation::Count { key, .. }
                    | Operation::Push { key, .. }
                    | Operation::Pop { key, .. }
                    | Operation::Hold { key, .. }) = &mut operation;
                    let next = keys.len() as u32;
                    key.0 = *keys.entry(key.0).or_insert(next);
                    last.operations.push(operation);
                }
            }
        }
        part.keys = vec![String::new(); keys.len()];
        let mut whole_keys = vec![0; keys.len()];
        for (old, new) in keys {
            part.keys[new as usize].clone_from(&history.keys[old as usize]);
            whole_keys[new as usize] = old;
        }
        let mut part = Part { history: part, whole, whole_keys };
        part.place_in_sessions();
        part
    }

    fn place_in_sessions(&mut self) {
        let mut sessions: Map<u32, u32> = Map::default();
        for at in 0..self.history.transactions.len() {
            let old = self.history.transactions[at].session.0;
            let next = sessions.len() as u32;
            let session = *sessions.entry(old).or_insert(next);
            if session == next {
                self.history.sessions.push(Session::default());
            }
            self.history.transactions[at].session.0 = session;
            self.history.sessions[session as usize].transactions.push(TransactionIndex(at as u32));
            let merges = std::mem::take(&mut self.history.transactions[at].merges);
            let found = merges.iter().filter_map(|merged| self.whole.binary_search(&merged.0).ok());
            self.history.transactions[at].merges = found.map(|at| TransactionIndex(at as u32)).collect();
        }
    }

    /// What shows the violation in this part, by places of the whole.
    fn evidence(&self, property: Property) -> Option<Evidence> {
        let mut evidence = is_violated(&self.history, property)?;
        let whole = |part: TransactionIndex| match part {
            TransactionIndex::INITIAL => part,
            TransactionIndex(at) => TransactionIndex(self.whole[at as usize]),
        };
        evidence.transactions.clone_from(&self.whole);
        for relation in &mut evidence.relations {
            relation.from = whole(relation.from);
            relation.to = whole(relation.to);
            relation.kind.map(whole, |key| Key(self.whole_keys[key.0 as usize]));
        }
        Some(evidence)
    }
}
