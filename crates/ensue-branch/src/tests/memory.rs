//! What is kept in memory, and what of it is counted.

use super::{commit, constraint, key, new, run, site, steps_of, tell};
use crate::*;
use bytes::Bytes;
use ensue_types::DatacenterId;

/// A piece in the middle of what is much longer, as it comes in a frame of many entries or out of a log; and the whole.
fn framed(piece: &[u8]) -> (Bytes, Bytes) {
    let frame = Bytes::from([&[0; 1000], piece, &[0; 1000]].concat());
    (frame.slice(1000..1000 + piece.len()), frame)
}

fn commit_in_frame(commit: &Commit) -> (Commit, Bytes) {
    let (piece, frame) = framed(&Note::Commit(commit.clone()).encode());
    match Note::decode(piece) {
        Ok(Note::Commit(commit)) => (commit, frame),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_commit_that_came_does_not_keep_the_frame_that_it_came_in() {
    let (mut one, mut two) = (site(0), site(1));
    let first = commit(&mut one, StateId::ROOT, "a=1");
    let second = commit(&mut one, first.id, "a=2 b=1");
    for (made, is_applied) in [(&second, false), (&first, true)] {
        let (framed, frame) = commit_in_frame(made);
        assert_eq!(!tell(&mut two, &framed).applied.is_empty(), is_applied, "the second waits for the first");
        drop(framed);
        assert!(frame.is_unique());
    }
}

#[test]
fn a_transaction_does_not_keep_the_frame_that_its_command_came_in() {
    let mut one = site(0);
    let id = run(&mut one, StateId::ROOT, "");
    let (piece, frame) = framed(b"kv");
    one.put(id, piece.slice(..1), Some(piece.slice(1..))).unwrap();
    drop(piece);
    assert!(frame.is_unique());
    let made = new(one.commit(id, &constraint("ANY")).unwrap());
    assert_eq!(one.value_at(&key("k"), made.id), Ok(Some(Bytes::from_static(b"v"))));
}

#[test]
fn a_checkpoint_that_was_read_is_not_kept_with_what_is_made_of_it() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=1");
    commit(&mut one, first.id, "a=2");
    let mut two = site(1);
    let unknown = commit(&mut two, StateId::ROOT, "c=1");
    tell(&mut one, &commit(&mut two, unknown.id, "d=1"));
    let mut again = site(0);
    let (dag, frame) = framed(&one.encode_dag());
    again.restore_dag(dag).unwrap();
    assert!(frame.is_unique());
    one.encode_keys(0, usize::MAX, |item| {
        let (item, frame) = framed(item);
        again.restore_key(item).unwrap();
        assert!(frame.is_unique());
    });
    assert_eq!((again.metrics().records, again.metrics().waiting), (2, 1));
}

/// Two sites, of which the first has collected all but its own state, which is given, too.
fn one_that_decided_alone() -> (Branches, Branches, StateId) {
    let (mut one, two) = (site(0), site(1));
    one.options.collection = Collection::Optimistic;
    let here = commit(&mut one, StateId::ROOT, "a=1").id;
    one.place_ceilings(&[here]).unwrap();
    one.take_ceilings();
    assert_eq!(one.collect(|_| true), 1);
    (one, two, here)
}

#[test]
fn what_was_sent_whole_does_not_keep_the_frame_that_it_came_in() {
    let (mut one, mut two, here) = one_that_decided_alone();
    let late = commit(&mut two, StateId::ROOT, "b=1");
    tell(&mut one, &late);
    let (piece, frame) = framed(&two.rebuild(late.id, &[here]).unwrap().encode());
    let rebuilt = Rebuilt::decode(piece).unwrap();
    assert_eq!(one.accept(&rebuilt).applied.len(), 1);
    drop(rebuilt);
    assert!(frame.is_unique());
}

/// Every state that wrote a key names it.
#[test]
fn the_states_that_wrote_a_key_share_its_name() {
    let (mut one, mut two) = (site(0), site(1));
    let name = "k".repeat(1000);
    let mut last = StateId::ROOT;
    for value in 0..10 {
        let made = commit(&mut one, last, &format!("{name}={value}"));
        tell(&mut two, &made);
        last = made.id;
    }
    let mut again = site(0);
    again.restore_dag(Bytes::from(one.encode_dag())).unwrap();
    for branches in [&one, &two, &again] {
        let writes = branches.dag.states.values().flat_map(|state| &state.writes);
        let places: std::collections::BTreeSet<*const u8> = writes.map(|key| key.as_ptr()).collect();
        assert_eq!(places.len(), 1, "of {:?}", DatacenterId(branches.site.0));
    }
}

#[test]
fn what_a_transaction_has_read_is_counted_bounded_and_its_own() {
    let mut one = site(0);
    commit(&mut one, StateId::ROOT, "a=1");
    let before = one.metrics().bytes;
    let id = run(&mut one, StateId::ROOT, "");
    let long = |number: usize| Bytes::from(format!("{number:>3}{}", "k".repeat(1_000_000)));
    let first = long(0);
    one.get(id, &first, true).unwrap();
    assert!(first.is_unique());
    assert!(one.metrics().bytes > before + 1_000_000);
    one.get(id, &first, true).unwrap();
    assert!(one.metrics().bytes < before + 1_001_000, "each key once");
    let refused = (1..100).find_map(|number| one.get(id, &long(number), true).err());
    let Some(Abort::ReadsTooLong(bytes)) = refused else { panic!("{refused:?}") };
    assert!(bytes > 16 << 20 && one.metrics().bytes <= before + (16 << 20));
    let writes = std::collections::BTreeMap::from([(key("k"), Some(key("v")))]);
    assert!(one.note_use(id, [long(100)], writes).is_err());
    assert!(one.writes_nothing(id), "neither of both");
    one.scan(id, 0, |_, _, _| true).unwrap();
    assert_eq!(
        (one.metrics().bytes, one.get(id, &long(100), true)),
        (before, Ok(None)),
        "all keys have no names"
    );
    one.abort(id).unwrap();
    assert_eq!(one.metrics().bytes, before);
}

fn merge_of(branches: &mut Branches, states: [StateId; 2], steps: &str) -> Result<StateId, Abort> {
    let begin = constraint(&format!("STATE {} {}", states[0], states[1]));
    let id = branches.begin_merge(&[], &begin)?;
    steps_of(branches, id, steps);
    Ok(new(branches.commit(id, &begin)?).id)
}

/// Below a state two forks, and what joins them, again and again.
fn braid(branches: &mut Branches, mut last: StateId, rounds: usize) -> StateId {
    for _ in 0..rounds {
        let forks = ["x=1", "x=2"]
            .map(|steps| super::commit_with(branches, last, steps, &format!("STATE {last}")).id);
        last = merge_of(branches, forks, "x=3").unwrap();
    }
    last
}

/// Nobody merges the first, so nothing stands for all that the others see.
#[test]
fn what_says_who_sees_whom_is_counted_and_bounded() {
    let mut one = site(0);
    (one.options.states_max, one.options.leaves_max) = (600, 600);
    let [_, mut left, mut right] =
        ["a=1", "a=2", "a=3"].map(|steps| super::commit_with(&mut one, StateId::ROOT, steps, "STATE 0.0").id);
    for _ in 0..60 {
        (left, right) = (braid(&mut one, left, 1), braid(&mut one, right, 1));
    }
    let (before, values) = (one.metrics(), one.records.bytes());
    assert!(before.bytes - values < 2_000 * before.states, "{before:?}");
    let refused = (0..600).find_map(|number| merge_of(&mut one, [left, right], &format!("m={number}")).err());
    assert!(matches!(refused, Some(Abort::States(states)) if states < 600), "{refused:?}");
    let counted = one.metrics().bytes - one.records.bytes();
    assert!(counted > 128 * 600 * 64, "{counted} bytes");
    let leaves = one.leaves();
    assert!(merge_of(&mut one, [leaves[0], leaves[1]], "m=1").is_ok(), "a merge of leaves makes room");
}

#[test]
fn a_commit_that_waits_is_counted_as_long_as_it_does() {
    let (mut zero, mut one, mut two) = (site(0), site(1), site(2));
    let first = commit(&mut zero, StateId::ROOT, "a=1");
    tell(&mut one, &first);
    let second = commit(&mut one, first.id, &format!("b={}", "v".repeat(10_000)));
    let before = two.metrics().bytes;
    tell(&mut two, &second);
    assert!(two.metrics().bytes > before + 10_000);
    let mut again = site(2);
    again.restore_dag(Bytes::from(two.encode_dag())).unwrap();
    assert_eq!(again.metrics().bytes, two.metrics().bytes);
    tell(&mut two, &first);
    assert_eq!(two.waiting.bytes(), 0);
    assert_eq!(two.metrics().bytes, one.metrics().bytes, "as where it never waited");
}

/// They are asked for every few milliseconds, and commits that wait may be very many.
#[test]
fn those_that_came_late_are_known_without_looking_at_all_that_wait() {
    let (mut one, mut two, here) = one_that_decided_alone();
    let late = commit(&mut two, StateId::ROOT, "b=1");
    let below = commit(&mut two, late.id, "b b=2");
    assert_eq!(tell(&mut one, &late).late, [late.id]);
    tell(&mut one, &below);
    assert_eq!((one.waiting.late().len(), one.metrics().waiting), (1, 2));
    let mut again = site(0);
    again.restore_dag(Bytes::from(one.encode_dag())).unwrap();
    assert_eq!(again.late(), [late.id]);
    let rebuilt = two.rebuild(late.id, &[here]).unwrap();
    one.accept(&rebuilt);
    assert_eq!((one.late(), one.metrics().waiting), (vec![], 0));
    again.give_up(late.id);
    assert_eq!((again.late(), again.metrics().waiting), (vec![], 0));
}
