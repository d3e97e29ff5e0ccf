//! Answers that are guessed: any value of the key, any sum of additions.

use super::{Chance, Draft, World};
use crate::history::{History, Key, Operation, Outcome, Value};

pub(super) fn fill(world: &World, chance: &mut Chance, draft: &mut Draft<'_>) {
    if let Some(first) = draft.initial_values(chance) {
        draft.push(first);
    }
    let mut sessions: Vec<_> = (0..world.sessions).map(|_| draft.new_session()).collect();
    for _ in 0..world.transactions {
        let place = chance.below(world.sessions);
        let mut transaction = draft.begin(sessions[place], place % world.datacenters);
        transaction.operations = draft.draw_operations(chance);
        transaction.merges.extend(draft.draw_merge(chance, sessions[place]));
        draft.draw_outcome(chance, &mut transaction);
        if world.is_timed && transaction.outcome == Outcome::Committed {
            transaction.end_us += chance.below(40) as u64;
        }
        if transaction.outcome == Outcome::Unknown && chance.percent(50) {
            sessions[place] = draft.new_session();
        }
        draft.push(transaction);
    }
    if world.reads_at_rest {
        for datacenter in 0..world.datacenters {
            let last = draft.at_rest(datacenter);
            draft.push(last);
        }
    }
    answer(&mut draft.history, chance);
}

fn answer(history: &mut History, chance: &mut Chance) {
    for index in 0..history.transactions.len() {
        for place in 0..history.transactions[index].operations.len() {
            let guess = match history.transactions[index].operations[place] {
                Operation::Read { key, .. } => {
                    Operation::Read { key, value: any_value(history, index, place, key, chance) }
                }
                Operation::Count { key, .. } => {
                    Operation::Count { key, value: any_sum(history, key, chance) }
                }
                other => other,
            };
            history.transactions[index].operations[place] = guess;
        }
    }
}

/// Mostly an own write that stands before in the transaction, if there is one: it would else nearly always be wrong.
fn any_value(history: &History, index: usize, place: usize, key: Key, chance: &mut Chance) -> Value {
    let own = written(&history.transactions[index].operations[..place], key).last();
    if let (Some(value), true) = (own, chance.percent(90)) {
        return value;
    }
    let mut values: Vec<Value> = history
        .transactions
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != index)
        .flat_map(|(_, other)| written(&other.operations, key))
        .collect();
    values.push(Value::ABSENT);
    chance.pick(&values)
}

fn written(operations: &[Operation], key: Key) -> impl Iterator<Item = Value> {
    operations.iter().filter_map(move |operation| match *operation {
        Operation::Write { key: written, value } if written == key => Some(value),
        _ => None,
    })
}

fn any_sum(history: &History, key: Key, chance: &mut Chance) -> i64 {
    let mut sum = 0;
    for operation in history.transactions.iter().flat_map(|transaction| &transaction.operations) {
        if let Operation::Add { key: added, delta } = *operation {
            sum += if added == key && chance.percent(60) { delta } else { 0 };
        }
    }
    sum
}
