//! What clients of a cluster, and those who operate a server, ask: `ACL`, `CLUSTER`, `LATENCY` and `MONITOR`.

use super::connection::order;
use super::*;
use ensue_resp::command;
use ensue_types::slot_of;
use ensue_wire::{ChannelKind, CoreName, Interest};

const OTHER: SessionId = SessionId(8);

#[test]
fn at_first_there_is_one_user_who_may_do_everything() {
    let mut world = World::new();
    assert_eq!(world.ask("ACL WHOAMI"), "$7|default|");
    assert_eq!(world.ask("ACL USERS"), "*1|$7|default|");
    assert_eq!(world.ask("ACL LIST"), "*1|$51|user default on nopass sanitize-payload ~* &* +@all|");
    assert_eq!(world.ask("ACL GETUSER bob"), "$-1|");
    assert!(world.ask("ACL GETUSER default").starts_with("*12|$5|flags|*3|$2|on|$6|nopass|"));
    assert!(world.ask("ACL CAT").contains("|$11|hyperloglog|"));
    assert!(world.ask("ACL CAT hyperloglog").contains("|$5|pfadd|"));
    assert_eq!(world.ask("ACL CAT nope"), "-ERR Unknown category 'nope'|");
    assert_eq!(world.ask("ACL DRYRUN default GET a"), "+OK|");
    assert_eq!(world.ask("ACL DRYRUN bob GET a"), "-ERR User 'bob' not found|");
    assert_eq!(world.ask("ACL WHOAMI x"), "-ERR wrong number of arguments for 'acl|whoami' command|");
}

#[test]
fn who_named_a_wrong_password_is_logged_once_a_minute() {
    let mut world = World::with(NodeConfig { users: users_with_password("secret"), ..config() });
    for _ in 0..2 {
        assert!(world.ask("AUTH bob guess").starts_with("-WRONGPASS "));
    }
    assert_eq!(world.ask("AUTH secret"), "+OK|");
    let log = order(&mut world, "ACL LOG", "*0\r\n");
    assert!(log.starts_with("*1|*20|$5|count|:2|$6|reason|$4|auth|"), "{log}");
    assert!(log.contains("|$6|object|$4|AUTH|$8|username|$3|bob|"), "{log}");
    assert_eq!(order(&mut world, "ACL LOG 0", "*0\r\n"), "*0|");
    assert_eq!(order(&mut world, "ACL LOG RESET", "+OK\r\n"), "+OK|");
    assert_eq!(order(&mut world, "ACL LOG", "*0\r\n"), "*0|");
}

#[test]
fn a_datacenter_is_a_cluster_of_one_node() {
    let mut world = World::new();
    let id = world.ask("CLUSTER MYID");
    assert!(id.starts_with("$40|") && id.len() == 45, "{id}");
    let id = &id[4..44];
    let slots = world.ask("CLUSTER SLOTS");
    assert_eq!(slots, format!("*1|*3|:0|:16383|*4|$8|10.0.0.2|:6379|$40|{id}|*0|"));
    assert!(world.ask("CLUSTER NODES").contains(&format!("{id} 10.0.0.2:6379@0 myself,master - ")));
    assert!(world.ask("CLUSTER SHARDS").contains("|$5|slots|*2|:0|:16383|$5|nodes|*1|"));
    assert!(world.ask("CLUSTER INFO").contains("cluster_state:ok|cluster_slots_assigned:16384|"));
    assert_eq!(world.ask("CLUSTER KEYSLOT {a}b"), format!(":{}|", slot_of(b"a")));
    assert!(world.ask("CLUSTER MEET 10.0.0.3 6379").starts_with("-ERR CLUSTER MEET is refused"));
    assert_eq!(world.ask("CLUSTER COUNTKEYSINSLOT 16384"), "-ERR Invalid or out of range slot|");
    assert_eq!(world.ask("READONLY"), "+OK|");
    assert!(world.ask("SWAPDB 0 1").starts_with("-ERR SWAPDB is refused"));
    assert!(world.ask("MOVE a 1").starts_with("-ERR MOVE is refused"));
}

#[test]
fn the_keys_of_a_slot_are_those_of_its_partition_that_have_it() {
    let mut world = World::new();
    let (one, other) = (key(2, 0), key(2, 1));
    let slot = slot_of(one.as_bytes());
    assert_ne!(slot, slot_of(other.as_bytes()));
    let keys = || Reply::Array(vec![bulk(&other), bulk(&one), bulk(&format!("{{{one}}}"))]);
    for (command, answer) in [
        (format!("CLUSTER COUNTKEYSINSLOT {slot}"), ":2|".to_owned()),
        (format!("CLUSTER GETKEYSINSLOT {slot} 1"), format!("*1|${}|{one}|", one.len())),
    ] {
        world.send(&[&command]);
        assert_eq!(partition(&world.sent[0]), 2, "only the owner of the slot");
        world.executed(vec![keys()]);
        assert_eq!(world.received(), answer, "{command}");
    }
}

#[test]
fn what_took_longer_than_the_threshold_is_told_of_all_cores() {
    let mut world = World::new();
    let told = "*1\r\n*3\r\n$7\r\ncommand\r\n:900\r\n*1\r\n*2\r\n:1600000000\r\n:900\r\n";
    world.sessions.on_turn_end(world.now, 300_000);
    assert_eq!(order(&mut world, "LATENCY LATEST", "*0\r\n"), "*0|", "0 notes nothing");
    assert_eq!(order(&mut world, "CONFIG SET latency-monitor-threshold 200", "+OK\r\n"), "+OK|");
    for took_us in [199_000, 300_000, 250_000] {
        world.sessions.on_turn_end(world.now, took_us);
    }
    world.pass_ms(1_000);
    world.sessions.on_turn_end(world.now, 400_000);
    let second = WALL_MS / 1_000;
    assert_eq!(
        order(&mut world, "LATENCY LATEST", "*0\r\n"),
        format!("*1|*4|$7|command|:{}|:400|:400|", second + 1)
    );
    let history = format!("*3|*2|:1600000000|:900|*2|:{second}|:300|*2|:{}|:400|", second + 1);
    assert_eq!(order(&mut world, "LATENCY HISTORY command", told), history);
    assert!(
        order(&mut world, "LATENCY GRAPH command", told)
            .contains("command - high 900 ms, low 300 ms (all time high 900 ms)")
    );
    assert!(
        order(&mut world, "LATENCY DOCTOR", told)
            .contains("command: 3 latency spikes (average 533 ms, worst")
    );
    assert_eq!(order(&mut world, "LATENCY HISTORY fork", told), "*0|");
    assert_eq!(order(&mut world, "LATENCY GRAPH fork", told), "-ERR No samples available for event 'fork'|");
    assert_eq!(order(&mut world, "LATENCY RESET fork", "*0\r\n"), ":0|");
    assert_eq!(order(&mut world, "LATENCY RESET", "*1\r\n$7\r\ncommand\r\n"), ":1|");
    assert_eq!(order(&mut world, "LATENCY LATEST", "*0\r\n"), "*0|");
    assert_eq!(world.ask("LATENCY HELP x"), "-ERR wrong number of arguments for 'latency|help' command|");
}

#[test]
fn a_histogram_is_the_sum_of_all_cores_and_partitions() {
    let mut world = World::new();
    world.send(&["LATENCY HISTOGRAM client set"]);
    let metrics = |powers: &[(&str, i64)]| -> Vec<(String, i64)> {
        powers.iter().map(|(name, count)| (format!("histogram_{name}"), *count)).collect()
    };
    while let Some(envelope) = world.sent.pop_front() {
        match &envelope.message {
            Message::MetricsQuery { request } => {
                let metrics = metrics(&[("set:0", 1), ("set:3", 2), ("get:1", 5)]);
                world.answer(&envelope, 1, Message::MetricsAnswer { request: *request, metrics });
            }
            Message::CoreQuery { request, .. } => {
                let metrics = metrics(&[("client|id:4", 1)]);
                let text = Bytes::new();
                world.answer(&envelope, 1, Message::CoreAnswer { request: *request, text, metrics });
            }
            other => panic!("{other:?}"),
        }
    }
    let histogram = |calls: i64, buckets: &str| format!("*4|$5|calls|:{calls}|$14|histogram_usec|{buckets}");
    let expected =
        format!("*4|$9|client|id|{}$3|set|{}", histogram(2, "*2|:16|:2|"), histogram(12, "*4|:1|:4|:8|:12|"));
    assert_eq!(world.received(), expected);
}

fn shown(world: &mut World) -> Vec<(SessionId, String)> {
    std::mem::take(&mut world.pushed)
}

#[test]
fn commands_are_shown_to_who_monitors() {
    let mut world = World::new();
    world.sessions.on_connected(world.now, OTHER, "10.0.0.3:5001".into(), "10.0.0.2:6379".into());
    world.sessions.on_peer_up(CoreName { datacenter: DatacenterId(0), core: CoreId(1) });
    world.sessions.on_peer_up(CoreName { datacenter: DatacenterId(1), core: CoreId(0) });
    world.drain();
    world.sent.clear();
    assert_eq!(world.ask("ECHO a"), "$1|a|");
    assert_eq!(shown(&mut world), [], "nobody monitors");

    // The client of another core monitors.
    let peer = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
    let own = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    let interest = |sessions| {
        let changes = vec![Interest { kind: ChannelKind::Monitor, name: Bytes::new(), sessions }];
        Envelope {
            from: peer,
            to: own,
            time: LogicalTime::ZERO,
            message: Message::Interest { all: false, changes },
        }
    };
    world.sessions.on_message(world.now, interest(1));
    world.send(&["ECHO a"]);
    let published = world.sent.pop_front().expect("it is told");
    assert!(matches!(published.to, Address::Core { datacenter: DatacenterId(0), core: CoreId(1) }));
    let Message::Publish { kind: ChannelKind::Monitor, payload, .. } = published.message else {
        panic!("{:?}", published.message)
    };
    assert_eq!(payload, "1700000000.000000 [0 10.0.0.1:5000] \"ECHO\" \"a\"");
    world.sessions.on_message(world.now, interest(0));
    world.send(&["ECHO a"]);
    assert!(world.sent.is_empty());
    world.received();

    // And then this one.
    world.send(&["MONITOR"]);
    assert_eq!(world.received(), "+OK|");
    let told: Vec<Envelope> = world.sent.drain(..).collect();
    assert_eq!(told.len(), 1, "another datacenter is not told: {told:?}");
    world.send(&["CONFIG GET hz", "AUTH default secret", "MULTI", "PING", "EXEC"]);
    let line = |words: &str| (CLIENT, format!("+1700000000.000000 [0 10.0.0.1:5000] {words}|"));
    let expected = ["\"AUTH\" \"(redacted)\" \"(redacted)\"", "\"MULTI\"", "\"PING\"", "\"EXEC\""].map(line);
    assert_eq!(shown(&mut world), expected);
    assert!(order(&mut world, "CLIENT LIST", "").contains(" flags=O "));
    shown(&mut world);
    assert_eq!(world.ask("ROLE"), "*3|$6|master|:0|*0|");
    assert_eq!(world.ask("MODULE LIST"), "*0|");
    world.send(&["RESET"]);
    shown(&mut world);
    world.sent.clear();
    world.received();
    assert_eq!(world.ask("ECHO a"), "$1|a|");
    assert_eq!(shown(&mut world), []);
}

#[test]
fn info_tells_how_long_shares_of_the_calls_took() {
    let mut world = World::new();
    let mut told = |command: &str| {
        world.send(&[command]);
        while let Some(envelope) = world.sent.pop_front() {
            match &envelope.message {
                Message::MetricsQuery { request } => {
                    let metrics = [("histogram_set:0", 8), ("histogram_set:10", 2)];
                    let metrics = metrics.map(|(name, count)| (name.to_owned(), count)).to_vec();
                    world.answer(&envelope, 1, Message::MetricsAnswer { request: *request, metrics });
                }
                Message::CoreQuery { request, .. } => {
                    let (text, metrics) = (Bytes::new(), Vec::new());
                    world.answer(&envelope, 1, Message::CoreAnswer { request: *request, text, metrics });
                }
                other => panic!("{other:?}"),
            }
        }
        world.received()
    };
    let shown = told("INFO latencystats");
    assert!(shown.contains("latency_percentiles_usec_set:p50=1.000,p99=1024.000,p99.9=1024.000"), "{shown}");
    assert!(!told("INFO").contains("latency_percentiles"), "only where it is asked for");
}

#[test]
fn figures_of_the_memory_have_the_names_of_redis() {
    let mut world = World::new();
    let mut told = |command: &str| {
        world.send(&[command]);
        while let Some(envelope) = world.sent.pop_front() {
            match &envelope.message {
                Message::MetricsQuery { request } => {
                    let metrics = vec![("memory_bytes".to_owned(), 100), ("keys_0".to_owned(), 5)];
                    world.answer(&envelope, 1, Message::MetricsAnswer { request: *request, metrics });
                }
                Message::CoreQuery { request, .. } => {
                    let text = Bytes::new();
                    let metrics = vec![(crate::memory::ALLOCATED.to_owned(), 1_000)];
                    world.answer(&envelope, 1, Message::CoreAnswer { request: *request, text, metrics });
                }
                other => panic!("{other:?}"),
            }
        }
        world.received()
    };
    let stats = told("MEMORY STATS");
    assert!(stats.contains("|keys.count|:20|") && stats.contains("|dataset.bytes|:400|"), "{stats}");
    let malloc = told("MEMORY MALLOC-STATS");
    assert!(malloc.contains("jemalloc: allocated "), "{malloc}");
    assert_eq!(world.ask("MEMORY STATS x"), "-ERR wrong number of arguments for 'memory|stats' command|");
}

#[test]
fn what_an_exec_answers_of_its_commands_counts_among_the_errors() {
    let mut world = World::new();
    world.ask("MULTI");
    world.ask("AUTH secret");
    assert!(world.ask("EXEC").starts_with("*1|-ERR AUTH <password> called without any password"));
    let errors = world.sessions.core.counters.metrics(world.now);
    let total = errors.iter().find(|(name, _)| name == "total_error_replies");
    assert_eq!(total.map(|(_, count)| *count), Some(1));
}

#[test]
fn hyperloglogs_count_as_they_should() {
    assert_eq!(World::new().ask("PFSELFTEST"), "+OK|");
    assert_eq!(World::new().ask("MOVE a b"), "-ERR value is not an integer or out of range|");
}

/// What `HELP` names can be listed, and permitted alone.
#[test]
fn the_table_has_what_help_names() {
    let mut world = World::new();
    for spec in command::TABLE.iter().filter(|spec| spec.subcommands.contains(&"help")) {
        let help = world.ask(&format!("{} HELP", spec.name));
        if help.starts_with("-NOBRANCHES") {
            continue;
        }
        let lines = help.split('|').skip(2).filter_map(|line| line.strip_prefix('+'));
        let words = lines.filter_map(|line| line.split(' ').next());
        let is_name = |word: &&str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
        };
        for word in words.filter(is_name) {
            let args = [spec.name.into(), word.to_owned().into()];
            let is_known = spec.subcommand(&args).is_some() || command::lookup(word.as_bytes()).is_some();
            assert!(is_known, "{} has no {word}", spec.name);
        }
        assert!(help.starts_with('*'), "{}: {help}", spec.name);
    }
}

/// A subcommand with arguments that it does not take is known all the same.
#[test]
fn a_known_subcommand_is_refused_for_its_arguments() {
    let mut world = World::new();
    for (name, known) in [("CLIENT TRACKING", "client|tracking"), ("CLIENT CACHING", "client|caching")] {
        assert_eq!(world.ask(name), format!("-ERR wrong number of arguments for '{known}' command|"));
    }
    assert_eq!(world.ask("CLIENT NOPE"), "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.|");
}
