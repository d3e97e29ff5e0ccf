//! T6, T5: where transactions begin. Their constraint holds there, nothing newer that the site surely has fulfils it,
//! no ceiling of the site lies below; a merge begins at every branch that fulfils it, and at nothing twice.

use super::Judge;
use crate::branching::constraint::Condition;
use crate::branching::graph::Place;
use crate::branching::id::StateId;
use crate::branching::property;
use crate::branching::tale::{Anchor, Kind, Outcome, Transaction};
use crate::oracle::Violation;

impl Judge<'_> {
    pub(super) fn begins(&self) -> Result<(), Violation> {
        for transaction in &self.tale.transactions {
            let places: Vec<Place> =
                transaction.reads.iter().filter_map(|id| self.graph.place(*id)).collect();
            if transaction.kind == Kind::Merge && !places.is_empty() {
                self.merges(transaction, &places)?;
            }
            if transaction.kind != Kind::Alone {
                for &place in &places {
                    self.begin_holds(transaction, place)?;
                    self.below_ceilings(transaction, place)?;
                }
            }
            if transaction.kind == Kind::Single {
                self.is_newest(transaction, places.first().copied())?;
            }
        }
        Ok(())
    }

    fn begin_holds(&self, transaction: &Transaction, place: Place) -> Result<(), Violation> {
        if transaction.begin.holds(|condition| !self.fails_at_begin(transaction, condition, place)) {
            return Ok(());
        }
        let words = format!(
            "{} does not hold at\n{}\nanchor {:?}\n{}",
            transaction.begin,
            self.portrait(place),
            transaction.anchor,
            self.story(transaction)
        );
        Err(Violation::new(property::BEGIN, words))
    }

    /// Whether a condition surely does not hold there.
    fn fails_at_begin(&self, transaction: &Transaction, condition: &Condition, place: Place) -> bool {
        let node = &self.graph.nodes[place];
        let asked_us = transaction.began.asked_us;
        match condition {
            Condition::Ancestor => transaction.anchor.known().iter().any(|id| self.strays(*id, place)),
            Condition::Parent => match &transaction.anchor {
                // A collected anchor is its taker-over.
                Anchor::Exactly(ids) if !self.has_ceilings => !ids.contains(&node.id),
                Anchor::Exactly(ids) | Anchor::Behind(ids) => ids.iter().any(|id| self.strays(*id, place)),
            },
            Condition::State(ids) => !ids.contains(&node.id),
            Condition::NoBranching => self.children_by(transaction, place, asked_us) > 0,
            Condition::KBranching(k) => {
                !self.has_ceilings && self.children_by(transaction, place, asked_us) + 1 >= *k
            }
            _ => false,
        }
    }

    /// Whether a state may be the other one, or an ancestor of it.
    pub(super) fn may_be_before(&self, id: StateId, place: Place) -> bool {
        let node = &self.graph.nodes[place];
        match self.graph.place(id) {
            Some(other) => self.graph.is_ancestor(other, place) || !node.is_whole && other < place,
            None => !node.is_whole && id < node.id,
        }
    }

    /// So many children of a state the site surely had at a time.
    pub(super) fn children_by(&self, transaction: &Transaction, place: Place, at_us: u64) -> u64 {
        let Some(had) = self.shown.by(transaction.datacenter, at_us) else { return 0 };
        self.graph.children(place).filter(|&child| had.has(child)).count() as u64
    }

    /// Whether a condition surely holds at a state that the site has.
    fn holds_at_begin(&self, transaction: &Transaction, condition: &Condition, place: Place) -> bool {
        let exactly = match &transaction.anchor {
            Anchor::Exactly(ids) => Some(ids),
            Anchor::Behind(_) => None,
        };
        let before =
            |id: &StateId| self.graph.place(*id).is_some_and(|other| self.graph.is_ancestor(other, place));
        match condition {
            Condition::Any => true,
            Condition::Ancestor => exactly.is_some_and(|ids| ids.iter().all(before)),
            // Where several pasts were taken over, nothing is the one parent.
            Condition::Parent => {
                exactly.is_some_and(|ids| ids.len() == 1 && ids.contains(&self.graph.nodes[place].id))
            }
            Condition::State(ids) => ids.contains(&self.graph.nodes[place].id),
            Condition::NoBranching => self.has_no_child(place, transaction.began.answered_us),
            Condition::KBranching(k) => *k > 1 && self.has_no_child(place, transaction.began.answered_us),
            _ => false,
        }
    }

    /// Whether a state surely had no child anywhere at a time: all later ones are known, and none was asked for before.
    pub(super) fn has_no_child(&self, place: Place, at_us: u64) -> bool {
        (place + 1..self.graph.nodes.len()).all(|other| {
            let node = &self.graph.nodes[other];
            match &node.parents {
                Some(parents) if !parents.contains(&place) => true,
                _ => node.transaction.is_some_and(|index| {
                    let made = &self.tale.transactions[index];
                    made.ended.as_ref().unwrap_or(&made.began).asked_us > at_us
                }),
            }
        })
    }

    fn is_newest(&self, transaction: &Transaction, found: Option<Place>) -> Result<(), Violation> {
        // What is above a ceiling is no place to begin.
        if self.has_ceilings || found.is_none() && transaction.outcome != Outcome::Aborted {
            return Ok(());
        }
        let asked_us = transaction.began.asked_us;
        let Some(had) = self.shown.by(transaction.datacenter, asked_us) else { return Ok(()) };
        // Which of several leaves it is goes by the newest merge before them; a state is left behind only by what comes
        // after it.
        let newer = |place: &Place| {
            found.is_none_or(|found| *place != found && self.graph.is_ancestor(found, *place))
        };
        let fits = |place: &Place| {
            transaction.begin.holds(|condition| self.holds_at_begin(transaction, condition, *place))
        };
        let better = had.iter().filter(newer).filter(fits).max();
        let Some(better) = better else { return Ok(()) };
        let property = if found.is_some() { property::NEWEST } else { property::ABORTED };
        let words = format!(
            "{} had\n{}\nwhere {} holds\nanchor {:?}\n{}",
            transaction.datacenter,
            self.portrait(better),
            transaction.begin,
            transaction.anchor,
            self.story(transaction)
        );
        Err(Violation::new(property, words))
    }

    /// A site that has promised to begin nothing above a state keeps that.
    fn below_ceilings(&self, transaction: &Transaction, place: Place) -> Result<(), Violation> {
        if self.options.restarted.contains(&transaction.datacenter) {
            return Ok(());
        }
        for question in &self.tale.questions {
            let step = &question.step;
            let is_earlier = step.datacenter == transaction.datacenter
                && step.answered_us < transaction.began.asked_us
                && step.name() == "BRANCH CEILING"
                && step.done().is_some();
            if !is_earlier || self.may_be_lost(step.datacenter, step.asked_us, step.answered_us) {
                continue;
            }
            let named: Vec<Place> =
                step.texts(2).iter().filter_map(|text| self.graph.place(StateId::parse(text)?)).collect();
            let had = self.shown.by(step.datacenter, step.asked_us);
            // Every leaf: so everything that had something after it.
            let leaves = if step.args.len() > 2 { None } else { had };
            let above = named.iter().copied().chain(leaves.iter().flat_map(|had| had.iter()));
            let above = above.filter(|&ceiling| ceiling != place && self.graph.is_ancestor(place, ceiling));
            if let Some(ceiling) = above.max() {
                let words = format!(
                    "{} is above {}, under which {}\n{}",
                    self.graph.nodes[place].id,
                    self.graph.nodes[ceiling].id,
                    self.describe(step),
                    self.story(transaction)
                );
                return Err(Violation::new(property::CEILING, words));
            }
        }
        Ok(())
    }

    /// Whether a power failure may have taken what was done in this time.
    pub(super) fn may_be_lost(
        &self,
        datacenter: ensue_types::DatacenterId,
        asked_us: u64,
        answered_us: u64,
    ) -> bool {
        self.history.power_losses.iter().any(|loss| {
            loss.datacenter == datacenter
                && loss.partition.0 == 0
                && loss.since_us <= answered_us
                && asked_us <= loss.at_us
        })
    }

    fn merges(&self, transaction: &Transaction, places: &[Place]) -> Result<(), Violation> {
        let wrong = |why: String| {
            Err(Violation::new(property::MERGED, format!("{why}\n{}", self.story(transaction))))
        };
        if places.windows(2).any(|pair| pair[0] <= pair[1]) {
            return wrong("read states are not in order, the highest first".to_owned());
        }
        if places.len() < 2 {
            return wrong("a merge of fewer than two states".to_owned());
        }
        let names_states = transaction.begin.0.iter().flatten().any(|one| matches!(one, Condition::State(_)));
        for &a in places {
            let below = places.iter().find(|&&b| a != b && self.graph.is_ancestor(a, b));
            if let (Some(&below), false) = (below, names_states) {
                let (a, below) = (self.graph.nodes[a].id, self.graph.nodes[below].id);
                return wrong(format!("{a} is merged with {below}, which comes after it"));
            }
        }
        let is_any = transaction.begin.0.iter().any(|all| all.as_slice() == [Condition::Any]);
        let Some(had) = self.shown.by(transaction.datacenter, transaction.began.asked_us) else {
            return Ok(());
        };
        if !is_any || !self.graph.are_whole(places) {
            return Ok(());
        }
        let below = self.graph.below(places);
        match had.iter().find(|&place| !below.has(place)) {
            Some(missed) => wrong(format!("{} is not merged", self.portrait(missed))),
            None => Ok(()),
        }
    }
}
