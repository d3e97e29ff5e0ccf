//! The handshake, and commands about connections and the server.

use super::*;

fn with_password() -> World {
    World::with(NodeConfig { users: users_with_password("secret"), ..config() })
}

#[test]
fn the_gate_before_authentication() {
    let mut world = with_password();
    assert_eq!(world.ask("GET a"), "-NOAUTH Authentication required.|");
    assert_eq!(world.ask("PING"), "-NOAUTH Authentication required.|");
    assert!(world.ask("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.|";
    // Too short, too long, and as long with one character changed.
    for command in [
        "AUTH secre",
        "AUTH secrets",
        "AUTH tecret",
        "AUTH secreT",
        "AUTH nobody secret",
        "HELLO 3 AUTH default wrong",
    ] {
        assert_eq!(world.ask(command), wrong);
    }
    assert_eq!(world.ask("AUTH a b c"), "-ERR syntax error|");
    assert_eq!(world.ask("AUTH default secret"), "+OK|");
    assert_eq!(world.ask("PING"), "+PONG|");
    assert_eq!(world.ask("RESET"), "+RESET|");
    assert_eq!(world.ask("PING"), "-NOAUTH Authentication required.|");
    assert_eq!(world.ask("AUTH secret"), "+OK|");
}

#[test]
fn auth_without_a_password() {
    let mut world = World::new();
    assert!(world.ask("AUTH x").starts_with("-ERR AUTH <password> called without any password configured"));
    assert_eq!(world.ask("AUTH default anything"), "+OK|");
}

#[test]
fn hello_in_both_versions() {
    let mut world = World::new();
    assert_eq!(
        world.ask("HELLO 3 SETNAME me"),
        "%7|$6|server|$5|ensue|$7|version|$5|7.2.4|$5|proto|:3|$2|id|:7|$4|mode|$10|standalone|$4|role|$6|master|\
         $7|modules|*0|"
    );
    assert_eq!(world.ask("CLIENT GETNAME"), "$2|me|");
    world.send(&[&format!("GET {}", key(0, 0))]);
    world.executed(vec![Reply::Nil]);
    assert_eq!(world.received(), "_|");
    assert!(world.ask("HELLO 2").starts_with("*14|$6|server|"));
    assert_eq!(world.ask("HELLO 4"), "-NOPROTO unsupported protocol version|");
    assert_eq!(world.ask("HELLO x"), "-ERR Protocol version is not an integer or out of range|");
    assert_eq!(world.ask("HELLO 2 NONSENSE"), "-ERR Syntax error in HELLO option 'NONSENSE'|");
    assert!(world.ask("HELLO").starts_with("*14|"));
}

#[test]
fn small_commands() {
    let mut world = World::new();
    world.send(&["PING", "PING hi", "ECHO x", "SELECT 1", "SELECT 3", "SELECT a", "TIME"]);
    assert_eq!(
        world.received(),
        "+PONG|$2|hi|$1|x|+OK|-ERR DB index is out of range|-ERR value is not an integer or out of range|\
         *2|$10|1700000000|$1|0|"
    );
    assert_eq!(world.ask("COMMAND COUNT"), format!(":{}|", ensue_resp::command::TABLE.len()));
}

#[test]
fn config_commands() {
    let mut world = World::new();
    assert_eq!(world.ask("CONFIG GET save APPEND*"), "*4|$10|appendonly|$3|yes|$4|save|$0||");
    assert_eq!(world.ask("CONFIG GET nothing"), "*0|");
    assert!(
        world
            .ask("CONFIG SET save x")
            .starts_with("-ERR CONFIG SET failed (possibly related to argument 'save')")
    );
    assert_eq!(world.ask("CONFIG GET"), "-ERR wrong number of arguments for 'config|get' command|");
}

#[test]
fn client_commands() {
    let mut world = World::new();
    assert_eq!(world.ask("CLIENT ID"), ":7|");
    assert_eq!(world.ask("CLIENT GETNAME"), "$-1|");
    assert_eq!(world.ask("CLIENT SETNAME app"), "+OK|");
    assert_eq!(world.ask("CLIENT SETINFO LIB-NAME py(x)"), "+OK|");
    assert_eq!(world.ask("CLIENT SETINFO lib-size 1"), "-ERR Unrecognized option 'lib-size'|");
    assert_eq!(world.ask("CLIENT NO-EVICT on"), "+OK|");
    assert_eq!(world.ask("CLIENT GETREDIR"), ":-1|");
    assert_eq!(world.ask("CLIENT TRACKINGINFO"), "*6|$5|flags|*1|$3|off|$8|redirect|:-1|$8|prefixes|*0|");
    assert_eq!(world.ask("CLIENT REPLY on"), "+OK|");
    assert_eq!(world.ask("CLIENT REPLY maybe"), "-ERR syntax error|");
    let info = world.ask("CLIENT INFO");
    assert!(info.contains(" cmd=client|info "), "{info}");
    assert!(info.contains("id=7 addr=10.0.0.1:5000 laddr=10.0.0.2:6379 fd=0 name=app "), "{info}");
    assert!(info.contains(" lib-name=py(x) "), "{info}");
    assert_eq!(
        world.ask("CLIENT MAINT_NOTIFICATIONS ON"),
        "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.|"
    );
    assert_eq!(world.ask("CLIENT SETNAME"), "-ERR wrong number of arguments for 'client|setname' command|");
}

/// Sends a command that is carried out by both cores; the other one answers this.
pub(super) fn order(world: &mut World, command: &str, other: &str) -> String {
    world.send(&[command]);
    while let Some(envelope) = world.sent.pop_front() {
        let Message::CoreQuery { request, .. } = &envelope.message else { panic!("{:?}", envelope.message) };
        if envelope.to == envelope.from {
            world.sessions.on_message(world.now, envelope);
            world.drain();
            let answer = world.sent.pop_back().expect("this core answers");
            world.sessions.on_message(world.now, answer);
            world.drain();
        } else {
            let (text, metrics) = (Bytes::copy_from_slice(other.as_bytes()), Vec::new());
            world.answer(&envelope, 1, Message::CoreAnswer { request: *request, text, metrics });
        }
    }
    world.received()
}

#[test]
fn clients_of_all_cores_are_closed() {
    let mut world = World::new();
    assert_eq!(order(&mut world, "CLIENT KILL ID 99", ":0\r\n"), ":0|");
    assert_eq!(order(&mut world, "CLIENT KILL ID 99", ":1\r\n"), ":1|");
    assert_eq!(order(&mut world, "CLIENT KILL TYPE normal", ":4\r\n"), ":4|");
    assert_eq!(order(&mut world, "CLIENT KILL 10.0.0.9:1", ":0\r\n"), "-ERR No such client|");
    for (command, error) in [
        ("CLIENT KILL ID 0", "-ERR client-id should be greater than 0|"),
        ("CLIENT KILL TYPE wrong", "-ERR Unknown client type 'wrong'|"),
        ("CLIENT KILL SKIPME maybe", "-ERR syntax error|"),
        ("CLIENT KILL ID 1 ADDR", "-ERR syntax error|"),
        ("CLIENT KILL USER bob", "-ERR No such user 'bob'|"),
        ("CLIENT UNBLOCK 1 NOW", "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR|"),
    ] {
        assert_eq!(world.ask(command), error);
    }
    assert_eq!(order(&mut world, "CLIENT KILL ID 7 SKIPME no", ":0\r\n"), ":1|");
    assert!(world.disconnected, "it has its answer first");
}

/// What a core answers to an order of a session of another one.
fn ordered_by(world: &mut World, core: CoreId, words: &str) -> String {
    let from = Address::Core { datacenter: DatacenterId(0), core };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    let request = RequestId { core, boot: 3, session: CLIENT, sequence: 1 };
    let message = Message::CoreQuery { request, query: ensue_wire::CoreQuery::Order(args(words)) };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.drain();
    match world.next().message {
        Message::CoreAnswer { text, .. } => String::from_utf8_lossy(&text).into_owned(),
        other => panic!("{other:?} is no answer"),
    }
}

#[test]
fn the_client_that_asks_is_spared_and_none_of_its_number_on_another_core() {
    let mut world = World::new();
    assert_eq!(ordered_by(&mut world, CoreId(0), "kill 7 user default"), ":0\r\n");
    assert!(!world.disconnected);
    assert_eq!(ordered_by(&mut world, CoreId(1), "kill 7 user default"), ":1\r\n");
    assert!(world.disconnected);
}

/// A core whose clients pause, and somebody who has come by another door.
fn visited_in_a_pause() -> World {
    let mut world = World::new();
    assert_eq!(order(&mut world, "CLIENT PAUSE 1000", "+OK\r\n"), "+OK|");
    world.leave();
    world.sessions.on_visitor(world.now, CLIENT, ["10.0.0.1:1".into(), "10.0.0.2:9121".into()]);
    world
}

#[test]
fn who_looks_at_a_node_is_held_back_neither_by_a_pause_nor_by_a_script() {
    let mut world = visited_in_a_pause();
    world.send(&["INFO none"]);
    assert!(!world.sessions.sessions[&CLIENT].is_blocked(), "figures are gathered, or were");
    let mut world = visited_in_a_pause();
    assert_eq!(world.ask("PING"), "+PONG|");
    let get = format!("GET {}", key(0, 0));
    world.send(&[&get]);
    assert!(world.sent.is_empty() && world.sessions.sessions[&CLIENT].is_blocked(), "that is no figure");
    world.pass_ms(1_001);
    world.executed(vec![bulk("v")]);
    assert_eq!(world.received(), "$1|v|");
    world.sessions.set_busy(Some("BUSY with a script"));
    assert_eq!(world.ask("PING"), "+PONG|");
    assert_eq!(world.ask(&get), "-BUSY with a script|");
}

#[test]
fn a_pause_holds_back_what_it_is_for_until_it_ends() {
    let mut world = World::new();
    let (get, set) = (format!("GET {}", key(0, 0)), format!("SET {} v", key(0, 0)));
    assert_eq!(order(&mut world, "CLIENT PAUSE 1000 WRITE", "+OK\r\n"), "+OK|");
    world.send(&[&get]);
    world.executed(vec![bulk("v")]);
    assert_eq!(world.received(), "$1|v|");
    world.send(&[&set]);
    assert!(world.sent.is_empty());
    world.pass_ms(1_001);
    world.executed(vec![Reply::OK]);
    assert_eq!(world.received(), "+OK|");

    assert_eq!(order(&mut world, "CLIENT PAUSE 1000", "+OK\r\n"), "+OK|");
    world.send(&[&get, "PING"]);
    assert_eq!((world.received().as_str(), world.sent.len()), ("", 0));
    world.pass_ms(500);
    assert_eq!(world.received(), "");
    world.pass_ms(501);
    world.executed(vec![bulk("v")]);
    assert_eq!(world.received(), "$1|v|+PONG|");
    assert_eq!(world.ask("CLIENT PAUSE x"), "-ERR timeout is not an integer or out of range|");
    assert_eq!(world.ask("CLIENT PAUSE 1 SOME"), "-ERR CLIENT PAUSE mode must be WRITE or ALL|");
}

#[test]
fn a_pause_of_writes_lets_scripts_pass_that_write_nothing() {
    let mut world = World::new();
    let key = key(0, 0);
    assert_eq!(order(&mut world, "CLIENT PAUSE 1000 WRITE", "+OK\r\n"), "+OK|");
    assert_eq!(world.ask("SET a"), "-ERR wrong number of arguments for 'set' command|", "it is no write");
    for (name, word) in [("EVALSHA abc", "script"), ("FCALL abc", "function")] {
        world.send(&[&format!("{name} 1 {key}")]);
        assert_eq!(executes(&world.sent[0]), [format!("{word} reads abc")]);
        world.executed(vec![Reply::Integer(1)]);
        world.executed(vec![bulk("v")]);
        assert_eq!(world.received(), "$1|v|");
    }
    let eval = |text: &str, numbers: &str| {
        let words = ["EVAL", text, numbers, &key];
        words.map(|word| Bytes::copy_from_slice(word.as_bytes())).to_vec()
    };
    world.sessions.on_commands(world.now, CLIENT, vec![eval("#!lua flags=no-writes\nreturn 1", "1")]);
    world.drain();
    assert!(!world.sent.is_empty(), "its text says so");

    let mut world = World::new();
    assert_eq!(order(&mut world, "CLIENT PAUSE 1000 WRITE", "+OK\r\n"), "+OK|");
    world.send(&[&format!("EVALSHA abc 1 {key}")]);
    world.executed(vec![Reply::Integer(0)]);
    assert_eq!((world.received().as_str(), world.sent.len()), ("", 0), "it may write");
    world.pass_ms(1_001);
    world.executed(vec![bulk("v")]);
    assert_eq!(world.received(), "$1|v|");

    let mut world = World::new();
    assert_eq!(order(&mut world, "CLIENT PAUSE 1000 WRITE", "+OK\r\n"), "+OK|");
    world.sessions.on_commands(world.now, CLIENT, vec![eval("#!lua\nreturn 1", "1")]);
    world.drain();
    assert!(world.sent.is_empty(), "its text does not say so");
}

#[test]
fn answers_that_a_client_does_not_want() {
    let mut world = World::new();
    world.send(&["CLIENT REPLY SKIP", "PING", "PING"]);
    assert_eq!(world.received(), "+PONG|");
    world.send(&["CLIENT REPLY OFF", "PING", "CLIENT REPLY SKIP", "PING", "CLIENT REPLY ON", "ECHO a"]);
    assert_eq!(world.received(), "+OK|$1|a|");
    assert_eq!(world.answered, 9, "those that were not sent count");
}

#[test]
fn parameters_are_set_in_all_cores() {
    let mut world = World::new();
    assert_eq!(order(&mut world, "CONFIG SET hz 20 slowlog-max-len 5", "+OK\r\n"), "+OK|");
    assert_eq!(world.ask("CONFIG GET hz"), "*2|$2|hz|$2|20|");
    assert!(world.configured.is_empty(), "the host has nothing to do with that");
    assert_eq!(order(&mut world, "CONFIG SET timeout 9 loglevel debug", "+OK\r\n"), "+OK|");
    let told = world.configured.pop().expect("the host is told");
    assert_eq!((told.timeout_s, told.log_level.as_str(), told.clients_max), (9, "debug", 10_000));
    assert_eq!(world.ask("CONFIG SET appendonly yes"), "+OK|");
    let failed =
        "-ERR CONFIG SET failed (possibly related to argument 'appendonly') - can't set immutable config|";
    assert_eq!(world.ask("CONFIG SET appendonly no"), failed);
}

#[test]
fn a_command_that_waits_for_somebody_else_is_kept_when_it_goes_on() {
    let mut world = World::new();
    order(&mut world, "CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    order(&mut world, "SLOWLOG RESET", "+OK\r\n");
    world.sessions.on_turn_end(world.now, 1);
    order(&mut world, "SLOWLOG RESET", "+OK\r\n");
    let list = key(0, 0);
    world.send(&[&format!("BLPOP {list} 0")]);
    world.sessions.on_turn_end(world.now, 7);
    world.executed(vec![Reply::NilArray]);
    world.sessions.on_turn_end(world.now, 9);
    let entries = order(&mut world, "SLOWLOG GET", "*0\r\n");
    assert!(entries.contains(&format!(":9|*3|$5|BLPOP|${}|{list}|$1|0|", list.len())), "{entries}");
    assert_eq!(entries.matches("BLPOP").count(), 1, "{entries}");
}

#[test]
fn slow_commands_are_kept_without_passwords() {
    let mut world = World::new();
    order(&mut world, "CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    world.ask("AUTH default hunter2");
    order(&mut world, "CONFIG SET requirepass hunter2", "+OK\r\n");
    world.sessions.on_turn_end(world.now, 7);
    let entries = order(&mut world, "SLOWLOG GET", "*0\r\n");
    assert!(entries.contains("requirepass") && !entries.contains("hunter2"), "{entries}");
}

#[test]
fn slow_commands_are_kept() {
    let mut world = World::new();
    assert_eq!(
        order(&mut world, "CONFIG SET slowlog-log-slower-than 100 slowlog-max-len 2", "+OK\r\n"),
        "+OK|"
    );
    for (command, took_us) in [("ECHO fast", 99), ("ECHO a", 100), ("ECHO b", 200), ("ECHO c", 300)] {
        world.ask(command);
        world.sessions.on_turn_end(world.now, took_us);
    }
    let entry = |id: u8, took_us: u16, word: &str| {
        format!("*6|:{id}|:1700000000|:{took_us}|*2|$4|ECHO|$1|{word}|$13|10.0.0.1:5000|$0||")
    };
    let entries = format!("*2|{}{}", entry(2, 300, "c"), entry(1, 200, "b"));
    assert_eq!(order(&mut world, "SLOWLOG GET", "*0\r\n"), entries);
    assert_eq!(order(&mut world, "SLOWLOG LEN", ":3\r\n"), ":5|");
    assert_eq!(order(&mut world, "SLOWLOG RESET", "+OK\r\n"), "+OK|");
    assert_eq!(order(&mut world, "SLOWLOG GET -1", "*0\r\n"), "*0|");
    assert_eq!(world.ask("SLOWLOG GET -2"), "-ERR count should be greater than or equal to -1|");
}

#[test]
fn quit_and_broken_framing_end_the_connection_after_the_answers() {
    let mut world = World::new();
    world.send(&["PING", "QUIT", "PING"]);
    assert_eq!(world.received(), "+PONG|+OK|");
    assert!(world.disconnected);

    let mut world = World::new();
    world.send(&[&format!("GET {}", key(0, 0))]);
    world.sessions.on_broke(world.now, CLIENT, "ERR Protocol error: invalid bulk length".into());
    world.drain();
    assert_eq!((world.received().as_str(), world.disconnected), ("", false));
    world.executed(vec![bulk("v")]);
    assert_eq!(world.received(), "$1|v|-ERR Protocol error: invalid bulk length|");
    assert_eq!((world.answered, world.disconnected), (1, true));
}

#[test]
fn a_node_that_shuts_down_begins_nothing() {
    let mut world = World::new();
    world.send(&[&format!("SET {} v", key(0, 0)), &format!("GET {}", key(1, 0))]);
    world.sessions.on_shutdown();
    world.executed(vec![Reply::OK]);
    assert_eq!(world.received(), "+OK|-UNAVAILABLE this node is shutting down|");
}

/// Answers every question of a metrics query; core 0's by the sessions themselves.
fn answer_metrics_query(world: &mut World, metrics: &[(&str, i64)]) {
    while let Some(envelope) = world.sent.pop_front() {
        let metrics: Vec<_> = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        match &envelope.message {
            Message::MetricsQuery { request } => {
                let message = Message::MetricsAnswer { request: *request, metrics };
                world.answer(&envelope, 1, message);
            }
            Message::CoreQuery { request, .. } if envelope.to == envelope.from => {
                world.sessions.on_message(world.now, envelope.clone());
                let Some(SessionOutput::Send(answer)) = world.sessions.next_output() else {
                    panic!("{request:?}")
                };
                world.sessions.on_message(world.now, answer);
                world.drain();
            }
            Message::CoreQuery { request, .. } => {
                let text = "id=9 addr=x\n".into();
                let metrics = vec![("connected_clients".to_owned(), 2)];
                world.answer(&envelope, 1, Message::CoreAnswer { request: *request, text, metrics });
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn info_sums_the_figures_of_everyone() {
    let mut world = World::new();
    world.send(&["INFO"]);
    assert_eq!(world.sent.len(), 6);
    answer_metrics_query(
        &mut world,
        &[("keys_0", 5), ("expires_0", 1), ("memory_bytes", 100), ("conflicts", 2)],
    );
    let info = world.received();
    for line in [
        "redis_version:7.2.4|server_name:ensue|",
        "|tcp_port:6379|",
        "|connected_clients:3|",
        "|used_memory:400|",
        "|loading:0|",
        "|total_commands_processed:1|",
        "|role:master|",
        "# Keyspace|db0:keys=20,expires=4,avg_ttl=0|",
        "# Keyspaces|keyspace0:protocol=eiger,snapshot_reads=two-rounds,write_transactions=yes,causality=yes,\
         available=yes|keyspace2:protocol=eventual,snapshot_reads=none,write_transactions=no,causality=no,\
         available=yes|",
        "|ensue_conflicts:8|",
        "|ensue_silent_peers:0|",
    ] {
        assert!(info.contains(line), "{line} is missing in {info}");
    }
    let server = world.ask("INFO server");
    assert!(server.contains("redis_version") && !server.contains("# Clients"));
}

#[test]
fn info_names_its_sections_as_redis_does() {
    let mut world = World::new();
    let mut titles = |command: &str| {
        world.send(&[command]);
        answer_metrics_query(&mut world, &[]);
        let info = world.received();
        let titles = info.split('|').filter_map(|line| line.strip_prefix("# ").map(str::to_lowercase));
        titles.collect::<Vec<String>>().join(" ")
    };
    let default = titles("INFO");
    assert_eq!(
        default,
        "server clients memory persistence stats replication cpu modules errorstats cluster keyspace keyspaces ensue"
    );
    assert_eq!(titles("INFO default"), default);
    let everything = default.replace("errorstats", "commandstats errorstats latencystats");
    assert_eq!(titles("INFO everything"), everything);
    assert_eq!(titles("INFO ALL"), titles("INFO everything").replace("modules ", ""));
    assert_eq!(titles("INFO commandstats Keyspace nonsense"), "commandstats keyspace");
}

#[test]
fn commands_are_counted_with_what_became_of_them() {
    let mut world = World::new();
    world.ask("PING");
    world.ask("PING");
    world.ask("CLIENT ID");
    world.ask("PING a b c");
    world.ask("GET");
    world.ask("AUTH secret");
    world.ask("nonsense");
    world.send(&["MULTI", &format!("SET {} v", key(0, 0)), &format!("INCR {}", key(1, 0)), "EXEC"]);
    let envelope = world.next();
    let replies = vec![(0, Reply::OK), (1, Reply::error("WRONGTYPE no"))];
    let done = Message::Transacted { request: request(&envelope), context: Context::default(), replies };
    world.answer(&envelope, 1, done);
    world.send(&["DBSIZE"]);
    for _ in 0..4 {
        world.executed(vec![Reply::Integer(0)]);
    }
    world.received();
    // What partitions have counted is added.
    let counted = [("cmdstat_get:calls", 5), ("cmdstat_get:ns", 5_000), ("keyspace_hits", 2)];
    world.send(&["INFO everything"]);
    answer_metrics_query(&mut world, &counted);
    let info = world.received();
    let line = |name: &str, counts: [u64; 3]| {
        let [calls, rejected, failed] = counts;
        let begin = format!("cmdstat_{name}:calls={calls},");
        let end = format!(",rejected_calls={rejected},failed_calls={failed}");
        let is_there = info.split('|').any(|line| line.starts_with(&begin) && line.ends_with(&end))
            || info.contains(&format!("|{begin}")) && info.contains(&format!("{end}|"));
        assert!(is_there, "{name} {counts:?} in {info}");
    };
    line("ping", [3, 0, 1]);
    line("auth", [1, 0, 1]);
    line("multi", [1, 0, 0]);
    line("exec", [1, 0, 0]);
    line("set", [1, 0, 0]);
    line("incr", [1, 0, 1]);
    line("dbsize", [1, 0, 0]);
    assert!(info.contains("cmdstat_client|id:calls=1,"), "{info}");
    assert!(
        info.contains("|cmdstat_get:calls=20,usec=20,usec_per_call=1.00,rejected_calls=1,failed_calls=0|"),
        "{info}"
    );
    // The second is that of a command inside the transaction.
    for words in [
        "|errorstat_ERR:count=4|",
        "|errorstat_WRONGTYPE:count=1|",
        "|total_error_replies:5|",
        "|keyspace_hits:8|",
    ] {
        assert!(info.contains(words), "{words} in {info}");
    }
}

#[test]
fn a_rate_is_that_of_the_last_second() {
    let mut world = World::new();
    let rate = |world: &mut World| {
        world.send(&["INFO stats"]);
        answer_metrics_query(world, &[]);
        let info = world.received();
        let line = info.split('|').find_map(|line| line.strip_prefix("instantaneous_ops_per_sec:"));
        line.and_then(|rate| rate.parse::<u64>().ok()).expect("a rate")
    };
    for _ in 0..100 {
        world.ask("PING");
        world.pass_ms(10);
    }
    world.pass_ms(20);
    assert!((95..=105).contains(&rate(&mut world)));
    world.pass_ms(60_000);
    assert_eq!(rate(&mut world), 0);
}

#[test]
fn statistics_are_reset_everywhere() {
    let mut world = World::new();
    world.ask("PING");
    world.send(&["CONFIG RESETSTAT"]);
    assert_eq!(world.sent.len(), 2, "every core of the datacenter is asked");
    answer_metrics_query(&mut world, &[]);
    assert_eq!(world.received(), "+OK|");
    assert!(world.sessions.take_reset() && !world.sessions.take_reset());
    world.send(&["INFO commandstats stats"]);
    answer_metrics_query(&mut world, &[]);
    let info = world.received();
    assert!(!info.contains("cmdstat_ping"), "{info}");
    world.send(&["CONFIG RESETSTAT"]);
    world.sessions.on_link_down(world.now, CoreId(1));
    world.drain();
    answer_metrics_query(&mut world, &[]);
    assert!(world.received().starts_with("-UNAVAILABLE "));
}

#[test]
fn info_and_client_list_do_without_the_silent_ones() {
    let mut world = World::new();
    world.send(&["INFO clients ensue"]);
    world.sessions.on_link_down(world.now, CoreId(1));
    world.drain();
    world.sent.retain(|envelope| match envelope.to {
        Address::Partition { partition, .. } => partition.0 < 2,
        Address::Core { core, .. } => core == CoreId(0),
    });
    answer_metrics_query(&mut world, &[]);
    let info = world.received();
    assert!(info.contains("|connected_clients:1|") && info.contains("|ensue_silent_peers:3|"), "{info}");
    world.sessions.on_link_up(CoreId(1));

    world.send(&["CLIENT LIST"]);
    answer_metrics_query(&mut world, &[]);
    let list = world.received();
    assert!(list.contains("id=7 addr=10.0.0.1:5000 ") && list.contains("id=9 addr=x\n"), "{list}");
    world.send(&["CLIENT LIST ID 9"]);
    world.pass_ms(5_000);
    assert_eq!(world.received(), "$0||");
}

#[test]
fn info_does_not_wait_for_a_partition_that_moves() {
    let mut config = config();
    config.topology.datacenters[0].replicas = vec![vec![CoreId(0), CoreId(1)]; 4];
    let (mut world, here) = (World::with(config), DatacenterId(0));
    for partition in (0..4).map(PartitionId) {
        world.sessions.placement_mut().on_leader(here, partition, CoreId(partition.0 / 2), 1);
    }
    // It has an owner while it is asked, and then none.
    world.send(&["INFO ensue"]);
    world.sessions.placement_mut().on_gone(here, PartitionId(3), CoreId(1));
    world.sessions.on_partition_moved(world.now, PartitionId(3));
    world.drain();
    world.sent.retain(|envelope| {
        !matches!(envelope.to, Address::Partition { partition, .. } if partition == PartitionId(3))
    });
    answer_metrics_query(&mut world, &[]);
    let info = world.received();
    assert!(info.contains("|ensue_silent_peers:1|"), "{info}");
    // Nobody owns it yet, and its last core is there.
    world.send(&["INFO ensue"]);
    answer_metrics_query(&mut world, &[]);
    let info = world.received();
    assert!(info.contains("|ensue_silent_peers:1|"), "{info}");
}

#[test]
fn info_says_the_names_of_the_datacenters() {
    let mut config = config();
    for (datacenter, name) in config.topology.datacenters.iter_mut().zip(["lisbon", "porto"]) {
        datacenter.name = name.into();
    }
    let info = World::with(config).ask("INFO replication");
    assert!(info.contains("ensue_datacenter_name:lisbon|"), "{info}");
    assert!(info.contains("ensue_other_datacenter_names:porto|"), "{info}");
}

/// Answers the errand that waits; its words.
fn errand_done(world: &mut World, done: crate::ErrandDone) -> crate::Errand {
    let (number, errand) = world.kept.pop().expect("an errand waits");
    world.sessions.on_errand_done(world.now, CLIENT, number, done);
    world.drain();
    errand
}

#[test]
fn a_password_that_is_set_is_that_of_the_default_user_at_once_and_is_not_shown() {
    let mut world = World::new();
    assert_eq!(order(&mut world, "CONFIG SET requirepass secret", "+OK\r\n"), "+OK|");
    assert_eq!(world.openness, [false]);
    assert_eq!(world.ask("CONFIG GET requirepass"), "*2|$11|requirepass|$8|(hidden)|");
    assert_eq!(world.ask("RESET"), "+RESET|");
    assert_eq!(world.ask("GET a"), "-NOAUTH Authentication required.|");
    assert!(world.ask("AUTH wrong").starts_with("-WRONGPASS"));
    assert_eq!(world.ask("AUTH secret"), "+OK|");
    assert_eq!(order(&mut world, "CONFIG SET requirepass secret maxmemory 7", "+OK\r\n"), "+OK|");
    assert_eq!(world.ask("CONFIG GET maxmemory"), "*2|$9|maxmemory|$1|7|");
    let open = vec!["CONFIG", "SET", "requirepass", ""];
    let open = open.into_iter().map(|word| Bytes::from_static(word.as_bytes())).collect();
    world.sessions.on_commands(world.now, CLIENT, vec![open]);
    world.drain();
    assert_eq!(order(&mut world, "PING", "+OK\r\n"), "+OK|+PONG|");
    assert_eq!(world.openness, [false, true]);
}

#[test]
fn files_of_certificates_are_read_before_they_are_set_and_are_of_one_node() {
    let mut world = World::new();
    world.keeps_errands = true;
    world.send(&["CONFIG SET tls-cert-file new.pem tls-key-file new.key"]);
    let errand = errand_done(&mut world, crate::ErrandDone::Configured(Err("no such file".into())));
    let files = crate::CertificateFiles {
        certificate: Some("new.pem".into()),
        key: Some("new.key".into()),
        authorities: None,
        revocations: None,
    };
    assert!(errand == crate::Errand::Certificates(files));
    assert_eq!(
        world.received(),
        "-ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - Unable to update TLS configuration: \
         no such file|"
    );
    assert_eq!(world.ask("CONFIG GET tls-key-file"), "*2|$12|tls-key-file|$0||");
    world.send(&["CONFIG SET tls-cert-file new.pem"]);
    errand_done(&mut world, crate::ErrandDone::Configured(Ok(())));
    assert_eq!(order(&mut world, "PING", "+OK\r\n"), "+OK|+PONG|");
    assert_eq!(world.ask("CONFIG GET tls-cert-file"), "*2|$13|tls-cert-file|$7|new.pem|");
    assert!(world.ask("CONFIG SET tls-cert-file a maxmemory 1").starts_with("-ERR CONFIG SET failed"));
    // The same order of another node sets nothing here.
    let words =
        ["set-of-node", "1", "tls-cert-file", "other.pem"].map(|word| Bytes::from_static(word.as_bytes()));
    let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
    let to = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    let query = ensue_wire::CoreQuery::Order(words.to_vec());
    let message = Message::CoreQuery { request: RequestId::default(), query };
    world.sessions.on_message(world.now, Envelope { from, to, time: LogicalTime::ZERO, message });
    world.drain();
    world.sent.clear();
    assert_eq!(world.ask("CONFIG GET tls-cert-file"), "*2|$13|tls-cert-file|$7|new.pem|");
}

#[test]
fn what_was_set_is_rewritten_and_what_was_not_is_left_alone() {
    let mut world = World::new();
    world.keeps_errands = true;
    let rewrite = |world: &mut World| {
        world.send(&["CONFIG REWRITE"]);
        let crate::Errand::Rewrite { settings, users } =
            errand_done(world, crate::ErrandDone::Configured(Ok(())))
        else {
            panic!("another errand")
        };
        assert_eq!(world.received(), "+OK|");
        let settings: Vec<String> =
            settings.iter().map(|one| format!("{} {}", one.name, one.value)).collect();
        let text = |line: &Bytes| String::from_utf8_lossy(line).into_owned();
        (settings, users.map(|users| users.iter().map(text).collect::<Vec<_>>()))
    };
    assert_eq!(rewrite(&mut world), (Vec::new(), None));
    order(&mut world, "CONFIG SET maxmemory 1kb", "+OK\r\n");
    assert_eq!(rewrite(&mut world), (vec!["maxmemory 1024".to_owned()], None));
    order(&mut world, "CONFIG SET requirepass secret", "+OK\r\n");
    let (settings, users) = rewrite(&mut world);
    assert_eq!(settings, ["maxmemory 1024"]);
    let hash = ensue_acl::Verifier::sha256(b"secret").to_string();
    assert_eq!(users, Some(vec![format!("user default on sanitize-payload #{hash} ~* &* +@all")]));
    world.send(&["CONFIG REWRITE"]);
    errand_done(
        &mut world,
        crate::ErrandDone::Configured(Err("The server is running without a config file".into())),
    );
    assert_eq!(world.received(), "-ERR The server is running without a config file|");
}

#[test]
fn new_users_may_use_all_channels_where_that_is_the_default() {
    let mut world = World::new();
    assert_eq!(order(&mut world, "ACL SETUSER first on nopass", "+OK\r\n"), "+OK|");
    assert_eq!(order(&mut world, "CONFIG SET acl-pubsub-default allchannels", "+OK\r\n"), "+OK|");
    assert_eq!(order(&mut world, "ACL SETUSER second on nopass (+get)", "+OK\r\n"), "+OK|");
    assert_eq!(order(&mut world, "ACL SETUSER third on nopass resetchannels", "+OK\r\n"), "+OK|");
    let list = world.ask("ACL LIST");
    for line in [
        "user first on nopass sanitize-payload resetchannels -@all|",
        "user second on nopass sanitize-payload &* -@all (&* -@all +get)|",
        "user third on nopass sanitize-payload resetchannels -@all|",
    ] {
        assert!(list.contains(line), "{line} in {list}");
    }
}
