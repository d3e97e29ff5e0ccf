//! P12: what was acknowledged lasts. In the end each state that a transaction was told to have made is a leaf or comes
//! before one in every datacenter, and what it wrote is seen there.

use super::Judge;
use crate::branching::graph::{Place, own_tag};
use crate::branching::id::StateId;
use crate::branching::tale::{Outcome, Step, Transaction};
use crate::oracle::{Violation, property};
use crate::resp::Answer;
use ensue_types::DatacenterId;
use std::collections::BTreeMap;

impl Judge<'_> {
    pub(super) fn lasting(&self) -> Result<(), Violation> {
        let Some(final_us) = self.options.final_us else { return Ok(()) };
        let mut leaves: BTreeMap<DatacenterId, Vec<Place>> = BTreeMap::new();
        let mut tags: BTreeMap<DatacenterId, BTreeMap<Vec<u8>, &Step>> = BTreeMap::new();
        for question in self.tale.questions.iter().filter(|question| question.step.asked_us >= final_us) {
            let step = &question.step;
            match (step.name().as_str(), step.done()) {
                ("BRANCH LIST", Some(Answer::Array(items))) => {
                    let ids = items.iter().filter_map(|id| StateId::parse(id.text()?));
                    let places = ids.filter_map(|id| self.graph.place(id)).collect();
                    leaves.insert(step.datacenter, places);
                }
                ("BRANCH GET", Some(_)) => {
                    let key = step.args.get(2).map(|key| key.to_vec()).unwrap_or_default();
                    tags.entry(step.datacenter).or_default().insert(key, step);
                }
                _ => {}
            }
        }
        for (index, transaction) in self.tale.transactions.iter().enumerate() {
            let ended = transaction.ended.as_ref().unwrap_or(&transaction.began);
            let acknowledged = matches!(transaction.outcome, Outcome::At(_) | Outcome::Done);
            if !acknowledged || ended.asked_us >= final_us || self.power_took(transaction, index) {
                continue;
            }
            for (datacenter, leaves) in &leaves {
                let tags = tags.get(datacenter);
                self.lasts(transaction, self.graph.made.get(&index).copied(), leaves, |tag| {
                    let step = tags.and_then(|tags| tags.get(tag))?;
                    let Some(Answer::Array(values)) = step.done() else { return None };
                    Some(values.iter().any(|value| *value != Answer::Nil))
                })
                .map_err(|why| {
                    Violation::new(
                        property::LOST,
                        format!("{why} in {datacenter} after quiescence\n{}", self.story(transaction)),
                    )
                })?;
            }
        }
        Ok(())
    }

    fn lasts(
        &self,
        transaction: &Transaction,
        made: Option<Place>,
        leaves: &[Place],
        is_seen: impl Fn(&[u8]) -> Option<bool>,
    ) -> Result<(), String> {
        if let Some(tag) = own_tag(transaction) {
            if is_seen(&tag) == Some(false) {
                return Err(format!("{} is at no leaf", String::from_utf8_lossy(&tag)));
            }
        }
        let Some(made) = made else { return Ok(()) };
        let is_before = leaves.iter().any(|&leaf| self.graph.is_ancestor(made, leaf));
        // Of a merge that nobody was told more of, an equal one may have taken the name.
        let is_told = self.graph.nodes[made].parents.is_some();
        match is_before || !is_told || !self.graph.are_whole(leaves) {
            true => Ok(()),
            false => Err(format!("{} is before no leaf", self.graph.nodes[made].id)),
        }
    }

    /// Whether a power failure may have taken a commit, within what was promised: nobody saw that it survived.
    fn power_took(&self, transaction: &Transaction, index: usize) -> bool {
        let ended = transaction.ended.as_ref().unwrap_or(&transaction.began);
        if self.options.is_lost(transaction.datacenter) {
            return true;
        }
        if !self.may_be_lost(transaction.datacenter, ended.asked_us, ended.answered_us) {
            return false;
        }
        let made = self.graph.made.get(&index);
        made.is_none_or(|&made| !self.shown.outlived(self.history, &self.graph, made))
    }
}
