//! Commands that wait at the home of their keys, where their client is: rounds, broken links, clients that leave.

use super::homes::{FAR, FAR_BOOT, answer, config_with_homes, executed, ready, requested, words_of, world};
use super::*;
use crate::session::turn::Interruption;
use ensue_types::KeyspaceId;
use ensue_wire::{CoreName, HomeOutcome, HomeRequest};

const ROUND_MS: u64 = limits::HOME_WAIT_ROUND_MS;

fn cut(world: &mut World, core: u16) {
    world.sessions.on_peer_down(world.now, CoreName { datacenter: FAR, core: CoreId(core) });
    world.drain();
}

fn nothing() -> HomeOutcome {
    executed(Reply::NilArray, &[])
}

fn element() -> HomeOutcome {
    executed(Reply::Array(vec![bulk("lock:a"), bulk("x")]), &[])
}

fn outstanding(world: &World) -> usize {
    world.sessions.core.check_invariants();
    world.sessions.core.home_requests.len()
}

#[test]
fn a_pop_waits_at_its_home_in_rounds_until_its_time_is_over() {
    let mut world = world();
    world.send(&["BLPOP lock:a 25"]);
    let mut request = requested(&mut world);
    for next_ms in [ROUND_MS, 5_000] {
        assert_eq!(
            (words_of(&request.1), request.1.waits_ms),
            (vec!["BLPOP lock:a 25".to_owned()], ROUND_MS)
        );
        world.pass_ms(ROUND_MS);
        assert_eq!(world.received(), "");
        answer(&mut world, &request, nothing());
        let next = requested(&mut world);
        assert_eq!((next.1.number, next.1.below), (request.1.number + 1, request.1.number + 1));
        assert_eq!(next.1.waits_ms, next_ms);
        request = next;
    }
    world.pass_ms(5_000);
    answer(&mut world, &request, nothing());
    assert_eq!(world.received(), "*-1|");
    assert_eq!(outstanding(&world), 0);
    world.send(&["BLPOP lock:a 25"]);
    let request = requested(&mut world);
    answer(&mut world, &request, element());
    assert_eq!(world.received(), "*2|$6|lock:a|$1|x|");
}

#[test]
fn each_command_that_waits_goes_home() {
    let mut world = World::with(NodeConfig { home_reads: vec![KeyspaceId(0)], ..config_with_homes() });
    world.drain();
    ready(&mut world, FAR_BOOT);
    for line in [
        "BRPOP lock:a 1",
        "BLMOVE lock:{a} lock:{a}b LEFT RIGHT 1",
        "BRPOPLPUSH lock:{a} lock:{a}b 1",
        "BLMPOP 1 1 lock:a LEFT",
        "BZPOPMIN lock:a 1",
        "BZPOPMAX lock:a 1",
        "BZMPOP 1 1 lock:a MIN",
        "XREADGROUP GROUP g c BLOCK 1000 STREAMS lock:a >",
        "XREAD BLOCK 1000 STREAMS lock:a 0",
    ] {
        world.send(&[line]);
        let request = requested(&mut world);
        assert_eq!((words_of(&request.1), request.1.waits_ms), (vec![line.to_owned()], 1_000));
        answer(&mut world, &request, nothing());
        assert_eq!(world.received(), "*-1|", "{line}: it did not wait");
    }
    world.send(&["MULTI", "BLPOP lock:a 0", "EXEC"]);
    let request = requested(&mut world);
    assert_eq!((request.1.transaction, request.1.waits_ms), (true, 0), "there nobody waits");
}

#[test]
fn one_that_waits_for_ever_does_so_while_the_link_breaks() {
    let mut world = world();
    world.send(&["BLPOP lock:a 0"]);
    let request = requested(&mut world);
    cut(&mut world, request.0);
    world.pass_ms(3_600_000);
    assert_eq!(world.received(), "");
    ready(&mut world, FAR_BOOT);
    assert_eq!(requested(&mut world), request, "what it popped before the link broke is its answer");
    answer(&mut world, &request, HomeOutcome::Withdrawn);
    let next = requested(&mut world);
    assert_eq!(next.1.number, request.1.number + 1, "and if it popped nothing it waits there again");
    answer(&mut world, &next, element());
    assert_eq!(world.received(), "*2|$6|lock:a|$1|x|");
}

#[test]
fn an_answer_that_does_not_come_is_unknown_and_what_was_popped_is_put_back() {
    let mut world = world();
    world.send(&["BLPOP lock:a 1"]);
    let request = requested(&mut world);
    cut(&mut world, request.0);
    world.pass_ms(1_000);
    assert_eq!(world.received(), "");
    world.pass_ms(60_000);
    let error = world.received();
    assert!(error.starts_with("-UNKNOWN dc2, the home of these keys, did not answer in time"), "{error}");
    ready(&mut world, FAR_BOOT);
    assert_eq!(requested(&mut world).1, HomeRequest { abandoned: true, ..request.1.clone() });
    answer(&mut world, &request, HomeOutcome::Withdrawn);
    assert_eq!((outstanding(&world), world.received().as_str()), (0, ""));
}

#[test]
fn a_home_that_was_restarted_may_have_popped_and_cannot_have_read() {
    let mut world = World::with(NodeConfig { home_reads: vec![KeyspaceId(0)], ..config_with_homes() });
    world.drain();
    ready(&mut world, FAR_BOOT);
    let restart = |world: &mut World, line: &str, boot| {
        world.send(&[line]);
        let request = requested(world);
        cut(world, request.0);
        ready(world, boot);
        (request, world.received())
    };
    let (_, error) = restart(&mut world, "BLPOP lock:a 0", FAR_BOOT + 1);
    assert!(error.starts_with("-UNKNOWN dc2, the home of these keys, was restarted"), "{error}");
    let (_, error) = restart(&mut world, "XREAD BLOCK 0 STREAMS lock:a $", FAR_BOOT + 2);
    assert!(error.starts_with("-HOMEAWAY dc2, the home of these keys, was restarted"), "{error}");
    let (request, received) = restart(&mut world, "XREAD BLOCK 0 STREAMS lock:a 1-1", FAR_BOOT + 3);
    assert_eq!(received, "");
    let next = requested(&mut world);
    assert_eq!((next.1.home_boot, words_of(&next.1)), (FAR_BOOT + 3, words_of(&request.1)));
}

#[test]
fn what_reads_behind_the_last_entry_waits_in_one_round() {
    let mut world = World::with(NodeConfig { home_reads: vec![KeyspaceId(0)], ..config_with_homes() });
    world.drain();
    ready(&mut world, FAR_BOOT);
    for (line, waits_ms) in
        [("XREAD BLOCK 0 STREAMS lock:a $", u64::MAX), ("XREAD BLOCK 90000 STREAMS lock:a $", 90_000)]
    {
        world.send(&[line]);
        let request = requested(&mut world);
        assert_eq!(request.1.waits_ms, waits_ms);
        answer(&mut world, &request, HomeOutcome::Withdrawn);
        let error = world.received();
        assert!(error.starts_with("-HOMEAWAY dc2, the home of these keys, does not hear"), "{line}: {error}");
    }
}

#[test]
fn the_home_of_what_a_client_that_has_left_waited_for_is_told() {
    let mut world = world();
    world.send(&["BLPOP lock:a 0"]);
    let request = requested(&mut world);
    world.leave();
    let abandoned = requested(&mut world);
    assert_eq!(abandoned.1, HomeRequest { abandoned: true, ..request.1.clone() });
    assert!(world.sessions.sessions.is_empty());
    // It was on its way when the client left, and its home puts it back.
    answer(&mut world, &request, element());
    assert_eq!(outstanding(&world), 1);
    cut(&mut world, request.0);
    ready(&mut world, FAR_BOOT);
    assert_eq!(requested(&mut world), abandoned, "until its home has answered that");
    answer(&mut world, &request, HomeOutcome::Withdrawn);
    assert_eq!(outstanding(&world), 0);
}

#[test]
fn a_client_that_sends_nothing_any_more_waits_for_nothing() {
    let mut world = world();
    world.send(&["BLPOP lock:a 0", "BLPOP lock:a 0"]);
    requested(&mut world);
    world.sessions.on_ended(world.now, CLIENT);
    world.drain();
    assert_eq!(world.received(), "*-1|*-1|");
    let sent: Vec<bool> = (0..3).map(|_| requested(&mut world).1.abandoned).collect();
    assert_eq!(sent, [true, false, true]);
}

#[test]
fn others_end_what_waits() {
    for (with_error, expected) in [(false, "*-1|"), (true, "-UNBLOCKED client unblocked via CLIENT UNBLOCK|")]
    {
        let mut world = world();
        world.send(&["BLPOP lock:a 0"]);
        let request = requested(&mut world);
        assert!(world.sessions.sessions[&CLIENT].is_blocked());
        let mut has_ended = false;
        let how = Interruption::Unblock { with_error };
        world.sessions.with(world.now, CLIENT, |turn| has_ended = turn.interrupt(how));
        world.drain();
        assert!(has_ended);
        assert_eq!(world.received(), expected);
        assert_eq!(requested(&mut world).1, HomeRequest { abandoned: true, ..request.1 });
        world.send(&["BLPOP lock:a 0"]);
        assert!(!requested(&mut world).1.abandoned, "it goes on");
    }
}

#[test]
fn one_that_waits_keeps_no_others_from_asking() {
    let mut world = world();
    world.send(&["BLPOP lock:a 0"]);
    let (core, old) = requested(&mut world);
    world.sessions.core.home_requests.skip_numbers(limits::HOME_REQUEST_NUMBERS_MAX / 2);
    world.sessions.with(world.now, CLIENT, |_| {});
    world.drain();
    let (abandoned, next) = (requested(&mut world), requested(&mut world));
    assert_eq!(abandoned, (core, HomeRequest { abandoned: true, ..old.clone() }));
    assert_eq!(words_of(&next.1), words_of(&old));
    answer(&mut world, &(core, old), HomeOutcome::Withdrawn);
    answer(&mut world, &next, element());
    assert_eq!(world.received(), "*2|$6|lock:a|$1|x|");
    assert_eq!(outstanding(&world), 0);
}
