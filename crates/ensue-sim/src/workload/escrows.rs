//! What clients ask of bounded counters.
//!
//! `bc0` and on are made once each, with 40 and no less than nothing, and then changed and read by everyone: no answer
//! may be below nothing, who has made one finds it, and at the end the value is what was acknowledged, as that of other
//! counters of which the total is known. With `me0` everything is done, and with `med0` deadlines are set, too: only
//! convergence is checked.

use super::Workload;
use super::command::{Command, Expect};
use super::keys::Total;
use super::mix::{Draft, Drawer, Kind};
use crate::oracle::history::OperationIndex;
use crate::oracle::{Violation, may_be_lost, property};
use crate::resp::Answer;
use ensue_types::partition_of;

/// What a counter begins with, above its bound of zero.
const INITIAL: i64 = 40;
const COUNTERS: usize = 3;

/// Errors that say that nothing was changed, because there are no rights to, or no counter.
pub(super) fn is_answer(error: &str) -> bool {
    error.starts_with("SPENT ") || error.starts_with("ERR no such key")
}

/// Whether a key is a bounded counter whose total is checked.
pub(super) fn is_bounded(key: &str) -> bool {
    key.starts_with("bc")
}

/// Whether its bound was kept: all that is sure was taken from what there was at the most.
pub(super) fn keeps_bound(total: &Total, value: i64) -> bool {
    let added: i64 = total.unknown.iter().filter(|amount| **amount > 0).sum();
    value >= 0 && total.acknowledged + added >= 0
}

impl Workload {
    /// Who has made a counter, and was told so, does not hear that there is none, unless the power may have taken it.
    pub(super) fn knows_its_counter(
        &mut self,
        index: OperationIndex,
        command: &Command,
        answer: &Answer,
    ) -> Result<(), Violation> {
        let key =
            command.args.get(1).map(|key| String::from_utf8_lossy(key).into_owned()).unwrap_or_default();
        if !matches!(command.expect, Expect::Bounded) || !is_bounded(&key) {
            return Ok(());
        }
        let is_none = match answer {
            Answer::Nil => true,
            answer => answer.error().is_some_and(|words| words.starts_with("ERR no such key")),
        };
        if &command.args[0][..] == b"BCREATE" && answer.error().is_none() {
            self.keys.made.insert(key, index);
            return Ok(());
        }
        let Some(&made) = self.keys.made.get(&key).filter(|_| is_none) else { return Ok(()) };
        let (maker, asker) = (&self.history.operations[made], &self.history.operations[index]);
        let partition = partition_of(&command.args[1], self.history.partitions.max(1));
        if maker.session != asker.session || may_be_lost(&self.history, made, partition) {
            return Ok(());
        }
        let words = format!(
            "{} answered {answer} to who had made it\n{}\n{}",
            command.text(),
            self.history.describe(made),
            self.history.describe(index)
        );
        Err(Violation::new(property::STALE, words))
    }
}

impl Drawer<'_> {
    pub(super) fn escrow(&mut self, draft: &mut Draft, kind: Kind) {
        let made = self.keys.escrows;
        if made == 0 || (made < COUNTERS && self.random.chance(50)) {
            let key = format!("bc{made}");
            self.keys.escrows += 1;
            draft.commands.push(Command::new(&format!("BCREATE {key} {INITIAL} MIN 0"), Expect::Bounded));
            draft.total = Some((key, INITIAL));
            return;
        }
        let key = format!("bc{}", self.random.index(made));
        if kind == Kind::EscrowRead {
            draft.commands.push(Command::new(&format!("BGET {key}"), Expect::Bounded));
            return;
        }
        let amount = self.random.between(1, 9) as i64;
        let (name, amount) = if self.random.chance(700) { ("BDECRBY", -amount) } else { ("BINCRBY", amount) };
        draft.commands.push(Command::new(&format!("{name} {key} {}", amount.abs()), Expect::Bounded));
        draft.total = Some((key, amount));
    }

    /// Counters that are made, ended and changed by everyone.
    pub(super) fn any_escrows(&mut self, draft: &mut Draft) {
        let (number, ms) = (self.random.below(9), self.random.skewed(10, 2_000));
        let key = if self.random.chance(600) { "me0" } else { "med0" };
        let text = match self.random.below(10) {
            0 | 1 => format!("BCREATE {key} 20 MIN 0 MAX 50"),
            2 => format!("DEL {key}"),
            3 => format!("PEXPIRE med0 {ms}"),
            4 => format!("BGET {key} RIGHTS"),
            5 | 6 => format!("BINCRBY {key} {number}"),
            _ => format!("BDECRBY {key} {number}"),
        };
        draft.commands.push(Command::new(&text, Expect::Anything));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::history::PowerLost;
    use crate::rules::Rules;
    use crate::world::World;
    use crate::world::options::Options;
    use crate::world::shape::Shape;
    use ensue_types::{DatacenterId, PartitionId};

    #[test]
    fn who_has_made_a_counter_finds_it() {
        let shape = Shape { datacenters: 2, cores: 1, partitions: 2, one_process: true, replicas: 1 };
        let mut world = World::new(Options::calm(shape, 10, Rules::default()));
        let mut workload = Workload::new(&mut world);
        let mut operations = Vec::new();
        for session in [workload.history.session(), workload.history.session()] {
            for _ in 0..2 {
                operations.push(workload.history.invoke(session, DatacenterId(0), 1, Vec::new(), Vec::new()));
            }
        }
        let mut ask = |index: usize, text: &str, answer: Answer| {
            let command = Command::new(text, Expect::Bounded);
            workload.knows_its_counter(operations[index], &command, &answer).map_err(|wrong| wrong.property)
        };
        let none = || Answer::Error("ERR no such key".to_owned());
        assert_eq!(ask(1, "BGET bc0", Answer::Nil), Ok(()), "nobody has made it");
        assert_eq!(ask(0, "BCREATE bc0 40 MIN 0", Answer::Integer(40)), Ok(()));
        assert_eq!(ask(1, "BGET bc0", Answer::Integer(40)), Ok(()));
        assert_eq!(ask(1, "BGET bc0", Answer::Nil), Err(property::STALE));
        assert_eq!(ask(1, "BDECRBY bc0 1", none()), Err(property::STALE));
        assert_eq!(ask(1, "BGET bc1", Answer::Nil), Ok(()), "that is another one");
        assert_eq!(ask(2, "BGET bc0", Answer::Nil), Ok(()), "another session need not have it");
    }

    #[test]
    fn a_counter_is_gone_only_with_the_power_of_its_own_partition() {
        let shape = Shape { datacenters: 2, cores: 1, partitions: 2, one_process: true, replicas: 1 };
        let mut world = World::new(Options::calm(shape, 10, Rules::default()));
        let mut workload = Workload::new(&mut world);
        let session = workload.history.session();
        let made = workload.history.invoke(session, DatacenterId(0), 1, Vec::new(), Vec::new());
        let command = Command::new("BGET bc0", Expect::Bounded);
        let own = partition_of(b"bc0", 2);
        let other = PartitionId(1 - own.0);
        workload.keys.made.insert("bc0".to_owned(), made);
        workload.history.operations[made].answered_us = 2;
        let mut ask = |datacenter, partition, since_us| {
            let datacenter = DatacenterId(datacenter);
            workload.history.power_losses =
                vec![PowerLost { datacenter, partition, since_us, at_us: 9, is_whole: false }];
            workload.knows_its_counter(made, &command, &Answer::Nil).map_err(|wrong| wrong.property)
        };
        assert_eq!(ask(0, own, 1), Ok(()));
        for (datacenter, partition, since_us) in [(1, own, 1), (0, other, 1), (0, own, 5)] {
            assert_eq!(ask(datacenter, partition, since_us), Err(property::STALE), "{datacenter} {since_us}");
        }
    }

    #[test]
    fn a_member_that_nobody_else_adds_is_new() {
        let add = Command::new("SADD s0 v1", Expect::Added);
        assert!(add.interpret(&Answer::Integer(1), 0, 1).is_ok());
        assert!(add.interpret(&Answer::Integer(0), 0, 1).is_err());
    }
}
