//! Ends in which a datacenter is lost for good, or what it had.

use super::*;
use crate::oracle::judge_discarded;
use std::collections::BTreeSet;

impl Maker {
    /// These are operations of a datacenter.
    fn at(&mut self, datacenter: u8, indices: &[OperationIndex]) {
        for &index in indices {
            self.history.operations[index].datacenter = DatacenterId(datacenter);
        }
    }
}

/// The third datacenter of three is lost.
fn lost() -> (Maker, [SessionIndex; 3]) {
    let mut m = Maker::default();
    let sessions = m.sessions();
    m.history.dead = BTreeSet::from([DatacenterId(2)]);
    (m, sessions)
}

#[test]
fn survivors_lose_nothing_of_their_own() {
    let (mut m, [a, _, c]) = lost();
    let (mine, theirs) = (m.write(a, &["x"]), m.write(c, &["y"]));
    m.at(2, &[theirs]);
    let kept = [m.end(0, &[("x", Seen::Value(mine)), ("y", Seen::Nothing)])];
    assert_eq!(m.judge_with(&kept), None, "only the lost datacenter had y");
    let gone = [m.end(0, &[("x", Seen::Nothing), ("y", Seen::Nothing)])];
    assert_eq!(m.judge_with(&gone), Some(property::LOST));
    let x = m.history.location("x");
    m.history.discarded = BTreeSet::from([(mine, x)]);
    assert_eq!(m.judge_with(&gone), None, "it is listed as discarded");
}

#[test]
fn what_a_survivor_had_of_the_lost_stays() {
    let (mut m, [a, _, c]) = lost();
    let first = m.write(c, &["x"]);
    let second = m.write(c, &["x"]);
    let third = m.write(c, &["y"]);
    m.at(2, &[first, second, third]);
    let old = [m.end(0, &[("x", Seen::Value(first)), ("y", Seen::Nothing)])];
    assert_eq!(m.judge_with(&old), None, "the second is lost");
    let torn = [m.end(0, &[("x", Seen::Value(first)), ("y", Seen::Value(third))])];
    assert_eq!(m.judge_with(&torn), Some(property::LOST), "the third needs the second");
    m.read(a, &[("x", Some(second))]);
    assert_eq!(m.judge_with(&old), Some(property::LOST), "a survivor had shown the second");
}

#[test]
fn what_a_survivor_has_acknowledged_of_the_lost_stays_unless_it_is_discarded() {
    let (mut m, [_, _, c]) = lost();
    let theirs = m.write(c, &["x"]);
    m.at(2, &[theirs]);
    let end = [m.end(0, &[("x", Seen::Nothing)])];
    assert_eq!(m.judge_with(&end), None);
    let x = m.history.location("x");
    m.history.kept.insert((theirs, x));
    assert_eq!(m.judge_with(&end), Some(property::LOST));
    m.history.discarded.insert((theirs, x));
    assert_eq!(m.judge_with(&end), None);
}

#[test]
fn additions_and_the_order_of_writes_without_the_lost() {
    let (mut m, [a, b, c]) = lost();
    let (mine, theirs) = (m.write(a, &["x"]), m.write(c, &["x"]));
    m.at(2, &[theirs]);
    let reads = [m.read(b, &[("x", Some(mine))]), m.read(b, &[("x", Some(theirs))])];
    m.at(2, &reads);
    m.add(a, 0, 1);
    let addition = m.add(c, 1, 2);
    m.at(2, &[addition]);
    let end = [m.end(0, &[("x", Seen::Value(mine)), ("c", Seen::Bits(1))])];
    assert_eq!(m.judge_with(&end), None);
    let end = [m.end(0, &[("x", Seen::Value(mine)), ("c", Seen::Bits(2))])];
    assert_eq!(m.judge_with(&end), Some(property::LOST));
}

#[test]
fn a_survivor_discards_only_what_may_need_something_that_is_lost() {
    let (mut m, [a, b, c]) = lost();
    let alone = m.write(a, &["x"]);
    let theirs = m.write(c, &["y"]);
    m.at(2, &[theirs]);
    let token = m.read(c, &[]);
    m.at(2, &[token]);
    let merge = m.read(b, &[]);
    m.history.operations[merge].merges = Some(token);
    let behind = m.write(b, &["z"]);
    let [x, y, z] = ["x", "y", "z"].map(|name| m.history.location(name));
    let judge = |m: &Maker, index, location| {
        judge_discarded(&m.history, &BTreeSet::from([(index, location)])).err().map(|wrong| wrong.property)
    };
    assert_eq!(judge(&m, theirs, y), None);
    assert_eq!(judge(&m, behind, z), None);
    assert_eq!(judge(&m, alone, x), Some(property::UNFOUNDED));
    m.history.promises.goes_by_times = true;
    assert_eq!(judge(&m, alone, x), None, "vectors discard more than names");
}

#[test]
fn a_power_failure_takes_nothing_that_another_datacenter_has() {
    let mut m = Maker::default();
    let [a] = m.sessions();
    let written = m.write(a, &["x"]);
    let x = m.history.location("x");
    let (datacenter, partition) = (DatacenterId(0), m.history.partition_of(x));
    m.history.power_losses =
        vec![PowerLost { datacenter, partition, since_us: 0, at_us: 100, is_whole: true }];
    let end = [m.end(0, &[("x", Seen::Nothing)])];
    assert_eq!(m.judge_with(&end), None);
    m.history.kept.insert((written, x));
    assert_eq!(m.judge_with(&end), Some(property::LOST));
}

/// The directory of one of its partitions is lost.
#[test]
fn a_transaction_is_lost_with_one_directory_as_a_whole_or_not_at_all() {
    let mut m = Maker::default();
    m.history.partitions = 2;
    let [a] = m.sessions();
    let names = ["x", "y", "z", "u", "v", "s"];
    let of = |m: &mut Maker, name| {
        let location = m.history.location(name);
        m.history.partition_of(location)
    };
    let x = names[0];
    let own = of(&mut m, x);
    let y = names.into_iter().find(|name| of(&mut m, name) != own).expect("one lies in the other partition");
    m.operation(a, &[], &[(x, Written::Value), (y, Written::Value)]);
    m.history.power_losses = vec![PowerLost {
        datacenter: DatacenterId(0),
        partition: own,
        since_us: 0,
        at_us: 100_000,
        is_whole: true,
    }];
    let none = [m.end(0, &[(x, Seen::Nothing), (y, Seen::Nothing)])];
    assert_eq!(m.judge_with(&none), None);
    let torn = [m.end(0, &[(x, Seen::Nothing), (y, Seen::Value(0))])];
    assert!(m.judge_with(&torn).is_some());
    m.history.power_losses[0].is_whole = false;
    assert_eq!(m.judge_with(&none), Some(property::LOST), "what was synced before the answer is kept");
}
