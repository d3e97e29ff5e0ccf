//! Which marks must occur in many seeds, and which did not: what never happens is not tested.

use crate::faults::{AT_A_STEP, NAMES, OF_DIRECTORIES, OF_GROWTH, OF_HOMES, OF_PARTITIONS, OF_REPLICAS};
use crate::world::marks::{Mark, Marks};
use ensue_node::TransactionStep;
use ensue_protocol::{Availability, Promises};

const STEPS: [TransactionStep; 5] = [
    TransactionStep::Begun,
    TransactionStep::Voted,
    TransactionStep::Decided,
    TransactionStep::Committed,
    TransactionStep::Completed,
];

impl Mark {
    /// Every mark that must occur in a thousand seeds of these protocols: some things happen only with some of them.
    pub fn required(protocols: &[Promises]) -> Vec<Mark> {
        let mut marks = Mark::all();
        marks.retain(|mark| protocols.iter().any(|promises| mark.is_possible(promises)));
        marks
    }

    fn is_possible(&self, promises: &Promises) -> bool {
        match self {
            Mark::SecondRound
            | Mark::ReadRestarted
            | Mark::CommitCheck
            | Mark::PassedOver
            | Mark::LosingWriteInTransaction
            | Mark::DependencyWaited
            | Mark::Crash { .. } => promises.writes_together(),
            Mark::SessionMoved | Mark::PastMerged => promises.causality,
            Mark::NameResumed => promises.causality && !promises.branches,
            Mark::MessageHeard | Mark::Cached | Mark::AnsweredAtHome => !promises.branches,
            Mark::StaleRead => promises.causality && !promises.shows_received,
            Mark::ScriptStopped | Mark::WatchedExecuted => !promises.branches,
            Mark::Fault(AT_A_STEP) => promises.writes_together(),
            // No seed draws that a datacenter is added, or removed, that homes move, that partitions have several
            // replicas, or that the directory of one alone is lost.
            Mark::Fault(name)
                if OF_GROWTH.contains(name)
                    || OF_REPLICAS.contains(name)
                    || OF_HOMES.contains(name)
                    || OF_PARTITIONS.contains(name) =>
            {
                false
            }
            // No seed draws lost directories there.
            Mark::Fault(name) if OF_DIRECTORIES.contains(name) => !promises.branches,
            Mark::Blocked => promises.availability == Availability::Blocks,
            Mark::FellBack => promises.availability == Availability::FallsBack,
            Mark::Aborted | Mark::MergeBegun | Mark::Branched | Mark::StateCollected => promises.branches,
            _ => true,
        }
    }

    fn all() -> Vec<Mark> {
        let mut marks = vec![
            Mark::DependencyWaited,
            Mark::DuplicateDropped,
            Mark::SecondRound,
            Mark::ReadRestarted,
            Mark::CommitCheck,
            Mark::PassedOver,
            Mark::LosingWriteInTransaction,
            Mark::TornTail,
            Mark::TombstonesCollected,
            Mark::Checkpointed,
            Mark::PartitionStopped,
            Mark::DiskFull,
            Mark::RoomAgain,
            Mark::PowerTore,
            Mark::HandshakeRefused,
            Mark::ConnectionReplaced,
            Mark::Refused("a time too far ahead of this machine's clock"),
            Mark::SessionMoved,
            Mark::PastMerged,
            Mark::NameResumed,
            Mark::MessageHeard,
            Mark::Cached,
            Mark::AnsweredAtHome,
            Mark::ErrorAnswer,
            Mark::Digest,
            Mark::StaleRead,
            Mark::Blocked,
            Mark::FellBack,
            Mark::Aborted,
            Mark::MergeBegun,
            Mark::Branched,
            Mark::StateCollected,
            Mark::ScriptStopped,
            Mark::WatchedExecuted,
            Mark::GoesOnUnproved,
        ];
        for remote in [false, true] {
            marks.extend(STEPS.iter().map(|&step| Mark::Crash { step, remote }));
        }
        marks.extend(NAMES.map(Mark::Fault));
        marks
    }
}

impl Marks {
    /// Required marks that never occurred.
    pub fn missing(&self, protocols: &[Promises]) -> Vec<Mark> {
        Mark::required(protocols).into_iter().filter(|&mark| self.count(mark) == 0).collect()
    }

    /// One line a mark: those that these protocols must hit, and all that were hit.
    pub fn table(&self, protocols: &[Promises]) -> String {
        let required = Mark::required(protocols);
        let others = self.occurred().filter(|mark| !required.contains(mark));
        let marks = required.iter().copied().chain(others);
        marks.map(|mark| format!("{:>12}  {mark}\n", self.count(mark))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Fault, Plan};
    use crate::rules::Rules;
    use crate::run::run_plan;
    use crate::world::options::Options;
    use std::collections::BTreeSet;

    /// What no world can show would fail every run of a thousand seeds.
    #[test]
    fn each_required_fault_may_strike_in_some_of_the_worlds_that_seeds_draw() {
        let (mut promises, mut may_strike) = (Vec::new(), BTreeSet::new());
        for options in (1..=1_000).map(|seed| Options::draw(seed, Rules::default())) {
            may_strike.extend(Fault::possible(&options).into_iter().map(|(name, _)| name));
            promises.push(options.promises());
        }
        let required = Mark::required(&promises);
        let faults = required.iter().filter_map(|mark| match mark {
            Mark::Fault(name) => Some(*name),
            _ => None,
        });
        let never: Vec<&str> = faults.filter(|name| !may_strike.contains(name)).collect();
        assert_eq!(never, Vec::<&str>::new());
    }
    /// Without transactions of several partitions nothing is ever struck.
    #[test]
    fn a_crash_at_a_step_counts_when_it_strikes() {
        for (protocol, strikes) in [("eventual", false), ("eiger", true)] {
            let options = Options::draw_with(7, Rules::default(), protocol);
            let line = "at 1ms crash-at begun at-origin skip 0 kill for 20ms";
            let plan = Plan::parse(line, options.shape).expect("it is a plan");
            let report = run_plan(options, plan, None);
            assert_eq!(report.violation, None);
            assert_eq!(report.marks.count(Mark::Fault(AT_A_STEP)) > 0, strikes, "{protocol}");
        }
    }
}
