//! T5: what is refused. A state is missing only if nobody can have shown it there, and collected only if somebody
//! promised not to begin above something that comes after it; whatever else is refused must have a reason, too.

use super::Judge;
use crate::branching::graph::Place;
use crate::branching::id::StateId;
use crate::branching::property;
use crate::branching::tale::Step;
use crate::oracle::Violation;
use ensue_types::DatacenterId;

impl Judge<'_> {
    pub(super) fn errors(&self) -> Result<(), Violation> {
        for transaction in &self.tale.transactions {
            transaction.steps.iter().chain(&transaction.ended).try_for_each(|step| self.error(step))?;
            self.error(&transaction.began)?;
        }
        self.tale.questions.iter().try_for_each(|question| self.error(&question.step))
    }

    fn error(&self, step: &Step) -> Result<(), Violation> {
        let Some(text) = step.error() else { return Ok(()) };
        let mut words = text.split(' ');
        let (code, id) = (words.next().unwrap_or_default(), words.next().and_then(StateId::parse));
        let why = match (code, id) {
            // Of two equal merges a site may know the one and not yet the other's name.
            ("NOSTATE", Some(id)) if self.graph.has_equals(id) => None,
            ("NOSTATE", Some(id)) => self.graph.place(id).and_then(|place| {
                let had = self.shown.by(step.datacenter, step.asked_us)?;
                had.has(place).then(|| format!("{} had shown {id}", step.datacenter))
            }),
            ("COLLECTED", Some(id)) => self.given_up(id, step).err(),
            _ => None,
        };
        match why {
            Some(why) => {
                Err(Violation::new(property::COLLECTED, format!("{text}: {why}\n{}", self.describe(step))))
            }
            None => Ok(()),
        }
    }

    /// A state may be collected once a ceiling lies under it, in every datacenter if they collect by consent.
    fn given_up(&self, id: StateId, step: &Step) -> Result<(), String> {
        if self.options.places_ceilings || self.power_took_state(id) {
            return Ok(());
        }
        let gave_up = |datacenter: DatacenterId| {
            self.tale.questions.iter().any(|question| {
                let ceiling = &question.step;
                ceiling.datacenter == datacenter
                    && ceiling.name() == "BRANCH CEILING"
                    && ceiling.error().is_none()
                    && ceiling.asked_us < step.answered_us
                    && (ceiling.args.len() == 2 || self.names_one_after(ceiling, id))
            })
        };
        // Nobody waits for the ceilings of a datacenter that was lost.
        let all: Vec<DatacenterId> = (0..self.options.datacenters)
            .map(DatacenterId)
            .filter(|&one| !self.options.is_lost(one))
            .collect();
        let needed = if self.options.optimistic { vec![step.datacenter] } else { all };
        match needed.into_iter().find(|&datacenter| !gave_up(datacenter)) {
            None => Ok(()),
            Some(datacenter) => Err(format!("{datacenter} has placed no ceiling after it")),
        }
    }

    /// Whether a power failure may have taken a state wherever it was seen: then it never was, and its name is not
    /// given again.
    fn power_took_state(&self, id: StateId) -> bool {
        let outlived = |place| self.shown.outlived(self.history, &self.graph, place);
        !self.history.power_losses.is_empty() && self.graph.place(id).is_none_or(|place| !outlived(place))
    }

    /// Whether what a session at a state begins may not be at the other one. A session whose state was lost goes on
    /// from what is left.
    pub(super) fn strays(&self, id: StateId, place: Place) -> bool {
        !self.may_be_before(id, place) && !self.power_took_state(id)
    }

    fn names_one_after(&self, ceiling: &Step, id: StateId) -> bool {
        ceiling.texts(2).iter().filter_map(|text| StateId::parse(text)).any(|named| {
            named != id
                && match self.graph.place(named) {
                    Some(place) => self.may_be_before(id, place),
                    None => id < named,
                }
        })
    }
}
