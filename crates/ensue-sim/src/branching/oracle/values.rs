//! T1, T3: what transactions read, and what `BRANCH GET` and `BRANCH DIFF` tell, stands at the states that were asked
//! for.

use super::{Judge, Known};
use crate::branching::graph::Place;
use crate::branching::id::StateId;
use crate::branching::property;
use crate::branching::rows::{Key, Row, effect, in_order, shown};
use crate::branching::tale::{Kind, Question, Step, Transaction};
use crate::oracle::Violation;
use crate::resp::Answer;
use std::collections::{BTreeMap, BTreeSet};

impl Judge<'_> {
    pub(super) fn values(&self, known: &mut Known) -> Result<(), Violation> {
        for (index, transaction) in self.tale.transactions.iter().enumerate() {
            let made = self.graph.made.get(&index).copied();
            let bases = self.graph.bases(transaction, made);
            self.reads_of(transaction, bases.as_deref(), known)?;
        }
        for question in &self.tale.questions {
            match question.step.name().as_str() {
                "BRANCH GET" => self.get(question, known)?,
                "BRANCH DIFF" => self.diff(&question.step, known)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn reads_of(
        &self,
        transaction: &Transaction,
        bases: Option<&[Place]>,
        known: &mut Known,
    ) -> Result<(), Violation> {
        let mut written: BTreeMap<Key, Row> = BTreeMap::new();
        for step in &transaction.steps {
            let row = |key: &[u8]| written.get(key).cloned().unwrap_or_else(|| self.graph.row_at(bases, key));
            let Some(effect) = effect(&step.args, &row) else { continue };
            let Some(answer) = step.done() else { continue };
            let key = step.args.get(1).map(|key| key.to_vec()).unwrap_or_default();
            match effect.answer {
                Some(expected) => {
                    known.judged += 1;
                    let found = in_order(&key, answer);
                    if found != expected {
                        return Err(self.wrong_read(transaction, step, &expected, bases));
                    }
                }
                None => {
                    known.untold += 1;
                    let own = written.contains_key(&key);
                    if let (Some(bases), false, "GET") = (bases, own, step.word(0).as_str()) {
                        self.not_before(bases, &key, answer)
                            .map_err(|why| self.wrong(transaction.kind, &self.story(transaction), &why))?;
                    }
                }
            }
            written.extend(effect.writes);
        }
        Ok(())
    }

    fn wrong_read(
        &self,
        transaction: &Transaction,
        step: &Step,
        expected: &Answer,
        bases: Option<&[Place]>,
    ) -> Violation {
        let key = step.args.get(1).map(|key| key.to_vec()).unwrap_or_default();
        let bases = bases.unwrap_or_default();
        let writer = self.graph.writer(bases, &key).map(|writer| self.portrait(writer));
        let states: Vec<String> = bases.iter().map(|&place| self.portrait(place)).collect();
        let why = format!(
            "{} answers {}, and {expected} stands there, written by {}\nread at {}",
            step.texts(0).join(" "),
            step.answer.as_ref().map(Answer::to_string).unwrap_or_default(),
            writer.unwrap_or_else(|| "nobody".to_owned()),
            states.join("\n")
        );
        self.wrong(transaction.kind, &self.story(transaction), &why)
    }

    fn wrong(&self, kind: Kind, story: &str, why: &str) -> Violation {
        let property = if kind == Kind::Merge { property::MERGED } else { property::ISOLATION };
        Violation::new(property, format!("{why}\n{story}"))
    }

    /// Not all that these states see is known, but some of it: what is read there cannot be older.
    fn not_before(&self, places: &[Place], key: &[u8], answer: &Answer) -> Result<(), String> {
        let Some(least) = self.graph.writer(places, key) else { return Ok(()) };
        let least_id = self.graph.nodes[least].id;
        let may_vanish = matches!(key.first(), Some(b'd' | b'e'));
        let Some(text) = answer.bytes() else {
            let untold = self.graph.nodes[least].rows[key] == Row::Untold;
            return match answer {
                Answer::Nil if !may_vanish && !untold => {
                    Err(format!("nothing is read, and {least_id} wrote it"))
                }
                _ => Ok(()),
            };
        };
        let wrote = |place: &Place| self.graph.nodes[*place].rows.get(key) == Some(&Row::Text(text.to_vec()));
        // Numbers and the like may be written twice, and a deadline leaves the value as it is.
        if text.first() != Some(&b'v') || key.first() == Some(&b'e') {
            return Ok(());
        }
        match (0..self.graph.nodes.len()).find(wrote) {
            Some(writer) if writer < least => {
                let id = self.graph.nodes[writer].id;
                Err(format!("what {id} wrote is read, and {least_id} has replaced it"))
            }
            Some(writer) if places.iter().all(|&place| writer > place) => {
                Err(format!("what {} wrote is read before it", self.graph.nodes[writer].id))
            }
            _ => Ok(()),
        }
    }

    fn get(&self, question: &Question, known: &mut Known) -> Result<(), Violation> {
        let step = &question.step;
        let Some(Answer::Array(values)) = step.done() else { return Ok(()) };
        let Some(key) = step.args.get(2).map(|key| key.to_vec()) else { return Ok(()) };
        let named: Vec<StateId> = step.texts(3).iter().filter_map(|text| StateId::parse(text)).collect();
        let states = if named.is_empty() { question.reads.clone() } else { named };
        // Without states, and outside a merge, all leaves are meant: how many there are, nobody was told.
        if states.is_empty() {
            return Ok(());
        }
        if states.len() != values.len() {
            let words =
                format!("{} values of {} states: {}", values.len(), states.len(), self.describe(step));
            return Err(Violation::new(property::ISOLATION, words));
        }
        for (id, value) in states.iter().zip(values) {
            let Some(place) = self.graph.place(*id) else { continue };
            match shown(&self.graph.row_at(Some(&[place]), &key)) {
                Some(expected) => {
                    known.judged += 1;
                    let found = in_order(&key, value);
                    if found != expected {
                        let writer = self.graph.writer(&[place], &key);
                        let writer = writer.map_or("nobody".to_owned(), |writer| self.portrait(writer));
                        let words = format!(
                            "at {id} {found} is told of {}, and {expected} stands there, written by {writer}\n{}\n{}",
                            String::from_utf8_lossy(&key),
                            self.portrait(place),
                            self.describe(step)
                        );
                        return Err(Violation::new(property::ISOLATION, words));
                    }
                }
                None => {
                    known.untold += 1;
                    self.not_before(&[place], &key, value).map_err(|why| {
                        Violation::new(property::ISOLATION, format!("{why}\n{}", self.describe(step)))
                    })?;
                }
            }
        }
        Ok(())
    }

    fn diff(&self, step: &Step, known: &mut Known) -> Result<(), Violation> {
        let Some(Answer::Array(lines)) = step.done() else { return Ok(()) };
        let ids: Vec<StateId> = step.texts(2).iter().filter_map(|text| StateId::parse(text)).collect();
        let places: Vec<Place> = ids.iter().filter_map(|id| self.graph.place(*id)).collect();
        let [a, b] = places.as_slice() else { return Ok(()) };
        if !self.graph.are_whole(&places) {
            known.untold += 1;
            return Ok(());
        }
        known.judged += 1;
        let written = self.graph.below(&places);
        let keys: BTreeSet<&Key> =
            written.iter().flat_map(|place| self.graph.nodes[place].rows.keys()).collect();
        let mut told: BTreeMap<Key, (Answer, Answer)> = BTreeMap::new();
        let mut last: Option<Key> = None;
        for line in lines {
            let Answer::Array(parts) = line else { continue };
            let [key, at_a, at_b] = parts.as_slice() else { continue };
            let key = key.bytes().unwrap_or_default().to_vec();
            if last.replace(key.clone()).is_some_and(|last| last >= key) {
                let words = format!("keys are not in order: {}", self.describe(step));
                return Err(Violation::new(property::ISOLATION, words));
            }
            told.insert(key.clone(), (in_order(&key, at_a), in_order(&key, at_b)));
        }
        for key in keys {
            let rows = (self.graph.row_at(Some(&[*a]), key), self.graph.row_at(Some(&[*b]), key));
            let (Some(at_a), Some(at_b)) = (shown(&rows.0), shown(&rows.1)) else { continue };
            let expected = (at_a != at_b).then_some((at_a, at_b));
            if told.get(key) != expected.as_ref() {
                let name = String::from_utf8_lossy(key);
                let words = format!(
                    "{name}: expected {expected:?}, told {:?}: {}",
                    told.get(key),
                    self.describe(step)
                );
                return Err(Violation::new(property::ISOLATION, words));
            }
        }
        Ok(())
    }
}
