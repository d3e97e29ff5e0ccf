//! A causal store in a few lines: datacenters that show each write after its past, the last writer wins. And its
//! defects.

use super::{Chance, Defect, Draft, World};
use crate::history::{Key, Operation, Outcome, SessionIndex, Transaction, Value};

/// A set of transactions: bit `i` is transaction `i`.
type Set = u64;

struct Store {
    defect: Option<Defect>,
    /// By datacenter and key: the transactions whose writes of the key are shown.
    shown: Vec<Vec<Set>>,
    /// By transaction: itself and everything before it.
    past: Vec<Set>,
    /// By transaction: the greater one wins.
    stamp: Vec<u64>,
    /// By transaction: what it writes and adds, if it takes effect.
    effects: Vec<Vec<Operation>>,
    keys: usize,
}

/// A client.
struct Client {
    session: SessionIndex,
    datacenter: usize,
    past: Set,
}

pub(super) fn fill(world: &World, defect: Option<Defect>, chance: &mut Chance, draft: &mut Draft<'_>) {
    let keys = draft.history.keys.len();
    let shown = vec![vec![0; keys]; world.datacenters];
    let mut store = Store { defect, shown, past: Vec::new(), stamp: Vec::new(), effects: Vec::new(), keys };
    if let Some(first) = draft.initial_values(chance) {
        let datacenter = chance.below(world.datacenters);
        store.execute(&first, datacenter, 0, chance);
        draft.push(first);
        for datacenter in 0..world.datacenters {
            store.deliver_all(datacenter);
        }
    }
    let mut clients: Vec<Client> = (0..world.sessions)
        .map(|_| Client {
            session: draft.new_session(),
            datacenter: chance.below(world.datacenters),
            past: 0,
        })
        .collect();
    let mut client = 0;
    for _ in 0..world.transactions {
        if chance.percent(50) {
            store.deliver_some(chance);
        }
        if chance.percent(60) {
            client = chance.below(clients.len());
        }
        step(&mut store, &mut clients[client], chance, draft);
        store.deliver_newest(chance);
    }
    if world.reads_at_rest {
        rest(&mut store, chance, draft);
    }
}

/// One transaction of one client.
fn step(store: &mut Store, client: &mut Client, chance: &mut Chance, draft: &mut Draft<'_>) {
    let merge = draft.draw_merge(chance, client.session);
    if let Some(token) = merge {
        client.past |= store.past[token.0 as usize];
    }
    let moves = chance.percent(8);
    if moves {
        client.datacenter = chance.below(draft.world.datacenters);
    }
    if (moves || merge.is_some()) && store.defect != Some(Defect::ForgetsTokens) {
        store.deliver(client.datacenter, client.past);
    }
    let mut transaction = draft.begin(client.session, client.datacenter);
    transaction.merges.extend(merge);
    transaction.operations = draft.draw_operations(chance);
    draft.draw_outcome(chance, &mut transaction);
    let index = draft.next();
    let takes_effect = match transaction.outcome {
        Outcome::Committed => true,
        Outcome::Unknown => chance.percent(50),
        Outcome::Failed => store.defect == Some(Defect::AppliesFailures),
    };
    client.past |= store.answer(&mut transaction, client.datacenter, chance);
    if takes_effect {
        client.past |= store.execute(&transaction, client.datacenter, client.past, chance);
    } else {
        store.execute(&Transaction { operations: Vec::new(), ..transaction.clone() }, 0, client.past, chance);
    }
    debug_assert_eq!(store.past.len(), index + 1);
    if transaction.outcome == Outcome::Unknown {
        // A client that does not know what became of its last transaction begins anew.
        *client = Client { session: draft.new_session(), past: 0, ..*client };
    }
    draft.push(transaction);
}

fn rest(store: &mut Store, chance: &mut Chance, draft: &mut Draft<'_>) {
    for datacenter in 0..draft.world.datacenters {
        if store.defect != Some(Defect::LosesWrites) {
            store.deliver_all(datacenter);
        }
    }
    for datacenter in 0..draft.world.datacenters {
        let mut last = draft.at_rest(datacenter);
        store.answer(&mut last, datacenter, chance);
        store.execute(&last, datacenter, 0, chance);
        draft.push(last);
    }
}

impl Store {
    /// Takes a transaction in; returns its past with itself.
    fn execute(
        &mut self,
        transaction: &Transaction,
        datacenter: usize,
        past: Set,
        chance: &mut Chance,
    ) -> Set {
        let index = self.past.len();
        let itself = 1 << index;
        let highest = self.stamp.iter().max().copied().unwrap_or(0);
        let above_past =
            (0..index).filter(|&t| past & (1 << t) != 0).map(|t| self.stamp[t]).max().unwrap_or(0);
        let stamp = match self.defect {
            Some(Defect::StampsBelowThePast) => chance.below(1_000) as u64 * 64 + index as u64,
            // Anything above the past will do: concurrent writes may win or lose.
            _ => (above_past / 64 + 1 + chance.below((highest / 64) as usize + 2) as u64) * 64 + index as u64,
        };
        let effects = transaction
            .operations
            .iter()
            .filter(|operation| matches!(operation, Operation::Write { .. } | Operation::Add { .. }));
        self.effects.push(effects.copied().collect());
        self.past.push(past | itself);
        self.stamp.push(stamp);
        for key in 0..self.keys {
            self.shown[datacenter][key] |= itself;
        }
        past | itself
    }

    fn everything(&self) -> Set {
        (1 << self.past.len()) - 1
    }

    fn deliver(&mut self, datacenter: usize, transactions: Set) {
        for key in 0..self.keys {
            self.shown[datacenter][key] |= transactions;
        }
    }

    fn deliver_all(&mut self, datacenter: usize) {
        self.deliver(datacenter, self.everything());
    }

    /// Something arrives somewhere.
    fn deliver_some(&mut self, chance: &mut Chance) {
        if !self.past.is_empty() {
            let datacenter = chance.below(self.shown.len());
            self.arrive(datacenter, chance.below(self.past.len()), chance);
        }
    }

    /// The newest transaction is fast on its way to some datacenters.
    fn deliver_newest(&mut self, chance: &mut Chance) {
        for datacenter in 0..self.shown.len() {
            if chance.percent(40) {
                self.arrive(datacenter, self.past.len() - 1, chance);
            }
        }
    }

    /// A transaction is shown, with its past before it.
    fn arrive(&mut self, datacenter: usize, arrived: usize, chance: &mut Chance) {
        match self.defect {
            Some(Defect::IgnoresDependencies) => self.deliver(datacenter, 1 << arrived),
            Some(Defect::TearsTransactions) => {
                self.deliver(datacenter, self.past[arrived] & !(1 << arrived));
                self.shown[datacenter][chance.below(self.keys)] |= 1 << arrived;
            }
            _ => self.deliver(datacenter, self.past[arrived]),
        }
    }

    /// Fills in what the reads of a transaction see; returns the pasts of what they saw.
    fn answer(&self, transaction: &mut Transaction, datacenter: usize, chance: &mut Chance) -> Set {
        let mut seen = 0;
        for place in 0..transaction.operations.len() {
            let elsewhere = self.defect == Some(Defect::ReadsElsewhere) && chance.percent(40);
            let datacenter = if elsewhere { chance.below(self.shown.len()) } else { datacenter };
            let (before, rest) = transaction.operations.split_at_mut(place);
            match &mut rest[0] {
                Operation::Read { key, value } => {
                    let winner = self.winner(datacenter, *key);
                    let found = winner.map_or(Value::ABSENT, |writer| self.value(writer, *key));
                    let own = last_write(before, *key);
                    *value = self.maybe_wrong(*key, own.unwrap_or(found), chance);
                    if own.is_none() {
                        seen |= winner.map_or(0, |writer| self.past[writer]);
                    }
                }
                Operation::Count { key, value } => {
                    *value = self.sum(datacenter, *key, chance) + added(before, *key);
                }
                _ => {}
            }
        }
        seen
    }

    fn shows(&self, datacenter: usize, key: Key) -> impl Iterator<Item = usize> {
        let shown = self.shown[datacenter][key.0 as usize];
        (0..self.past.len()).filter(move |transaction| shown & (1 << transaction) != 0)
    }

    fn winner(&self, datacenter: usize, key: Key) -> Option<usize> {
        let order = |&writer: &usize| match self.defect {
            Some(Defect::ArrivalOrder) => Chance((writer * 64 + datacenter) as u64).bits(),
            _ => self.stamp[writer],
        };
        self.shows(datacenter, key)
            .filter(|&writer| last_write(&self.effects[writer], key).is_some())
            .max_by_key(order)
    }

    fn value(&self, writer: usize, key: Key) -> Value {
        last_write(&self.effects[writer], key).unwrap_or(Value::ABSENT)
    }

    fn maybe_wrong(&self, key: Key, right: Value, chance: &mut Chance) -> Value {
        if self.defect != Some(Defect::WrongValue) || !chance.percent(30) {
            return right;
        }
        let written = self.effects.iter().flatten().filter_map(|operation| match *operation {
            Operation::Write { key: written, value } if written == key || chance.percent(5) => Some(value),
            _ => None,
        });
        let mut values: Vec<Value> = written.collect();
        values.push(Value::ABSENT);
        chance.pick(&values)
    }

    fn sum(&self, datacenter: usize, key: Key, chance: &mut Chance) -> i64 {
        let mut sum = 0;
        for adder in self.shows(datacenter, key) {
            let times = match self.defect {
                Some(Defect::Miscounts) if chance.percent(20) => chance.pick(&[0, 2]),
                _ => 1,
            };
            sum += times * added(&self.effects[adder], key);
        }
        sum
    }
}

fn last_write(operations: &[Operation], key: Key) -> Option<Value> {
    operations.iter().rev().find_map(|operation| match *operation {
        Operation::Write { key: written, value } if written == key => Some(value),
        _ => None,
    })
}

fn added(operations: &[Operation], key: Key) -> i64 {
    let deltas = operations.iter().map(|operation| match *operation {
        Operation::Add { key: added, delta } if added == key => delta,
        _ => 0,
    });
    deltas.sum()
}
