//! Commands on keys with a home elsewhere: what is sent, what waits, and each error.

use super::*;
use crate::Home;
use ensue_types::{Breaking, KeyspaceId, Rule};
use ensue_wire::{ChannelKind, CoreName, HomeOutcome, HomeRequest, Interest};

pub(super) const FAR: DatacenterId = DatacenterId(1);
pub(super) const FAR_BOOT: u32 = 9;

/// `lock:*` is at home in the other datacenter, `own:*` in this one, in all keyspaces.
pub(super) fn config_with_homes() -> NodeConfig {
    let home = |keyspace, pattern: &'static str, datacenter| Home {
        keyspace: KeyspaceId(keyspace),
        pattern: pattern.into(),
        datacenter,
    };
    let homes =
        (0..3).flat_map(|keyspace| [home(keyspace, "lock:*", FAR), home(keyspace, "own:*", DatacenterId(0))]);
    NodeConfig { homes: homes.collect(), ..config() }
}

/// A core of the other datacenter says this.
pub(super) fn far_says(world: &mut World, core: u16, message: Message) {
    let from = Address::Core { datacenter: FAR, core: CoreId(core) };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.drain();
}

pub(super) fn ready(world: &mut World, boot: u32) {
    for core in [0, 1] {
        world.sessions.on_peer_up(CoreName { datacenter: FAR, core: CoreId(core) });
        far_says(world, core, Message::HomeReady { boot });
    }
    let told = world.sent.iter().filter(|envelope| envelope.message == Message::HomeReady { boot: 3 });
    assert_eq!(told.count(), 2);
    world.sent.retain(|envelope| matches!(envelope.message, Message::HomeRequest(_)));
}

pub(super) fn world() -> World {
    let mut world = World::with(config_with_homes());
    world.drain();
    ready(&mut world, FAR_BOOT);
    world
}

/// The oldest message, a request to the home of its keys, and the core that it goes to.
pub(super) fn requested(world: &mut World) -> (u16, HomeRequest) {
    let envelope = world.next();
    let (Address::Core { datacenter: FAR, core }, Message::HomeRequest(request)) =
        (envelope.to, envelope.message)
    else {
        panic!("a request")
    };
    (core.0, request)
}

pub(super) fn answer(world: &mut World, (core, request): &(u16, HomeRequest), outcome: HomeOutcome) {
    let HomeRequest { boot, number, .. } = *request;
    far_says(world, *core, Message::HomeAnswer { boot, number, outcome });
}

pub(super) fn executed(reply: Reply, operations: &[(u8, u16, u64)]) -> HomeOutcome {
    let context = Context { time: LogicalTime::from_ms(WALL_MS), causes: causes(operations) };
    HomeOutcome::Executed { context, reply }
}

pub(super) fn words_of(request: &HomeRequest) -> Vec<String> {
    request.commands.iter().map(words).collect()
}

#[test]
fn a_write_goes_home_and_what_it_did_there_is_awaited_here() {
    let mut world = world();
    world.send(&["SET lock:a t NX"]);
    let request = requested(&mut world);
    let owner = partition_of(b"lock:a", PARTITIONS).0 / 2;
    assert_eq!((request.0, request.1.transaction), (owner, false));
    assert_eq!((request.1.boot, request.1.home_boot, request.1.below), (3, FAR_BOOT, request.1.number));
    assert_eq!(words_of(&request.1), ["SET lock:a t NX"]);
    assert_eq!(world.received(), "", "its home has not answered");
    answer(&mut world, &request, executed(Reply::OK, &[(1, 2, 5)]));
    assert_eq!(world.received(), "+OK|");
    // Whatever comes next here waits until that is visible here.
    world.send(&["GET lock:a"]);
    let check = world.next();
    let Message::CheckDependencies { check: number, dependencies, .. } = &check.message else {
        panic!("a question")
    };
    assert_eq!((partition(&check), dependencies.len()), (2, 1));
    assert!(world.sent.is_empty());
    let met = Message::DependenciesMet { check: *number, unrecoverable: Vec::new() };
    world.answer(&check, 1, met);
    let read = world.next();
    let Message::Execute { context, .. } = &read.message else { panic!("the read") };
    assert_eq!(context.causes, causes(&[(1, 2, 5)]), "it has become the past of the session");
    world.sent.push_front(read);
    world.executed(vec![bulk("t")]);
    assert_eq!(world.received(), "$1|t|");
    assert!(world.sessions.core.checks.is_empty());
}

#[test]
fn what_goes_home_next_does_not_wait_here_and_takes_all_along() {
    let mut world = world();
    world.send(&["SET lock:a t NX"]);
    let request = requested(&mut world);
    answer(&mut world, &request, executed(Reply::OK, &[(1, 2, 5)]));
    world.send(&["DEL lock:a"]);
    let next = requested(&mut world);
    assert_eq!(next.1.context.causes, causes(&[(1, 2, 5)]));
    assert_eq!((next.1.number, next.1.below), (request.1.number + 1, request.1.number + 1));
}

#[test]
fn what_does_not_become_visible_here_is_an_error_each_time() {
    let mut world = world();
    world.send(&["INCR lock:n"]);
    let request = requested(&mut world);
    answer(&mut world, &request, executed(Reply::Integer(1), &[(1, 2, 5)]));
    world.received();
    world.send(&["GET lock:n"]);
    world.sent.clear();
    world.pass_ms(2_000);
    let (_, counts) = (world.next(), world.next());
    let Message::CountReplicas { request, .. } = counts.message else { panic!("a look at what is so now") };
    world.answer(&counts, 1, Message::ReplicasReached { request, datacenters: 0, here: false });
    let error = world.received();
    assert!(error.starts_with("-NOTYET dc1 has not received everything that this session"), "{error}");
    world.sent.clear();
    world.send(&["GET lock:n"]);
    assert!(matches!(world.next().message, Message::CheckDependencies { .. }), "it is awaited still");
}

/// A home whose clock is wrong has executed something: here nothing is read without it, until the clocks agree
/// (`ensue sim --seed 7002 --protocol orbe-clock --wild-clocks`).
#[test]
fn what_was_done_in_the_far_future_is_an_error_each_time() {
    let mut world = world();
    world.send(&["INCR lock:n"]);
    let request = requested(&mut world);
    let time = LogicalTime::from_ms(WALL_MS + 100_000_000);
    let context = Context { time, causes: causes(&[(1, 2, 5)]) };
    answer(&mut world, &request, HomeOutcome::Executed { context, reply: Reply::Integer(1) });
    assert_eq!(world.received(), ":1|");
    for _ in 0..2 {
        world.send(&["GET lock:n"]);
        let error = world.received();
        assert!(error.starts_with("-CLOCKAHEAD what this session has seen or done elsewhere"), "{error}");
        assert!(world.sent.is_empty());
    }
}

#[test]
fn reads_stay_here_and_go_home_where_there_are_no_contexts_or_the_keyspace_says_so() {
    let mut world = world();
    world.send(&["GET lock:a"]);
    assert_eq!(executes(&world.next()), ["GET lock:a"]);
    let mut world = World::with(NodeConfig { home_reads: vec![KeyspaceId(0)], ..config_with_homes() });
    world.drain();
    ready(&mut world, FAR_BOOT);
    world.send(&["GET lock:a", "GET other"]);
    let request = requested(&mut world);
    assert_eq!(words_of(&request.1), ["GET lock:a"]);
    answer(&mut world, &request, executed(Reply::Nil, &[]));
    world.executed(vec![Reply::Nil]);
    assert_eq!(world.received(), "$-1|$-1|");
    world.send(&["SELECT 2", "GET lock:a"]);
    let request = requested(&mut world);
    assert_eq!(request.1.keyspace, KeyspaceId(2));
    answer(&mut world, &request, executed(bulk("x"), &[]));
    world.send(&["GET other"]);
    world.executed(vec![Reply::Nil]);
    assert_eq!(world.received(), "+OK|$1|x|$-1|", "nothing is awaited where there are no contexts");
}

#[test]
fn several_homes_are_refused_by_name() {
    let mut world = world();
    let refused = |world: &mut World, command: &str| {
        let error = world.ask(command);
        assert!(error.starts_with("-CROSSHOME "), "{command}: {error}");
    };
    refused(&mut world, "MSET lock:a 1 own:a 1");
    refused(&mut world, "MSET lock:a 1 other 1");
    refused(&mut world, "MSET own:a 1 other 1");
    refused(&mut world, "RENAME lock:a other");
    world.send(&["MULTI", "SET lock:a 1", "GET other", "EXEC"]);
    let received = world.received();
    assert!(received.starts_with("+OK|+QUEUED|+QUEUED|-CROSSHOME "), "{received}");
    world.send(&["CAUSAL SESSION s"]);
    world.received();
    world.send(&["SET lock:a 1"]);
    let fetch = world.next();
    let request = super::request(&fetch);
    world.answer(
        &fetch,
        1,
        Message::ContextFetched { request, since: LogicalTime(1), context: Context::default() },
    );
    let shared = world.received();
    assert!(shared.starts_with("-ERR keys with a home elsewhere"), "{shared}");
}

#[test]
fn a_transaction_goes_home_as_one() {
    let mut world = world();
    world.send(&["MULTI", "SET lock:a 1", "PING", "INCR lock:b", "EXEC"]);
    let request = requested(&mut world);
    assert!(request.1.transaction);
    assert_eq!(words_of(&request.1), ["SET lock:a 1", "PING", "INCR lock:b"]);
    let replies = Reply::Array(vec![Reply::OK, Reply::Status("PONG".into()), Reply::Integer(1)]);
    answer(&mut world, &request, executed(replies, &[]));
    assert_eq!(world.received(), "+OK|+QUEUED|+QUEUED|+QUEUED|*3|+OK|+PONG|:1|");
    world.send(&["MULTI", "SET lock:a 1", "DBSIZE", "EXEC"]);
    let received = world.received();
    assert!(
        received.contains("-EXECABORT DBSIZE inside a MULTI of keys with a home elsewhere"),
        "{received}"
    );
}

/// Commands go home in a `MULTI` that also publishes; the home answers, and the answer is awaited here.
fn published_with(operations: &[(u8, u16, u64)]) -> (World, Envelope) {
    let mut world = world();
    let changes = vec![Interest { kind: ChannelKind::Channel, name: "news".into(), sessions: 1 }];
    far_says(&mut world, 0, Message::Interest { all: true, changes });
    world.send(&["MULTI", "PUBLISH news a", "SET lock:a 1", "PUBLISH news b", "INCR lock:b", "EXEC"]);
    let request = requested(&mut world);
    assert_eq!(words_of(&request.1), ["SET lock:a 1", "INCR lock:b"]);
    assert!(world.sent.is_empty());
    assert_eq!(world.received(), "+OK|+QUEUED|+QUEUED|+QUEUED|+QUEUED|");
    answer(&mut world, &request, executed(Reply::Array(vec![Reply::OK, Reply::Integer(1)]), operations));
    let check = world.next();
    assert!(world.sent.is_empty() && world.received().is_empty(), "nothing is published yet");
    (world, check)
}

#[test]
fn what_is_published_with_a_transaction_follows_when_the_home_s_writes_are_here() {
    let (mut world, check) = published_with(&[(1, 2, 5)]);
    let Message::CheckDependencies { check: number, .. } = check.message else { panic!("a question") };
    world.answer(&check, 1, Message::DependenciesMet { check: number, unrecoverable: Vec::new() });
    assert_eq!(world.received(), "*4|:0|+OK|:0|:1|");
    for expected in ["a", "b"] {
        let Message::Publish { payload, past, .. } = world.next().message else { panic!("a message") };
        assert_eq!(payload, expected);
        assert_eq!(
            (past.len(), &past[0].1.causes),
            (1, &causes(&[(1, 2, 5)])),
            "its past is what it follows"
        );
    }
}

#[test]
fn nothing_is_published_if_the_home_s_writes_do_not_come_or_were_not_made() {
    let (mut world, _) = published_with(&[(1, 2, 5)]);
    world.pass_ms(2_000);
    let counts = world.sent.iter().position(|sent| matches!(sent.message, Message::CountReplicas { .. }));
    let counts = world.sent.remove(counts.expect("a look at what is so now")).expect("it is there");
    world.sent.clear();
    let Message::CountReplicas { request, .. } = counts.message else { unreachable!() };
    world.answer(&counts, 1, Message::ReplicasReached { request, datacenters: 0, here: false });
    let received = world.received();
    let (first, rest) = received.split_once('|').expect("an array");
    assert_eq!(first, "*4");
    assert!(rest.starts_with("-NOTYET dc1 has not received everything"), "{received}");
    assert!(
        rest.contains("|+OK|-EXECABORT this command was not executed") && rest.ends_with("|:1|"),
        "{received}"
    );
    assert!(!world.sent.iter().any(|sent| matches!(sent.message, Message::Publish { .. })));
    world.sent.clear();
    world.send(&["MULTI", "SET lock:a 1", "PUBLISH news c", "EXEC"]);
    let request = requested(&mut world);
    let refused =
        HomeOutcome::Refused { reply: Reply::error("NOREPLICAS Not enough good replicas to write.") };
    answer(&mut world, &request, refused);
    let received = world.received();
    assert!(
        received.ends_with(
            "-EXECABORT Transaction discarded because of: NOREPLICAS Not enough good replicas to write.|"
        ),
        "{received}"
    );
    assert!(world.sent.is_empty());
}

#[test]
fn a_script_goes_home_with_its_text() {
    let mut world = world();
    world.send(&["EVALSHA 0123456789012345678901234567890123456789 1 lock:a"]);
    let show = world.next();
    assert_eq!(executes(&show), ["script show 0123456789012345678901234567890123456789"]);
    let shown = Message::Executed {
        request: super::request(&show),
        context: Context::default(),
        replies: vec![bulk("return 1")],
    };
    world.answer(&show, 1, shown);
    let request = requested(&mut world);
    assert_eq!(words_of(&request.1), ["eval return 1 1 lock:a"]);
    answer(&mut world, &request, executed(Reply::Integer(1), &[]));
    assert_eq!(world.received(), ":1|");
}

#[test]
fn without_a_link_nothing_happens_and_without_an_answer_it_may_have() {
    let mut world = world();
    let core = partition_of(b"lock:a", PARTITIONS).0 / 2;
    let far = CoreName { datacenter: FAR, core: CoreId(core) };
    world.sessions.on_peer_down(world.now, far);
    let error = world.ask("SET lock:a t NX");
    assert!(error.starts_with("-HOMEAWAY dc2, the home of these keys, cannot be reached"), "{error}");
    ready(&mut world, FAR_BOOT);
    world.send(&["SET lock:a t NX"]);
    let request = requested(&mut world);
    world.pass_ms(7_000);
    assert!(world.received().starts_with("-UNKNOWN dc2, the home of these keys, did not answer in time"));
    answer(&mut world, &request, executed(Reply::OK, &[]));
    assert_eq!(world.received(), "", "too late");
    assert_eq!(world.sessions.core.home_requests.len(), 0);
}

#[test]
fn a_request_is_sent_again_to_the_process_that_was_asked_and_to_no_other() {
    let mut world = world();
    world.send(&["INCR lock:a"]);
    let request = requested(&mut world);
    let far = CoreName { datacenter: FAR, core: CoreId(request.0) };
    world.sessions.on_peer_down(world.now, far);
    assert_eq!(world.received(), "", "the link may come back");
    ready(&mut world, FAR_BOOT);
    assert_eq!(requested(&mut world), request, "the same number");
    world.sessions.on_peer_down(world.now, far);
    ready(&mut world, FAR_BOOT + 1);
    assert!(world.sent.is_empty());
    let error = world.received();
    assert!(error.starts_with("-UNKNOWN dc2, the home of these keys, was restarted"), "{error}");
}

#[test]
fn without_the_rule_a_command_runs_where_its_client_is() {
    let _breaking = Breaking::only(Some(Rule::HomeCommandsRunAtHome));
    let mut world = world();
    world.send(&["SET lock:a t NX"]);
    assert_eq!(executes(&world.next()), ["SET lock:a t NX"]);
}

#[test]
fn a_session_that_fell_back_takes_no_lock() {
    let config = NodeConfig { protocols: vec!["ha-pocc".to_owned(); 3], ..config_with_homes() };
    let mut world = World::with(config);
    world.drain();
    ready(&mut world, FAR_BOOT);
    let protocol = ensue_protocol::by_name("ha-pocc", Default::default()).expect("known");
    let mut stable = Causes::Nothing;
    protocol.timed_out(&mut stable, "updates");
    world.send(&["GET k"]);
    let envelope = world.next();
    let context = Context { time: LogicalTime(1), causes: stable };
    let fell_back =
        Message::TimedOut { request: super::request(&envelope), context, replies: vec![Reply::Nil] };
    world.answer(&envelope, 1, fell_back);
    world.received();
    let error = world.ask("SET lock:a t NX");
    assert!(error.starts_with("-BLOCKED this session has fallen back"), "{error}");
}

#[test]
fn what_is_about_all_keyspaces_waits_for_what_was_done_at_homes_in_any() {
    for command in ["FLUSHALL", "PUBLISH news x"] {
        let mut world = world();
        world.send(&["INCR lock:n"]);
        let request = requested(&mut world);
        answer(&mut world, &request, executed(Reply::Integer(1), &[(1, 2, 5)]));
        world.send(&["SELECT 1", &format!("GET {}", key(0, 0))]);
        world.executed(vec![Reply::Nil]);
        world.received();
        world.send(&[command]);
        assert!(matches!(world.next().message, Message::CheckDependencies { .. }), "{command}");
        assert!(world.sent.is_empty() && world.received().is_empty(), "{command}");
    }
}

/// The numbers under which a home watches keys.
fn numbers(numbers: &[i64], operations: &[(u8, u16, u64)]) -> HomeOutcome {
    executed(Reply::Array(numbers.iter().copied().map(Reply::Integer).collect()), operations)
}

#[test]
fn what_is_watched_at_a_home_elsewhere_is_checked_there() {
    let mut world = world();
    world.send(&["WATCH lock:{t}a lock:{t}b"]);
    let request = requested(&mut world);
    assert_eq!(words_of(&request.1), ["WATCH lock:{t}a lock:{t}b"]);
    assert!(!request.1.transaction);
    answer(&mut world, &request, numbers(&[5, 6], &[(1, 2, 5)]));
    assert_eq!(world.received(), "+OK|");
    // What is read here is not older than what was watched.
    world.send(&["GET lock:{t}a"]);
    let check = world.next();
    let Message::CheckDependencies { check: number, .. } = check.message else { panic!("a question") };
    assert!(world.sent.is_empty());
    world.answer(&check, 1, Message::DependenciesMet { check: number, unrecoverable: Vec::new() });
    world.executed(vec![bulk("1")]);
    assert_eq!(world.received(), "$1|1|");
    world.send(&["MULTI", "SET lock:{t}a 2", "EXEC"]);
    let request = requested(&mut world);
    assert!(request.1.transaction);
    assert_eq!(words_of(&request.1), ["watched lock:{t}a 5 lock:{t}b 6", "SET lock:{t}a 2"]);
    answer(&mut world, &request, executed(Reply::NilArray, &[]));
    assert_eq!(world.received(), "+OK|+QUEUED|*-1|");
    world.send(&["MULTI", "SET lock:{t}a 2", "EXEC"]);
    assert_eq!(words_of(&requested(&mut world).1), ["SET lock:{t}a 2"], "they are watched no longer");
}

#[test]
fn a_transaction_goes_to_where_its_keys_are_watched() {
    let refused = |world: &mut World, commands: &[&str]| {
        world.send(commands);
        let received = world.received();
        let words =
            "-CROSSHOME the keys that are watched, and those of the transaction, must have the same home";
        assert!(received.contains(words), "{commands:?}: {received}");
    };
    let watches = |world: &mut World| {
        world.send(&["WATCH lock:a"]);
        let request = requested(world);
        answer(world, &request, numbers(&[5], &[]));
        assert_eq!(world.received(), "+OK|");
    };
    let mut world = world();
    refused(&mut world, &["WATCH other lock:a"]);
    refused(&mut world, &["WATCH own:a lock:a"]);
    for key in ["other", "own:a"] {
        world.send(&[&format!("WATCH {key}")]);
        world.executed(vec![Reply::Array(vec![Reply::Integer(1)])]);
        assert_eq!(world.received(), "+OK|");
        refused(&mut world, &["MULTI", "SET lock:a 1", "EXEC"]);
        watches(&mut world);
        refused(&mut world, &["MULTI", &format!("SET {key} 1"), "EXEC"]);
    }
    // What only reads goes there, too, and so does nothing.
    for commands in [&["MULTI", "GET lock:a", "EXEC"][..], &["MULTI", "EXEC"]] {
        watches(&mut world);
        world.send(commands);
        let words = words_of(&requested(&mut world).1);
        assert_eq!(words[0], "watched lock:a 5");
        assert_eq!(words.len() + 1, commands.len());
        world = super::homes::world();
    }
}

#[test]
fn a_watch_without_a_home_watches_nothing() {
    let mut world = world();
    world.send(&["WATCH lock:a"]);
    let request = requested(&mut world);
    world.sessions.on_peer_down(world.now, CoreName { datacenter: FAR, core: CoreId(request.0) });
    ready(&mut world, FAR_BOOT + 1);
    let error = world.received();
    assert!(error.starts_with("-HOMEAWAY dc2, the home of these keys, was restarted"), "{error}");
    world.send(&["MULTI", "SET lock:a 1", "EXEC"]);
    assert_eq!(words_of(&requested(&mut world).1), ["SET lock:a 1"]);
}
