//! The order of steps, and what a failure does to the ones after it.

use super::*;

#[test]
fn a_failure_stops_the_steps_after_it() {
    let mut steps = Steps::new(None);
    let mut ran = false;
    steps.step("one", |_| Outcome::Passed);
    steps.step("two", |_| Outcome::Skipped("nothing to do".into()));
    steps.step("three", |_| Outcome::Failed("broken".into()));
    steps.step("four", |_| {
        ran = true;
        Outcome::Passed
    });
    assert!(!ran);
    assert!(!steps.summary());
}

#[test]
fn a_skipped_step_is_no_failure() {
    let mut steps = Steps::new(None);
    steps.step("one", |_| Outcome::Skipped("nothing to do".into()));
    assert!(steps.summary());
}

#[test]
fn a_program_passes_by_its_exit_status() {
    assert_eq!(Log::Through.run(&mut Command::new("true")), Outcome::Passed);
    let Outcome::Failed(why) = Log::Through.run(Command::new("false").arg("--now")) else {
        panic!("`false` passed")
    };
    assert_eq!(why, "`false --now` ended with exit status: 1");
}

#[test]
fn what_a_program_says_is_in_the_file_of_its_step() {
    let folder = std::env::temp_dir().join(format!("ensue-steps-{}", std::process::id()));
    let mut steps = Steps::new(Some(folder.clone()));
    steps.program("some words", Command::new("echo").arg("hello"));
    steps.step("other words, twice", |log| {
        log.run(Command::new("echo").arg("one"));
        log.run(Command::new("sh").args(["-c", "echo two >&2"]))
    });
    assert!(steps.summary());
    assert_eq!(fs::read_to_string(folder.join("some-words.log")).unwrap(), "hello\n");
    assert_eq!(fs::read_to_string(folder.join("other-words--twice.log")).unwrap(), "one\ntwo\n");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn two_lists_of_steps_run_at_once_and_a_failure_ends_both() {
    let (here, there) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    let mut steps = Steps::new(None);
    let waits = |meet: &std::sync::Barrier| {
        meet.wait();
        Outcome::Passed
    };
    // Neither passes the barrier alone.
    steps.at_once(vec![Step::new("one", |_| waits(&here))], vec![Step::new("two", |_| waits(&here))]);
    assert_eq!(steps.done.len(), 2);
    let fails = |_: &mut Log| {
        there.wait();
        Outcome::Failed("broken".into())
    };
    let is_seen = |_: &mut Log| {
        there.wait();
        std::thread::sleep(Duration::from_millis(100));
        Outcome::Passed
    };
    let never = || Step::new("never", |_| panic!("a step after a failure"));
    steps.at_once(vec![Step::new("three", fails), never()], vec![Step::new("four", is_seen), never()]);
    assert!(!steps.summary());
    assert_eq!(steps.done.len(), 4);
}

#[test]
fn the_processor_time_of_a_step_is_that_of_its_programs() {
    let mut steps = Steps::new(None);
    steps.program("idle", Command::new("sleep").arg("0.3"));
    steps.program(
        "busy",
        Command::new("sh").args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]),
    );
    let Some(processor) = steps.done.iter().map(|done| done.processor).collect::<Option<Vec<Duration>>>()
    else {
        return; // Not Linux.
    };
    assert!(processor[0] < Duration::from_millis(100), "{processor:?}");
    assert!(processor[1] > processor[0], "{processor:?}");
}
