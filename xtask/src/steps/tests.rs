//! The order of steps, and what a failure does to the ones after it.

use super::*;

#[test]
fn a_failure_stops_the_steps_after_it() {
    let mut steps = Steps::new();
    let mut ran = false;
    steps.step("one", || Outcome::Passed);
    steps.step("two", || Outcome::Skipped("nothing to do".into()));
    steps.step("three", || Outcome::Failed("broken".into()));
    steps.step("four", || {
        ran = true;
        Outcome::Passed
    });
    assert!(!ran);
    assert!(!steps.summary());
}

#[test]
fn a_skipped_step_is_no_failure() {
    let mut steps = Steps::new();
    steps.step("one", || Outcome::Skipped("nothing to do".into()));
    assert!(steps.summary());
}

#[test]
fn a_program_passes_by_its_exit_status() {
    assert_eq!(run(&mut Command::new("true")), Outcome::Passed);
    let Outcome::Failed(why) = run(Command::new("false").arg("--now")) else { panic!("`false` passed") };
    assert_eq!(why, "`false --now` ended with exit status: 1");
}
