//! What the parts promise, on small DAGs made by hand. Sites tell each other everything at once unless a test says
//! otherwise.

mod collection;
mod memory;
mod reference;
mod replicas;

use crate::*;
use ensue_types::{DatacenterId, Position};

fn site(number: u8) -> Branches {
    let sites = (0..3).map(DatacenterId);
    let options = Options { collection: Collection::Pessimistic, states_max: 1000, leaves_max: 10 };
    Branches::new(DatacenterId(number), sites, options)
}

fn constraint(text: &str) -> Constraint {
    Constraint::parse(text.split(' ').map(str::as_bytes)).unwrap()
}

fn key(name: &str) -> Key {
    Key::copy_from_slice(name.as_bytes())
}

/// Begins at a state, reads and writes keys (`k` reads, `k=v` writes).
fn run(branches: &mut Branches, at: StateId, steps: &str) -> TransactionId {
    let begin = constraint(&format!("STATE {at}"));
    let id = branches.begin(&[at], &begin).unwrap();
    steps_of(branches, id, steps);
    id
}

fn steps_of(branches: &mut Branches, id: TransactionId, steps: &str) {
    for step in steps.split_whitespace() {
        match step.split_once('=') {
            Some((name, value)) => branches.put(id, key(name), Some(key(value))).unwrap(),
            None => drop(branches.get(id, &key(step), true).unwrap()),
        }
    }
}

fn commit(branches: &mut Branches, at: StateId, steps: &str) -> Commit {
    commit_with(branches, at, steps, "SERIALIZABILITY")
}

fn commit_with(branches: &mut Branches, at: StateId, steps: &str, end: &str) -> Commit {
    let id = run(branches, at, steps);
    new(branches.commit(id, &constraint(end)).unwrap())
}

fn merge(branches: &mut Branches, steps: &str) -> Committed {
    let id = branches.begin_merge(&[], &constraint("ANY")).unwrap();
    steps_of(branches, id, steps);
    branches.commit(id, &constraint("SERIALIZABILITY")).unwrap()
}

fn new(committed: Committed) -> Commit {
    match committed {
        Committed::New(commit) => commit,
        other => panic!("{other:?} is no new state"),
    }
}

/// Offers commits of a site, each at its place in the stream.
fn tell(branches: &mut Branches, commit: &Commit) -> Offered {
    branches.offer((commit.id.site(), Position(commit.id.counter())), commit.clone())
}

/// Commits of the first site, each below the one before, of which all hear; the last state.
fn line(sites: &mut [Branches; 3], commits: impl Iterator<Item = String>) -> StateId {
    commits.fold(StateId::ROOT, |last, steps| {
        let made = commit(&mut sites[0], last, &steps);
        sites[1..].iter_mut().for_each(|site| drop(tell(site, &made)));
        made.id
    })
}

fn at(branches: &Branches, name: &str, state: StateId) -> Option<String> {
    let value = branches.value_at(&key(name), state).unwrap()?;
    Some(String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn ids_have_one_text() {
    for text in ["0.0", "12.0", "7.3.2"] {
        assert_eq!(text.parse::<StateId>().unwrap().to_string(), text);
    }
    for text in ["", "12", "12.", "012.0", "12.0.1", "0.1", "12.256", "1.0.0", "-1.0", "99999999999999.0"] {
        assert_eq!(text.parse::<StateId>(), Err(()), "{text}");
    }
}

#[test]
fn constraints_have_unions_of_intersections() {
    let read = constraint("serializability and no-branching or k-branching 3 or STATE 1.0 2.1");
    assert_eq!(read.to_string(), "SERIALIZABILITY AND NO-BRANCHING OR K-BRANCHING 3 OR STATE 1.0 2.1");
    for bad in ["", "ANY AND", "K-BRANCHING 1", "STATE", "STATE x", "ANY ANY", "SOMETHING"] {
        assert!(Constraint::parse(bad.split_whitespace().map(str::as_bytes)).is_err(), "{bad}");
    }
    assert!(constraint("ANY AND SERIALIZABILITY").for_begin().is_err());
}

#[test]
fn what_does_not_conflict_goes_on_and_what_does_forks() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=1 b=1").id;
    let (x, y, z) =
        (run(&mut one, first, "a a=2"), run(&mut one, first, "b b=2"), run(&mut one, first, "a a=3"));
    let end = constraint("SERIALIZABILITY");
    let x = new(one.commit(x, &end).unwrap());
    let y = new(one.commit(y, &end).unwrap());
    let z = new(one.commit(z, &end).unwrap());
    assert_eq!((&x.parents[..], &y.parents[..]), (&[first][..], &[x.id][..]), "b was not written by x");
    assert_eq!(z.parents, [first], "a was written by x");
    assert_eq!((at(&one, "a", y.id), at(&one, "b", y.id)), (Some("2".into()), Some("2".into())));
    assert_eq!((at(&one, "a", z.id), at(&one, "b", z.id)), (Some("3".into()), Some("1".into())));
    assert_eq!(one.leaves(), [z.id, y.id]);
    assert_eq!(one.fork_points(&one.leaves()).unwrap(), [(first, -1)]);
    assert_eq!(one.conflicts(&one.leaves()).unwrap(), [key("a")]);
}

#[test]
fn a_late_fork_does_not_show_the_older_branch() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    let second = commit(&mut one, first, "a a=2").id;
    let third = commit(&mut one, second, "b=3").id;
    let other = run(&mut one, first, "a a=4");
    let other = new(one.commit(other, &constraint("SERIALIZABILITY")).unwrap()).id;
    assert_eq!((at(&one, "a", other), at(&one, "b", other)), (Some("4".into()), None));
    assert_eq!(at(&one, "a", third), Some("2".into()));
}

#[test]
fn a_store_without_branches_aborts() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    let (x, y, z) =
        (run(&mut one, first, "a a=2"), run(&mut one, first, "a a=3"), run(&mut one, first, "b=1"));
    let end = constraint("SERIALIZABILITY AND NO-BRANCHING");
    let x = new(one.commit(x, &end).unwrap());
    let error = one.commit(y, &end).unwrap_err();
    assert_eq!(error.to_string(), "ABORT no state since 1.0 satisfies SERIALIZABILITY AND NO-BRANCHING");
    assert_eq!(new(one.commit(z, &end).unwrap()).parents, [x.id], "it goes past what it did not read");
}

#[test]
fn snapshot_isolation_minds_writes_only() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=1 b=1").id;
    let (x, y, z) =
        (run(&mut one, first, "a a=2"), run(&mut one, first, "a b=3"), run(&mut one, first, "a=4"));
    let end = constraint("SNAPSHOT-ISOLATION");
    let x = new(one.commit(x, &end).unwrap());
    assert_eq!(new(one.commit(y, &end).unwrap()).parents, [x.id], "write skew is allowed");
    assert_eq!(new(one.commit(z, &end).unwrap()).parents, [first]);
}

#[test]
fn branching_is_bounded_by_its_degree() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    let ids: Vec<TransactionId> = (0..3).map(|_| run(&mut one, first, "a a=2")).collect();
    let end = constraint("SERIALIZABILITY AND K-BRANCHING 3");
    let committed: Vec<bool> = ids.into_iter().map(|id| one.commit(id, &end).is_ok()).collect();
    assert_eq!(committed, [true, true, false], "fewer than k - 1 children before, as in Table 1");
}

#[test]
fn ancestor_keeps_a_session_on_its_branch() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    let (x, y) = (run(&mut one, first, "a a=2"), run(&mut one, first, "a a=3"));
    let x = new(one.commit(x, &constraint("SERIALIZABILITY")).unwrap()).id;
    let y = new(one.commit(y, &constraint("SERIALIZABILITY")).unwrap()).id;
    let begin = |one: &mut Branches, anchors: &[StateId], begin: &str| {
        let id = one.begin(anchors, &constraint(begin))?;
        Ok::<_, Abort>(one.transaction(id).unwrap().1.to_vec())
    };
    assert_eq!(begin(&mut one, &[x], "ANCESTOR"), Ok(vec![x]));
    assert_eq!(begin(&mut one, &[x], "ANY"), Ok(vec![y]), "the newest");
    assert_eq!(begin(&mut one, &[first], "PARENT"), Ok(vec![first]));
    assert_eq!(begin(&mut one, &[first], "ANCESTOR"), Ok(vec![y]));
    let error = begin(&mut one, &[x, y], "ANCESTOR").unwrap_err();
    assert_eq!(error.to_string(), "ABORT no state satisfies ANCESTOR of 2.0, 3.0");
    let missing: StateId = "9.1".parse().unwrap();
    assert_eq!(begin(&mut one, &[missing], "ANCESTOR"), Err(Abort::Unknown(missing)));
}

#[test]
fn a_merge_joins_and_its_counter_is_right_after_merges_that_crossed() {
    // Base 0; +1 on each branch; both sites merge, differently in another key; then the merges are merged (trap 46).
    let (mut one, mut two) = (site(0), site(1));
    let base = commit(&mut one, StateId::ROOT, "n=0");
    tell(&mut two, &base);
    let (a, b) = (commit(&mut one, base.id, "n n=1"), commit(&mut two, base.id, "n n=1"));
    tell(&mut one, &b);
    tell(&mut two, &a);
    let m1 = new(merge(&mut one, "n n=2 by=one"));
    let m2 = new(merge(&mut two, "n n=2 by=two"));
    tell(&mut one, &m2);
    tell(&mut two, &m1);
    for site in [&one, &two] {
        let leaves = site.leaves();
        assert_eq!(leaves, [m2.id, m1.id]);
        let points = site.fork_points(&leaves).unwrap();
        assert_eq!(points, [(b.id, -1), (a.id, -1), (base.id, 1)]);
        let value = |state| at(site, "n", state).unwrap().parse::<i64>().unwrap();
        let sum: i64 = leaves.iter().map(|leaf| value(*leaf)).sum();
        let past: i64 = points.iter().map(|(point, weight)| weight * value(*point)).sum();
        assert_eq!(sum + past, 2);
        assert_eq!(site.conflicts(&leaves).unwrap(), [key("by"), key("n")]);
    }
}

#[test]
fn a_merge_does_not_go_past_what_both_of_its_branches_have_written_meanwhile() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    let (x, y) = (run(&mut one, first, "a a=2"), run(&mut one, first, "a a=3"));
    let end = constraint("SERIALIZABILITY");
    let (x, y) = (new(one.commit(x, &end).unwrap()).id, new(one.commit(y, &end).unwrap()).id);
    let merging = one.begin_merge(&[], &constraint("ANY")).unwrap();
    let (left, right) = (commit(&mut one, x, "late=left").id, commit(&mut one, y, "late=right").id);
    let merged = new(one.commit(merging, &end).unwrap());
    assert_eq!(merged.parents.len(), 2);
    assert!(merged.parents.contains(&right) != merged.parents.contains(&left), "past one of them at most");
    assert_eq!(one.conflicts(&one.leaves()).unwrap(), [key("late")]);
}

#[test]
fn an_unwritten_conflict_is_the_higher_state_s() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    let (x, y) = (run(&mut one, first, "a a=2"), run(&mut one, first, "a a=3"));
    for id in [y, x] {
        one.commit(id, &constraint("SERIALIZABILITY")).unwrap();
    }
    let merged = new(merge(&mut one, "b=1"));
    assert_eq!(at(&one, "a", merged.id), Some("2".into()), "x committed last");
}

#[test]
fn equal_merges_are_one_state_with_the_lower_name() {
    let (mut one, mut two) = (site(0), site(1));
    let base = commit(&mut one, StateId::ROOT, "n=0");
    tell(&mut two, &base);
    let (a, b) = (commit(&mut one, base.id, "n n=1"), commit(&mut two, base.id, "n n=1"));
    tell(&mut one, &b);
    tell(&mut two, &a);
    // Site 2 has another state below each, so that its merge's name is the higher one.
    let (m1, m2) = (new(merge(&mut one, "n n=2")), new(merge(&mut two, "n n=2")));
    let below = commit(&mut two, m2.id, "n n=3");
    let lower = m1.id.min(m2.id);
    for commit in [&m2, &below] {
        tell(&mut one, commit);
    }
    tell(&mut two, &m1);
    assert_eq!((one.leaves(), two.leaves()), (vec![below.id], vec![below.id]));
    for site in [&one, &two] {
        let names: Vec<StateId> = site.log(None).unwrap().map(|state| state.id).collect();
        assert!(names.contains(&lower) && !names.contains(&m1.id.max(m2.id)));
        assert_eq!((at(site, "n", m1.id), at(site, "n", m2.id)), (Some("2".into()), Some("2".into())));
        assert_eq!(at(site, "n", below.id), Some("3".into()));
    }
    assert_eq!(merge_again(&mut one, &a, &b), Committed::Known(lower), "and at one site");
}

#[test]
fn a_merge_makes_room_if_it_is_no_longer_than_what_it_hides() {
    let mut one = site(0);
    let first = commit(&mut one, StateId::ROOT, "a=12").id;
    let (x, y) = (run(&mut one, first, "a a=123"), run(&mut one, first, "a a=1234"));
    assert!(!one.makes_room(x), "it is no merge");
    let reader = run(&mut one, first, "a");
    assert!(one.writes_nothing(reader) && !one.writes_nothing(x));
    for id in [x, y] {
        one.commit(id, &constraint("SERIALIZABILITY")).unwrap();
    }
    for (steps, makes_room) in
        [("", true), ("a=1234567", true), ("a=12345678", false), ("a=1 b=1234567", false)]
    {
        let id = one.begin_merge(&[], &constraint("ANY")).unwrap();
        steps_of(&mut one, id, steps);
        assert_eq!(one.makes_room(id), makes_room, "{steps}");
        assert!(!one.writes_nothing(id), "it joins its branches");
    }
}

fn merge_again(one: &mut Branches, a: &Commit, b: &Commit) -> Committed {
    let states = constraint(&format!("STATE {} {}", a.id, b.id));
    let id = one.begin_merge(&[], &states).unwrap();
    steps_of(one, id, "n n=2");
    one.commit(id, &constraint("SERIALIZABILITY")).unwrap()
}

#[test]
fn commits_wait_for_their_parents() {
    // Each below another site's, and each stream in its own order.
    let (mut one, mut two, mut three) = (site(0), site(1), site(2));
    let first = commit(&mut one, StateId::ROOT, "a=1");
    tell(&mut two, &first);
    let second = commit(&mut two, first.id, "a a=2");
    tell(&mut one, &second);
    let third = commit(&mut one, second.id, "a a=3");
    let mut last = site(2);
    tell(&mut last, &first);
    assert_eq!(tell(&mut last, &third), Offered::default());
    assert_eq!((last.metrics().waiting, last.leaves()), (1, vec![first.id]));
    let applied = tell(&mut last, &second).applied;
    assert_eq!(applied.iter().map(|tag| tag.1.0).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(at(&last, "a", third.id), Some("3".into()));
    assert_eq!(tell(&mut last, &second).applied.len(), 1, "a duplicate changes nothing");
    assert_eq!(last.metrics().states, 4);
    assert_eq!(tell(&mut three, &second), Offered::default());
    assert_eq!(tell(&mut three, &first).applied.len(), 2);
}

/// Everybody's ceilings, told to everybody.
fn collect(sites: &mut [Branches]) {
    for teller in 0..sites.len() {
        let leaves = sites[teller].leaves();
        sites[teller].place_ceilings(&leaves).unwrap();
        for ceiling in sites[teller].take_ceilings() {
            for other in sites.iter_mut() {
                other.offer_ceiling(DatacenterId(teller as u8), ceiling);
            }
        }
    }
    for site in sites {
        site.collect(|_| true);
    }
}

#[test]
fn a_collected_history_reads_as_before_and_is_bounded() {
    let mut sites = [site(0), site(1), site(2)];
    let last = line(&mut sites, (0..100).map(|round| format!("a a={round} k{}=x", round % 5)));
    let fork = [commit(&mut sites[1], last, "a a=left"), commit(&mut sites[2], last, "a a=right")];
    for made in &fork {
        for site in &mut sites {
            tell(site, made);
        }
    }
    collect(&mut sites);
    for site in &sites {
        let metrics = site.metrics();
        assert_eq!((metrics.states, metrics.leaves, metrics.keys, metrics.records), (3, 2, 6, 8));
        assert_eq!(metrics.promoted, 0, "the base answers for all");
        let values: Vec<_> = site.leaves().iter().map(|leaf| at(site, "a", *leaf).unwrap()).collect();
        assert_eq!(values, ["right", "left"]);
        assert_eq!(site.fork_points(&site.leaves()).unwrap(), [(last, -1)]);
        let old: StateId = "3.0".parse().unwrap();
        assert_eq!(site.value_at(&key("a"), old), Err(Abort::Collected(old)));
    }
    let merged = new(merge(&mut sites[0], "a a=both"));
    for site in &mut sites {
        tell(site, &merged);
    }
    collect(&mut sites);
    assert!(sites.iter().all(|site| site.metrics().states == 1 && site.metrics().records == 6));
}

#[test]
fn a_session_s_anchors_keep_their_names_when_they_are_collected() {
    let mut sites = [site(0), site(1), site(2)];
    line(&mut sites, (0..4).map(|_| "a a=1".to_owned()));
    let [first, third, unknown]: [StateId; 3] = ["1.0", "3.0", "9.1"].map(|name| name.parse().unwrap());
    assert_eq!(sites[0].newest_anchors(&[first, unknown, third]), [third, unknown]);
    collect(&mut sites);
    assert_eq!(sites[0].metrics().states, 1);
    assert_eq!(
        sites[0].newest_anchors(&[first, unknown, third]),
        [unknown, third, first],
        "that the one came from the other is forgotten with them"
    );
    let left = sites[0].leaves();
    assert_eq!(sites[0].newest_anchors(&[first, left[0], third]), left, "which comes after both");
}

#[test]
fn nothing_is_collected_without_every_site_nor_from_under_a_reader() {
    let mut sites = [site(0), site(1), site(2)];
    let last = line(&mut sites, (0..10).map(|_| "a a=1".to_owned()));
    sites[0].place_ceilings(&[last]).unwrap();
    assert_eq!((sites[0].take_ceilings(), sites[0].collect(|_| true)), (vec![last], 0));
    let old: StateId = "5.0".parse().unwrap();
    let reader = run(&mut sites[1], old, "a");
    assert_eq!(
        sites[0].begin(&[], &constraint("STATE 5.0")).unwrap_err().to_string(),
        "ABORT no state satisfies STATE 5.0"
    );
    sites[1].place_ceilings(&[last]).unwrap();
    assert_eq!(sites[1].take_ceilings(), [], "a transaction reads above it");
    sites[1].abort(reader).unwrap();
    assert_eq!(sites[1].take_ceilings(), [last]);
    for site in 1..3 {
        sites[0].offer_ceiling(DatacenterId(site), last);
    }
    assert_eq!(sites[0].collect(|_| true), 10);
}

#[test]
fn what_waited_for_two_that_come_together_is_put_below_both() {
    let (mut one, mut two) = (site(0), site(2));
    let first = commit(&mut site(1), StateId::ROOT, "a=1");
    tell(&mut one, &first);
    let begun = ["b b=1", "b b=2"].map(|steps| run(&mut one, first.id, steps));
    let sides = begun.map(|id| new(one.commit(id, &constraint("SERIALIZABILITY")).unwrap()));
    let joined = new(merge(&mut one, "b=3"));
    for commit in [&sides[0], &sides[1], &joined] {
        assert_eq!(tell(&mut two, commit), Offered::default());
    }
    let offered = tell(&mut two, &first);
    assert_eq!((offered.applied.len(), offered.late), (4, vec![]));
    assert_eq!(two.leaves(), [joined.id]);
}

#[test]
fn an_optimistic_site_asks_for_what_comes_late() {
    let mut one = site(0);
    one.options.collection = Collection::Optimistic;
    let mut two = site(1);
    let first = commit(&mut one, StateId::ROOT, "a=1 b=1");
    let second = commit(&mut one, first.id, "a a=2");
    let third = commit(&mut one, second.id, "a a=3 c=3");
    for commit in [&first, &second] {
        tell(&mut two, commit);
    }
    let late = commit(&mut two, second.id, "b b=late");
    one.place_ceilings(&[third.id]).unwrap();
    one.take_ceilings();
    assert_eq!(one.collect(|_| true), 3);
    assert_eq!(tell(&mut one, &late), Offered { late: vec![late.id], ..Offered::default() });
    let theirs: Vec<StateId> = one.log(None).unwrap().map(|state| state.id).collect();
    let rebuilt = two.rebuild(late.id, &theirs).unwrap();
    let accepted = one.accept(&Rebuilt::decode(rebuilt.encode()).unwrap());
    assert_eq!(accepted.applied.len(), 1);
    assert_eq!(
        (at(&one, "a", late.id), at(&one, "b", late.id), at(&one, "c", late.id)),
        (Some("2".into()), Some("late".into()), None)
    );
    assert_eq!(at(&one, "b", third.id), Some("1".into()));
    assert_eq!(one.leaves(), [late.id.max(third.id), late.id.min(third.id)]);
}

#[test]
fn a_checkpoint_brings_everything_back() {
    let mut sites = [site(0), site(1), site(2)];
    let mut last = StateId::ROOT;
    for round in 0..20 {
        let made = commit(&mut sites[0], last, &format!("a a={round} k{round}=x"));
        last = made.id;
        tell(&mut sites[1], &made);
        tell(&mut sites[2], &made);
        if round == 12 {
            collect(&mut sites);
        }
    }
    let one = &mut sites[0];
    let (x, y) = (run(one, last, "a a=left"), run(one, last, "a a=right"));
    for id in [x, y] {
        one.commit(id, &constraint("SERIALIZABILITY")).unwrap();
    }
    let unheard =
        Commit { id: "90.1".parse().unwrap(), parents: vec!["80.2".parse().unwrap()], writes: vec![] };
    tell(one, &unheard);
    let mut back = site(0);
    back.restore_dag(one.encode_dag().into()).unwrap();
    let mut from = Some(0);
    while let Some(next) = from {
        from = one.encode_keys(next, 3, |item| back.restore_key(Key::copy_from_slice(item)).unwrap());
    }
    let digest = |branches: &Branches| {
        let mut bytes = Vec::new();
        branches.visit(true, |part| bytes.extend_from_slice(part));
        bytes
    };
    assert_eq!(digest(one), digest(&back));
    let (was, is) = (one.metrics(), back.metrics());
    assert_eq!(
        (was.states, was.leaves, was.records, was.waiting),
        (is.states, is.leaves, is.records, is.waiting)
    );
    assert_eq!(commit(one, last, "z=1").id, commit(&mut back, last, "z=1").id, "no name is given twice");
}

#[test]
fn a_merge_that_is_renamed_while_a_checkpoint_is_written_is_in_it() {
    let (mut one, mut two) = (site(0), site(1));
    let base = commit(&mut one, StateId::ROOT, "n=0");
    tell(&mut two, &base);
    let (a, b) = (commit(&mut one, base.id, "n n=1"), commit(&mut two, base.id, "n n=1"));
    tell(&mut one, &b);
    tell(&mut two, &a);
    let (lower, higher) = (new(merge(&mut one, "n n=2")), new(merge(&mut two, "n n=2")));
    assert!(lower.id < higher.id);
    let dag = two.encode_dag();
    tell(&mut two, &lower);
    let mut back = site(1);
    back.restore_dag(dag.into()).unwrap();
    two.encode_keys(0, usize::MAX, |item| back.restore_key(Key::copy_from_slice(item)).unwrap());
    assert_eq!(at(&back, "n", higher.id), Some("2".into()));
    tell(&mut back, &lower);
    assert_eq!((back.leaves(), at(&back, "n", lower.id)), (vec![lower.id], Some("2".into())));
}

#[test]
fn bytes_that_nobody_wrote_are_refused() {
    let commit = Commit {
        id: "3.1".parse().unwrap(),
        parents: vec!["2.0".parse().unwrap(), "1.1".parse().unwrap()],
        writes: vec![Write { key: key("a"), value: None }, Write { key: key("b"), value: Some(key("1")) }],
    };
    let bytes = Note::Commit(commit.clone()).encode();
    assert_eq!(Note::decode(bytes.clone()), Ok(Note::Commit(commit)));
    for end in 0..bytes.len() {
        assert_eq!(Note::decode(bytes.slice(..end)), Err(Malformed));
    }
    let ceiling = Note::Ceiling("7.2".parse().unwrap());
    assert_eq!(Note::decode(ceiling.encode()), Ok(ceiling));
}

/// Longer than the longest entry, it would be answered and never reach another site.
#[test]
fn a_transaction_writes_no_more_than_an_entry_holds() {
    let mut one = site(0);
    let before = one.metrics().bytes;
    let id = one.begin(&[], &constraint("ANY")).unwrap();
    let long = Value::Some(vec![0; 60 << 20].into());
    one.put(id, key("a"), long.clone()).unwrap();
    one.put(id, key("a"), long.clone()).unwrap();
    one.put(id, key("b"), long.clone()).unwrap();
    let open = one.metrics().bytes - before;
    assert_eq!(open, 2 * (60 << 20) + 2 * 10, "what is open counts, and what is replaced does not");
    let both = [("c", Some(key("1"))), ("d", long)].map(|(name, value)| (key(name), value));
    assert_eq!(one.put_all(id, both.into()), Err(Abort::TooLong(open + 11 + (60 << 20) + 10)));
    assert_eq!((one.get(id, &key("c"), false), one.metrics().bytes - before), (Ok(None), open));
    let commit = new(one.commit(id, &constraint("ANY")).unwrap());
    assert_eq!(commit.writes.len(), 2);
    // Kind, id, one parent and the counts of both lists.
    assert_eq!(Note::Commit(commit).encode().len(), open + 1 + 8 + 2 + 8 + 4);
    let id = one.begin(&[], &constraint("ANY")).unwrap();
    let before = one.metrics().bytes;
    one.put(id, key("e"), Some(key("1"))).unwrap();
    one.abort(id).unwrap();
    assert_eq!(one.metrics().bytes, before);
}

#[test]
fn bounds_are_errors_and_lose_nothing() {
    let mut one = site(0);
    one.options.leaves_max = 2;
    let first = commit(&mut one, StateId::ROOT, "a=1").id;
    let ids: Vec<TransactionId> = (0..3).map(|_| run(&mut one, first, "a a=2")).collect();
    let end = constraint("SERIALIZABILITY");
    let committed: Vec<Result<Committed, Abort>> = ids.into_iter().map(|id| one.commit(id, &end)).collect();
    assert_eq!(committed[2], Err(Abort::Leaves(2)));
    one.options.states_max = one.metrics().states;
    let leaf = one.leaves()[0];
    let id = run(&mut one, leaf, "b=1");
    assert_eq!(one.commit(id, &end), Err(Abort::States(4)));
    assert!(matches!(merge(&mut one, "b=2"), Committed::New(_)), "only a merge makes room");
}

#[test]
fn when_the_names_are_used_up_commits_are_refused() {
    let mut one = site(0);
    let last = |counter| Commit {
        id: StateId::new(counter, DatacenterId(1), ensue_types::Incarnation(1)),
        parents: vec![StateId::ROOT],
        writes: Vec::new(),
    };
    // No site is so far ahead of all that is known here: it is not offered. If it were, nothing would be left to be
    // given.
    let beyond = last(StateId::COUNTER_MAX);
    assert!(!one.may_follow(&beyond) && one.may_follow(&last(1 << 20)));
    tell(&mut one, &beyond);
    let id = run(&mut one, StateId::ROOT, "a=1");
    assert_eq!(one.commit(id, &constraint("SERIALIZABILITY")), Err(Abort::Names));
    assert_eq!(one.metrics().transactions, 0);
}
