//! Plans are data: what is shown is read back, and one kind of fault does not move another.

use super::{NAMES, Plan};
use crate::seed::Options;
use ensue_types::Rules;
use std::collections::BTreeSet;

#[test]
fn what_is_shown_is_read_back_for_every_kind() {
    let mut seen = BTreeSet::new();
    for seed in 0..1000 {
        let mut options = Options::draw(seed, Rules::default());
        options.faults.until_us = 10_000_000;
        let plan = Plan::draw(&options);
        assert_eq!(Plan::parse(&plan.to_string(), options.shape), Ok(plan.clone()), "seed {seed}");
        seen.extend(plan.faults.iter().map(|planned| planned.fault.name()));
    }
    let never: Vec<_> = NAMES.iter().filter(|name| !seen.contains(*name)).collect();
    assert!(never.is_empty(), "never drawn: {never:?}");
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
