//! Scripts that pause: what arrives meanwhile is held, in order, and nothing is seen to happen between their steps.

use super::{World, receive_columns};
use crate::config::Tuning;
use crate::{AppendFsync, Input, NodeConfig};
use bytes::Bytes;
use ensue_store::disk::{DiskOp, FileName};
use ensue_types::{Args, Column, CoreId, DatacenterId, Position, SessionId, limits};
use ensue_wire::CoreName;

/// It adds 100 elements to a list, one by one.
const LONG: &str =
    "for i = 1, 100 do redis.call('RPUSH', KEYS[1], 's') end return redis.call('LLEN', KEYS[1])";
const ENDLESS: &str = "while true do end";
const BUSY: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.|";

struct Clients(World);

impl Clients {
    /// A node of these settings, and clients 1 to 9.
    fn with(protocol: &str, tuning: Tuning) -> Clients {
        let mut world = World::with(NodeConfig {
            protocols: vec![protocol.into(); usize::from(limits::KEYSPACES)],
            tuning,
            ..super::config(AppendFsync::EverySecond)
        });
        world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
        world.calm_down();
        (1..10).for_each(|client| world.connect(SessionId(client)));
        Clients(world)
    }

    fn new() -> Clients {
        Clients::with("eiger", pausing())
    }

    fn send(&mut self, client: u64, args: &[&str]) {
        let args: Args = args.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        self.0.give(Input::ClientCommands { session: SessionId(client), commands: vec![args] });
        self.0.give(Input::TurnEnd);
    }

    fn eval(&mut self, client: u64, script: &str) -> String {
        self.send(client, &["EVAL", script, "1", "l"]);
        self.answers()
    }

    fn ask(&mut self, client: u64, line: &str) -> String {
        self.send(client, &line.split(' ').collect::<Vec<_>>());
        self.answers()
    }

    /// What all clients were answered since the last call; `|` stands for the ends of lines.
    fn answers(&mut self) -> String {
        self.0.calm_down();
        let replies = std::mem::take(&mut self.0.replies);
        String::from_utf8_lossy(&replies).replace("\r\n", "|")
    }

    fn pass_us(&mut self, us: u64) -> String {
        self.0.now.monotonic_us += us;
        self.0.now.wall_ms += us / 1_000;
        self.0.give(Input::Timer);
        self.0.give(Input::TurnEnd);
        self.answers()
    }

    /// The node's timers, until the script ends; how often it had to go on.
    fn finish(&mut self) -> (String, u32) {
        let (mut answers, mut times) = (String::new(), 0);
        while self.is_in_script() {
            answers += &self.pass_us(1);
            times += 1;
        }
        (answers, times)
    }

    fn is_in_script(&self) -> bool {
        format!("{:?}", self.0.node).contains("paused: Some(")
    }

    /// How many commands the script has called.
    fn calls(&self) -> u32 {
        let node = format!("{:?}", self.0.node);
        let (_, behind) = node.split_once("selected: KeyspaceId(0), calls: ").expect("a script has paused");
        behind.split(',').next().and_then(|calls| calls.parse().ok()).expect("a number")
    }

    fn appends(&self) -> usize {
        let appends = |op: &&DiskOp| matches!(op, DiskOp::Append { file: FileName::Segment(_), .. });
        self.0.asked.iter().filter(appends).count()
    }
}

fn pausing() -> Tuning {
    Tuning { script_steps_to_pause: 200, checkpoint_bytes: 1, ..Tuning::default() }
}

/// Everything that may come while a script runs, and what clients were answered in the end.
fn eventful(protocol: &str, tuning: Tuning) -> (String, u32) {
    let mut clients = Clients::with(protocol, tuning);
    clients.ask(1, "RPUSH l first");
    let mut answers = clients.eval(1, LONG);
    clients.send(2, &["RPUSH", "l", "a"]);
    clients.send(3, &["LRANGE", "l", "-2", "-1"]);
    receive_columns(&mut clients.0, Position(1), &[(Column::Text, b"theirs")]);
    clients.send(4, &["RPUSH", "l", "b"]);
    let here = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };
    clients.0.give(Input::LinkDown { datacenter: here.datacenter, core: here.core });
    clients.0.give(Input::LinkUp { datacenter: here.datacenter, core: here.core });
    clients.send(5, &["EVAL", "return redis.call('LRANGE', KEYS[1], -2, -1)", "1", "l"]);
    receive_columns(&mut clients.0, Position(2), &[(Column::Text, b"later")]);
    clients.send(6, &["GET", "x"]);
    clients.send(7, &["EVAL", LONG, "1", "l"]);
    clients.send(8, &["LLEN", "l"]);
    answers += &clients.answers();
    let (rest, times) = clients.finish();
    answers += &rest;
    clients.pass_us(2_000_000);
    answers += &clients.ask(9, "CAUSAL DIGEST");
    clients.0.node.check_invariants();
    (answers, times)
}

#[test]
fn what_comes_while_a_script_pauses_is_as_if_it_had_never_paused() {
    for registration in ensue_protocol::REGISTRY.iter().filter(|one| one.name != "tardis") {
        let (answers, times) = eventful(registration.name, pausing());
        let (whole, none) =
            eventful(registration.name, Tuning { script_steps_to_pause: u64::MAX, ..pausing() });
        assert_eq!(none, 0);
        assert!(times > 20, "{}: it went on {times} times", registration.name);
        assert_eq!(answers, whole, "{}", registration.name);
        let shown = ":101|:102|*2|$1|s|$1|a|:103|";
        assert!(answers.starts_with(shown), "{}: {answers}", registration.name);
        assert!(answers.contains(":203|:203|"), "{}: {answers}", registration.name);
    }
}

#[test]
fn nothing_is_written_and_no_row_is_seen_until_the_script_ends() {
    let mut clients = Clients::new();
    assert_eq!(clients.eval(1, LONG), "");
    for client in 2..9 {
        clients.send(client, &["LLEN", "l"]);
        assert_eq!(clients.0.answered, 0);
        assert_eq!(clients.appends(), 0);
        clients.0.now.monotonic_us += 1_000;
        clients.0.give(Input::Timer);
        clients.0.give(Input::TurnEnd);
        assert_eq!((clients.answers().as_str(), clients.is_in_script()), ("", true));
        assert_eq!(clients.ask(9, "PING"), "+PONG|", "sessions go on");
        clients.0.answered = 0;
    }
    let (answers, _) = clients.finish();
    assert_eq!(answers, ":100|".repeat(8));
}

#[test]
fn a_script_goes_on_when_its_pause_is_over_and_no_timer_before_moves_it() {
    let mut clients = Clients::with("eiger", Tuning { script_pause_us: 1_000, ..pausing() });
    clients.eval(1, LONG);
    let begun_us = clients.0.now.monotonic_us;
    assert_eq!(clients.0.node.next_timer(), Some(begun_us + 1_000));
    let calls = clients.calls();
    clients.pass_us(999);
    assert_eq!(clients.calls(), calls);
    clients.pass_us(1);
    assert!(clients.calls() > calls);
}

#[test]
fn a_node_that_stops_stops_its_script_and_serves_what_was_held_before() {
    let mut clients = Clients::new();
    clients.ask(1, "RPUSH l first");
    clients.eval(2, LONG);
    clients.send(3, &["LRANGE", "l", "0", "-1"]);
    clients.send(4, &["RPUSH", "l", "last"]);
    clients.send(5, &["EVAL", LONG, "1", "l"]);
    clients.send(6, &["LLEN", "l"]);
    clients.0.give(Input::Shutdown);
    let answers = clients.answers();
    let stopped = "-UNAVAILABLE this partition stops; the script has changed nothing|";
    let held = format!("{stopped}*1|$5|first|:2|{stopped}:2|");
    assert_eq!(answers, held);
    assert!(clients.0.stopped, "it has stopped in good order");
}

#[test]
fn a_client_that_goes_away_does_not_end_its_script() {
    let mut clients = Clients::new();
    clients.eval(1, LONG);
    clients.send(2, &["RPUSH", "l", "gone"]);
    for client in [1, 2] {
        clients.0.give(Input::ClientGone { session: SessionId(client) });
        clients.0.give(Input::TurnEnd);
    }
    assert_eq!(clients.finish().0, "");
    assert_eq!(clients.ask(3, "LRANGE l -2 -1"), "*2|$1|s|$4|gone|");
}

#[test]
fn after_a_while_commands_are_refused_and_the_script_can_be_killed() {
    let mut clients = Clients::new();
    assert_eq!(clients.ask(1, "CONFIG SET busy-reply-threshold 100"), "+OK|");
    assert_eq!(clients.ask(9, "SCRIPT KILL"), "-NOTBUSY No scripts in execution right now.|");
    for command in ["MULTI", "INCR n"] {
        clients.ask(7, command);
    }
    clients.ask(8, "MULTI");
    clients.eval(1, ENDLESS);
    clients.send(2, &["SET", "held", "1"]);
    assert_eq!(clients.pass_us(99_000), "", "it is not long yet");
    assert_eq!(clients.pass_us(1_000), BUSY, "what was held is refused");
    for line in ["GET held", "PING", "INFO", "CONFIG GET x", "EVAL x 0", "SCRIPT FLUSH", "CLIENT ID"] {
        assert_eq!(clients.ask(3, line), BUSY, "{line}");
    }
    assert_eq!(clients.ask(3, "FUNCTION STATS"), BUSY);
    assert_eq!(clients.ask(3, "FUNCTION KILL"), BUSY);
    let aborted = "-EXECABORT Transaction discarded because of: BUSY ";
    assert!(clients.ask(7, "EXEC").starts_with(aborted));
    assert_eq!(clients.ask(8, "INCR n"), BUSY);
    for (line, answer) in [("HELLO 2", "*"), ("MULTI", "+OK|"), ("DISCARD", "+OK|"), ("RESET", "+RESET|")] {
        assert!(clients.ask(3, line).starts_with(answer), "{line}");
    }
    let sha = "694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7";
    let answers = clients.ask(3, "SCRIPT KILL");
    assert_eq!(answers, format!("+OK|-ERR Script killed by user with SCRIPT KILL. script: {sha}|"));
    assert_eq!(clients.ask(8, "EXEC"), "-EXECABORT Transaction discarded because of previous errors.|");
    assert_eq!(clients.ask(3, "MGET held n"), "*2|$-1|$-1|", "what was refused was not executed");
    assert_eq!(clients.ask(3, "SCRIPT KILL"), "-NOTBUSY No scripts in execution right now.|");
}

#[test]
fn a_script_that_has_written_cannot_be_killed_and_is_stopped_by_its_steps() {
    let mut clients = Clients::with("eiger", Tuning { script_paused_steps: 5_000, ..pausing() });
    clients.ask(1, "CONFIG SET busy-reply-threshold 100");
    clients.eval(1, "redis.call('SET', KEYS[1], 1) while true do end");
    clients.pass_us(100_000);
    let unkillable = "-UNKILLABLE Sorry the script already executed write commands against the dataset.";
    assert!(clients.ask(2, "SCRIPT KILL").starts_with(unkillable));
    assert!(clients.ask(2, "FUNCTION KILL").starts_with(unkillable));
    assert_eq!(clients.ask(2, "GET l"), BUSY);
    let (answers, _) = clients.finish();
    assert!(answers.starts_with("-SCRIPTSTOPPED the script took more steps"), "{answers}");
    assert_eq!(clients.ask(2, "EXISTS l"), ":0|");
}

#[test]
fn a_function_is_told_of_and_killed_as_a_function() {
    let mut clients = Clients::new();
    clients.ask(1, "CONFIG SET busy-reply-threshold 100");
    let text = "#!lua name=lib\nredis.register_function{function_name='f', flags={'no-writes'}, \
                callback=function() while true do end end}";
    clients.send(1, &["FUNCTION", "LOAD", text]);
    assert_eq!(clients.answers(), "$3|lib|");
    assert_eq!(clients.ask(1, "FCALL_RO f 1 l x"), "");
    let stats = clients.ask(2, "FUNCTION STATS");
    let running = "*4|$14|running_script|*6|$4|name|$1|f|$7|command|*5|$8|FCALL_RO|$1|f|$1|1|$1|l|$1|x|$11|duration_ms|";
    assert!(stats.starts_with(running), "{stats}");
    clients.pass_us(100_000);
    let busy = "-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.|";
    assert_eq!(clients.ask(2, "GET a"), busy);
    assert_eq!(clients.ask(2, "SCRIPT KILL"), busy);
    let answers = clients.ask(2, "FUNCTION KILL");
    assert!(answers.contains("-ERR Script killed by user with FUNCTION KILL. script: f|"), "{answers}");
    assert!(clients.ask(2, "FUNCTION STATS").starts_with("*4|$14|running_script|$-1|"));
}

#[test]
fn nobody_is_refused_where_the_threshold_is_zero() {
    let mut clients = Clients::new();
    clients.ask(1, "CONFIG SET lua-time-limit 0");
    clients.eval(1, ENDLESS);
    clients.send(2, &["SET", "held", "1"]);
    assert_eq!(clients.pass_us(1_000_000), "");
    let answers = clients.ask(3, "SCRIPT KILL");
    assert!(answers.contains("+OK|") && answers.contains("-ERR Script killed by user"), "{answers}");
    assert_eq!(clients.ask(2, "GET held"), "$1|1|");
}

#[test]
fn the_session_of_a_script_waits_for_as_long_as_it_runs() {
    let tuning = Tuning { request_timeout_ms: 1_000, script_pause_us: 100_000, ..pausing() };
    let mut clients = Clients::with("eiger", tuning);
    assert_eq!(clients.eval(1, LONG), "");
    let (mut answers, mut ms) = (String::new(), 0);
    while answers.is_empty() {
        answers = clients.pass_us(100_000);
        ms += 100;
    }
    assert_eq!(answers, ":100|");
    assert!(ms > 1_500, "it took no longer than any request may: {ms} ms");
}

#[test]
fn a_pop_that_gives_up_while_a_script_runs_takes_nothing_of_it() {
    let mut clients = Clients::new();
    for client in [2, 3] {
        let seconds = if client == 2 { "0.5" } else { "0" };
        assert_eq!(clients.ask(client, &format!("BLPOP l {seconds}")), "");
    }
    clients.ask(1, "CONFIG SET busy-reply-threshold 100");
    clients
        .eval(1, "for i = 1, 50 do redis.call('RPUSH', KEYS[1], i) end return redis.call('LLEN', KEYS[1])");
    let mut answers = clients.pass_us(600_000);
    assert!(clients.is_in_script());
    answers += &clients.finish().0;
    answers += &clients.pass_us(1_000_000);
    // Who came first and waited for too long is told so, or has its element; and no element is lost.
    assert!(answers.contains(":50|") && answers.contains("*2|$1|l|$1|1|"), "{answers}");
    let taken = if answers.contains("*-1|") { 1 } else { 2 };
    assert_eq!(clients.ask(4, "LLEN l"), format!(":{}|", 50 - taken), "{answers}");
}
