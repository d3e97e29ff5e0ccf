//! Commands on keys with a home are linearizable, and each is executed at most once.
//!
//! - *Counters*: no two increments have the same answer, none has a higher one than there were increments begun, and an
//!   increment that begins when another one has been answered has a higher answer. A session that reads sees its own.
//! - *Locks*: who has acquired one holds it until it begins to release it. No two hold it at once, and who holds it can
//!   release it.
//!
//! - *Queues*: each element that is popped was pushed, and is popped once. One that is gone and was popped for nobody
//!   is one of a pop whose answer nobody heard.
//!
//! An operation with an error, or without an answer, may have been executed, once.

use super::{Violation, property};
use crate::resp::Answer;
use std::collections::{BTreeMap, BTreeSet};

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct HomeHistory {
    pub operations: Vec<HomeOperation>,
    sessions: usize,
    /// What is in each queue at the end, if everybody who asked had an answer before that was read.
    pub left: Option<Vec<Vec<String>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Increment,
    Read,
    Acquire,
    Release,
    Push,
    Pop,
}

/// One command.
#[derive(Clone, Debug)]
pub struct HomeOperation {
    pub kind: Kind,
    /// Of the counter, or of the lock.
    pub number: u64,
    pub token: String,
    pub session: usize,
    pub invoked_us: u64,
    pub answered_us: Option<u64>,
    pub answer: Option<Answer>,
}

impl HomeOperation {
    pub fn new(kind: Kind, number: u64, token: String) -> HomeOperation {
        let (session, invoked_us, answered_us, answer) = (0, 0, None, None);
        HomeOperation { kind, number, token, session, invoked_us, answered_us, answer }
    }

    /// What it has popped.
    fn element(&self) -> Option<String> {
        match self.answer.as_ref()? {
            Answer::Array(parts) => Some(parts.get(1)?.text()?.to_owned()),
            _ => None,
        }
    }

    /// Whether it may have popped something of which its client does not know.
    fn may_have_lost(&self) -> bool {
        match &self.answer {
            None => true,
            Some(answer) => {
                let nothing = ["HOMEAWAY", "NOTYET"];
                answer.error().is_some_and(|words| !nothing.iter().any(|word| words.starts_with(word)))
            }
        }
    }

    /// The number that it was answered.
    fn value(&self) -> Option<i64> {
        match self.answer.as_ref()? {
            Answer::Integer(value) => Some(*value),
            Answer::Nil if self.kind == Kind::Read => Some(0),
            bulk => bulk.text()?.parse().ok(),
        }
    }
}

impl HomeHistory {
    pub fn begin_session(&mut self) -> usize {
        self.sessions += 1;
        self.sessions
    }

    /// Whether everything can have happened once, in one place. A session sees what it did at home: with causality
    /// because its reads wait for that, and without because they go there, too.
    pub fn judge(&self) -> Result<(), Violation> {
        let of = |kind: Kind| self.operations.iter().filter(move |operation| operation.kind == kind);
        let counters: BTreeSet<u64> = of(Kind::Increment).map(|operation| operation.number).collect();
        counters.into_iter().try_for_each(|counter| self.judge_counter(counter))?;
        let locks: BTreeSet<u64> = of(Kind::Acquire).map(|operation| operation.number).collect();
        locks.into_iter().try_for_each(|lock| self.judge_lock(lock))?;
        let queues: BTreeSet<u64> = of(Kind::Push).chain(of(Kind::Pop)).map(|one| one.number).collect();
        queues.into_iter().try_for_each(|queue| self.judge_queue(queue))
    }

    fn judge_queue(&self, queue: u64) -> Result<(), Violation> {
        let own = |kind: Kind| {
            let is_own = move |one: &&HomeOperation| one.kind == kind && one.number == queue;
            self.operations.iter().filter(is_own)
        };
        let mut popped: BTreeMap<String, &HomeOperation> = BTreeMap::new();
        for pop in own(Kind::Pop) {
            let Some(element) = pop.element() else { continue };
            let push = own(Kind::Push).find(|push| push.token == element);
            if push.is_none_or(|push| Some(push.invoked_us) > pop.answered_us) {
                return Err(wrong("what was popped was not pushed", &[pop]));
            }
            if let Some(other) = popped.insert(element, pop) {
                return Err(wrong("an element was popped twice", &[other, pop]));
            }
        }
        let Some(left) = self.left.as_ref().and_then(|left| left.get(queue as usize)) else { return Ok(()) };
        if let Some(pop) = left.iter().find_map(|element| popped.get(element)) {
            return Err(wrong("what was popped is there again", &[pop]));
        }
        let is_lost = |push: &&HomeOperation| {
            let was_made = matches!(push.answer, Some(Answer::Integer(_)));
            was_made && !popped.contains_key(&push.token) && !left.contains(&push.token)
        };
        let lost: Vec<&HomeOperation> = own(Kind::Push).filter(is_lost).collect();
        if lost.len() > own(Kind::Pop).filter(|pop| pop.may_have_lost()).count() {
            return Err(wrong("an element was lost, and no answer with it", &lost));
        }
        Ok(())
    }

    fn judge_counter(&self, counter: u64) -> Result<(), Violation> {
        let own = || self.operations.iter().filter(|operation| operation.number == counter);
        let increments = || own().filter(|operation| operation.kind == Kind::Increment);
        let mut answered: BTreeMap<i64, &HomeOperation> = BTreeMap::new();
        for operation in increments() {
            let Some(value) = operation.value() else { continue };
            if let Some(other) = answered.insert(value, operation) {
                return Err(wrong("two increments have one answer", &[other, operation]));
            }
        }
        let mut latest: Option<&HomeOperation> = None;
        for operation in answered.values().copied() {
            let ended_before = |other: &&HomeOperation| operation.answered_us < Some(other.invoked_us);
            if let Some(other) = latest.filter(ended_before) {
                return Err(wrong("a later increment has a lower answer", &[operation, other]));
            }
            if latest.is_none_or(|other| other.invoked_us < operation.invoked_us) {
                latest = Some(operation);
            }
        }
        for (value, operation) in &answered {
            let begun = increments().filter(|other| Some(other.invoked_us) <= operation.answered_us).count();
            if *value > begun as i64 {
                return Err(wrong("more was added than there were increments", &[*operation]));
            }
        }
        let mut seen: BTreeMap<usize, &HomeOperation> = BTreeMap::new();
        for operation in own().filter(|operation| matches!(operation.kind, Kind::Increment | Kind::Read)) {
            let Some(value) = operation.value() else { continue };
            let before = seen.insert(operation.session, operation);
            if let Some(before) = before.filter(|before| before.value() > Some(value)) {
                return Err(wrong("a session does not see what it did or read", &[before, operation]));
            }
        }
        Ok(())
    }

    fn judge_lock(&self, lock: u64) -> Result<(), Violation> {
        let own = || self.operations.iter().filter(|operation| operation.number == lock);
        let releases = |token: &str| {
            let token = token.to_owned();
            own().filter(move |operation| operation.kind == Kind::Release && operation.token == token)
        };
        let is_taken = |operation: &&HomeOperation| {
            operation.kind == Kind::Acquire && operation.answer == Some(Answer::Status("OK".into()))
        };
        let mut held: Vec<(&HomeOperation, u64)> = Vec::new();
        for taken in own().filter(is_taken) {
            let first = releases(&taken.token).next();
            if let Some(release) = first.filter(|release| release.answer == Some(Answer::Integer(0))) {
                return Err(wrong("a lock was lost by who held it", &[taken, release]));
            }
            held.push((taken, first.map_or(u64::MAX, |release| release.invoked_us)));
        }
        held.sort_by_key(|(taken, _)| taken.answered_us);
        for pair in held.windows(2) {
            let [(first, until_us), (second, _)] = pair else { continue };
            if second.answered_us < Some(*until_us) {
                return Err(wrong("two hold a lock", &[*first, *second]));
            }
        }
        Ok(())
    }
}

fn wrong(what: &str, operations: &[&HomeOperation]) -> Violation {
    let lines: Vec<String> = operations.iter().map(|operation| format!("{operation:?}")).collect();
    Violation::new(property::AT_HOME, format!("{what}:\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(kind: Kind, token: &str, times: (u64, u64), answer: Option<Answer>) -> HomeOperation {
        let answered_us = answer.is_some().then_some(times.1);
        HomeOperation {
            invoked_us: times.0,
            answered_us,
            answer,
            ..HomeOperation::new(kind, 0, token.to_owned())
        }
    }

    fn increment(invoked_us: u64, answered_us: u64, value: i64) -> HomeOperation {
        operation(Kind::Increment, "", (invoked_us, answered_us), Some(Answer::Integer(value)))
    }

    fn verdict(operations: Vec<HomeOperation>) -> Result<(), String> {
        let history = HomeHistory { operations, sessions: 1, left: Some(vec![vec!["kept".to_owned()]]) };
        let words = |violation: Violation| violation.words.lines().next().unwrap_or_default().to_owned();
        history.judge().map_err(words)
    }

    #[test]
    fn increments_happen_once_and_in_an_order() {
        let unanswered = operation(Kind::Increment, "", (1, 1), None);
        let read =
            |value: &str| operation(Kind::Read, "", (50, 60), Some(Answer::Bulk(value.as_bytes().to_vec())));
        assert_eq!(
            verdict(vec![increment(1, 4, 2), increment(2, 3, 1), read("2")]),
            Err("a session does not see what it did or read:".to_owned())
        );
        let other = |operation: HomeOperation| HomeOperation { session: 1, ..operation };
        assert_eq!(verdict(vec![increment(1, 4, 2), other(increment(2, 3, 1)), read("2")]), Ok(()));
        assert_eq!(
            verdict(vec![increment(1, 2, 1), read("0")]),
            Err("a session does not see what it did or read:".to_owned())
        );
        assert_eq!(
            verdict(vec![increment(1, 2, 1), increment(3, 4, 1)]),
            Err("two increments have one answer:".to_owned())
        );
        assert_eq!(verdict(vec![unanswered, increment(2, 3, 2)]), Ok(()));
        assert_eq!(
            verdict(vec![increment(2, 3, 2)]),
            Err("more was added than there were increments:".to_owned())
        );
        let late = vec![increment(1, 2, 2), other(increment(3, 4, 1))];
        assert_eq!(verdict(late), Err("a later increment has a lower answer:".to_owned()));
    }

    #[test]
    fn an_element_is_popped_once_and_lost_with_an_answer_only() {
        let push = |token, at| operation(Kind::Push, token, (at, at + 1), Some(Answer::Integer(1)));
        let answer = |text: &str| Answer::Array(vec![Answer::Nil, Answer::Bulk(text.as_bytes().to_vec())]);
        let pop = |text, at| operation(Kind::Pop, "", (at, at + 1), Some(answer(text)));
        let ends = |answer| operation(Kind::Pop, "", (9, 10), answer);
        let error = |words: &str| ends(Some(Answer::Error(words.to_owned())));
        let kept = || push("kept", 0);
        assert_eq!(verdict(vec![kept(), push("a", 1), pop("a", 3), ends(Some(Answer::Nil))]), Ok(()));
        let says = |operations, words: &str| assert_eq!(verdict(operations), Err(format!("{words}:")));
        says(vec![push("a", 1), pop("a", 3), pop("a", 5)], "an element was popped twice");
        says(vec![push("a", 9), pop("a", 3)], "what was popped was not pushed");
        says(vec![kept(), pop("kept", 3)], "what was popped is there again");
        let lost = "an element was lost, and no answer with it";
        says(vec![push("a", 1), ends(Some(Answer::Nil)), error("HOMEAWAY dc1")], lost);
        says(vec![push("a", 1), push("b", 1), ends(None)], lost);
        assert_eq!(verdict(vec![push("a", 1), push("b", 1), ends(None), error("UNKNOWN dc1")]), Ok(()));
    }

    #[test]
    fn a_lock_has_one_holder() {
        let ok = || Some(Answer::Status("OK".into()));
        let acquire = |token, times, answer| operation(Kind::Acquire, token, times, answer);
        let release = |token, times, answer| operation(Kind::Release, token, times, answer);
        let one = || acquire("a", (1, 5), ok());
        let freed = |answer| release("a", (6, 9), answer);
        let next = || acquire("b", (4, 8), ok());
        assert_eq!(verdict(vec![one(), freed(Some(Answer::Integer(1))), next()]), Ok(()));
        assert_eq!(verdict(vec![one(), freed(None), next()]), Ok(()));
        assert_eq!(verdict(vec![one(), next()]), Err("two hold a lock:".to_owned()));
        let lost = vec![one(), freed(Some(Answer::Integer(0)))];
        assert_eq!(verdict(lost), Err("a lock was lost by who held it:".to_owned()));
    }
}
