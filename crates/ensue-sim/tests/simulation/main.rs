//! Whole-cluster tests: every scenario file holds, and fails with each rule broken that it names; seeds repeat to the
//! last event; a handful of seeds is clean.

mod documents;

use ensue_sim::cli::run_seed;
use ensue_sim::rules::Rules;
use ensue_sim::script::{Script, files};
use ensue_sim::{Options, run};
use std::path::{Path, PathBuf};

#[test]
fn every_scenario_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scripts = files(&root).unwrap();
    assert!(scripts.len() >= 20, "only {} scenarios", scripts.len());
    // They are half of the time of all tests, so every core takes a share of them.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let check = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let checked = Script::parse(&text).and_then(|script| script.check(false));
        checked.err().map(|why| format!("{}: {why}", path.display()))
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let share = |core: usize| scripts.iter().skip(core).step_by(cores).filter_map(check);
        let shares: Vec<_> =
            (0..cores).map(|core| scope.spawn(move || share(core).collect::<Vec<_>>())).collect();
        shares.into_iter().flat_map(|share| share.join().expect("a scenario panicked")).collect()
    });
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn a_seed_repeats_to_the_last_event() {
    for seed in [3, 4] {
        let (once, again) =
            (run_seed(seed, Rules::default(), None, false), run_seed(seed, Rules::default(), None, false));
        assert_eq!((once.hash, once.events, once.operations), (again.hash, again.events, again.operations));
    }
}

/// A slow message at the very end, for which a read under `ha-pocc` does not wait: its session falls back, and asks
/// again.
#[test]
fn a_slow_message_at_the_end_is_no_lost_datacenter() {
    let options = Options::draw_with(70000176, Rules::default(), "ha-pocc").losing();
    if let Some(violation) = run(options.clone(), None).violation {
        panic!("{options}\n{violation}");
    }
}

/// A flush of a dead datacenter came to one survivor before, and to another after, a later flush that had settled.
/// The second one discarded the deletions of additions that the first one kept.
#[test]
fn a_flush_is_kept_by_all_survivors_alike() {
    let options = Options::draw_with(1029, Rules::default(), "cure").losing();
    assert_eq!(run(options, None).violation, None);
}

/// What the former owner of a partition had said of its directory, when it was empty, came over another link after the
/// partition had its next owner: a healthy datacenter was refused for good.
#[test]
fn what_the_former_owner_of_a_partition_said_is_not_heard() {
    let options = Options::draw_with(4065, Rules::default(), "eiger").replicated();
    assert_eq!(run(options, None).violation, None);
}

/// A session fell back in one keyspace and then in the other, whose past it still had.
#[test]
fn each_keyspace_has_a_past_of_its_own_to_fall_back_from() {
    for seed in [500126, 10149] {
        let drawn = Options::draw_with(seed, Rules::default(), "ha-pocc");
        let options = if seed == 10149 { drawn.losing_directories() } else { drawn };
        assert_eq!(run(options, None).violation, None, "seed {seed}");
    }
}

#[test]
fn a_handful_of_seeds_is_clean() {
    for seed in 0..20 {
        let report = run_seed(seed, Rules::default(), None, false);
        if let Some(violation) = report.violation {
            panic!("{}\n{violation}", Options::draw(seed, Rules::default()));
        }
    }
}

/// Worlds in which clocks ran far ahead and a healthy datacenter refused writes: its clock showed a little more than
/// the others', so that it took the time of the recovered one first. And two in which the power failed on a log that
/// had been cut by hand and was known to be.
#[test]
fn clocks_that_were_far_ahead_stop_nobody_else() {
    for (seed, protocol) in [(68, "pocc"), (150, "pocc"), (100, "orbe-clock")] {
        let options = Options::draw_with(seed, Rules::default(), protocol).wild_clocks();
        let report = run(options, None);
        assert_eq!(report.violation, None, "seed {seed} of {protocol}");
    }
    assert_eq!(run_seed(306, Rules::default(), Some("cure"), false).violation, None);
}

/// Power failures beside a sibling that lost its tail: an incarnation that the superblock did not know, one that the
/// log had begun and held no entry of, and a log that was said to lack what it has.
#[test]
fn tails_that_are_lost_together_are_recovered_from() {
    for (seed, protocol) in [(18, "pocc"), (19, "pocc"), (20, "cure"), (51, "log")] {
        assert_eq!(
            run_seed(seed, Rules::default(), Some(protocol), false).violation,
            None,
            "seed {seed} of {protocol}"
        );
    }
}

/// A session of the publisher's datacenter heard of what the publisher had read optimistically, and whose past was
/// still on its way to another partition: a mistake of the oracle.
#[test]
fn a_message_waits_for_nothing_where_it_was_published() {
    let options = Options::draw_with(9100016, Rules::default(), "pocc").losing_directories();
    assert_eq!(run(options, None).violation, None);
}

/// Worlds that lose directories and had shown mistakes: a log that was trimmed though whoever had lost everything had
/// been told that it is whole, parts of transactions that came back and were never forgotten, an old copy under
/// `always` that asked nobody, and a healthy partition that stopped because one other datacenter ran on foreign
/// directories before they had met. And two that showed mistakes of the oracle: a write that two dead datacenters had
/// taken along, and a datacenter that asked one which was lost for good.
///
/// Of the three before the last six, an operator copied a log that was cut by hand at the moment, nobody could notice
/// an old copy, and a survivor had a part of a transaction whose place in another partition's stream an earlier life
/// had taken.
///
/// In the five before the last, a partition declared lost beside a sibling what a datacenter had that it had yet to
/// meet, two survivors had parts of transactions whose origin had declared them lost before it died, a partition on
/// which nothing had ever been served lost its only segment, and directories were exchanged before anybody had met. In
/// the last one, a datacenter that had been filled waited for a part that had died with its origin.
#[test]
fn directories_that_were_lost_come_back_and_stop_nobody_else() {
    for (seed, protocol) in [
        (11, "eiger"),
        (11, "cops"),
        (247, "eiger"),
        (296, "eiger"),
        (1015, "pocc"),
        (4021, "eiger"),
        (10036, "orbe-clock"),
        (10135, "cops"),
        (1002, "eiger"),
        (510056, "cops-gt"),
        (500269, "eiger"),
        (500288, "eiger"),
        (500384, "eiger"),
        (500052, "eiger"),
        (20296, "eiger"),
    ] {
        let options = Options::draw_with(seed, Rules::default(), protocol).losing_directories();
        let report = run(options, None);
        assert_eq!(report.violation, None, "seed {seed} of {protocol}");
    }
}

/// Worlds that add a datacenter, whose copies cut transactions, and had shown mistakes: parts that came beside the
/// copy of their coordinator were never forgotten.
#[test]
fn transactions_that_copies_cut_are_completed_and_forgotten() {
    for seed in [1013, 1016, 1020] {
        let options = Options::draw_with(seed, Rules::default(), "eiger").joining();
        assert_eq!(run(options, None).violation, None, "seed {seed}");
    }
}
