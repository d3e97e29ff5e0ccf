//! Users: who logs in, what they may do, and what becomes of their sessions when they change.

use super::connection::{answer_metrics_query, order};
use super::*;

/// A user that may read and write keys that begin with `k`, and run scripts, with a password of SHA-256.
fn with_app() -> World {
    let mut world = World::new();
    let hash = ensue_acl::Verifier::sha256(b"pw").to_string();
    let rules = format!("ACL SETUSER app on #{hash} ~k* resetchannels &news:* +@all -@dangerous -ping");
    assert_eq!(order(&mut world, &rules, "+OK\r\n"), "+OK|");
    world
}

fn as_app() -> World {
    let mut world = with_app();
    assert_eq!(world.ask("AUTH app pw"), "+OK|");
    world
}

#[test]
fn a_user_may_do_what_its_rules_say_and_a_refusal_is_logged() {
    let mut world = as_app();
    assert_eq!(world.ask("ACL WHOAMI"), "$3|app|");
    assert_eq!(world.ask("PING"), "-NOPERM User app has no permissions to run the 'ping' command|");
    assert_eq!(world.ask("GET other"), "-NOPERM No permissions to access a key|");
    assert_eq!(world.ask("SUBSCRIBE secret"), "-NOPERM No permissions to access a channel|");
    world.send(&[&format!("SET {} 1", key(0, 0))]);
    world.executed(vec![Reply::OK]);
    assert_eq!(world.received(), "+OK|");
    assert_eq!(world.ask("AUTH default any"), "+OK|");
    let log = order(&mut world, "ACL LOG", "*0\r\n");
    assert!(log.starts_with("*3|"), "{log}");
    for entry in
        ["|$6|object|$4|ping|", "|$6|object|$5|other|", "|$6|object|$6|secret|", "|$8|username|$3|app|"]
    {
        assert!(log.contains(entry), "{entry} in {log}");
    }
}

#[test]
fn a_run_of_commands_ends_before_the_first_that_is_not_allowed() {
    let mut world = as_app();
    let key = key(0, 0);
    world.send(&[&format!("SET {key} 1"), "GET other", &format!("GET {key}")]);
    let first = world.next();
    assert_eq!(executes(&first), [format!("SET {key} 1")]);
    let executed = |envelope: &Envelope, replies| Message::Executed {
        request: request(envelope),
        context: Context::default(),
        replies,
    };
    world.answer(&first, 1, executed(&first, vec![Reply::OK]));
    let second = world.next();
    assert_eq!(executes(&second), [format!("GET {key}")]);
    world.answer(&second, 1, executed(&second, vec![bulk("1")]));
    assert_eq!(world.received(), "+OK|-NOPERM No permissions to access a key|$1|1|");
}

#[test]
fn what_is_not_allowed_in_a_transaction_aborts_it() {
    let mut world = as_app();
    world.send(&["MULTI", "GET other", &format!("GET {}", key(0, 0)), "EXEC"]);
    assert!(world.sent.is_empty());
    assert_eq!(
        world.received(),
        "+OK|-NOPERM No permissions to access a key|+QUEUED|\
         -EXECABORT Transaction discarded because of previous errors.|"
    );
}

#[test]
fn a_script_says_what_its_user_may_do_and_no_client_can_say_it() {
    let mut world = as_app();
    world.send(&[&format!("EVAL x 1 {}", key(0, 0))]);
    // Every partition is told the text first, as that of anybody.
    while let Some(envelope) = world.sent.pop_front() {
        let told = executes(&envelope).remove(0);
        if told.starts_with('\u{1}') {
            let expected = format!("\u{1}EVAL x 1 {} user app on ", key(0, 0));
            assert!(told.starts_with(&expected), "{told:?}");
            return;
        }
        let request = request(&envelope);
        let replies = vec![bulk("sha")];
        world.answer(&envelope, 1, Message::Executed { request, context: Context::default(), replies });
    }
    panic!("the script was never sent");
}

#[test]
fn a_script_in_a_transaction_has_the_rights_of_when_it_is_executed() {
    let mut world = as_app();
    world.sessions.core.scripts.insert(&Bytes::from("x"));
    world.send(&["MULTI", &format!("EVAL x 1 {}", key(0, 0))]);
    assert_eq!(world.received(), "+OK|+QUEUED|");
    let words = ["user-set", "9000000000000-1", "user app on nopass ~k* resetchannels +@all -sort -ping"];
    let words = words.map(|word| Bytes::from_static(word.as_bytes())).to_vec();
    let (request, query) = (RequestId::default(), ensue_wire::CoreQuery::Order(words));
    let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    let message = Message::CoreQuery { request, query };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.drain();
    world.sent.clear();
    world.send(&["EXEC"]);
    let sent = format!("{:?}", world.next().message);
    assert!(sent.contains("-sort") && !sent.contains("-@dangerous"), "{sent}");
}

/// Each with what Redis records: the command, or the key.
#[test]
fn what_a_script_was_denied_is_in_the_log_as_of_a_script() {
    let mut world = as_app();
    world.sessions.core.scripts.insert(&Bytes::from("x"));
    world.send(&[&format!("EVAL x 1 {}", key(0, 0))]);
    let request = request(&world.sent[0]);
    let denied = ["FLUSHALL", "GET other", "SET k 1"]
        .map(|line| line.split(' ').map(|word| Bytes::from(word.to_owned())).collect())
        .to_vec();
    let message = Message::Called {
        request,
        keyspace: ensue_types::KeyspaceId(0),
        commands: Vec::new(),
        all: true,
        denied,
    };
    let from = Address::Partition { datacenter: DatacenterId(0), partition: PartitionId(0) };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    let Reply::Array(entries) = world.sessions.core.access.refusals(world.now) else { panic!() };
    let text = |reply: &Reply| match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    };
    let told = |entry: &Reply| match entry {
        Reply::Map(pairs) => [1, 2, 3, 4].map(|place| text(&pairs[place].1)).join(" "),
        other => panic!("{other:?}"),
    };
    let told: Vec<String> = entries.iter().map(told).collect();
    // What it may do by now is not there.
    assert_eq!(told, ["key lua other app", "command lua flushall app"]);
}

#[test]
fn the_mark_of_a_script_is_no_name_that_a_client_can_send() {
    let mut world = World::new();
    let answer = world.ask(&format!("\u{1}EVAL x 1 {} line", key(0, 0)));
    assert!(answer.starts_with("-ERR unknown command "), "{answer}");
}

#[test]
fn a_user_that_is_changed_may_do_other_things_at_once_and_one_that_is_gone_nothing() {
    let mut world = as_app();
    let tell = |world: &mut World, words: Vec<Bytes>| {
        let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
        let query = ensue_wire::CoreQuery::Order(words);
        let request = RequestId::default();
        let message = Message::CoreQuery { request, query };
        let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
        world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
        world.drain();
        world.sent.clear();
    };
    let words =
        |words: &[&'static str]| words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect();
    tell(&mut world, words(&["user-set", "9000000000000-1", "user app on nopass ~* &* +@all"]));
    assert_eq!(world.ask("PING"), "+PONG|");
    assert!(!world.disconnected);
    tell(&mut world, words(&["user-delete", "9000000000001-1", "app"]));
    assert!(world.disconnected);
}

/// A client that subscribes, and asks something of the other core.
fn asks_beside_a_subscription() -> World {
    let mut world = World::new();
    assert_eq!(order(&mut world, "ACL SETUSER app on nopass ~* &* +@all", "+OK\r\n"), "+OK|");
    world.send(&["HELLO 3 AUTH app any", "SUBSCRIBE news"]);
    assert!(world.received().ends_with(">3|$9|subscribe|$4|news|:1|"));
    world.sent.clear();
    world.send(&["CLIENT LIST"]);
    assert!(world.received().is_empty());
    world
}

fn other_core_says(world: &mut World, words: &[&'static str]) {
    let asked = std::mem::take(&mut world.sent);
    let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
    let words = words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect();
    let message =
        Message::CoreQuery { request: RequestId::default(), query: ensue_wire::CoreQuery::Order(words) };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.drain();
    world.sent = asked;
}

#[test]
fn who_asks_while_it_loses_its_rights_has_its_answer_and_no_more() {
    let changes: [&[&'static str]; 2] = [
        &["user-delete", "9000000000000-1", "app"],
        &["user-set", "9000000000000-1", "user app on nopass ~* resetchannels &other +@all"],
    ];
    for words in changes {
        let mut world = asks_beside_a_subscription();
        other_core_says(&mut world, words);
        assert!(!world.disconnected, "it has its answer first");
        answer_metrics_query(&mut world, &[]);
        let received = world.received();
        assert!(received.contains("user=app"), "{words:?}: {received:?}");
        assert!(world.disconnected, "{words:?}");
    }
}

#[test]
fn who_keeps_its_rights_goes_on_behind_its_answer() {
    let mut world = asks_beside_a_subscription();
    other_core_says(&mut world, &["user-delete", "9000000000000-1", "app"]);
    other_core_says(&mut world, &["user-set", "9000000000001-1", "user app on nopass ~* &* +@all"]);
    answer_metrics_query(&mut world, &[]);
    assert!(world.received().contains("user=app") && !world.disconnected);
}

#[test]
fn a_password_that_is_slow_to_compare_is_an_errand_and_once_proven_it_is_none() {
    let mut world = World::new();
    assert_eq!(order(&mut world, "ACL SETUSER slow on >secret ~* +@all", "+OK\r\n"), "+OK|");
    assert!(world.ask("ACL LIST").contains(" #$argon2id$"));
    assert_eq!(world.errands, 1);
    for (command, answer, errands) in [
        ("AUTH slow secret", "+OK|", 2),
        ("AUTH slow secret", "+OK|", 2),
        ("AUTH slow wrong", "-WRONGPASS invalid username-password pair or user is disabled.|", 3),
        // A name that nobody has takes as long.
        ("AUTH nobody wrong", "-WRONGPASS invalid username-password pair or user is disabled.|", 4),
        ("ACL WHOAMI", "$4|slow|", 4),
    ] {
        assert_eq!(world.ask(command), answer, "{command}");
        assert_eq!(world.errands, errands, "{command}");
    }
    assert!(world.ask("HELLO 3 AUTH slow secret").starts_with("%7|"));
    assert_eq!(world.errands, 4);
    assert_eq!(world.ask("ACL GENPASS 5"), "$2|07|");
    assert!(
        world.ask("ACL SAVE").starts_with("-ERR This Redis instance is not configured to use an ACL file.")
    );
}

#[test]
fn wrong_rules_change_nothing() {
    let mut world = World::new();
    assert_eq!(
        world.ask("ACL SETUSER app on +nonsense"),
        "-ERR Error in ACL SETUSER modifier '+nonsense': Unknown command or category name in ACL|"
    );
    assert_eq!(world.ask("ACL USERS"), "*1|$7|default|");
    assert_eq!(world.ask("ACL DELUSER default"), "-ERR The 'default' user cannot be removed|");
    assert_eq!(order(&mut world, "ACL DELUSER nobody", "+OK\r\n"), ":0|");
}

#[test]
fn whoever_owns_the_sockets_is_told_when_the_door_opens_or_closes() {
    let mut world = World::new();
    assert_eq!(order(&mut world, "ACL SETUSER app on nopass", "+OK\r\n"), "+OK|");
    assert!(world.openness.is_empty());
    let hash = ensue_acl::Verifier::sha256(b"pw").to_string();
    assert_eq!(order(&mut world, &format!("ACL SETUSER default resetpass #{hash}"), "+OK\r\n"), "+OK|");
    assert_eq!(world.openness, [false]);
    assert_eq!(order(&mut world, "ACL SETUSER default nopass", "+OK\r\n"), "+OK|");
    assert_eq!(world.openness, [false, true]);
}

#[test]
fn a_password_that_was_changed_while_it_was_compared_is_not_right_any_more() {
    let mut world = World::new();
    assert_eq!(order(&mut world, "ACL SETUSER slow on >old ~* +@all", "+OK\r\n"), "+OK|");
    world.keeps_errands = true;
    world.send(&["AUTH slow old"]);
    let (number, errand) = world.kept.pop().expect("it is compared");
    let done = errand.run(|bytes| bytes.fill(7)).expect("no file");
    assert!(matches!(done, crate::ErrandDone::Compared(true)));
    world.keeps_errands = false;
    // Another core has told of a new password before the old one was found right.
    let line = "user slow on #9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 ~* +@all";
    let words = ["user-set", "9000000000000-1", line].map(|word| Bytes::from_static(word.as_bytes()));
    let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    let query = ensue_wire::CoreQuery::Order(words.to_vec());
    let message = Message::CoreQuery { request: RequestId::default(), query };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.sessions.on_errand_done(world.now, CLIENT, number, done);
    world.drain();
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.|";
    assert_eq!(world.received(), wrong);
    world.sent.clear();
    assert_eq!(world.ask("AUTH slow old"), wrong);
    assert_eq!(world.ask("AUTH slow test"), "+OK|");
}

#[test]
fn too_many_passwords_at_once_are_refused_and_change_nothing() {
    let mut world = World::new();
    assert_eq!(order(&mut world, "ACL SETUSER slow on >secret ~* +@all", "+OK\r\n"), "+OK|");
    world.keeps_errands = true;
    for command in ["AUTH slow secret", "ACL SETUSER other on >x", "ACL GENPASS"] {
        world.send(&[command]);
        let (number, _) = world.kept.pop().expect("an errand");
        world.sessions.on_errand_done(world.now, CLIENT, number, crate::ErrandDone::Busy);
        world.drain();
        assert!(world.received().starts_with("-BUSY "), "{command}");
    }
    assert_eq!(world.ask("ACL WHOAMI"), "$7|default|");
    assert_eq!(world.ask("ACL GETUSER other"), "$-1|");
}

fn recorded(world: &mut World) -> Vec<(String, String, crate::AuditOutcome)> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let one = |audit: crate::Audit| {
        assert_eq!((audit.address.as_str(), audit.client), ("10.0.0.1:5000", CLIENT));
        let words: Vec<String> = audit.words.iter().map(text).collect();
        (text(&audit.user), words.join(" "), audit.outcome)
    };
    std::mem::take(&mut world.audits).into_iter().map(one).collect()
}

#[test]
fn commands_of_operators_and_logins_that_fail_are_recorded_with_what_came_of_them() {
    use crate::AuditOutcome::{Done, Failed, Refused};
    let mut world = World::with(NodeConfig { audits: true, ..config() });
    let record = |user: &str, words: &str, outcome| (user.to_owned(), words.to_owned(), outcome);
    let hash = ensue_acl::Verifier::sha256(b"pw").to_string();
    order(&mut world, &format!("ACL SETUSER app on #{hash} ~* +@all -@dangerous"), "+OK\r\n");
    let made = record("default", "ACL SETUSER app on (hidden) ~* +@all -@dangerous", Done);
    assert_eq!(recorded(&mut world), [made]);
    world.ask("CONFIG SET maxmemory lots");
    world.ask("ACL WHOAMI");
    world.ask("AUTH app wrong");
    world.ask("AUTH app pw");
    world.ask("CONFIG GET *");
    world.send(&["MULTI", "CONFIG GET *", "EXEC"]);
    let expected = [
        record("default", "CONFIG SET maxmemory lots", Failed("ERR".into())),
        record("default", "AUTH app (hidden)", Failed("WRONGPASS".into())),
        record("app", "CONFIG GET *", Refused),
        record("app", "CONFIG GET *", Refused),
    ];
    assert_eq!(recorded(&mut world), expected);
    world.ask("AUTH default x");
    world.send(&["MULTI", "CONFIG GET save", "CONFIG GET", "EXEC"]);
    let expected =
        [record("default", "CONFIG GET save", Done), record("default", "CONFIG GET", Failed("ERR".into()))];
    assert_eq!(recorded(&mut world), expected);
}

#[test]
fn nothing_is_recorded_where_nobody_wants_it() {
    let mut world = World::new();
    world.ask("CONFIG GET *");
    assert!(world.audits.is_empty());
}

#[test]
fn a_pop_that_waits_ends_when_its_user_may_not_run_it_any_more_and_no_other_does() {
    let mut world = as_app();
    let tell = |world: &mut World, line: &str, time: u64| {
        let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
        let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
        let words =
            ["user-set", &format!("{time}-1"), line].map(|word| Bytes::copy_from_slice(word.as_bytes()));
        let query = ensue_wire::CoreQuery::Order(words.to_vec());
        let message = Message::CoreQuery { request: RequestId::default(), query };
        world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
        world.drain();
        world.sent.retain(|sent| !matches!(sent.message, Message::CoreAnswer { .. }));
    };
    let key = key(2, 0);
    world.send(&[&format!("BLPOP {key} 0")]);
    let pop = world.next();
    tell(&mut world, "user other on nopass +@all", 9_000_000_000_000);
    tell(&mut world, "user app on nopass ~k* +blpop", 9_000_000_000_001);
    assert!(world.sent.is_empty(), "its user may still run it");
    tell(&mut world, "user app on nopass ~other +blpop", 9_000_000_000_002);
    assert_eq!(executes(&world.next()), ["causal withdraw"]);
    assert_eq!(world.received(), "", "something may have been popped for it already");
    let nothing = Message::Executed {
        request: request(&pop),
        context: Context::default(),
        replies: vec![Reply::NilArray],
    };
    world.answer(&pop, 1, nothing);
    assert_eq!(world.received(), "-NOPERM No permissions to access a key|");
    assert!(!world.disconnected);
}

/// What becomes of a client that has done this, when its user may do less.
fn is_closed_after(commands: &[&str], line: &str) -> bool {
    let mut world = World::new();
    assert_eq!(order(&mut world, "ACL SETUSER app on nopass ~k* +@all", "+OK\r\n"), "+OK|");
    world.ask("HELLO 3 AUTH app any");
    for command in commands {
        world.send(&[command]);
        world.sent.retain(|sent| matches!(sent.message, Message::Execute { .. }));
        if !world.sent.is_empty() {
            world.executed(vec![bulk("value")]);
        }
        assert!(!world.received().starts_with('-'), "{command}");
    }
    let words = ["user-set", "9000000000000-1", line].map(|word| Bytes::copy_from_slice(word.as_bytes()));
    let query = ensue_wire::CoreQuery::Order(words.to_vec());
    let message = Message::CoreQuery { request: RequestId::default(), query };
    let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.drain();
    world.disconnected
}

#[test]
fn who_may_no_longer_be_told_of_commands_or_keys_is_closed() {
    let key = key(0, 0);
    let (read, tracks, monitors) = (format!("GET {key}"), "CLIENT TRACKING ON", "MONITOR");
    for (commands, line, is_closed) in [
        (&[monitors][..], "user app on nopass ~k* +@all -monitor", true),
        (&[monitors], "user app on nopass ~k* +@all -get", false),
        (&[tracks], "user app on nopass ~k* +@all -client|tracking", true),
        (&[tracks, &read], "user app on nopass ~k* +@all -get", false),
        (&[tracks, &read], "user app on nopass ~other* +@all", true),
        (&[tracks, &read], "user app on nopass %W~k* +@all", true),
        (&[tracks], "user app on nopass ~other* +@all", false),
        (&[tracks, &read, "CLIENT TRACKING OFF"], "user app on nopass ~other* +@all", false),
    ] {
        assert_eq!(is_closed_after(commands, line), is_closed, "{commands:?}, then {line}");
    }
}
