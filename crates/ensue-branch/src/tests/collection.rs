//! What collection keeps, found by the random sites of `replicas`.

use super::{at, commit, constraint, key, merge, new, site};
use crate::{Abort, Branches, Collection, StateId};
use bytes::Bytes;
use ensue_types::{DatacenterId, Incarnation, Position};

/// A site that asks nobody.
fn alone() -> Branches {
    let mut one = site(0);
    one.forget_site(DatacenterId(1));
    one.forget_site(DatacenterId(2));
    one
}

fn give_up(branches: &mut Branches) -> usize {
    let leaves = branches.leaves();
    branches.place_ceilings(&leaves).unwrap();
    branches.take_ceilings();
    branches.collect(|_| true)
}

fn fork(branches: &mut Branches, from: StateId) {
    let ids = ["a a=2", "a a=3"].map(|steps| super::run(branches, from, steps));
    for id in ids {
        new(branches.commit(id, &constraint("SERIALIZABILITY")).unwrap());
    }
}

#[test]
fn a_base_that_another_chain_takes_over_keeps_what_it_wrote() {
    for restarts in [false, true] {
        let mut one = alone();
        let first = commit(&mut one, StateId::ROOT, "kept=1 a=1").id;
        assert_eq!(give_up(&mut one), 1);
        if restarts {
            one = restored(&mut one);
        }
        fork(&mut one, first);
        let joined = new(merge(&mut one, "a=5")).id;
        assert_eq!(give_up(&mut one), 3);
        assert_eq!((at(&one, "kept", joined), at(&one, "a", joined)), (Some("1".into()), Some("5".into())));
        let metrics = one.metrics();
        assert_eq!((metrics.states, metrics.records), (1, 2));
    }
}

/// What a merge brings was written since, though its state took it over before the transaction began.
#[test]
fn what_was_taken_over_counts_as_written_when_a_merge_brings_it() {
    let mut one = alone();
    let end = constraint("SERIALIZABILITY");
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    let [other, branch] = ["a a=2", "a a=3 k=1"].map(|steps| super::run(&mut one, first, steps));
    let other = new(one.commit(other, &end).unwrap()).id;
    let branch = new(one.commit(branch, &end).unwrap()).id;
    let branch = commit(&mut one, branch, "y=1").id;
    assert_eq!(give_up(&mut one), 2);
    let sides = ["b b=1", "b b=2"].map(|steps| super::run(&mut one, other, steps));
    let [left, right] = sides.map(|id| new(one.commit(id, &end).unwrap()).id);
    let joins = |states: [StateId; 2]| constraint(&format!("STATE {} {}", states[0], states[1]));
    let joined = one.begin_merge(&[], &joins([left, right])).unwrap();
    let joined = new(one.commit(joined, &end).unwrap()).id;
    let late = super::run(&mut one, joined, "k k=2");
    let all = one.begin_merge(&[], &joins([joined, branch])).unwrap();
    let all = new(one.commit(all, &end).unwrap()).id;
    assert_eq!(at(&one, "k", all), Some("1".into()));
    let late = new(one.commit(late, &end).unwrap());
    assert_eq!(late.parents, [joined], "it has not seen what the branch wrote");
}

#[test]
fn a_branch_that_is_merged_again_and_again_leaves_nothing_behind() {
    let mut one = alone();
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    fork(&mut one, first);
    let [mut branch, mut trunk] = one.leaves()[..] else { panic!("two leaves") };
    for round in 0..20 {
        let both = constraint(&format!("STATE {trunk} {branch}"));
        let id = one.begin_merge(&[], &both).unwrap();
        super::steps_of(&mut one, id, &format!("a=m{round}"));
        let next = super::run(&mut one, branch, &format!("a a=b{round}"));
        trunk = new(one.commit(id, &constraint("SERIALIZABILITY")).unwrap()).id;
        branch = new(one.commit(next, &constraint("SERIALIZABILITY")).unwrap()).id;
        give_up(&mut one);
        assert!(one.metrics().states <= 4, "{:?} in round {round}", one.metrics());
        assert_eq!(
            (at(&one, "a", trunk), at(&one, "a", branch)),
            (Some(format!("m{round}")), Some(format!("b{round}")))
        );
    }
}

#[test]
fn an_optimistic_base_still_knows_what_it_wrote() {
    let (mut one, mut two) = (site(0), site(1));
    one.options.collection = Collection::Optimistic;
    let here = commit(&mut one, StateId::ROOT, "a=1 b=1").id;
    let there = commit(&mut two, StateId::ROOT, "a=2");
    assert_eq!(give_up(&mut one), 1);
    assert_eq!(super::tell(&mut one, &there).late, [there.id]);
    let rebuilt = two.rebuild(there.id, &[here]).unwrap();
    one.accept(&rebuilt);
    assert_eq!(one.conflicts(&[here, there.id]).unwrap(), [key("a")]);
    assert_eq!(one.difference(here, there.id).unwrap().len(), 2);
}

#[test]
fn who_stays_at_a_state_above_a_ceiling_is_told_the_way_on() {
    let mut one = alone();
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    fork(&mut one, first);
    let parent = constraint("PARENT");
    let id = one.begin(&[first], &parent).unwrap();
    one.abort(id).unwrap();
    let leaves = one.leaves();
    one.place_ceilings(&leaves).unwrap();
    let refusal = one.begin(&[first], &parent).unwrap_err().to_string();
    assert!(refusal.starts_with("ABORT no state satisfies PARENT of 1.0: "), "{refusal}");
    assert!(refusal.contains("BRANCH CHECKOUT"), "{refusal}");
    assert!(one.begin(&[leaves[0]], &parent).is_ok());
}

/// A checkpoint of this site, taken up again.
fn restored(branches: &mut Branches) -> Branches {
    let mut fresh = alone();
    fresh.restore_dag(Bytes::from(branches.encode_dag())).unwrap();
    branches.encode_keys(0, usize::MAX, |item| fresh.restore_key(Bytes::copy_from_slice(item)).unwrap());
    fresh
}

#[test]
fn a_ceiling_that_comes_back_before_its_state_holds_when_that_comes() {
    let (mut one, mut two) = (site(0), site(1));
    let first = commit(&mut two, StateId::ROOT, "a=1");
    one.offer_ceiling(DatacenterId(0), first.id);
    super::tell(&mut one, &first);
    let begun = one.begin(&[], &constraint("STATE 0.0"));
    assert!(matches!(begun, Err(Abort::NoReadState { .. })), "{begun:?}");
}

#[test]
fn what_came_from_a_lost_state_goes_with_it() {
    let (mut one, mut two) = (site(0), site(1));
    let lost = commit(&mut two, StateId::ROOT, "a=1");
    let mut three = site(2);
    super::tell(&mut three, &lost);
    let after = commit(&mut three, lost.id, "b=1");
    let last = commit(&mut three, after.id, "c=1");
    super::tell(&mut one, &after);
    assert_eq!(one.metrics().waiting, 1);
    let gone = one.lose_before(DatacenterId(1), Incarnation(2));
    assert_eq!((gone.applied.len(), gone.discarded), (1, vec![after.id]));
    let mut again = restored(&mut one);
    assert_eq!(super::tell(&mut again, &last).discarded, [last.id]);
    assert_eq!((again.leaves(), again.metrics().waiting), (vec![StateId::ROOT], 0));
}

/// It will never come: who waits for it waits for ever.
#[test]
fn a_session_whose_state_was_lost_goes_on_from_what_is_left() {
    let (mut one, mut two) = (site(0), site(1));
    let kept = commit(&mut one, StateId::ROOT, "a=1").id;
    let lost = commit(&mut two, StateId::ROOT, "b=1").id;
    let ancestor = constraint("ANCESTOR");
    assert_eq!(one.begin(&[lost], &ancestor).err(), Some(Abort::Unknown(lost)), "it may come");
    assert_eq!(one.newest_anchors(&[kept, lost]), [kept, lost]);
    one.lose_before(DatacenterId(1), Incarnation(2));
    assert_eq!(one.newest_anchors(&[kept, lost]), [kept]);
    assert!(one.begin(&[lost], &ancestor).is_ok());
}

/// Without this the others kept for ever what is above it.
#[test]
fn a_ceiling_that_a_checkpoint_kept_is_told_again() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    one.place_ceilings(&[first]).unwrap();
    let mut again = restored(&mut one);
    assert_eq!((again.take_ceilings(), again.take_ceilings()), (vec![first], vec![]));
}

#[test]
fn a_ceiling_that_came_before_its_state_collects_when_that_comes() {
    let (mut one, mut two) = (site(0), site(1));
    one.forget_site(DatacenterId(2));
    two.forget_site(DatacenterId(2));
    let first = commit(&mut one, StateId::ROOT, "a=1");
    one.place_ceilings(&[first.id]).unwrap();
    two.offer_ceiling(DatacenterId(0), first.id);
    two.offer_ceiling(DatacenterId(1), first.id);
    assert_eq!(two.collect(|_| true), 0);
    super::tell(&mut two, &first);
    assert_eq!(two.collect(|_| true), 1);
}

#[test]
fn what_another_site_lacks_is_kept_for_it() {
    let (mut one, mut two) = (site(0), site(1));
    one.options.collection = Collection::Optimistic;
    two.options.collection = Collection::Optimistic;
    let here = commit(&mut one, StateId::ROOT, "a=1").id;
    give_up(&mut one);
    let first = commit(&mut two, StateId::ROOT, "a=2");
    let second = commit(&mut two, first.id, "b=3");
    for (commit, position) in [(&first, 1), (&second, 2)] {
        two.note_tag(commit.id, (DatacenterId(1), Position(position)));
    }
    two.place_ceilings(&[second.id]).unwrap();
    two.take_ceilings();
    assert_eq!(two.collect(|_| false), 1, "the root alone is everywhere");
    super::tell(&mut one, &first);
    super::tell(&mut one, &second);
    assert_eq!(one.late(), [first.id]);
    one.place_ceilings(&[here]).unwrap();
    one.take_ceilings();
    assert_eq!(one.collect(|_| true), 0, "an answer is on its way");
    one.accept(&two.rebuild(first.id, &one.leaves()).unwrap());
    assert_eq!(one.leaves(), [second.id, here]);
    // Where they forked is not kept, and nobody is told of another place.
    assert_eq!(one.fork_points(&[second.id, here]), Err(Abort::Collected(StateId::ROOT)));
    assert_eq!(one.conflicts(&[second.id, here]).unwrap(), [key("a")]);
    assert_eq!(two.collect(|_| true), 1);
    assert_eq!(two.rebuild(first.id, &one.leaves()), None);
    let again = restored(&mut one);
    assert_eq!(again.fork_points(&[second.id, here]), Err(Abort::Collected(StateId::ROOT)));
}

#[test]
fn what_late_states_were_torn_from_is_named_once_by_what_takes_them_over() {
    let (mut one, mut two) = (site(0), site(1));
    one.options.collection = Collection::Optimistic;
    let here = commit(&mut one, StateId::ROOT, "a=1").id;
    give_up(&mut one);
    let forks = ["b=1", "b=2"].map(|steps| super::commit_with(&mut two, StateId::ROOT, steps, "STATE 0.0"));
    let joined = new(merge(&mut two, "b=3"));
    for made in forks.iter().chain([&joined]) {
        super::tell(&mut one, made);
        if one.late().contains(&made.id) {
            one.accept(&two.rebuild(made.id, &[here]).unwrap());
        }
    }
    one.place_ceilings(&[here, joined.id]).unwrap();
    one.take_ceilings();
    assert_eq!(one.collect(|_| true), 2);
    assert_eq!(one.dag.states[&joined.id].torn_from, [StateId::ROOT]);
}

/// What came late while a site decided alone stands beside the base, also when the site asks the others from its next
/// start on.
#[test]
fn a_site_that_decides_alone_no_more_keeps_apart_what_came_late() {
    let (mut one, mut two) = (site(0), site(1));
    one.options.collection = Collection::Optimistic;
    let here = commit(&mut one, StateId::ROOT, "a=1").id;
    give_up(&mut one);
    let late = commit(&mut two, StateId::ROOT, "c=1");
    super::tell(&mut one, &late);
    one.options.collection = Collection::Pessimistic;
    let next = commit(&mut one, here, "b=1").id;
    let all_promise = |one: &mut Branches| {
        let collected = give_up(one);
        let leaves = one.leaves();
        (1..3).for_each(|site| leaves.iter().for_each(|leaf| one.offer_ceiling(DatacenterId(site), *leaf)));
        collected + one.collect(|_| true)
    };
    assert_eq!(all_promise(&mut one), 0, "an answer is on its way");
    one.accept(&two.rebuild(late.id, &one.leaves()).unwrap());
    assert_eq!(all_promise(&mut one), 1, "the first state goes");
    let shown = |one: &Branches, id| ["a", "b", "c"].map(|name| at(one, name, id).is_some());
    assert_eq!(shown(&one, late.id), [false, false, true]);
    assert_eq!(shown(&one, next), [true, true, false]);
    assert_eq!(one.difference(late.id, next).unwrap().len(), 3);
    let joined = new(merge(&mut one, "d=1")).id;
    all_promise(&mut one);
    assert_eq!((one.metrics().states, shown(&one, joined)), (1, [true, true, true]));
}

#[test]
fn what_came_late_and_nobody_has_goes_with_what_came_from_it() {
    let (mut one, mut two) = (site(0), site(1));
    one.options.collection = Collection::Optimistic;
    let here = commit(&mut one, StateId::ROOT, "a=1").id;
    give_up(&mut one);
    let first = commit(&mut two, StateId::ROOT, "a=2");
    let second = commit(&mut two, first.id, "b=3");
    super::tell(&mut one, &first);
    super::tell(&mut one, &second);
    assert!(!one.lacks_for_good(first.id), "a restart may still begin with what it came from");
    let mut again = restored(&mut one);
    one.note_kept();
    for branches in [&mut one, &mut again] {
        assert!(branches.lacks_for_good(first.id));
        let gone = branches.give_up(first.id);
        assert_eq!((gone.applied.len(), gone.discarded), (2, vec![first.id, second.id]));
        assert_eq!((branches.leaves(), branches.metrics().waiting), (vec![here], 0));
        assert!(branches.lacks_for_good(first.id));
    }
}
