//! Hand-made histories: each anomaly must be flagged by name, and each legal oddity must pass.

use super::{Final, Violation, judge, property};
use crate::oracle::history::{History, OperationIndex, Outcome, PowerLost, Seen, SessionIndex, Written};
use ensue_protocol::Promises;
use ensue_types::{DatacenterId, PartitionId};

mod dead;
mod removals;
mod sums;
mod watched;

#[derive(Default)]
struct Maker {
    history: History,
    time: u64,
}

impl Maker {
    fn sessions<const N: usize>(&mut self) -> [SessionIndex; N] {
        std::array::from_fn(|_| self.history.session())
    }

    fn operation(
        &mut self,
        session: SessionIndex,
        reads: &[(&str, Seen)],
        writes: &[(&str, Written)],
    ) -> OperationIndex {
        self.time += 10;
        let reads = reads.iter().map(|&(name, seen)| (self.history.location(name), seen)).collect();
        let writes = writes.iter().map(|&(name, written)| (self.history.location(name), written)).collect();
        let index = self.history.invoke(session, DatacenterId(0), self.time, Vec::new(), writes);
        let operation = &mut self.history.operations[index];
        operation.reads = reads;
        operation.outcome = Outcome::Done;
        operation.answered_us = self.time + 5;
        index
    }

    fn write(&mut self, session: SessionIndex, names: &[&str]) -> OperationIndex {
        let writes: Vec<_> = names.iter().map(|&name| (name, Written::Value)).collect();
        self.operation(session, &[], &writes)
    }

    fn delete(&mut self, session: SessionIndex, name: &str) -> OperationIndex {
        self.operation(session, &[(name, Seen::Something)], &[(name, Written::Nothing)])
    }

    fn read(&mut self, session: SessionIndex, reads: &[(&str, Option<OperationIndex>)]) -> OperationIndex {
        let reads: Vec<_> =
            reads.iter().map(|&(name, writer)| (name, writer.map_or(Seen::Nothing, Seen::Value))).collect();
        self.operation(session, &reads, &[])
    }

    fn add(&mut self, session: SessionIndex, bit: u32, bits: u64) -> OperationIndex {
        self.operation(session, &[("c", Seen::Bits(bits))], &[("c", Written::Bit(bit))])
    }

    fn sum(&mut self, session: SessionIndex, bits: u64) -> OperationIndex {
        self.operation(session, &[("c", Seen::Bits(bits))], &[])
    }

    fn lose(&mut self, index: OperationIndex) {
        self.history.operations[index].outcome = Outcome::Unknown;
        self.history.operations[index].answered_us = u64::MAX;
    }

    fn end(&mut self, datacenter: u8, values: &[(&str, Seen)]) -> Final {
        let answers = values.iter().map(|(name, seen)| ((*name).to_owned(), format!("{seen:?}"))).collect();
        let values = values.iter().map(|&(name, seen)| (self.history.location(name), seen)).collect();
        Final {
            datacenter: DatacenterId(datacenter),
            values,
            folded: Vec::new(),
            sequences: Vec::new(),
            answers,
        }
    }

    fn judge(&self) -> Option<&'static str> {
        self.judge_with(&[])
    }

    fn judge_with(&self, finals: &[Final]) -> Option<&'static str> {
        judge(&self.history, finals).err().map(|Violation { property, .. }| property)
    }
}

#[test]
fn reading_your_own_write_and_missing_it() {
    let mut m = Maker::default();
    let [a] = m.sessions();
    let w = m.write(a, &["x"]);
    m.read(a, &[("x", Some(w))]);
    assert_eq!(m.judge(), None);
    m.read(a, &[("x", None)]);
    assert_eq!(m.judge(), Some(property::STALE));
}

#[test]
fn a_concurrent_write_may_win_over_your_own() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let mine = m.write(a, &["x"]);
    let other = m.write(b, &["x"]);
    m.read(a, &[("x", Some(mine))]);
    m.read(a, &[("x", Some(other))]);
    m.read(b, &[("x", Some(other))]);
    assert_eq!(m.judge(), None);
    m.read(a, &[("x", Some(mine))]);
    assert_eq!(m.judge(), Some(property::ORDER));
}

#[test]
fn two_sessions_that_see_opposite_orders() {
    let mut m = Maker::default();
    let [a, b, c, d] = m.sessions();
    let (v, w) = (m.write(a, &["x"]), m.write(b, &["x"]));
    m.read(c, &[("x", Some(v))]);
    m.read(c, &[("x", Some(w))]);
    m.read(d, &[("x", Some(w))]);
    assert_eq!(m.judge(), None);
    m.read(d, &[("x", Some(v))]);
    assert_eq!(m.judge(), Some(property::ORDER));
}

#[test]
fn an_effect_without_its_cause() {
    let mut m = Maker::default();
    let [alice, bob, carol] = m.sessions();
    let photo = m.write(alice, &["photo"]);
    m.read(bob, &[("photo", Some(photo))]);
    let comment = m.write(bob, &["comment"]);
    m.read(carol, &[("photo", None)]);
    m.read(carol, &[("comment", Some(comment))]);
    m.read(carol, &[("photo", Some(photo))]);
    assert_eq!(m.judge(), None);
    let [dave] = m.sessions();
    m.read(dave, &[("comment", Some(comment))]);
    m.read(dave, &[("photo", None)]);
    assert_eq!(m.judge(), Some(property::STALE));
}

#[test]
fn a_snapshot_whose_parts_do_not_fit() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let x1 = m.write(a, &["x"]);
    let x2 = m.write(a, &["x"]);
    let y = m.write(a, &["y"]);
    m.read(b, &[("x", Some(x1)), ("y", None)]);
    m.read(b, &[("x", Some(x2)), ("y", Some(y))]);
    assert_eq!(m.judge(), None);
    let torn = m.read(b, &[("x", Some(x1)), ("y", Some(y))]);
    assert_eq!(m.judge(), Some(property::STALE));
    let [c] = m.sessions();
    m.history.sessions[b].pop();
    m.history.operations[torn].session = c;
    m.history.operations[torn].number = 1;
    m.history.sessions[c].push(torn);
    assert_eq!(m.judge(), Some(property::SNAPSHOT));
    // Reads that stand for themselves are fine each: the older one came first.
    m.history.operations[torn].snapshot = false;
    assert_eq!(m.judge(), None);
}

#[test]
fn a_torn_write_transaction() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let before = m.write(a, &["x", "y"]);
    let after = m.write(a, &["x", "y"]);
    m.read(b, &[("x", Some(before)), ("y", Some(before))]);
    m.read(b, &[("x", Some(after)), ("y", Some(after))]);
    assert_eq!(m.judge(), None);
    let [c] = m.sessions();
    m.read(c, &[("x", Some(after)), ("y", Some(before))]);
    assert_eq!(m.judge(), Some(property::SNAPSHOT));
}

#[test]
fn a_torn_write_transaction_over_a_concurrent_value() {
    let mut m = Maker::default();
    let [a, b, c, d] = m.sessions();
    let other = m.write(a, &["y"]);
    let both = m.write(b, &["x", "y"]);
    m.read(c, &[("x", Some(both)), ("y", Some(other))]);
    assert_eq!(m.judge(), None, "the single write may be the later one");
    m.read(d, &[("y", Some(other))]);
    m.read(d, &[("y", Some(both))]);
    assert_eq!(m.judge(), Some(property::ORDER));
}

#[test]
fn values_out_of_thin_air() {
    let mut m = Maker::default();
    let [a] = m.sessions();
    m.read(a, &[("x", Some(77))]);
    assert_eq!(m.judge(), Some(property::THIN_AIR));
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let w = m.write(a, &["x"]);
    m.read(b, &[("y", Some(w))]);
    assert_eq!(m.judge(), Some(property::THIN_AIR));
    let mut m = Maker::default();
    let [a] = m.sessions();
    m.sum(a, 4);
    assert_eq!(m.judge(), Some(property::THIN_AIR));
}

#[test]
fn a_cycle_of_causes() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let first = m.read(a, &[]);
    let x = m.write(a, &["x"]);
    m.read(b, &[("x", Some(x))]);
    let y = m.write(b, &["y"]);
    let location = m.history.location("y");
    m.history.operations[first].reads = vec![(location, Seen::Value(y))];
    m.history.operations[first].answered_us = u64::MAX - 1;
    assert_eq!(m.judge(), Some(property::CYCLE));
}

#[test]
fn deletes_explain_empty_answers_only_where_they_can() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let w = m.write(a, &["x"]);
    m.read(b, &[("x", Some(w))]);
    m.delete(b, "x");
    m.read(a, &[("x", None)]);
    assert_eq!(m.judge(), None);
    m.read(b, &[("x", Some(w))]);
    assert_eq!(m.judge(), Some(property::STALE), "a deleted value came back");
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    m.write(a, &["x"]);
    m.delete(a, "x");
    let again = m.write(a, &["x"]);
    m.read(b, &[("x", Some(again))]);
    m.read(b, &[("x", None)]);
    assert_eq!(m.judge(), Some(property::STALE), "the only delete was replaced");
}

#[test]
fn an_empty_answer_has_a_cause_where_only_one_delete_can_be_it() {
    for other_delete in [false, true] {
        let mut m = Maker::default();
        let [alice, bob, carol, dave] = m.sessions();
        let w = m.write(alice, &["x"]);
        m.delete(alice, "x");
        if other_delete {
            let unknown = m.delete(dave, "x");
            m.lose(unknown);
        }
        m.read(bob, &[("x", Some(w))]);
        m.read(bob, &[("x", None)]);
        let y = m.write(bob, &["y"]);
        m.read(carol, &[("y", Some(y))]);
        m.read(carol, &[("x", Some(w))]);
        assert_eq!(m.judge(), (!other_delete).then_some(property::STALE));
    }
}

#[test]
fn a_delete_of_unknown_outcome_explains_but_replaces_nothing() {
    let mut m = Maker::default();
    let [a, b, c] = m.sessions();
    let w = m.write(a, &["x"]);
    m.read(b, &[("x", Some(w))]);
    let delete = m.delete(b, "x");
    m.lose(delete);
    m.read(a, &[("x", Some(w))]);
    m.read(c, &[("x", None)]);
    m.read(a, &[("x", None)]);
    assert_eq!(m.judge(), None);
}

#[test]
fn a_token_carries_the_past() {
    for lost in [false, true] {
        let mut m = Maker::default();
        let [a, moved] = m.sessions();
        let w = m.write(a, &["x"]);
        let token = m.read(a, &[]);
        let merge = m.read(moved, &[]);
        m.history.operations[merge].merges = Some(token);
        m.read(moved, &[("x", if lost { None } else { Some(w) })]);
        assert_eq!(m.judge(), lost.then_some(property::STALE));
    }
}

#[test]
fn a_write_of_unknown_outcome_counts_once_it_is_seen() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let old = m.write(a, &["x"]);
    let lost = m.write(a, &["x"]);
    m.lose(lost);
    m.read(b, &[("x", Some(old))]);
    let end = m.end(0, &[("x", Seen::Value(old))]);
    assert_eq!(m.judge_with(std::slice::from_ref(&end)), None);
    m.read(b, &[("x", Some(lost))]);
    assert_eq!(m.judge_with(&[end]), Some(property::LOST));
    m.read(b, &[("x", Some(old))]);
    assert_eq!(m.judge(), Some(property::STALE));
}

#[test]
fn unanswered_neighbours_have_no_order() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let known = m.write(a, &["z"]);
    let first = m.write(a, &["x"]);
    let second = m.write(a, &["y"]);
    m.lose(first);
    m.lose(second);
    m.history.isolate(second);
    m.history.isolate(first);
    m.read(b, &[("y", Some(second))]);
    m.read(b, &[("x", None)]);
    m.read(b, &[("x", Some(first)), ("z", Some(known))]);
    assert_eq!(m.judge(), None);
    m.read(b, &[("z", None)]);
    assert_eq!(m.judge(), Some(property::STALE));
}

/// The first of them may have been answered by a fallback that never arrived, so the second may have forgotten its
/// past.
#[test]
fn behind_an_unanswered_one_a_session_may_have_fallen_back() {
    for (protocol, verdict) in [("ha-pocc", None), ("pocc", Some(property::STALE))] {
        let mut m = Maker::default();
        m.history.promises = Promises::of(protocol).expect("it is known");
        let [a, b] = m.sessions();
        m.write(a, &["z"]);
        let first = m.write(a, &["x"]);
        let second = m.write(a, &["y"]);
        m.lose(first);
        m.lose(second);
        m.history.isolate(second);
        m.history.isolate(first);
        m.read(b, &[("y", Some(second))]);
        m.read(b, &[("z", None)]);
        assert_eq!(m.judge(), verdict, "{protocol}");
    }
}

#[test]
fn counters_include_the_past_exactly_once() {
    let mut m = Maker::default();
    let [a, b, c] = m.sessions();
    m.add(a, 0, 0b1);
    m.add(b, 1, 0b11);
    let x = m.write(b, &["x"]);
    m.sum(c, 0b1);
    assert_eq!(m.judge(), None);
    let [d] = m.sessions();
    m.read(d, &[("x", Some(x))]);
    m.sum(d, 0b10);
    assert_eq!(m.judge(), Some(property::COUNTER), "the addition of a lies in the past of b's");
    let mut m = Maker::default();
    let [a] = m.sessions();
    m.add(a, 3, 0b1_0000);
    assert_eq!(m.judge(), Some(property::THIN_AIR), "counted twice");
}

#[test]
fn appended_pieces_carry_their_past() {
    let mut m = Maker::default();
    let [a, b, c] = m.sessions();
    let x = m.write(a, &["x"]);
    let first = m.write(a, &["log"]);
    let second = m.write(b, &["log"]);
    m.history.built_on.insert(second, first);
    m.read(c, &[("log", Some(second))]);
    m.read(c, &[("x", Some(x))]);
    assert_eq!(m.judge(), None);
    m.history.operations.last_mut().unwrap().reads[0].1 = Seen::Nothing;
    assert_eq!(m.judge(), Some(property::STALE));
}

#[test]
fn what_a_datacenter_has_acknowledged_is_seen_there() {
    for (recent, elsewhere) in [(false, false), (true, true), (true, false)] {
        let mut m = Maker::default();
        let [a, b] = m.sessions();
        let old = m.write(a, &["x"]);
        m.write(a, &["x"]);
        m.add(a, 0, 1);
        let (read, sum) = (m.read(b, &[("x", Some(old))]), m.sum(b, 0));
        for reader in [read, sum] {
            m.history.operations[reader].recent = recent;
            m.history.operations[reader].datacenter = DatacenterId(u8::from(elsewhere));
        }
        assert_eq!(m.judge(), (recent && !elsewhere).then_some(property::HIDDEN));
        m.history.operations[read].reads.clear();
        assert_eq!(m.judge(), (recent && !elsewhere).then_some(property::HIDDEN), "the addition");
        m.history.operations[sum].invoked_us = 0;
        assert_eq!(m.judge(), None, "asked before");
    }
}

#[test]
fn a_write_that_was_refused_replaces_nothing_and_is_read_by_nobody() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let old = m.write(a, &["x"]);
    let refused = m.write(a, &["x"]);
    m.history.operations[refused].outcome = Outcome::Refused;
    m.read(a, &[("x", Some(old))]);
    m.read(b, &[("x", Some(old))]);
    let end = m.end(0, &[("x", Seen::Value(old))]);
    assert_eq!(m.judge_with(&[end]), None);
    m.read(b, &[("x", Some(refused))]);
    assert_eq!(m.judge(), Some(property::THIN_AIR));
}

#[test]
fn a_session_that_fell_back_is_a_new_one() {
    for falls_back in [false, true] {
        let mut m = Maker::default();
        let [a] = m.sessions();
        m.write(a, &["x"]);
        let refused = m.read(a, &[]);
        m.history.operations[refused].outcome = Outcome::Refused;
        let behind = [m.read(a, &[("x", None)]), m.write(a, &["y"])];
        if falls_back {
            let session = m.history.begin_with(&behind);
            let numbers = behind.map(|index| m.history.operations[index].number);
            assert_eq!((m.history.sessions[session].as_slice(), numbers), (&behind[..], [1, 2]));
        }
        assert_eq!(m.judge(), (!falls_back).then_some(property::STALE));
    }
}

#[test]
fn writes_that_stand_for_themselves_say_nothing_of_each_other() {
    for together in [true, false] {
        let mut m = Maker::default();
        let [a, b] = m.sessions();
        let both = m.write(a, &["x", "y"]);
        m.history.operations[both].together = together;
        m.read(b, &[("x", Some(both))]);
        m.read(b, &[("y", None)]);
        assert_eq!(m.judge(), together.then_some(property::STALE));
    }
}

#[test]
fn the_end_must_agree_and_hold_what_was_acknowledged() {
    let mut m = Maker::default();
    let [a, b] = m.sessions();
    let old = m.write(a, &["x"]);
    let new = m.write(a, &["x"]);
    let other = m.write(b, &["x"]);
    m.add(a, 0, 1);
    let ends = |m: &mut Maker, one, two| {
        [m.end(0, &[("x", one), ("c", Seen::Bits(1))]), m.end(1, &[("x", two), ("c", Seen::Bits(1))])]
    };
    let good = ends(&mut m, Seen::Value(other), Seen::Value(other));
    assert_eq!(m.judge_with(&good), None);
    let apart = ends(&mut m, Seen::Value(other), Seen::Value(new));
    assert_eq!(m.judge_with(&apart), Some(property::CONVERGENCE));
    let lost = ends(&mut m, Seen::Value(old), Seen::Value(old));
    assert_eq!(m.judge_with(&lost), Some(property::LOST));
    let gone = ends(&mut m, Seen::Nothing, Seen::Nothing);
    assert_eq!(m.judge_with(&gone), Some(property::LOST));
    let uncounted = [m.end(0, &[("c", Seen::Bits(0))])];
    assert_eq!(m.judge_with(&uncounted), Some(property::LOST));
    m.read(b, &[("x", Some(new))]);
    assert_eq!(m.judge_with(&good), Some(property::ORDER), "the winner was seen to lose");
}

/// Seed 30000861: what the power took was a key with a deadline, whose fate no read tells.
#[test]
fn what_was_known_only_by_a_write_that_power_may_have_taken_is_not_known() {
    for (since_us, command, excused) in
        [(0, "SET e1 v PX 100", true), (0, "GET e1", false), (10_000, "SET e1 v PX 100", false)]
    {
        let mut m = Maker::default();
        let [writer, reader] = m.sessions();
        let earlier = m.write(writer, &["s0/v1"]);
        let untold = m.operation(writer, &[], &[]);
        m.history.operations[untold].commands = vec![crate::resp::args(command)];
        let later = m.write(writer, &["s0/v2"]);
        m.read(reader, &[("s0/v2", Some(later)), ("s0/v1", None)]);
        m.history.partitions = 1;
        let (datacenter, partition) = (DatacenterId(0), PartitionId(0));
        m.history.power_losses =
            vec![PowerLost { datacenter, partition, since_us, at_us: 10_000, is_whole: false }];
        // Both members are seen after the failure, and so are known to have survived it.
        m.time = 20_000;
        m.read(reader, &[("s0/v2", Some(later)), ("s0/v1", Some(earlier))]);
        assert_eq!(m.judge().is_none(), excused);
    }
}

/// A transaction that deletes was answered, the power failed, its commands were evaluated again, and ended what another
/// datacenter, whose clock is behind, had written meanwhile.
#[test]
fn a_removal_that_is_evaluated_again_may_end_what_came_after_its_answer() {
    for (at_us, together, is_excused) in [(10_000, true, true), (10_000, false, false), (0, true, false)] {
        let mut m = Maker::default();
        let [a, b] = m.sessions();
        m.history.partitions = 2;
        let writes = [("x", Written::Nothing), ("z", Written::Value)];
        let removal = m.operation(a, &[], &writes);
        let [x, z] = ["x", "z"].map(|name| m.history.location(name));
        assert_ne!(m.history.partition_of(x), m.history.partition_of(z));
        m.history.operations[removal].together = together;
        let later = m.write(b, &["x"]);
        m.history.operations[later].datacenter = DatacenterId(1);
        let (datacenter, partition) = (m.history.operations[removal].datacenter, m.history.partition_of(x));
        m.history.power_losses =
            vec![PowerLost { datacenter, partition, since_us: 0, at_us, is_whole: false }];
        m.time = 20_000;
        let end = m.end(0, &[("x", Seen::Nothing), ("z", Seen::Value(removal))]);
        assert_eq!(m.judge_with(&[end]), (!is_excused).then_some(property::LOST), "{at_us} {together}");
    }
}

/// Seed 70006277 of `cops-gt`: a session had read a write, and then one that depended on it and was lost. What it wrote
/// next named the lost one in the place of both.
#[test]
fn what_a_lost_write_covered_is_not_known_to_who_saw_that() {
    for survives in [false, true] {
        let mut m = Maker::default();
        let [first, second, session, reader] = m.sessions();
        let earlier = m.write(first, &["s0/v1"]);
        m.read(session, &[("s0/v1", Some(earlier))]);
        let covering = m.write(second, &["x"]);
        m.read(session, &[("x", Some(covering))]);
        let later = m.write(session, &["s0/v2"]);
        m.read(reader, &[("s0/v2", Some(later)), ("s0/v1", None)]);
        m.history.partitions = 1;
        let (datacenter, partition) = (DatacenterId(0), PartitionId(0));
        m.history.power_losses =
            vec![PowerLost { datacenter, partition, since_us: 0, at_us: 10_000, is_whole: false }];
        m.time = 20_000;
        m.read(reader, &[("s0/v2", Some(later)), ("s0/v1", Some(earlier))]);
        if survives {
            m.read(reader, &[("x", Some(covering))]);
        }
        assert_eq!(m.judge().is_some(), survives);
    }
}

/// Seed 110003447: an addition saw the one before it, which was lost, and named that in the place of all that the
/// counter held. Who sees it need not have seen what the lost one covered.
#[test]
fn an_addition_to_what_was_lost_tells_of_nothing_before_it() {
    for survives in [false, true] {
        let mut m = Maker::default();
        let [first, second, third, reader] = m.sessions();
        m.add(first, 0, 0b1);
        let covering = m.add(second, 1, 0b11);
        let seeing = m.add(third, 2, 0b111);
        m.history.partitions = 1;
        let (datacenter, partition) = (DatacenterId(0), PartitionId(0));
        // The first is safe.
        let since_us = m.history.operations[covering].invoked_us;
        let at_us = m.history.operations[seeing].answered_us;
        m.history.power_losses = vec![PowerLost { datacenter, partition, since_us, at_us, is_whole: false }];
        let bits = if survives { 0b110 } else { 0b100 };
        m.time = 20_000;
        m.sum(reader, bits);
        assert_eq!(m.judge(), survives.then_some(property::COUNTER));
    }
}

/// A history of two datacenters under `log`: sessions of the first, and one of the second.
fn of_one_stream() -> (Maker, [SessionIndex; 3]) {
    let mut m = Maker::default();
    m.history.promises = Promises::of("log").expect("it is known");
    let [alice, bob, carol] = m.sessions();
    (m, [alice, bob, carol])
}

impl Maker {
    /// What this session does is done in the second datacenter.
    fn elsewhere(&mut self, index: OperationIndex) -> OperationIndex {
        self.history.operations[index].datacenter = DatacenterId(1);
        index
    }
}

#[test]
fn what_a_datacenter_wrote_shows_in_its_order() {
    let (mut m, [alice, bob, carol]) = of_one_stream();
    let first = m.write(alice, &["x"]);
    m.read(bob, &[("x", Some(first))]);
    let second = m.write(bob, &["y"]);
    let read = m.read(carol, &[("y", None)]);
    m.elsewhere(read);
    assert_eq!(m.judge(), None);
    let read = m.read(carol, &[("y", Some(second))]);
    m.elsewhere(read);
    let read = m.read(carol, &[("x", None)]);
    m.elsewhere(read);
    assert_eq!(m.judge(), Some(property::ORIGINS));
    m.history.promises = Promises::of("eventual").expect("it is known");
    assert_eq!(m.judge(), None);
}

#[test]
fn what_is_read_together_is_of_one_moment_of_each_stream() {
    let (mut m, [alice, bob, carol]) = of_one_stream();
    let first = m.write(alice, &["x"]);
    m.read(bob, &[("x", Some(first))]);
    let second = m.write(bob, &["y"]);
    let read = m.read(carol, &[("x", None), ("y", Some(second))]);
    m.elsewhere(read);
    assert_eq!(m.judge(), Some(property::ORIGINS));
    // Each by itself, x may have been read before.
    m.history.operations[read].snapshot = false;
    assert_eq!(m.judge(), None);
}

#[test]
fn what_another_datacenter_wrote_in_between_may_be_missing() {
    let (mut m, [alice, bob, carol]) = of_one_stream();
    let photo = m.write(alice, &["photo"]);
    let seen = m.read(bob, &[("photo", Some(photo))]);
    m.elsewhere(seen);
    let album = m.write(bob, &["album"]);
    m.elsewhere(album);
    for (name, read) in [("album", Some(album)), ("photo", None)] {
        let index = m.read(carol, &[(name, read)]);
        m.history.operations[index].datacenter = DatacenterId(2);
    }
    assert_eq!(m.judge(), None);
    // A counter of the photo's datacenter that the album's sum holds stands for what came before it there.
    let bit = m.add(alice, 0, 1);
    let counted = m.sum(carol, 1);
    m.history.operations[counted].datacenter = DatacenterId(2);
    let index = m.read(carol, &[("photo", None)]);
    m.history.operations[index].datacenter = DatacenterId(2);
    assert!(bit > photo);
    assert_eq!(m.judge(), Some(property::ORIGINS));
}
