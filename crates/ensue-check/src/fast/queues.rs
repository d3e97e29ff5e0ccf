//! Queues: whether each element that was pushed is popped once, or at least once.
//!
//! An element is known by its text in its queue. What was pushed several times is counted: it may be popped as often. A
//! push without an answer may have happened, and a pop without an answer may have taken any element, so neither accuses
//! a store: elements that are missing are set against the pops that nobody knows, and elements that are too many
//! against the pushes of which nobody knows what they pushed. Time grows with operations.

use super::index::Rows;
use super::{Evidence, Finding};
use crate::explain::{place, value_text};
use crate::history::{History, Operation, Outcome, TransactionIndex, Value};
use crate::report::{Pattern, Reason, Relation, RelationKind};
use crate::tables::Map;

/// What happened to one element.
#[derive(Clone, Copy, Debug)]
struct Event {
    element: u32,
    kind: Kind,
    transaction: u32,
    /// Among the operations of its transaction.
    place: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It happened, or may have.
    Push {
        is_acknowledged: bool,
    },
    Pop,
    /// Seen in the queue, in the end or before.
    Seen {
        is_final: bool,
    },
}

/// What is known of a queue as a whole.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    /// Pushes of which nobody knows what they pushed, and pops of which nobody knows what they took, if they happened.
    unknown_pushes: usize,
    unknown_pops: usize,
    /// It was read in the end, or popped until it was empty.
    is_drained: bool,
    is_pushed: bool,
}

pub(super) struct Queues<'a> {
    history: &'a History,
    /// By key; nothing of what is no queue.
    queues: Map<u32, Queue>,
    /// The key and the value of each element.
    elements: Vec<(u32, Value)>,
    events: Vec<Event>,
    /// By element: its events, in the order of the history.
    by_element: Rows,
}

/// All that happened to one element.
#[derive(Debug, Default)]
struct Life {
    pushes: Vec<Event>,
    acknowledged: usize,
    pops: Vec<Event>,
    seen: Vec<Event>,
    /// How often it was there in the end, in the final transaction that saw it most often.
    kept: usize,
}

impl<'a> Queues<'a> {
    /// Nothing if there are none.
    pub fn find(history: &'a History) -> Option<Queues<'a>> {
        let mut found = Queues {
            history,
            queues: Map::default(),
            elements: Vec::new(),
            events: Vec::new(),
            by_element: Rows::default(),
        };
        let mut numbers: Map<(u32, u32), u32> = Map::default();
        for (index, transaction) in history.transactions.iter().enumerate() {
            for (place, operation) in transaction.operations.iter().enumerate() {
                let Some((kind, element)) = found.take(*operation, transaction.outcome, transaction.is_final)
                else {
                    continue;
                };
                let key = operation.key().0;
                let element = *numbers.entry((key, element.0)).or_insert_with(|| {
                    found.elements.push((key, element));
                    found.elements.len() as u32 - 1
                });
                let (transaction, place) = (index as u32, place as u32);
                found.events.push(Event { element, kind, transaction, place });
            }
        }
        let pairs = found.events.iter().enumerate().map(|(at, event)| (event.element, at as u32));
        found.by_element = Rows::new(found.elements.len(), pairs);
        (!found.queues.is_empty()).then_some(found)
    }

    /// What an operation says of one element; what it says of the queue is written down.
    fn take(&mut self, operation: Operation, outcome: Outcome, is_final: bool) -> Option<(Kind, Value)> {
        if !operation.is_of_queue() || outcome == Outcome::Failed {
            return None;
        }
        let queue = self.queues.entry(operation.key().0).or_default();
        let is_acknowledged = outcome == Outcome::Committed;
        match (operation, outcome) {
            (Operation::Push { element: Value::ABSENT, .. }, _) => {
                queue.unknown_pushes += 1;
                None
            }
            (Operation::Push { element, .. }, _) => {
                queue.is_pushed = true;
                Some((Kind::Push { is_acknowledged }, element))
            }
            (Operation::Pop { .. }, Outcome::Unknown) => {
                queue.unknown_pops += 1;
                None
            }
            (Operation::Pop { element: Value::ABSENT, .. }, _) => {
                queue.is_drained |= is_final;
                None
            }
            (Operation::Pop { element, .. }, _) => Some((Kind::Pop, element)),
            (Operation::Hold { element, .. }, Outcome::Committed) => {
                queue.is_drained |= is_final;
                (element != Value::ABSENT).then_some((Kind::Seen { is_final }, element))
            }
            _ => None,
        }
    }

    /// Whether each element was popped as often as it was pushed at most, and after that, and is gone then.
    pub fn popped_once(&self) -> Finding {
        let mut open = None;
        let mut excess: Map<u32, (usize, Evidence)> = Map::default();
        for element in 0..self.elements.len() as u32 {
            let life = self.life(element);
            let Some((count, evidence)) = self.too_many(element, &life) else { continue };
            let may_be_missing = matches!(evidence.pattern, Pattern::NeverPushed | Pattern::PoppedBeforePush);
            match self.history.truncated_at_line.filter(|_| may_be_missing) {
                Some(line) => drop(open.get_or_insert(line)),
                None => {
                    let (key, _) = self.elements[element as usize];
                    excess.entry(key).or_insert((0, evidence)).0 += count;
                }
            }
        }
        let unknown = |key: &u32| self.queues[key].unknown_pushes;
        let mut keys: Vec<u32> =
            excess.iter().filter(|(key, of)| of.0 > unknown(key)).map(|of| *of.0).collect();
        keys.sort_unstable();
        let first = keys.first().and_then(|key| excess.remove(key));
        match (first, open) {
            (Some((_, evidence)), _) => Finding::Violated(evidence),
            (None, Some(line)) => {
                let text =
                    "an element was popped before anybody pushed it, but the recording broke off".into();
                Finding::Undecided(Reason { text, line })
            }
            (None, None) => Finding::Holds,
        }
    }

    /// Whether each element whose push was acknowledged was popped, or is there in the end.
    pub fn popped_at_least_once(&self) -> Finding {
        if let Some(line) = self.history.truncated_at_line {
            let text = "the recording broke off, and what is missing may have been popped".into();
            return Finding::Undecided(Reason { text, line });
        }
        let mut lost: Map<u32, (usize, u32)> = Map::default();
        for element in 0..self.elements.len() as u32 {
            let life = self.life(element);
            let missing = life.acknowledged.saturating_sub(life.pops.len() + life.kept);
            if missing > 0 {
                lost.entry(self.elements[element as usize].0).or_insert((0, element)).0 += missing;
            }
        }
        let mut keys: Vec<u32> =
            self.queues.keys().copied().filter(|key| self.queues[key].is_pushed).collect();
        keys.sort_unstable();
        let mut open = None;
        for key in keys {
            let Queue { is_drained, unknown_pops, .. } = self.queues[&key];
            match lost.get(&key) {
                _ if !is_drained => drop(open.get_or_insert(key)),
                Some(&(missing, element)) if missing > unknown_pops => {
                    return Finding::Violated(self.lost(element, missing, unknown_pops));
                }
                _ => {}
            }
        }
        open.map_or(Finding::Holds, |key| {
            let text = format!(
                "`{}` was not read in the end, and not popped until it was empty",
                self.history.keys[key as usize]
            );
            Finding::Undecided(Reason { text, line: 0 })
        })
    }

    fn life(&self, element: u32) -> Life {
        let mut life = Life::default();
        let mut last_final = (u32::MAX, 0);
        for &at in self.by_element.of(element) {
            let event = self.events[at as usize];
            match event.kind {
                Kind::Push { is_acknowledged } => {
                    life.acknowledged += usize::from(is_acknowledged);
                    life.pushes.push(event);
                }
                Kind::Pop => life.pops.push(event),
                Kind::Seen { is_final } => {
                    life.seen.push(event);
                    if is_final {
                        let before = if last_final.0 == event.transaction { last_final.1 } else { 0 };
                        last_final = (event.transaction, before + 1);
                        life.kept = life.kept.max(before + 1);
                    }
                }
            }
        }
        life
    }

    /// How often an element was there without a push that explains it, and what shows it.
    fn too_many(&self, element: u32, life: &Life) -> Option<(usize, Evidence)> {
        let (pushed, popped) = (life.pushes.len(), life.pops.len());
        if pushed == 0 {
            let first = life.pops.first().or(life.seen.first())?;
            return Some((popped.max(1), self.never_pushed(element, *first)));
        }
        if let Some(evidence) = self.before_push(element, life) {
            return Some((1, evidence));
        }
        if popped > pushed {
            return Some((popped - pushed, self.popped_twice(element, life)));
        }
        let kept = (popped + life.kept).checked_sub(pushed).filter(|kept| *kept > 0 && popped > 0)?;
        Some((kept, self.popped_and_kept(element, life)))
    }

    /// The n-th pop by its end needs n pushes that began no later; a session pops nothing that it pushes only later.
    fn before_push(&self, element: u32, life: &Life) -> Option<Evidence> {
        let start = |event: &Event| self.history.transactions[event.transaction as usize].start_us;
        let end = |event: &Event| match self.history.transactions[event.transaction as usize].end_us {
            0 => u64::MAX,
            end => end,
        };
        let (mut pushes, mut pops) = (life.pushes.clone(), life.pops.clone());
        pushes.sort_by_key(start);
        pops.sort_by_key(end);
        let first_seen = life.seen.iter().min_by_key(|seen| end(seen));
        let early = pops.iter().zip(&pushes).find(|(pop, push)| end(pop) < start(push));
        let early = early.or(first_seen.zip(pushes.first()).filter(|(seen, push)| end(seen) < start(push)));
        if let Some((pop, push)) = early {
            return Some(self.before(element, *pop, *push, RelationKind::RealTime));
        }
        let [push] = pushes[..] else { return None };
        let session = |event: &Event| self.history.transactions[event.transaction as usize].session;
        let is_before = |event: &&Event| {
            let is_earlier = (event.transaction, event.place) < (push.transaction, push.place);
            is_earlier && session(event) == session(&push)
        };
        let early = life.pops.iter().chain(&life.seen).find(is_before)?;
        Some(self.before(element, *early, push, RelationKind::Session))
    }

    fn before(&self, element: u32, pop: Event, push: Event, kind: RelationKind) -> Evidence {
        let detail = format!(
            "{} was {} ({}) before its push began ({})",
            self.named(element),
            done(pop),
            self.place(pop),
            self.place(push)
        );
        let mut evidence = self.evidence(Pattern::PoppedBeforePush, detail, &[pop, push]);
        let [from, to] = [pop, push].map(|event| TransactionIndex(event.transaction));
        if from != to {
            evidence.relations.push(Relation { from, to, kind, on_cycle: true });
        }
        evidence
    }

    fn never_pushed(&self, element: u32, event: Event) -> Evidence {
        let detail = format!(
            "{} was {} ({}), but nobody pushed it",
            self.named(element),
            done(event),
            self.place(event)
        );
        self.evidence(Pattern::NeverPushed, detail, &[event])
    }

    fn popped_twice(&self, element: u32, life: &Life) -> Evidence {
        let events = [life.pushes[0], life.pops[0], life.pops[1]];
        let detail = match (life.pushes.len(), life.pops.len()) {
            (1, 2) => format!(
                "{} was popped twice: {} and {}",
                self.named(element),
                self.place(life.pops[0]),
                self.place(life.pops[1])
            ),
            (pushed, popped) => {
                format!("{} was popped {popped} times, and pushed {pushed} times", self.named(element))
            }
        };
        self.evidence(Pattern::PoppedTwice, detail, &events)
    }

    fn popped_and_kept(&self, element: u32, life: &Life) -> Evidence {
        let is_final = |event: &&Event| event.kind == Kind::Seen { is_final: true };
        let last = life.seen.iter().rfind(is_final).expect("it was there in the end");
        let pop = life.pops[0];
        let detail = format!(
            "{} was popped ({}), and was still there in the end ({})",
            self.named(element),
            self.place(pop),
            self.place(*last)
        );
        self.evidence(Pattern::PoppedAndKept, detail, &[life.pushes[0], pop, *last])
    }

    fn lost(&self, element: u32, missing: usize, unknown_pops: usize) -> Evidence {
        let life = self.life(element);
        let is_acknowledged = |event: &&Event| event.kind == Kind::Push { is_acknowledged: true };
        let push = *life.pushes.iter().rfind(is_acknowledged).expect("what is missing was acknowledged");
        let mut detail = format!(
            "{} was pushed ({}), and was neither popped nor there in the end",
            self.named(element),
            self.place(push)
        );
        if missing > 1 {
            detail.push_str(&format!("; {missing} elements are missing so"));
        }
        if unknown_pops > 0 {
            detail.push_str(&format!(", and pops without an answer took {unknown_pops} of them at most"));
        }
        self.evidence(Pattern::ElementLost, detail, &[push])
    }

    fn evidence(&self, pattern: Pattern, detail: String, events: &[Event]) -> Evidence {
        let mut evidence = Evidence::new(pattern, detail);
        evidence.transactions.extend(events.iter().map(|event| event.transaction));
        evidence
    }

    /// The element and its queue.
    fn named(&self, element: u32) -> String {
        let (key, value) = self.elements[element as usize];
        format!("`{}` of the queue `{}`", value_text(self.history, value), self.history.keys[key as usize])
    }

    fn place(&self, event: Event) -> String {
        place(self.history, TransactionIndex(event.transaction))
    }
}

fn done(event: Event) -> &'static str {
    match event.kind {
        Kind::Pop => "popped",
        Kind::Push { .. } | Kind::Seen { .. } => "seen",
    }
}

#[cfg(test)]
mod tests;
