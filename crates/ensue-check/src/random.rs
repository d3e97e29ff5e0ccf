//! Small random histories, for checkers to disagree on.
//!
//! A seed arrives, a [`History`] leaves: the same one for the same seed, always. A part of them is what clients of a
//! correct causal store saw, a part what they saw of the same store with a defect, and a part pure guesswork; so that
//! each property is often kept and often broken, alone and together with others. What is drawn stands in [`World`];
//! nothing here knows a checker.

mod guess;
mod store;

use crate::history::{
    History, Key, Operation, Outcome, Session, SessionIndex, Transaction, TransactionIndex, Value,
};

/// In a hundred histories, those of which the recording broke off.
const BROKEN_OFF: usize = 10;

/// A source of chance that depends on nothing but its seed: splitmix64.
#[derive(Clone, Debug)]
struct Chance(u64);

impl Chance {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound.max(1) as u64) as usize
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A write is shown before what it depends on.
    IgnoresDependencies,
    /// Each datacenter has an order of the writes of its own.
    ArrivalOrder,
    /// A write may lose against one of its past.
    StampsBelowThePast,
    /// A transaction is shown in pieces.
    TearsTransactions,
    /// Now and then a read is answered by another datacenter.
    ReadsElsewhere,
    /// A token is accepted before its past is here.
    ForgetsTokens,
    /// Now and then a read returns any value ever written.
    WrongValue,
    /// Now and then a counter is off by some addition.
    Miscounts,
    /// A failed transaction takes effect.
    AppliesFailures,
    /// At rest, not everything has arrived.
    LosesWrites,
}

impl Defect {
    pub const ALL: [Defect; 10] = [
        Defect::IgnoresDependencies,
        Defect::ArrivalOrder,
        Defect::StampsBelowThePast,
        Defect::TearsTransactions,
        Defect::ReadsElsewhere,
        Defect::ForgetsTokens,
        Defect::WrongValue,
        Defect::Miscounts,
        Defect::AppliesFailures,
        Defect::LosesWrites,
    ];
}

/// Where the answers of a history come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    CorrectStore,
    StoreWith(Defect),
    Guessed,
}

/// What is drawn before a history.
#[derive(Clone, Debug)]
struct World {
    answers: Answers,
    sessions: usize,
    transactions: usize,
    registers: usize,
    has_counter: bool,
    /// Each addition is another power of two, so that a sum says which ones it has.
    adds_powers: bool,
    datacenters: usize,
    /// Most deletes that cannot be told from the initial state.
    deletes: usize,
    /// In a hundred writes, those of a value that was written before.
    repeats: usize,
    unknown: usize,
    failed: usize,
    merges: usize,
    writes_initial_values: bool,
    is_timed: bool,
    reads_at_rest: bool,
}

impl World {
    fn draw(chance: &mut Chance) -> World {
        let answers = match chance.below(100) {
            0..20 => Answers::CorrectStore,
            20..70 => Answers::StoreWith(chance.pick(&Defect::ALL)),
            _ => Answers::Guessed,
        };
        World::with(answers, chance)
    }

    /// A defect needs room to show: more than one datacenter, more than one key, and some time.
    fn with(answers: Answers, chance: &mut Chance) -> World {
        let world = World { answers, ..World::shape(chance) };
        match answers {
            Answers::StoreWith(_) => World {
                transactions: world.transactions + 3,
                registers: world.registers.max(2),
                datacenters: world.datacenters.max(2),
                ..world
            },
            _ => world,
        }
    }

    fn shape(chance: &mut Chance) -> World {
        let some = |chance: &mut Chance, often: usize, amount: usize| match chance.percent(often) {
            true => amount,
            false => 0,
        };
        World {
            answers: Answers::CorrectStore,
            sessions: 2 + chance.below(3),
            transactions: 3 + chance.below(8),
            registers: chance.pick(&[1, 2, 2, 2, 3]),
            has_counter: chance.percent(35),
            adds_powers: chance.percent(50),
            datacenters: chance.pick(&[1, 2, 2, 2, 3]),
            deletes: some(chance, 30, 2),
            repeats: some(chance, 5, 30),
            unknown: some(chance, 30, 20),
            failed: some(chance, 25, 25),
            merges: some(chance, 40, 30),
            writes_initial_values: chance.percent(25),
            is_timed: chance.percent(50),
            reads_at_rest: chance.percent(40),
        }
    }

    fn counter(&self) -> Option<Key> {
        self.has_counter.then_some(Key(self.registers as u32))
    }
}

/// The history of a seed.
pub fn history(seed: u64) -> History {
    let mut chance = Chance(seed);
    let world = World::draw(&mut chance);
    let mut history = of_world(&world, &mut chance);
    if chance.percent(BROKEN_OFF) {
        // What one transaction did is in the missing part.
        let missing = chance.below(history.transactions.len());
        history.transactions[missing].operations.clear();
        history.truncated_at_line = Some(history.transactions.len() as u32);
    }
    history
}

/// The history of a seed, with answers from there.
pub fn history_with(seed: u64, answers: Answers) -> History {
    let mut chance = Chance(seed);
    let world = World::with(answers, &mut chance);
    of_world(&world, &mut chance)
}

fn of_world(world: &World, chance: &mut Chance) -> History {
    let mut draft = Draft::new(world);
    let broken = match world.answers {
        Answers::Guessed => {
            guess::fill(world, chance, &mut draft);
            return draft.history;
        }
        Answers::CorrectStore => None,
        Answers::StoreWith(defect) => Some(defect),
    };
    store::fill(world, broken, chance, &mut draft);
    draft.history
}

/// A history as it grows, and what the next transaction may say.
struct Draft<'a> {
    world: &'a World,
    history: History,
    deletes_left: usize,
    additions: u32,
    now_us: u64,
}

impl<'a> Draft<'a> {
    fn new(world: &'a World) -> Draft<'a> {
        let mut keys: Vec<String> =
            ["x", "y", "z"][..world.registers].iter().map(|&name| name.into()).collect();
        keys.extend(world.counter().map(|_| "counter".into()));
        let datacenters = (1..=world.datacenters).map(|number| format!("dc{number}")).collect();
        let history = History { keys, values: vec!["nil".into()], datacenters, ..History::default() };
        Draft { world, history, deletes_left: world.deletes, additions: 0, now_us: 0 }
    }

    fn new_session(&mut self) -> SessionIndex {
        let index = self.history.sessions.len();
        self.history.sessions.push(Session { name: format!("s{index}"), transactions: Vec::new() });
        SessionIndex(index as u32)
    }

    /// A transaction that every operation of which was answered, and that asked nothing yet.
    fn begin(&mut self, session: SessionIndex, datacenter: usize) -> Transaction {
        self.now_us += 10;
        let times = if self.world.is_timed { (self.now_us, self.now_us + 9) } else { (0, 0) };
        Transaction {
            datacenter: Some(datacenter as u16),
            start_us: times.0,
            end_us: times.1,
            ..Transaction::committed(session)
        }
    }

    /// The index that the next transaction gets.
    fn next(&self) -> usize {
        self.history.transactions.len()
    }

    /// An outcome is drawn; what was not answered has no reads.
    fn draw_outcome(&self, chance: &mut Chance, transaction: &mut Transaction) {
        transaction.outcome = match chance.below(100) {
            drawn if drawn < self.world.unknown => Outcome::Unknown,
            drawn if drawn < self.world.unknown + self.world.failed => Outcome::Failed,
            _ => return,
        };
        transaction.end_us =
            if transaction.outcome == Outcome::Unknown { u64::MAX } else { transaction.end_us };
        transaction
            .operations
            .retain(|operation| matches!(operation, Operation::Write { .. } | Operation::Add { .. }));
    }

    fn push(&mut self, transaction: Transaction) {
        let index = TransactionIndex(self.history.transactions.len() as u32);
        self.history.sessions[transaction.session.0 as usize].transactions.push(index);
        self.history.transactions.push(transaction);
    }

    /// What a transaction asks; reads are to be answered by the caller.
    fn draw_operations(&mut self, chance: &mut Chance) -> Vec<Operation> {
        let length = chance.pick(&[1, 1, 1, 2, 2, 2, 3]);
        let kind = chance.below(10);
        let mut operations = Vec::new();
        let mut key = chance.below(self.world.registers);
        for _ in 0..length {
            let is_write = match kind {
                0..4 => true,
                4..8 => false,
                _ => chance.percent(50),
            };
            operations.push(self.draw_operation(chance, Key(key as u32), is_write));
            // Mostly another key: that is where transactions are torn.
            key = (key + usize::from(chance.percent(80))) % self.world.registers;
        }
        operations
    }

    fn draw_operation(&mut self, chance: &mut Chance, register: Key, is_write: bool) -> Operation {
        let on_counter = chance.percent(30);
        if let (Some(key), true) = (self.world.counter(), on_counter) {
            return match is_write {
                true => Operation::Add { key, delta: self.draw_delta(chance) },
                false => Operation::Count { key, value: 0 },
            };
        }
        let key = register;
        match is_write {
            true => Operation::Write { key, value: self.draw_value(chance) },
            false => Operation::Read { key, value: Value::ABSENT },
        }
    }

    fn draw_delta(&mut self, chance: &mut Chance) -> i64 {
        if !self.world.adds_powers {
            return chance.pick(&[1, 2, 4, -1, 0]);
        }
        self.additions += 1;
        1 << (self.additions - 1)
    }

    fn draw_value(&mut self, chance: &mut Chance) -> Value {
        if self.deletes_left > 0 && chance.percent(30) {
            self.deletes_left -= 1;
            return Value::ABSENT;
        }
        if self.history.values.len() > 1 && chance.percent(self.world.repeats) {
            return Value(1 + chance.below(self.history.values.len() - 1) as u32);
        }
        self.history.values.push(format!("v{}", self.history.values.len()));
        Value(self.history.values.len() as u32 - 1)
    }

    /// A session's transaction may show the token of another session's last one.
    fn draw_merge(&self, chance: &mut Chance, session: SessionIndex) -> Option<TransactionIndex> {
        if !chance.percent(self.world.merges) {
            return None;
        }
        let other = chance.below(self.history.sessions.len());
        let last = *self.history.sessions[other].transactions.last()?;
        let is_answered = self.history.transactions[last.0 as usize].outcome == Outcome::Committed;
        (other != session.0 as usize && is_answered).then_some(last)
    }

    /// Writes a value to every register, if the world has it so.
    fn initial_values(&mut self, chance: &mut Chance) -> Option<Transaction> {
        if !self.world.writes_initial_values {
            return None;
        }
        let session = self.new_session();
        let mut first = self.begin(session, chance.below(self.world.datacenters));
        for key in 0..self.world.registers as u32 {
            self.history.values.push(format!("v{}", self.history.values.len()));
            let value = Value(self.history.values.len() as u32 - 1);
            first.operations.push(Operation::Write { key: Key(key), value });
        }
        Some(first)
    }

    /// A transaction that reads everything.
    fn at_rest(&mut self, datacenter: usize) -> Transaction {
        let session = self.new_session();
        let mut last = self.begin(session, datacenter);
        last.is_final = true;
        for key in 0..self.world.registers as u32 {
            last.operations.push(Operation::Read { key: Key(key), value: Value::ABSENT });
        }
        if let Some(key) = self.world.counter() {
            last.operations.push(Operation::Count { key, value: 0 });
        }
        last
    }
}

#[cfg(test)]
mod tests;
