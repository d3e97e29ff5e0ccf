//! What each session did, told from what it asked and what it was answered: its transactions, its anchor, its
//! questions.

use super::constraint::{Condition, Constraint};
use super::graph::wrote;
use super::id::{ROOT, StateId};
use crate::oracle::history::{History, OperationIndex, SessionIndex};
use crate::resp::Answer;
use ensue_types::{Args, DatacenterId};
use std::collections::BTreeSet;

/// What is known of the state, or the states, that a session stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    Exactly(BTreeSet<StateId>),
    /// Each of these is the anchor or an ancestor of it.
    Behind(BTreeSet<StateId>),
}

impl Anchor {
    /// States that the anchor is, or comes after.
    pub fn known(&self) -> &BTreeSet<StateId> {
        match self {
            Anchor::Exactly(ids) | Anchor::Behind(ids) => ids,
        }
    }

    fn at(id: StateId) -> Anchor {
        Anchor::Exactly(BTreeSet::from([id]))
    }
}

/// One command of a session.
#[derive(Clone, Debug)]
pub struct Step {
    pub operation: OperationIndex,
    pub datacenter: DatacenterId,
    pub args: Args,
    pub asked_us: u64,
    /// Nothing if it was never answered.
    pub answer: Option<Answer>,
    pub answered_us: u64,
}

impl Step {
    pub fn word(&self, index: usize) -> String {
        self.args.get(index).map(|arg| String::from_utf8_lossy(arg).to_ascii_uppercase()).unwrap_or_default()
    }

    /// What is said of `BRANCH`, or another command's name.
    pub fn name(&self) -> String {
        match self.word(0).as_str() {
            "BRANCH" | "CAUSAL" => format!("{} {}", self.word(0), self.word(1)),
            _ => self.word(0),
        }
    }

    pub fn texts(&self, from: usize) -> Vec<String> {
        self.args.iter().skip(from).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
    }

    /// The answer, unless it is an error.
    pub fn done(&self) -> Option<&Answer> {
        self.answer.as_ref().filter(|answer| answer.error().is_none())
    }

    pub fn error(&self) -> Option<&str> {
        self.answer.as_ref().and_then(Answer::error)
    }

    /// An error that says that this command did nothing. A partition that stops, or answers too late, says that nobody
    /// knows: in a transaction that took effect the command did, too, as it was carried out before.
    pub fn was_refused(&self) -> bool {
        let nobody_knows = |error: &str| error.contains("it is not known") || error.starts_with("UNKNOWN ");
        self.error().is_some_and(|error| !nobody_knows(error))
    }

    fn id(&self) -> Option<StateId> {
        self.done().and_then(Answer::text).and_then(StateId::parse)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Begun and committed by name.
    Single,
    Merge,
    /// One command, or one `MULTI`.
    Alone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its state, or the state that it read if it wrote nothing.
    At(StateId),
    /// It took effect; nobody said where.
    Done,
    Aborted,
    Unknown,
    /// It was never asked to take effect.
    Dropped,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    pub kind: Kind,
    pub session: SessionIndex,
    pub datacenter: DatacenterId,
    /// The session's anchor when it began.
    pub anchor: Anchor,
    pub begin: Constraint,
    pub began: Step,
    /// Its read states, if it was told them.
    pub reads: Vec<StateId>,
    pub steps: Vec<Step>,
    /// Keys of which it asked `BRANCH GET`: they count as read.
    pub looked: Vec<Vec<u8>>,
    pub end: Constraint,
    /// What ended it, if anything did.
    pub ended: Option<Step>,
    pub outcome: Outcome,
}

/// A question about branches, or a command that changes no row.
#[derive(Clone, Debug)]
pub struct Question {
    pub step: Step,
    /// The read states of the transaction in which it is asked.
    pub reads: Vec<StateId>,
    pub anchor: Anchor,
}

/// Everything that was done.
#[derive(Clone, Debug, Default)]
pub struct Tale {
    pub transactions: Vec<Transaction>,
    pub questions: Vec<Question>,
    /// What sessions were told of their anchors, and what they may have known better.
    pub anchors: Vec<(Anchor, BTreeSet<StateId>, Step)>,
}

/// What of a session matters for what it does next.
struct Teller<'a> {
    tale: &'a mut Tale,
    session: SessionIndex,
    anchor: Anchor,
    begin: Constraint,
    end: Constraint,
    open: Option<usize>,
    /// The transaction whose state the anchor will tell.
    last: Option<usize>,
    /// Nobody knows whether a transaction was begun, so what was said behind it may have been said in it.
    is_in_doubt: bool,
}

/// Tells a history.
pub fn tell(history: &History) -> Tale {
    let mut tale = Tale::default();
    let mut tokens: Vec<(Vec<u8>, Anchor)> = Vec::new();
    // A token is shown by others: who gives one is told first.
    let mut order: Vec<(u64, SessionIndex)> = Vec::new();
    for (session, operations) in history.sessions.iter().enumerate() {
        order.push((
            operations.first().map_or(u64::MAX, |&first| history.operations[first].invoked_us),
            session,
        ));
    }
    order.sort_unstable();
    // A session that began later may give a token to one that began earlier: the second time all are known.
    for _ in 0..2 {
        tale = Tale::default();
        for &(_, session) in &order {
            let mut teller = Teller::new(&mut tale, session);
            for &operation in &history.sessions[session] {
                teller.operation(history, operation, &mut tokens);
            }
            teller.leave();
        }
    }
    tale
}

impl<'a> Teller<'a> {
    fn new(tale: &'a mut Tale, session: SessionIndex) -> Teller<'a> {
        Teller {
            tale,
            session,
            anchor: Anchor::at(ROOT),
            begin: Constraint::one(Condition::Ancestor),
            end: Constraint::one(Condition::Serializability),
            open: None,
            last: None,
            is_in_doubt: false,
        }
    }

    fn operation(&mut self, history: &History, index: OperationIndex, tokens: &mut Vec<(Vec<u8>, Anchor)>) {
        let operation = &history.operations[index];
        let said = history.said.get(&index).map(Vec::as_slice).unwrap_or_default();
        let step = |at: usize, args: &Args| Step {
            operation: index,
            datacenter: operation.datacenter,
            args: args.clone(),
            asked_us: operation.invoked_us,
            answer: said.get(at).map(|(_, answer)| answer.clone()),
            answered_us: said.get(at).map_or(u64::MAX, |(at, _)| *at),
        };
        let mut queue: Vec<Step> = Vec::new();
        let mut is_queueing = false;
        for (at, args) in operation.commands.iter().enumerate() {
            let step = step(at, args);
            if self.is_in_doubt {
                return;
            }
            match step.name().as_str() {
                "MULTI" => is_queueing = true,
                "EXEC" => {
                    is_queueing = false;
                    self.exec(std::mem::take(&mut queue), step);
                }
                _ if is_queueing => queue.push(step),
                _ => self.step(step, tokens),
            }
        }
    }

    fn step(&mut self, step: Step, tokens: &mut Vec<(Vec<u8>, Anchor)>) {
        match step.name().as_str() {
            "BRANCH BEGIN" => self.begin(step, Kind::Single),
            "BRANCH MERGE" => self.begin(step, Kind::Merge),
            "BRANCH COMMIT" => self.commit(step),
            "BRANCH ABORT" => {
                if let Some(open) = self.open.take_if(|_| step.done().is_some()) {
                    self.tale.transactions[open].ended = Some(step);
                }
            }
            "BRANCH SESSION" => self.told(step),
            "BRANCH CHECKOUT" => {
                let id = step.args.get(2).and_then(|arg| StateId::parse(std::str::from_utf8(arg).ok()?));
                self.ask(step.clone());
                self.forget();
                match (step.done(), id) {
                    (Some(_), Some(id)) => self.anchor = Anchor::at(id),
                    (None, Some(_)) if step.answer.is_none() => self.lose_anchor(),
                    _ => {}
                }
            }
            "BRANCH DEFAULTS" => self.defaults(&step),
            "CAUSAL TOKEN" => {
                if let Some(text) = step.done().and_then(Answer::bytes) {
                    tokens.push((text.to_vec(), self.anchor.clone()));
                }
            }
            "CAUSAL MERGE" => self.merge(&step, tokens),
            name if name.starts_with("BRANCH") => self.ask(step),
            _ => self.row_command(step),
        }
    }

    fn ask(&mut self, step: Step) {
        if let (Some(open), "BRANCH GET", Some(key)) = (self.open, step.name().as_str(), step.args.get(2)) {
            self.tale.transactions[open].looked.push(key.to_vec());
        }
        let reads = self.open.map(|open| self.tale.transactions[open].reads.clone()).unwrap_or_default();
        self.tale.questions.push(Question { step, reads, anchor: self.anchor.clone() });
    }

    fn begin(&mut self, step: Step, kind: Kind) {
        let texts = step.texts(2);
        let words: Vec<&str> = texts.iter().map(String::as_str).collect();
        let usual = match kind {
            Kind::Merge => Constraint::one(Condition::Any),
            _ => self.begin.clone(),
        };
        let said = if words.is_empty() { Some(usual) } else { Constraint::parse(&words) };
        let Some(begin) = said else { return self.ask(step) };
        let reads = match step.done() {
            Some(Answer::Array(items)) => {
                items.iter().filter_map(|item| StateId::parse(item.text()?)).collect()
            }
            Some(answer) => answer.text().and_then(StateId::parse).into_iter().collect(),
            None => Vec::new(),
        };
        let refused =
            |error: &str| error.starts_with("ABORT ") || REFUSED.iter().any(|code| error.starts_with(code));
        self.is_in_doubt = step.done().is_none() && !step.error().is_some_and(refused);
        let is_open = step.done().is_some();
        let is_over = self.open.is_some() && !is_open;
        let aborted = step.error().is_some_and(|error| error.starts_with("ABORT "));
        if is_over && !aborted {
            return self.ask(step);
        }
        let outcome = if aborted { Outcome::Aborted } else { Outcome::Dropped };
        if is_open || aborted {
            self.tale.transactions.push(Transaction {
                kind,
                session: self.session,
                datacenter: step.datacenter,
                anchor: self.anchor.clone(),
                begin,
                began: step,
                reads,
                steps: Vec::new(),
                looked: Vec::new(),
                end: self.end.clone(),
                ended: None,
                outcome,
            });
            self.open = is_open.then(|| self.tale.transactions.len() - 1);
        } else {
            self.ask(step);
        }
    }

    fn commit(&mut self, step: Step) {
        let Some(open) = self.open else { return self.ask(step) };
        let transaction = &mut self.tale.transactions[open];
        let texts = step.texts(2);
        let words: Vec<&str> = texts.iter().map(String::as_str).collect();
        if !words.is_empty() {
            match Constraint::parse(&words) {
                Some(end) => transaction.end = end,
                None => return self.ask(step),
            }
        }
        transaction.outcome = match (&step.answer, step.id()) {
            (_, Some(id)) => Outcome::At(id),
            (None, _) => Outcome::Unknown,
            (Some(answer), None) => match answer.error().unwrap_or_default() {
                error if error.starts_with("ABORT ") => Outcome::Aborted,
                // Nothing of it is left.
                error if error.starts_with("NOTRANSACTION") => Outcome::Dropped,
                error if error.starts_with("ERR ") => return self.ask(step),
                _ => Outcome::Unknown,
            },
        };
        let reads: BTreeSet<StateId> = transaction.reads.iter().copied().collect();
        let is_idle = !wrote(transaction);
        let is_lost = step.error().is_some_and(|error| error.starts_with("NOTRANSACTION"));
        match transaction.outcome.clone() {
            Outcome::At(_) if is_idle => self.anchor = Anchor::Exactly(reads),
            Outcome::At(id) => self.anchor = Anchor::at(id),
            Outcome::Unknown => self.lose_anchor(),
            _ => {}
        }
        if is_lost {
            self.ask(step.clone());
        }
        self.tale.transactions[open].ended = Some(step);
        self.open = None;
        self.last = None;
    }

    /// A command on rows: a step of the transaction that is open, or one of its own.
    fn row_command(&mut self, step: Step) {
        if let Some(open) = self.open {
            if step.error().is_some_and(|error| error.starts_with("NOTRANSACTION")) {
                self.open = None;
                return self.ask(step);
            }
            return self.tale.transactions[open].steps.push(step);
        }
        let outcome = match &step.answer {
            None => Outcome::Unknown,
            Some(answer) => outcome_of(answer),
        };
        self.alone(vec![step.clone()], step, outcome);
    }

    fn exec(&mut self, mut steps: Vec<Step>, exec: Step) {
        let outcome = match &exec.answer {
            None => Outcome::Unknown,
            Some(Answer::Array(items)) if items.len() == steps.len() => {
                for (step, item) in steps.iter_mut().zip(items) {
                    step.answer = Some(item.clone());
                    step.answered_us = exec.answered_us;
                }
                Outcome::Done
            }
            Some(answer) => outcome_of(answer),
        };
        if outcome != Outcome::Done {
            steps.iter_mut().for_each(|step| step.answer = None);
        }
        self.alone(steps, exec, outcome);
    }

    fn alone(&mut self, steps: Vec<Step>, ended: Step, outcome: Outcome) {
        self.tale.transactions.push(Transaction {
            kind: Kind::Alone,
            session: self.session,
            datacenter: ended.datacenter,
            anchor: self.anchor.clone(),
            begin: self.begin.clone(),
            began: ended.clone(),
            reads: Vec::new(),
            steps,
            looked: Vec::new(),
            end: self.end.clone(),
            outcome: outcome.clone(),
            ended: Some(ended),
        });
        if matches!(outcome, Outcome::Done | Outcome::Unknown) {
            self.lose_anchor();
            self.last = (outcome == Outcome::Done).then(|| self.tale.transactions.len() - 1);
        }
    }

    /// The session may stand elsewhere now; if its transactions begin behind its anchor, it stands there or behind it.
    fn lose_anchor(&mut self) {
        let is_behind = self.begin.always(|condition| *condition == Condition::Ancestor);
        let known = if is_behind { self.anchor.known().clone() } else { BTreeSet::from([ROOT]) };
        self.anchor = Anchor::Behind(known);
        self.last = None;
    }

    fn forget(&mut self) {
        self.last = None;
    }

    /// The session is told its anchor.
    fn told(&mut self, step: Step) {
        let Some(Answer::Array(items)) = step.done() else { return self.ask(step) };
        let anchor = items.chunks(2).find(|pair| pair[0].text() == Some("anchor"));
        let Some([_, Answer::Array(ids)]) = anchor else { return self.ask(step) };
        let ids: BTreeSet<StateId> = ids.iter().filter_map(|id| StateId::parse(id.text()?)).collect();
        if let (Some(last), [id]) = (self.last.take(), ids.iter().copied().collect::<Vec<_>>().as_slice()) {
            self.tale.transactions[last].outcome = Outcome::At(*id);
        }
        let before = std::mem::replace(&mut self.anchor, Anchor::Exactly(ids.clone()));
        self.tale.anchors.push((before, ids, step));
    }

    fn defaults(&mut self, step: &Step) {
        let texts = step.texts(2);
        if step.done().is_none() {
            return self.ask(step.clone());
        }
        let words: Vec<&str> = texts.iter().map(String::as_str).collect();
        let at = |name: &str| words.iter().position(|word| word.eq_ignore_ascii_case(name));
        let until = |from: usize| at("END").filter(|end| *end > from).unwrap_or(words.len());
        if let Some(from) = at("BEGIN") {
            self.begin = Constraint::parse(&words[from + 1..until(from)]).unwrap_or(self.begin.clone());
        }
        if let Some(from) = at("END") {
            self.end = Constraint::parse(&words[from + 1..]).unwrap_or(self.end.clone());
        }
    }

    fn merge(&mut self, step: &Step, tokens: &[(Vec<u8>, Anchor)]) {
        let shown = step.args.get(2).map(|arg| arg.to_vec()).unwrap_or_default();
        let token = tokens.iter().rev().find(|(text, _)| *text == shown).map(|(_, anchor)| anchor.clone());
        let mut known = self.anchor.known().clone();
        if let (Some(_), Some(token)) = (step.done(), token) {
            known.extend(token.known());
        }
        self.ask(step.clone());
        self.forget();
        if step.error().is_none() {
            self.anchor = Anchor::Behind(known);
        }
    }

    /// A session that ends takes its open transaction with it.
    fn leave(&mut self) {
        self.open = None;
    }
}

/// Errors by which nothing was done.
const NOTHING_DONE: [&str; 5] = ["ERR ", "EXECABORT", "NOTRANSACTION", "NOSTATE ", "COLLECTED "];

/// Errors by which no transaction was begun.
const REFUSED: [&str; 6] = ["ERR ", "NOSTATE ", "COLLECTED ", "NOTMERGER ", "BRANCHFULL ", "NOTRANSACTION "];

/// How a transaction of one command ended.
fn outcome_of(answer: &Answer) -> Outcome {
    match answer.error() {
        None => Outcome::Done,
        Some(error) if error.starts_with("ABORT ") => Outcome::Aborted,
        Some(error) if NOTHING_DONE.iter().any(|code| error.starts_with(code)) => Outcome::Dropped,
        Some(_) => Outcome::Unknown,
    }
}
