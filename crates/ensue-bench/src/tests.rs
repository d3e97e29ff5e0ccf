//! Every control runs every load to commits, and none of them makes what it must not.

use crate::contest::{Contest, Load, table};
use crate::driver::Clock;
use crate::engine::{self, Control, Setting, Step, Terms};
use crate::load::{Access, Keys, Mix, Operation, Random};
use std::time::Duration;

#[test]
fn every_control_commits_on_every_load_and_only_branching_branches() {
    let contest = Contest {
        keys: 50,
        round_trip: Duration::from_micros(20),
        lasts: Duration::from_millis(60),
        clients: vec![16],
        leaves_max: 8,
        ceiling_every: 10,
        seed: 1,
        clock: Clock::Ticking(Duration::from_micros(1)),
    };
    let mut runs = 0;
    let all = contest.run(|_, control, outcome| {
        runs += 1;
        assert!(outcome.committed > 0, "{control:?}");
        let most = if control == Control::Branching { 8 } else { 1 };
        assert!(outcome.leaves <= most, "{control:?} had {} leaves", outcome.leaves);
    });
    assert_eq!(runs, contest.runs());
    let text = table(&all);
    assert_eq!(text.lines().count(), 2 + Load::ALL.len() * Control::ALL.len());
    assert!(crate::plot::contest(&all).ends_with("</svg>\n"));
}

fn engine(control: Control) -> Box<dyn engine::Engine> {
    engine::new(&Setting {
        control,
        clients: 2,
        keys: 4,
        leaves_max: 4,
        ceiling_every: 0,
        terms: Terms::default(),
    })
}

#[test]
fn locking_waits_and_breaks_a_circle() {
    let mut locking = engine(Control::Locking);
    assert_eq!(locking.step(0, Operation::Write(1)), Step::Done);
    assert_eq!(locking.step(1, Operation::Write(2)), Step::Done);
    assert_eq!(locking.step(0, Operation::Read(2)), Step::Waits);
    assert_eq!(locking.step(1, Operation::Read(1)), Step::Aborted, "each would wait for the other");
    assert_eq!(locking.woken(), [(0, Step::Done)]);
    assert_eq!(locking.step(0, Operation::Commit), Step::Done);
}

#[test]
fn readers_share_and_one_of_them_may_write() {
    let mut locking = engine(Control::Locking);
    assert_eq!(locking.step(0, Operation::Read(1)), Step::Done);
    assert_eq!(locking.step(1, Operation::Read(1)), Step::Done);
    assert_eq!(locking.step(0, Operation::Write(1)), Step::Waits);
    assert_eq!(locking.step(1, Operation::Commit), Step::Done);
    assert_eq!(locking.woken(), [(0, Step::Done)]);
}

#[test]
fn what_was_written_since_a_read_aborts_or_forks() {
    for (control, expected) in [
        (Control::Branching, Step::Done),
        (Control::Sequential, Step::Aborted),
        (Control::Optimistic, Step::Aborted),
    ] {
        let mut engine = engine(control);
        for client in [0, 1] {
            engine.step(client, Operation::Begin);
            engine.step(client, Operation::Read(1));
            engine.step(client, Operation::Write(1));
        }
        assert_eq!(engine.step(0, Operation::Commit), Step::Done);
        assert_eq!(engine.step(1, Operation::Commit), expected, "{control:?}");
        let leaves = if control == Control::Branching { 2 } else { 1 };
        assert_eq!(engine.store().leaves().len(), leaves, "{control:?}");
        while engine.store().leaves().len() > 1 {
            engine.merge_step();
        }
    }
}

#[test]
fn zipfian_keys_prefer_the_first() {
    let mut random = Random::new(7);
    let mut share = |access| {
        let keys = Keys::new(1_000, access);
        (0..10_000).filter(|_| keys.draw(&mut random) == 0).count()
    };
    assert!((50..=2_000).contains(&share(Access::Zipfian)));
    assert!(share(Access::Uniform) < 50);
}

#[test]
fn an_update_of_two_clients_waits_under_locks_and_conflicts_elsewhere() {
    for (control, second, commit) in [
        (Control::Locking, Step::Waits, Step::Done),
        (Control::Optimistic, Step::Done, Step::Aborted),
        (Control::Sequential, Step::Done, Step::Aborted),
        (Control::Branching, Step::Done, Step::Done),
    ] {
        let mut engine = engine(control);
        engine.step(0, Operation::Begin);
        engine.step(1, Operation::Begin);
        assert_eq!(engine.step(0, Operation::Update(1)), Step::Done);
        assert_eq!(engine.step(1, Operation::Update(1)), second, "{control:?}");
        assert_eq!(engine.step(0, Operation::Commit), Step::Done);
        engine.woken();
        assert_eq!(engine.step(1, Operation::Commit), commit, "{control:?}");
    }
}

#[test]
fn clients_of_parent_that_conflict_stay_apart() {
    let setting = Setting {
        control: Control::Branching,
        clients: 2,
        keys: 4,
        leaves_max: 4,
        ceiling_every: 0,
        terms: Terms { parent: true, snapshot: false },
    };
    let mut engine = engine::new(&setting);
    for _ in 0..3 {
        for client in [0, 1] {
            engine.step(client, Operation::Begin);
            engine.step(client, Operation::Update(1));
        }
        for client in [0, 1] {
            assert_eq!(engine.step(client, Operation::Commit), Step::Done);
            assert!(!engine.merge_step());
        }
    }
    assert_eq!(engine.store().leaves().len(), 2);
}

#[test]
fn transactions_of_retwis_and_of_counters_stay_within_the_keys() {
    let mut random = Random::new(3);
    for count in [1, 7, 1_000] {
        let keys = Keys::new(count, Access::Zipfian);
        for mix in [Mix::Counter, Mix::FlatCounter, Mix::SingleWrite, Mix::Retwis { follow: 5, post: 30 }] {
            let mut kinds = [0; 3];
            for operation in (0..200).flat_map(|_| keys.transaction(mix, &mut random)) {
                let (kind, key) = match operation {
                    Operation::Read(key) => (0, key),
                    Operation::Write(key) => (1, key),
                    Operation::Update(key) => (2, key),
                    Operation::Begin | Operation::Commit => continue,
                };
                kinds[kind] += 1;
                assert!(key < count, "{mix:?} of {count} keys: {key}");
            }
            let reads_more = mix == Mix::SingleWrite || kinds[0] > 100;
            assert!(reads_more && kinds[1] + kinds[2] > 0, "{mix:?}: {kinds:?}");
        }
    }
}
