//! Plans are data: what is shown is read back, and one kind of fault does not move another.

use super::{Fault, NAMES, Plan};
use crate::rules::Rules;
use crate::world::options::Options;
use std::collections::BTreeSet;

#[test]
fn what_is_shown_is_read_back_for_every_kind() {
    let mut seen = BTreeSet::new();
    for seed in 0..1000 {
        let mut options = Options::draw(seed, Rules::default());
        if seed % 10 == 0 {
            options = options.losing_directories();
        }
        if seed % 10 == 1 {
            options = options.joining();
        }
        if seed % 10 == 2 {
            options = options.retiring();
        }
        if seed % 10 == 3 {
            options = options.moving_homes();
        }
        if seed % 10 == 5 {
            options = options.replicated();
        }
        options.faults.until_us = 10_000_000;
        let plan = Plan::draw(&options);
        assert_eq!(Plan::parse(&plan.to_string(), options.shape), Ok(plan.clone()), "seed {seed}");
        seen.extend(plan.faults.iter().map(|planned| planned.fault.name()));
    }
    let never: Vec<_> = NAMES.iter().filter(|name| !seen.contains(*name)).collect();
    assert!(never.is_empty(), "never drawn: {never:?}");
}

/// The cuts of a world in its first half, and whether each lasts longer than what waits for another datacenter does.
fn cuts(options: &Options) -> Vec<bool> {
    let threshold_us = 1_000 * options.tuning.block_ms_max;
    let plan = Plan::draw(options).until(options.faults.until_us / 2);
    let lasts_us = |fault: &Fault| match fault {
        Fault::CutDatacenters(cut) => Some(cut.lasts_us),
        Fault::Isolate(isolate) => Some(isolate.lasts_us),
        Fault::Mute(mute) => Some(mute.lasts_us),
        _ => None,
    };
    plan.faults.iter().filter_map(|planned| lasts_us(&planned.fault)).map(|us| us > threshold_us).collect()
}

/// What waits for another datacenter gives up after a threshold: it must often be shorter than a cut. How many worlds
/// have a cut at all is another question, and depends on how many kinds of faults there are: a world has one pace for
/// all that it draws, so each new kind leaves less of it to the others.
#[test]
fn of_the_worlds_with_cuts_half_have_one_longer_than_the_threshold() {
    let worlds = (0..1_000).map(|seed| cuts(&Options::draw(seed, Rules::default())));
    let worlds: Vec<Vec<bool>> = worlds.filter(|cuts| !cuts.is_empty()).collect();
    let long = worlds.iter().filter(|cuts| cuts.contains(&true)).count();
    assert!(2 * long >= worlds.len(), "{long} of {}", worlds.len());
    assert!(worlds.len() >= 300, "{} of 1000 have cuts", worlds.len());
}

#[test]
fn one_kind_more_moves_no_other() {
    let mut options = Options::draw(7, Rules::default());
    options.faults.until_us = 5_000_000;
    options.faults.intervals_ms = vec![("kill", 300), ("flap", 200)];
    let both = Plan::draw(&options);
    options.faults.intervals_ms = vec![("flap", 200)];
    let flaps = Plan::draw(&options);
    let mut rest = both.clone();
    rest.faults.retain(|planned| planned.fault.name() == "flap");
    assert_eq!(rest, flaps);
    assert!(both.faults.len() > flaps.faults.len());
}

#[test]
fn a_wrong_line_is_refused() {
    let shape = Options::draw(7, Rules::default()).shape;
    for line in [
        "at 5ms",
        "at 5 flap dc1.0 dc2.0",
        "at 5ms flap dc1.0 dc9.0",
        "at 5ms flap dc1.0 dc2.0 x",
        "at 5ms melt",
    ] {
        assert!(Plan::parse(line, shape).is_err(), "{line}");
    }
}

#[test]
fn crashes_at_a_step_are_drawn_where_there_are_such_steps() {
    let drawn = |protocol| {
        let worlds = (0..200).map(move |seed| Options::draw_with(seed, Rules::default(), protocol));
        let intervals = worlds.flat_map(|options| options.faults.intervals_ms);
        intervals.filter(|(name, _)| *name == "crash-at").count()
    };
    assert!(drawn("eiger") > 0);
    assert_eq!(drawn("eventual") + drawn("pocc"), 0);
}

/// The worlds in which directories are lost on request draw them, some of them, and no seed does by itself.
#[test]
fn some_worlds_lose_the_directories_of_single_partitions() {
    let has =
        |options: &Options| options.faults.intervals_ms.iter().any(|(name, _)| *name == "empty-partition");
    let drawn = || (0..100).map(|seed| Options::draw_with(seed, Rules::default(), "cops"));
    assert!(!drawn().any(|options| has(&options)));
    let some = drawn().filter(|options| has(&options.clone().losing_directories())).count();
    assert!((10..90).contains(&some), "{some}");
}
