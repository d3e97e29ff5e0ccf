//! T2, T3, T4: what is told of the states themselves: leaves, fork points, conflicting keys, logs, and where sessions
//! stand.

use super::{Judge, Known};
use crate::branching::graph::Place;
use crate::branching::id::{StateId, show};
use crate::branching::property;
use crate::branching::rows::Key;
use crate::branching::tale::{Anchor, Question, Step};
use crate::oracle::Violation;
use crate::resp::Answer;
use std::collections::BTreeSet;

impl Judge<'_> {
    pub(super) fn questions(&self, known: &mut Known) -> Result<(), Violation> {
        for question in &self.tale.questions {
            match question.step.name().as_str() {
                "BRANCH LIST" => self.leaves(&question.step, known)?,
                "BRANCH FORKPOINTS" => self.fork_points(question, known)?,
                "BRANCH CONFLICTS" => self.conflicts(question, known)?,
                _ => {}
            }
        }
        self.log_lines(known)
    }

    /// The keys of which branches see writes of different states: where nobody knows where they forked, no others are
    /// told.
    fn differing(&self, places: &[Place]) -> BTreeSet<Key> {
        let pairs = places.iter().flat_map(|&a| places.iter().map(move |&b| (a, b)));
        let written = pairs.flat_map(|(a, b)| self.written_beside(a, b)).cloned();
        let differ = |key: &Key| {
            let writer = |place: &Place| self.graph.writer(&[*place], key);
            places.iter().any(|place| writer(place) != writer(&places[0]))
        };
        written.filter(differ).collect()
    }

    /// Leaves are no ancestors of each other, and everything that the site surely had is one or comes before one.
    fn leaves(&self, step: &Step, known: &mut Known) -> Result<(), Violation> {
        let Some(Answer::Array(items)) = step.done() else { return Ok(()) };
        let ids: Vec<StateId> = items.iter().filter_map(|id| StateId::parse(id.text()?)).collect();
        let wrong = |why: String| {
            Err(Violation::new(property::LEAVES, format!("{why}\n{}\n{}", show(&ids), self.describe(step))))
        };
        if ids.is_empty() || ids.len() < items.len() || ids.windows(2).any(|pair| pair[0] <= pair[1]) {
            return wrong("leaves are not in order, the highest first".to_owned());
        }
        let places: Vec<Place> = ids.iter().filter_map(|id| self.graph.place(*id)).collect();
        for &a in &places {
            if let Some(&b) = places.iter().find(|&&b| a != b && self.graph.is_ancestor(a, b)) {
                let (a, b) = (self.graph.nodes[a].id, self.graph.nodes[b].id);
                return wrong(format!("{a} is told to be a leaf, and {b} comes after it"));
            }
        }
        if places.len() < ids.len() || !self.graph.are_whole(&places) {
            known.untold += 1;
            return Ok(());
        }
        known.judged += 1;
        let Some(had) = self.shown.by(step.datacenter, step.asked_us) else { return Ok(()) };
        let below = self.graph.below(&places);
        match had.iter().find(|&place| !below.has(place)) {
            Some(missed) => wrong(format!("no leaf comes after {}", self.portrait(missed))),
            None => Ok(()),
        }
    }

    fn states_of(&self, question: &Question, from: usize) -> Vec<StateId> {
        let named: Vec<StateId> =
            question.step.texts(from).iter().filter_map(|text| StateId::parse(text)).collect();
        if named.is_empty() { question.reads.clone() } else { named }
    }

    /// The definition of the weights: each state that any of the branches has is counted once, by the branches and the
    /// weights of the fork points that have it.
    fn fork_points(&self, question: &Question, known: &mut Known) -> Result<(), Violation> {
        let step = &question.step;
        let Some(Answer::Array(lines)) = step.done() else { return Ok(()) };
        let states = self.states_of(question, 2);
        let mut points: Vec<(StateId, i64)> = Vec::new();
        for line in lines {
            let Answer::Array(parts) = line else { continue };
            if let [id, Answer::Integer(weight)] = parts.as_slice() {
                points.extend(id.text().and_then(StateId::parse).map(|id| (id, *weight)));
            }
        }
        let wrong = |why: String| {
            let words = format!("{why}\nof {}\n{}", show(&states), self.describe(step));
            Err(Violation::new(property::FORK_POINTS, words))
        };
        if points.len() < lines.len() || points.windows(2).any(|pair| pair[0].0 <= pair[1].0) {
            return wrong("fork points are not in order, the highest first".to_owned());
        }
        let places: Option<Vec<Place>> = states.iter().map(|id| self.graph.place(*id)).collect();
        let forks: Option<Vec<(Place, i64)>> =
            points.iter().map(|(id, weight)| self.graph.place(*id).map(|place| (place, *weight))).collect();
        let (Some(mut places), Some(forks)) = (places, forks) else { return Ok(()) };
        let all = places.clone();
        places.retain(|&a| !all.iter().any(|&b| a != b && self.graph.is_ancestor(a, b)));
        places.sort_unstable();
        places.dedup();
        if places.is_empty() || !self.graph.are_whole(&places) {
            known.untold += 1;
            return Ok(());
        }
        known.judged += 1;
        for place in self.graph.below(&places).iter() {
            let branches =
                places.iter().filter(|&&branch| self.graph.is_ancestor(place, branch)).count() as i64;
            let weights: i64 = forks
                .iter()
                .filter(|(fork, _)| self.graph.is_ancestor(place, *fork))
                .map(|(_, weight)| weight)
                .sum();
            if branches + weights != 1 {
                let id = self.graph.nodes[place].id;
                return wrong(format!(
                    "{id} counts {branches} times, and {weights} by fork points {points:?}"
                ));
            }
        }
        let stray = forks.iter().find(|(fork, _)| !self.graph.below(&places).has(*fork));
        match stray {
            Some((fork, _)) => wrong(format!("{} is before none of them", self.graph.nodes[*fork].id)),
            None => Ok(()),
        }
    }

    /// A key is in conflict if two branches have both written it where the other one has not been.
    fn conflicts(&self, question: &Question, known: &mut Known) -> Result<(), Violation> {
        let step = &question.step;
        let Some(Answer::Array(items)) = step.done() else { return Ok(()) };
        let states = self.states_of(question, 2);
        let places: Option<Vec<Place>> = states.iter().map(|id| self.graph.place(*id)).collect();
        let Some(places) = places.filter(|places| !places.is_empty() && self.graph.are_whole(places)) else {
            known.untold += 1;
            return Ok(());
        };
        known.judged += 1;
        let told: Vec<Key> = items.iter().filter_map(|key| key.bytes().map(<[u8]>::to_vec)).collect();
        let mut expected: BTreeSet<Key> = BTreeSet::new();
        for (at, &a) in places.iter().enumerate() {
            for &b in &places[at + 1..] {
                let (mine, theirs) = (self.written_beside(a, b), self.written_beside(b, a));
                expected.extend(mine.intersection(&theirs).map(|key| (*key).clone()));
            }
        }
        let differing = self.differing(&places);
        let may_be_late = self.has_late_states()
            && told.iter().all(|key| differing.contains(key))
            && expected.intersection(&differing).all(|key| told.contains(key));
        if may_be_late || told.iter().eq(&expected) {
            return Ok(());
        }
        let names = |keys: &mut dyn Iterator<Item = &Key>| {
            keys.map(|key| String::from_utf8_lossy(key)).collect::<Vec<_>>().join(" ")
        };
        let words = format!(
            "told {}\nare  {}\nof {}\n{}",
            names(&mut told.iter()),
            names(&mut expected.iter()),
            show(&states),
            self.describe(step)
        );
        Err(Violation::new(property::CONFLICTS, words))
    }

    /// The keys that were written at one state, or before it, and not at or before the other.
    fn written_beside(&self, at: Place, other: Place) -> BTreeSet<&Key> {
        let beside = self.graph.nodes[at].ancestors.without(&self.graph.nodes[other].ancestors);
        beside.iter().collect::<Vec<_>>().into_iter().flat_map(|p| self.graph.nodes[p].rows.keys()).collect()
    }

    /// What logs say where something may have been collected: parents that are told are ancestors.
    fn log_lines(&self, known: &mut Known) -> Result<(), Violation> {
        for telling in &self.graph.tellings {
            let Some(place) = self.graph.place(telling.id) else { continue };
            if !self.graph.nodes[place].is_whole {
                known.untold += 1;
                continue;
            }
            known.judged += 1;
            for parent in &telling.parents {
                let is_before = self.graph.place(*parent).is_some_and(|p| self.graph.is_ancestor(p, place));
                if !is_before {
                    let words = format!(
                        "{} tells {parent} as a parent of\n{}",
                        telling.datacenter,
                        self.portrait(place)
                    );
                    return Err(Violation::new(property::REPLICAS, words));
                }
            }
        }
        Ok(())
    }

    /// A session stands where its last transaction left it.
    pub(super) fn anchors(&self) -> Result<(), Violation> {
        for (before, told, step) in &self.tale.anchors {
            let is_right = match before {
                // What was collected is called by its taker-over, which comes after it.
                Anchor::Exactly(ids) if !self.has_ceilings => {
                    let places = |ids: &BTreeSet<StateId>| -> BTreeSet<Option<Place>> {
                        ids.iter().map(|id| self.graph.place(*id)).collect()
                    };
                    ids == told || places(ids) == places(told)
                }
                Anchor::Exactly(ids) | Anchor::Behind(ids) => ids.iter().all(|id| {
                    told.iter().any(|now| {
                        now == id || self.graph.place(*now).is_none_or(|now| !self.strays(*id, now))
                    })
                }),
            };
            if !is_right {
                let words = format!("at {}, and it was {before:?}\n{}", show(told), self.describe(step));
                return Err(Violation::new(property::ANCHOR, words));
            }
        }
        Ok(())
    }
}
