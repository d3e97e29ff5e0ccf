//! CAUSAL: tokens, what a merge waits for, and how many datacenters have a past.

use super::*;
use crate::session::causal::token::{Sealing, Token};
use ensue_types::{
    Anchor, Breaking, Causes, Dependency, Extent, Incarnation, KeyspaceId, Opaque, PartitionId, Rule,
};

pub(super) fn token(keyspace: u8, time_ms: u64, operations: &[(u8, u16, u64)]) -> String {
    let context = Context { time: LogicalTime::from_ms(time_ms), causes: causes(operations) };
    Token { keyspace: KeyspaceId(keyspace), context }.encode(Sealing::of(&config()))
}

/// Gives the session this past.
fn past(world: &mut World, operations: &[(u8, u16, u64)]) {
    world.send(&[&format!("GET {}", key(0, 0))]);
    let envelope = world.next();
    let context = Context { time: LogicalTime(77), causes: causes(operations) };
    let done = Message::Executed { request: request(&envelope), context, replies: vec![Reply::Nil] };
    world.answer(&envelope, 77, done);
    world.received();
}

fn met(world: &mut World, envelope: &Envelope, time: u64) {
    let Message::CheckDependencies { check, .. } = envelope.message else { panic!("{:?}", envelope.message) };
    world.answer(envelope, time, Message::DependenciesMet { check, unrecoverable: Vec::new() });
}

#[test]
fn a_token_carries_the_past_of_the_selected_keyspace() {
    let mut world = World::new();
    past(&mut world, &[(0, 0, 4), (1, 2, 5)]);
    let received = world.ask("CAUSAL TOKEN");
    let text = received.split('|').nth(1).expect("a bulk string");
    let token = Token::decode(text.as_bytes(), Sealing::of(&config())).expect("valid");
    assert_eq!(token.keyspace, KeyspaceId(0));
    assert_eq!(token.context, Context { time: LogicalTime(77), causes: causes(&[(0, 0, 4), (1, 2, 5)]) });
    assert!(world.ask("SELECT 1").starts_with("+OK"));
    assert_ne!(world.ask("CAUSAL TOKEN"), received);
}

#[test]
fn a_merge_waits_for_every_dependency_and_then_joins() {
    let mut world = World::new();
    past(&mut world, &[(0, 0, 4)]);
    let text = token(0, WALL_MS, &[(1, 2, 5), (1, 2, 6), (1, 3, 1)]);
    world.send(&[&format!("CAUSAL MERGE {text}"), &format!("GET {}", key(0, 0))]);
    let (two, three) = (world.next(), world.next());
    assert_eq!((partition(&two), partition(&three)), (2, 3));
    met(&mut world, &three, 78);
    met(&mut world, &three, 78);
    assert_eq!(world.received(), "", "the same answer twice is one");
    met(&mut world, &two, 79);
    assert_eq!(world.received(), "+OK|");
    match world.next().message {
        Message::Execute { context, .. } => {
            assert_eq!(context.causes, causes(&[(0, 0, 4), (1, 2, 5), (1, 2, 6), (1, 3, 1)]));
            assert_eq!(context.time, LogicalTime::from_ms(WALL_MS));
        }
        other => panic!("{other:?}"),
    }
}

/// A partition that has not what it is asked for says that it has looked now.
fn not_yet(world: &mut World, envelope: &Envelope) {
    let done = Message::ReplicasReached { request: request(envelope), datacenters: 2, here: true };
    world.answer(envelope, 1, done);
}

const NOT_YET: &str =
    "-NOTYET this datacenter has not received everything the token depends on: waiting for dc2/p2/0.5|";

#[test]
fn a_merge_that_waits_too_long_names_what_is_missing_and_changes_nothing() {
    let mut world = World::new();
    past(&mut world, &[(0, 0, 4)]);
    let before = world.ask("CAUSAL TOKEN");
    let text = token(0, WALL_MS, &[(1, 2, 5), (1, 3, 1)]);
    world.send(&[&format!("CAUSAL MERGE {text} TIMEOUT 20")]);
    let (two, three) = (world.next(), world.next());
    met(&mut world, &three, 1);
    assert!(world.sessions.next_timer().is_some_and(|due| due == world.now.monotonic_us + 20_000));
    world.pass_ms(20);
    assert_eq!(world.received(), "", "is it so now?");
    let (again, last) = (world.next(), world.next());
    assert_eq!(again.message, two.message);
    not_yet(&mut world, &last);
    assert_eq!(world.received(), NOT_YET);
    assert!(is_withdrawal(&world.next().message));
    assert_eq!(world.ask("CAUSAL TOKEN"), before);
    met(&mut world, &two, 1);
    assert_eq!(world.received(), "", "a late answer is dropped");
}

#[test]
fn a_merge_without_patience_asks_whether_it_is_so_now() {
    let text = token(0, WALL_MS, &[(1, 2, 5), (1, 3, 1)]);
    let ask = format!("CAUSAL MERGE {text} TIMEOUT 0");
    let mut world = World::new();
    world.send(&[&ask]);
    let (two, three) = (world.next(), world.next());
    world.pass_ms(0);
    assert_eq!(world.received(), "", "the owners have not been heard");
    let [_, now_two, _, now_three] = [(); 4].map(|()| world.next());
    met(&mut world, &three, 1);
    not_yet(&mut world, &now_three);
    met(&mut world, &two, 1);
    assert_eq!(world.received(), "+OK|");
    not_yet(&mut world, &now_two);
    assert_eq!(world.received(), "", "it is over");
}

#[test]
fn a_merge_that_an_owner_does_not_answer_at_all_is_not_called_too_early() {
    let text = token(0, WALL_MS, &[(1, 2, 5), (1, 3, 1)]);
    let ask = format!("CAUSAL MERGE {text} TIMEOUT 20");
    let mut world = World::new();
    world.send(&[&ask]);
    world.pass_ms(20);
    world.pass_ms(5_000);
    assert_eq!(world.received(), "-UNAVAILABLE partition p2 of dc1 did not answer in time|");
    world.sent.clear();
    world.send(&[&ask]);
    world.sent.clear();
    world.pass_ms(20);
    let (_, two) = (world.next(), world.next());
    let stopped = Reply::error("STOPPED partition p2 has stopped: why");
    world.answer(&two, 1, Message::Refused { request: request(&two), reply: stopped });
    assert_eq!(world.received(), "-STOPPED partition p2 has stopped: why|");
    assert!(world.sessions.core.checks.is_empty());
}

#[test]
fn tokens_that_are_refused() {
    let mut world = World::new();
    let invalid = "-ERR invalid causal token: ";
    assert!(world.ask("CAUSAL MERGE nonsense").starts_with(invalid));
    for operations in [(2, 0, 1), (0, PARTITIONS, 1)] {
        let text = token(0, WALL_MS, &[operations]);
        assert!(world.ask(&format!("CAUSAL MERGE {text}")).starts_with(invalid));
    }
    assert!(world.ask(&format!("CAUSAL MERGE {}", token(1, WALL_MS, &[]))).starts_with(invalid));
    let causes = Causes::Extension(Opaque(vec![99, 9]));
    let context = Context { time: LogicalTime(1), causes };
    let foreign = Token { keyspace: KeyspaceId(0), context }.encode(Sealing::of(&config()));
    assert!(world.ask(&format!("CAUSAL MERGE {foreign}")).starts_with(invalid));
    let ahead = token(0, WALL_MS + 60_001, &[]);
    assert!(world.ask(&format!("CAUSAL MERGE {ahead}")).starts_with("-CLOCKAHEAD "));
    assert_eq!(world.ask(&format!("CAUSAL MERGE {} TIMEOUT", token(0, 1, &[]))), "-ERR syntax error|");
    assert!(world.ask(&format!("CAUSAL MERGE {} TIMEOUT -1", token(0, 1, &[]))).starts_with("-ERR timeout"));
    assert_eq!(world.ask(&format!("CAUSAL MERGE {}", token(0, WALL_MS, &[]))), "+OK|");
}

#[test]
fn without_the_rule_a_merge_does_not_wait() {
    let _breaking = Breaking::only(Some(Rule::MergeWaits));
    let mut world = World::with(config());
    let text = token(0, WALL_MS, &[(1, 2, 5)]);
    assert_eq!(world.ask(&format!("CAUSAL MERGE {text}")), "+OK|");
}

fn reached(world: &mut World, envelope: &Envelope, datacenters: u8) {
    let done = Message::ReplicasReached { request: request(envelope), datacenters, here: true };
    world.answer(envelope, 1, done);
}

#[test]
fn wait_answers_the_least_over_the_dependencies() {
    let mut world = World::new();
    world.send(&["CAUSAL WAIT 2"]);
    let anyone = world.next();
    reached(&mut world, &anyone, 2);
    assert_eq!(world.received(), ":2|", "nothing is safe everywhere");
    past(&mut world, &[(0, 0, 4), (0, 1, 4)]);
    world.send(&["CAUSAL WAIT 9 TIMEOUT 50"]);
    let (zero, one) = (world.next(), world.next());
    assert!(matches!(zero.message, Message::AwaitReplicas { datacenters: 2, .. }), "no more than there are");
    reached(&mut world, &zero, 2);
    reached(&mut world, &one, 2);
    assert_eq!(world.received(), ":2|");
}

#[test]
fn waitaof_tells_of_this_datacenter_and_of_others() {
    let mut world = World::new();
    past(&mut world, &[(0, 0, 4), (0, 1, 4)]);
    for (command, wanted, answers, told) in [
        ("WAITAOF 1 0 0", Some((1, true)), [(true, 1), (true, 2)], "*2|:1|:0|"),
        ("WAITAOF 1 1 100", Some((2, true)), [(true, 2), (true, 2)], "*2|:1|:1|"),
        ("WAITAOF 0 1 100", Some((2, false)), [(false, 1), (true, 2)], "*2|:0|:1|"),
        ("WAITAOF 0 0 100", None, [(false, 1), (true, 1)], "*2|:0|:0|"),
        ("WAITAOF 1 9 100", Some((2, true)), [(true, 2), (true, 2)], "*2|:1|:1|"),
    ] {
        world.send(&[command]);
        for (here, datacenters) in answers {
            let envelope = world.next();
            let asked = match &envelope.message {
                Message::AwaitReplicas { datacenters, here, .. } => Some((*datacenters, *here)),
                Message::CountReplicas { .. } => None,
                message => panic!("{message:?}"),
            };
            assert_eq!(asked, wanted, "{command}");
            let done = Message::ReplicasReached { request: request(&envelope), datacenters, here };
            world.answer(&envelope, 1, done);
        }
        assert_eq!(world.received(), told, "{command}");
    }
    for (command, refusal) in [
        ("WAITAOF x 0 0", "-ERR value is not an integer or out of range|"),
        ("WAITAOF 2 0 0", "-ERR value is out of range, value must between 0 and 1|"),
        ("WAITAOF 0 -1 0", "-ERR value is out of range, must be positive|"),
        ("WAITAOF 0 0 x", "-ERR timeout is not an integer or out of range|"),
        ("WAITAOF 0 0 -1", "-ERR timeout is negative|"),
    ] {
        assert_eq!(world.ask(command), refusal);
    }
}

#[test]
fn a_wait_that_ends_counts() {
    let mut world = World::new();
    past(&mut world, &[(0, 0, 4), (0, 1, 4)]);
    world.send(&["CAUSAL WAIT 2 TIMEOUT 50"]);
    let (zero, _) = (world.next(), world.next());
    reached(&mut world, &zero, 2);
    world.pass_ms(50);
    let (zero, one) = (world.next(), world.next());
    assert!(matches!(zero.message, Message::CountReplicas { .. }));
    reached(&mut world, &zero, 2);
    reached(&mut world, &one, 1);
    assert_eq!(world.received(), ":1|");
}

#[test]
fn the_name_of_a_session_has_a_longest_length() {
    let mut world = World::new();
    assert_eq!(world.ask(&format!("CAUSAL SESSION {}", "s".repeat(256))), "+OK|");
    let refused = "-ERR the name of a causal session is too long|";
    assert_eq!(world.ask(&format!("CAUSAL SESSION {}", "s".repeat(257))), refused);
    let refused = "-ERR wrong number of arguments for 'causal|session' command|";
    assert_eq!(world.ask("CAUSAL SESSION two words"), refused);
}

#[test]
fn a_keyspace_without_causality_says_so() {
    let mut world = World::new();
    world.send(&["SELECT 2"]);
    world.received();
    for command in ["TOKEN", "MERGE x", "WAIT 1", "SESSION s"] {
        assert_eq!(
            world.ask(&format!("CAUSAL {command}")),
            "-ERR keyspace 2 uses protocol eventual, which carries no causality|"
        );
    }
    assert_eq!(
        world.ask("CAUSAL CONFLICTS k"),
        "-ERR keyspace 2 uses protocol eventual, which looks for no conflicts|"
    );
    let help = world.ask("CAUSAL HELP");
    assert!(help.starts_with("*39|+CAUSAL <subcommand>"));
    assert_eq!(world.ask("CAUSAL NOPE"), "-ERR unknown subcommand 'NOPE'. Try CAUSAL HELP.|");
}

/// What a partition is told that shall forget what it was asked.
fn is_withdrawal(message: &Message) -> bool {
    match message {
        Message::CheckDependencies { dependencies, .. } => dependencies.is_empty(),
        Message::CountReplicas { dependencies, times, .. } => dependencies.is_empty() && times.is_zero(),
        _ => false,
    }
}

#[test]
fn nobody_waits_for_a_client_that_has_gone() {
    let text = token(0, WALL_MS, &[(1, 2, 5), (1, 3, 1)]);
    for waits in [format!("CAUSAL MERGE {text} TIMEOUT 3600000"), "CAUSAL WAIT 2 TIMEOUT 3600000".into()] {
        let mut world = World::new();
        past(&mut world, &[(0, 2, 4), (0, 3, 4)]);
        let set = format!("SET {} 1", key(0, 0));
        world.send(&[&waits, &set]);
        let asked = [world.next(), world.next()].map(|envelope| partition(&envelope));
        assert_eq!(asked, [2, 3]);
        world.leave();
        let withdrawn = [world.next(), world.next()];
        assert_eq!(withdrawn.each_ref().map(partition), [2, 3]);
        assert!(withdrawn.iter().all(|envelope| is_withdrawal(&envelope.message)), "{withdrawn:?}");
        assert_eq!(executes(&world.next()), [set], "what it had sent before is carried out");
        world.pass_ms(5_000);
        assert!(world.sessions.sessions.is_empty() && world.sessions.core.checks.is_empty());
    }
}

/// It may still read its answer, but does not keep its place for as long as it wanted to wait.
#[test]
fn a_client_that_sends_nothing_any_more_waits_no_longer_than_for_a_request() {
    for wait in ["WAIT 1 0", "CAUSAL WAIT 2 TIMEOUT 3600000"] {
        let mut world = World::new();
        past(&mut world, &[(0, 0, 4)]);
        world.send(&[wait, wait]);
        world.sessions.on_ended(world.now, CLIENT);
        world.drain();
        for _ in 0..2 {
            assert!(matches!(world.next().message, Message::AwaitReplicas { .. }));
            world.pass_ms(4_999);
            assert!(world.sent.is_empty() && world.received().is_empty(), "{wait}");
            world.pass_ms(1);
            let count = world.next();
            assert!(matches!(count.message, Message::CountReplicas { .. }), "{wait}");
            reached(&mut world, &count, 1);
            assert!(world.received().starts_with(':'), "{wait}");
        }
    }
}

#[test]
fn an_exchange_that_fails_leaves_no_wait_behind() {
    let text = token(0, WALL_MS, &[(1, 2, 5), (1, 3, 1)]);
    let mut world = World::new();
    past(&mut world, &[(0, 2, 4), (0, 3, 4)]);
    world.send(&["CAUSAL WAIT 2"]);
    let (two, _) = (world.next(), world.next());
    let refused = Message::Refused { request: request(&two), reply: Reply::error("STOPPED") };
    world.answer(&two, 1, refused);
    assert_eq!(world.received(), "-STOPPED|");
    world.send(&[&format!("CAUSAL MERGE {text}")]);
    let withdrawn: Vec<u16> =
        world.sent.iter().filter(|e| is_withdrawal(&e.message)).map(partition).collect();
    assert_eq!(withdrawn, [2, 3]);
    world.sent.clear();
    world.sessions.on_link_down(world.now, CoreId(1));
    world.drain();
    assert!(world.received().starts_with("-UNAVAILABLE "));
    let withdrawn: Vec<u16> =
        world.sent.iter().filter(|e| is_withdrawal(&e.message)).map(partition).collect();
    assert_eq!(withdrawn, [2, 3]);
}

/// What a merge is answered when a partition says that this of it is gone.
fn merged(unrecoverable: Dependency, text: &str) -> String {
    let mut world = World::new();
    let before = world.ask("CAUSAL TOKEN");
    world.send(&[&format!("CAUSAL MERGE {text}")]);
    let asked = world.next();
    let Message::CheckDependencies { check, .. } = asked.message else { panic!("{:?}", asked.message) };
    world.answer(&asked, 0, Message::DependenciesMet { check, unrecoverable: vec![unrecoverable] });
    let answer = world.received();
    while world.sent.pop_front().is_some() {}
    assert_eq!(world.ask("CAUSAL TOKEN"), before, "the session is as before");
    answer
}

#[test]
fn a_token_of_what_was_never_issued_or_was_lost_is_refused() {
    let unrecoverable = |datacenter, extent| {
        let operation = OperationId {
            datacenter: DatacenterId(datacenter),
            incarnation: Incarnation(1),
            partition: PartitionId(2),
            position: Position(9),
        };
        Dependency { operation, extent }
    };
    let text = token(0, WALL_MS, &[(0, 2, 9)]);
    let answer = merged(unrecoverable(0, Extent::Exact), &text);
    assert!(answer.starts_with("-NEVERISSUED the token names dc1/p2/1.9, which dc1 has never"), "{answer}");
    let text = token(0, WALL_MS, &[(1, 2, 9)]);
    let answer = merged(unrecoverable(1, Extent::Exact), &text);
    assert!(
        answer.starts_with("-DISCARDED the token depends on dc2/p2/1.9, which was lost with dc2"),
        "{answer}"
    );
}

/// A token of a vector keyspace, from the wall's time, with these times of dc1 and dc2.
fn vector_token(times: [u64; 2]) -> String {
    let times = times.into_iter().map(LogicalTime::from_ms).collect();
    let causes = ensue_types::Vector { times, ..Default::default() }.into();
    let context = Context { time: LogicalTime::from_ms(WALL_MS), causes };
    Token { keyspace: KeyspaceId(0), context }.encode(Sealing::of(&config()))
}

/// What a merge is answered when the partitions say this of the token's times: which datacenter's is nowhere, if one
/// is.
fn merged_times(said: [Option<u8>; 4]) -> String {
    let mut config = config();
    config.protocols[0] = "pocc".into();
    let mut world = World::with(config);
    world.send(&[&format!("CAUSAL MERGE {}", vector_token([WALL_MS, WALL_MS]))]);
    let asked = said.map(|said| (world.next(), said));
    for (asked, said) in asked {
        let Message::AwaitTimes { check, .. } = asked.message else { panic!("{:?}", asked.message) };
        let operation = |datacenter| OperationId {
            datacenter: DatacenterId(datacenter),
            incarnation: Incarnation(1),
            partition: PartitionId(0),
            position: Position(0),
        };
        let unrecoverable =
            said.map(|said| Dependency { operation: operation(said), extent: Extent::Through });
        world.answer(
            &asked,
            1,
            Message::DependenciesMet { check, unrecoverable: unrecoverable.into_iter().collect() },
        );
    }
    world.received()
}

#[test]
fn a_time_was_issued_if_one_clock_has_come_to_it_and_lost_if_one_partition_says_so() {
    assert_eq!(merged_times([None; 4]), "+OK|");
    assert_eq!(merged_times([Some(0), Some(0), None, Some(0)]), "+OK|", "the clock of one was ahead");
    let never = merged_times([Some(0); 4]);
    assert!(
        never.starts_with("-NEVERISSUED the token names a time of dc1, which dc1 has never issued"),
        "{never}"
    );
    let lost = merged_times([None, Some(1), None, None]);
    assert!(
        lost.starts_with("-DISCARDED the token may depend on updates that were lost with dc2, declared dead"),
        "{lost}"
    );
}

#[test]
fn a_token_that_names_a_time_after_its_own_is_no_token() {
    let mut config = config();
    config.protocols[0] = "cure".into();
    let mut world = World::with(config);
    let answer = world.ask(&format!("CAUSAL MERGE {}", vector_token([0, WALL_MS + 1])));
    assert!(answer.starts_with("-ERR invalid causal token: it names a time after its own"), "{answer}");
}

/// Sessions of a cluster of one datacenter have no pasts: what was written may not be synced all the same.
#[test]
fn the_only_datacenter_waits_for_its_partitions() {
    let mut alone = config();
    alone.topology.datacenters.truncate(1);
    let mut world = World::with(alone);
    assert_eq!(world.ask("CAUSAL WAIT 1"), ":1|", "nothing was written");
    world.send(&[&format!("SET {} 1", key(0, 0))]);
    let envelope = world.next();
    let context = Context { time: LogicalTime(50), ..Context::default() };
    let executed = Message::Executed { request: request(&envelope), context, replies: vec![Reply::OK] };
    world.answer(&envelope, 50, executed);
    assert_eq!(world.received(), "+OK|");
    assert_eq!(world.ask("WAIT 1 100"), ":0|", "of the others");
    world.send(&["CAUSAL WAIT 1"]);
    for number in 0..PARTITIONS {
        let envelope = world.next();
        assert_eq!(partition(&envelope), number);
        let Message::AwaitReplicas { times, datacenters: 1, .. } = &envelope.message else {
            panic!("{:?}", envelope.message)
        };
        assert_eq!(times.at(DatacenterId(0)), LogicalTime(50));
        assert_eq!(world.received(), "");
        let reached = Message::ReplicasReached { request: request(&envelope), datacenters: 1, here: true };
        world.answer(&envelope, 51, reached);
    }
    assert_eq!(world.received(), ":1|");
}

/// The lowest would be dropped, which may be the session's own last commit.
#[test]
fn a_token_with_which_a_session_had_too_many_states_leaves_it_as_it_was() {
    let protocols = vec!["tardis".to_owned()];
    let config =
        || NodeConfig::new(config().topology, CoreId(0), &ensue_protocol::REGISTRY, protocols.clone());
    let mut world = World::with(config());
    let token = |state: u64| {
        let causes = Anchor { states: vec![state], ..Anchor::default() }.into();
        let context = Context { time: LogicalTime::from_ms(WALL_MS), causes };
        Token { keyspace: KeyspaceId(0), context }.encode(Sealing::of(&config()))
    };
    for state in 1..=64 {
        assert_eq!(world.ask(&format!("CAUSAL MERGE {}", token(state))), "+OK|", "{state}");
    }
    assert!(world.ask(&format!("CAUSAL MERGE {}", token(65))).starts_with("-BRANCHFULL a session goes on"));
    assert_eq!(world.ask(&format!("CAUSAL MERGE {}", token(7))), "+OK|", "it has that one");
    world.send(&["GET a"]);
    let Message::Execute { context, .. } = world.next().message else { panic!("a command") };
    assert_eq!(context.causes.states().map(|anchor| anchor.states.clone()), Ok((1..=64).rev().collect()));
}
