//! Scripts at their partition: what they change, what they take back, and what is logged.

use super::World;
use crate::config::Tuning;
use crate::{AppendFsync, Input, NodeConfig};
use bytes::Bytes;
use ensue_store::disk::DiskOp;
use ensue_types::{SessionId, limits};

const CLIENT: SessionId = SessionId(7);

struct Scripted(World);

impl Scripted {
    fn new(protocol: &str) -> Scripted {
        let tuning = Tuning { script_steps: 20_000, ..Tuning::default() };
        let config = NodeConfig { tuning, ..super::config(AppendFsync::EverySecond) };
        let mut world = World::with(NodeConfig {
            protocols: vec![protocol.into(); usize::from(limits::KEYSPACES)],
            ..config
        });
        world.calm_down();
        world.connect(CLIENT);
        Scripted(world)
    }

    /// What a command is answered; `|` stands for the ends of lines.
    fn run(&mut self, args: &[&str]) -> String {
        self.0.answer(CLIENT, args)
    }

    fn words(&mut self, line: &str) -> String {
        self.0.words(CLIENT, line)
    }

    fn eval(&mut self, script: &str) -> String {
        self.run(&["EVAL", script, "1", "a"])
    }

    /// Bytes that were appended to the log since the last call.
    fn appended(&mut self, script: &str) -> usize {
        let args = ["EVAL", script, "1", "a"].map(|word| Bytes::copy_from_slice(word.as_bytes()));
        self.0.give(Input::ClientCommands { session: CLIENT, commands: vec![args.to_vec()] });
        self.0.give(Input::TurnEnd);
        let appended = self.0.asked.iter().map(|op| match op {
            DiskOp::Append { bytes, .. } => bytes.len(),
            _ => 0,
        });
        let appended = appended.sum();
        self.0.calm_down();
        self.0.replies.clear();
        appended
    }
}

/// Every protocol in which keys have rows.
fn each(check: impl Fn(Scripted)) {
    for registration in ensue_protocol::REGISTRY.iter().filter(|one| one.name != "tardis") {
        check(Scripted::new(registration.name));
    }
}

#[test]
fn a_script_reads_and_writes_its_keys_and_sees_what_it_wrote() {
    each(|mut world| {
        let script =
            "redis.call('SET', KEYS[1], 5) redis.call('INCR', KEYS[1]) return redis.call('GET', KEYS[1])";
        assert_eq!(world.eval(script), "$1|6|");
        assert_eq!(world.words("GET a"), "$1|6|");
        let hash = "redis.call('HSET', KEYS[2], 'f', ARGV[1]) return {redis.call('HGETALL', KEYS[2]), KEYS[1], #ARGV}";
        assert_eq!(world.run(&["EVAL", hash, "2", "a", "h", "x", "y"]), "*3|*2|$1|f|$1|x|$1|a|:2|");
        let types = "return {redis.call('GET', 'none'), redis.call('EXISTS', 'a'), \
                     redis.call('TYPE', 'h'), redis.call('PING')}";
        assert_eq!(world.eval(types), "*4|$-1|:1|+hash|+PONG|");
    });
}

#[test]
fn what_was_written_before_an_error_stays() {
    each(|mut world| {
        let failed = world.eval("redis.call('SET', KEYS[1], 'x') redis.call('INCR', KEYS[1]) return 1");
        assert!(failed.starts_with("-ERR value is not an integer or out of range script: "), "{failed}");
        assert_eq!(world.words("GET a"), "$1|x|");
    });
}

#[test]
fn a_script_that_is_stopped_has_changed_nothing() {
    each(|mut world| {
        for line in ["SET a 5", "INCR a", "HSET h f v", "SADD s m", "SET e 1 PX 100000"] {
            world.words(line);
        }
        let state = |world: &mut Scripted| {
            ["GET a", "HGETALL h", "SMEMBERS s", "PTTL e", "GET e", "GET new", "CAUSAL DIGEST"]
                .map(|line| world.words(line))
        };
        let before = state(&mut world);
        let all = "redis.call('INCRBY', 'a', 7) redis.call('HSET', 'h', 'f', 'w', 'g', 'x') \
                   redis.call('SREM', 's', 'm') redis.call('PERSIST', 'e') redis.call('SET', 'new', 1) \
                   redis.call('DEL', 'a') redis.call('SADD', 'a', 'b')";
        let stopped = world.eval(&format!("{all} while true do end"));
        assert!(stopped.starts_with("-SCRIPTSTOPPED "), "{stopped}");
        assert_eq!(before, state(&mut world));
        // The next script is as if that one had never been.
        assert_eq!(world.eval("return redis.call('INCR', 'a')"), ":7|");
        assert_eq!(world.words("GET a"), "$1|7|");
        world.0.node.check_invariants();
    });
}

#[test]
fn a_stopped_script_in_a_multi_takes_back_its_own_changes_alone() {
    each(|mut world| {
        for line in ["MULTI", "SET a 1", "SET b 1"] {
            world.words(line);
        }
        world.eval("redis.call('SET', 'a', 2) redis.call('INCR', 'n') while true do end");
        world.eval("redis.call('APPEND', 'a', 'x') return redis.call('GET', 'b')");
        world.words("SET b 2");
        let answer = world.words("EXEC");
        assert!(
            answer.starts_with("*5|+OK|+OK|-SCRIPTSTOPPED ") && answer.ends_with("|$1|1|+OK|"),
            "{answer}"
        );
        assert_eq!(world.words("MGET a b n"), "*3|$2|1x|$1|2|$-1|");
        world.0.node.check_invariants();
    });
}

#[test]
fn effects_are_logged_and_the_text_is_not() {
    each(|mut world| {
        let long = format!("-- {}\nredis.call('SET', KEYS[1], 1)", "x".repeat(10_000));
        assert!((1..2_000).contains(&world.appended(&long)));
        assert_eq!(world.appended("return redis.call('GET', KEYS[1])"), 0);
        assert_eq!(world.appended("redis.call('SET', KEYS[1], 2) while true do end"), 0);
    });
}

#[test]
fn a_script_is_named_by_its_digest_until_it_is_flushed() {
    each(|mut world| {
        let sha = "$40|a42059b356c875f0717db19a51f6aaca9ae659ea|";
        let noscript = "-NOSCRIPT No matching script. Please use EVAL.|";
        assert_eq!(world.words("EVALSHA a42059b356c875f0717db19a51f6aaca9ae659ea 2 a b"), noscript);
        assert_eq!(world.run(&["SCRIPT", "LOAD", "return {KEYS[1],KEYS[2],ARGV[1],ARGV[2]}"]), sha);
        assert_eq!(world.words("SCRIPT EXISTS a42059b356c875f0717db19a51f6aaca9ae659ea x"), "*2|:1|:0|");
        assert_eq!(
            world.words("EVALSHA A42059B356C875F0717DB19A51F6AACA9AE659EA 2 a b x"),
            "*3|$1|a|$1|b|$1|x|"
        );
        let shown = world.words("SCRIPT SHOW a42059b356c875f0717db19a51f6aaca9ae659ea");
        assert_eq!(shown, "$40|return {KEYS[1],KEYS[2],ARGV[1],ARGV[2]}|");
        assert_eq!(world.words("SCRIPT FLUSH ASYNC"), "+OK|");
        assert_eq!(world.words("SCRIPT SHOW a42059b356c875f0717db19a51f6aaca9ae659ea"), noscript);
        assert_eq!(world.words("EVALSHA_RO a42059b356c875f0717db19a51f6aaca9ae659ea 0"), noscript);
        // An EVAL makes its script known, too, also after a flush.
        assert_eq!(world.eval("return 'known'"), "$5|known|");
        assert_eq!(world.words("EVALSHA 2c61e2edde4d8eb2bd27a2b9a6dc0e8d3c6f1f1d 0"), noscript);
        world.words("SCRIPT FLUSH");
        assert_eq!(world.eval("return 1"), ":1|");
        assert_eq!(world.words("EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0"), ":1|");
        assert_eq!(world.words("SCRIPT KILL"), "-NOTBUSY No scripts in execution right now.|");
        let wrong = world.run(&["SCRIPT", "LOAD", "retrun x"]);
        assert!(wrong.starts_with("-ERR Error compiling script (new function): user_script:1: "), "{wrong}");
    });
}

#[test]
fn a_script_renames_keys_of_every_type_with_their_deadline() {
    each(|mut world| {
        let mut renamed = |make: &str, read: &str| {
            let script = format!(
                "redis.call('DEL', 'a', 'b') redis.call({make}) redis.call('SET', 'b', 'before', 'EX', 50) \
                 return {{redis.call('RENAME', 'a', 'b'), redis.call('EXISTS', 'a'), redis.call({read}), \
                 redis.call('TTL', 'b')}}"
            );
            world.run(&["EVAL", &script, "2", "a", "b"])
        };
        assert_eq!(renamed("'SET', 'a', 1", "'GET', 'b'"), "*4|+OK|:0|$1|1|:-1|");
        assert_eq!(renamed("'SET', 'a', 1, 'EX', 90", "'GET', 'b'"), "*4|+OK|:0|$1|1|:90|");
        assert_eq!(renamed("'RPUSH', 'a', 'x', 'y'", "'LRANGE', 'b', 0, -1"), "*4|+OK|:0|*2|$1|x|$1|y|:-1|");
        assert_eq!(renamed("'ZADD', 'a', 2, 'x'", "'ZSCORE', 'b', 'x'"), "*4|+OK|:0|$1|2|:-1|");
        assert_eq!(renamed("'HSET', 'a', 'f', 'v'", "'HGET', 'b', 'f'"), "*4|+OK|:0|$1|v|:-1|");
        assert_eq!(renamed("'XADD', 'a', '5-1', 'f', 'v'", "'XLEN', 'b'"), "*4|+OK|:0|:1|:-1|");
    });
}

#[test]
fn a_script_renames_nothing_that_is_not_there_and_replaces_nothing_by_renamenx() {
    each(|mut world| {
        let missing = world.eval("return redis.call('RENAME', 'a', 'b')");
        assert!(missing.starts_with("-ERR no such key"), "{missing}");
        world.words("SET a 1");
        assert_eq!(world.eval("return redis.call('RENAME', 'a', 'a')"), "+OK|");
        assert_eq!(world.eval("return redis.call('RENAMENX', 'a', 'a')"), ":0|");
        assert_eq!(world.words("GET a"), "$1|1|");
        world.words("SET b 2");
        assert_eq!(world.eval("return redis.call('RENAMENX', 'a', 'b')"), ":0|");
        assert_eq!(world.words("MGET a b"), "*2|$1|1|$1|2|");
        world.words("DEL b");
        assert_eq!(world.eval("return redis.call('RENAMENX', 'a', 'b')"), ":1|");
        assert_eq!(world.words("MGET a b"), "*2|$-1|$1|1|");
    });
}

#[test]
fn what_is_not_for_scripts_is_refused_in_them() {
    each(|mut world| {
        let mut error = |call: &str| {
            let answer = world.eval(&format!("local e = redis.pcall({call}) return e.err or 'no error'"));
            answer.split('|').nth(1).unwrap_or_default().to_owned()
        };
        assert_eq!(error("'NOPE'"), "ERR Unknown Redis command called from script");
        assert_eq!(error("'GET'"), "ERR Wrong number of args calling Redis command from script");
        for call in [
            "'MULTI'",
            "'EVAL', 'return 1', 0",
            "'CAUSAL', 'TOKEN'",
            "'SCRIPT', 'FLUSH'",
            "'AUTH', 'x'",
            "'WATCH', 'a'",
        ] {
            assert_eq!(error(call), "ERR This Redis command is not allowed from script", "{call}");
        }
        assert!(error("'FLUSHALL'").starts_with("ERR FLUSHALL inside a script is refused"));
        assert_eq!(error("'SELECT', '0'"), "no error");
        assert_eq!(error("'SELECT', '16'"), "ERR DB index is out of range");
        let group = "'XREADGROUP', 'GROUP', 'g', 'c', 'BLOCK', '0', 'STREAMS', 'a', '>'";
        assert!(error(group).ends_with("is not allowed with BLOCK option from scripts"));
        let selected = world.eval("redis.call('SELECT', '1') return redis.pcall('GET', 'a')");
        assert!(selected.starts_with("-ERR GET inside a script is refused: it stays within"), "{selected}");
        let read_only = world.run(&["EVAL_RO", "return redis.call('SET', 'a', 1)", "0"]);
        assert!(
            read_only.starts_with("-ERR Write commands are not allowed from read-only scripts. script: "),
            "{read_only}"
        );
        assert_eq!(world.run(&["EVAL_RO", "return redis.call('GET', 'a')", "1", "a"]), "$-1|");
    });
}

#[test]
fn time_stands_still_in_a_script_and_keys_expire_by_it() {
    each(|mut world| {
        world.words("SET a 1 PX 5000");
        let script = "local t = redis.call('TIME') for i = 1, 100 do redis.call('INCR', 'n') end \
                      local u = redis.call('TIME') return {t[1] == u[1] and t[2] == u[2], redis.call('PTTL', 'a') > 0}";
        assert_eq!(world.eval(script), "*2|:1|:1|");
        world.0.now.wall_ms += 10_000;
        world.0.now.monotonic_us += 10_000_000;
        assert_eq!(world.eval("return {redis.call('EXISTS', 'a'), redis.call('INCR', 'a')}"), "*2|:0|:1|");
    });
}

#[test]
fn a_keyspace_of_branches_has_no_scripts() {
    let mut world = Scripted::new("tardis");
    let refusal = "-ERR a script in keyspace 0 is refused: its protocol is tardis, ";
    assert!(world.eval("return 1").starts_with(refusal));
    world.words("MULTI");
    assert!(world.eval("return 1").starts_with(refusal));
}

#[test]
fn while_memory_is_short_a_script_is_refused_by_what_it_says_and_calls() {
    each(|mut scripted| {
        assert_eq!(scripted.words("SET a 1"), "+OK|");
        assert_eq!(scripted.words("CONFIG SET maxmemory 1"), "+OK|");
        // Each of them is new, and sent to all partitions before it is run.
        for _ in 0..2 {
            assert_eq!(scripted.eval("return redis.call('GET', 'a')"), "$1|1|");
            assert!(scripted.eval("return redis.call('SET', 'a', '2')").starts_with("-OOM"));
            assert!(scripted.eval("#!lua\nreturn 1").starts_with("-OOM"));
            assert_eq!(scripted.eval("#!lua flags=allow-oom\nreturn redis.call('SET', 'a', '1')"), "+OK|");
        }
        // A transaction is refused for the commands that make data grow.
        for (line, answer) in [("MULTI", "+OK|"), ("DEL b", "+QUEUED|"), ("EXEC", "*1|:0|")] {
            assert_eq!(scripted.words(line), answer);
        }
    });
}

#[test]
fn what_a_script_calls_is_told_before_its_answer_to_who_wants_to_know() {
    each(|mut scripted| {
        let script = "redis.call('PING'); redis.call('GET', 'a'); return redis.pcall('NONE')";
        assert_eq!(scripted.words("MONITOR"), "+OK|");
        let shown = scripted.eval(script);
        let lines: Vec<&str> = shown.split('|').filter_map(|line| line.split(" lua] ").nth(1)).collect();
        assert_eq!(lines, ["\"PING\"", "\"GET\" \"a\""], "{shown}");
        assert!(shown.ends_with("-ERR Unknown Redis command called from script|"), "{shown}");
    });
}

#[test]
fn without_enough_followers_a_script_is_refused_by_what_it_says_and_writes() {
    each(|mut scripted| {
        const REFUSED: &str = "-NOREPLICAS Not enough good replicas to write.";
        assert_eq!(scripted.words("SET a 1"), "+OK|");
        assert_eq!(scripted.words("CONFIG SET min-replicas-to-write 1"), "+OK|");
        assert!(scripted.words("SET a 2").starts_with(REFUSED), "nobody is linked");
        // Each of them is new, and sent to all partitions before it is run.
        for _ in 0..2 {
            assert_eq!(scripted.eval("#!lua flags=no-writes\nreturn redis.call('GET', 'a')"), "$1|1|");
            assert_eq!(scripted.eval("return redis.call('GET', 'a')"), "$1|1|");
            assert!(scripted.eval("return redis.call('SET', 'a', '2')").starts_with(REFUSED));
            assert!(scripted.eval("#!lua\nreturn 1").starts_with(REFUSED));
        }
        let aborted = format!("-EXECABORT Transaction discarded because of: {}|", &REFUSED[1..]);
        for (line, answer) in [("MULTI", "+OK|"), ("INCR a", "+QUEUED|"), ("EXEC", aborted.as_str())] {
            assert_eq!(scripted.words(line), answer);
        }
        assert_eq!(scripted.words("CONFIG SET min-replicas-max-lag 0"), "+OK|");
        assert_eq!(scripted.words("SET a 2"), "+OK|", "no bound on the lag is no bound");
    });
}

#[test]
fn what_a_script_publishes_is_received_when_it_has_ended() {
    each(|mut scripted| {
        let other = SessionId(8);
        scripted.0.connect(other);
        assert_eq!(scripted.0.words(other, "SUBSCRIBE news"), "*3|$9|subscribe|$4|news|:1|");
        let answers =
            scripted.eval("redis.call('SET', 'a', 'x') return redis.call('PUBLISH', 'news', 'hello')");
        let message = |text: &str| format!("*3|$7|message|$4|news|${}|{text}|", text.len());
        assert_eq!(answers, message("hello") + ":0|", "who receives it was not known yet");
        let stopped = scripted.eval("redis.call('PUBLISH', 'news', 'never') while true do end");
        assert!(stopped.starts_with('-') && !stopped.contains("never"), "{stopped}");
        let read_only = scripted.run(&["EVAL_RO", "return redis.call('PUBLISH', 'news', 'never')", "0"]);
        assert!(read_only.starts_with("-ERR Write commands are not allowed from read-only scripts"));
        for (line, answer) in [("MULTI", "+OK|"), ("SET a y", "+QUEUED|")] {
            assert_eq!(scripted.words(line), answer);
        }
        scripted
            .eval("return redis.call('SPUBLISH', 'news', 'shard') + redis.call('PUBLISH', 'news', 'again')");
        assert_eq!(scripted.words("EXEC"), message("again") + "*2|+OK|:0|");
        // What a client receives of its own stands behind the answer.
        scripted.words("HELLO 3");
        scripted.words("SUBSCRIBE news");
        let own = |text: &str| message(text).replacen('*', ">", 1);
        let answers = scripted.eval("return redis.call('PUBLISH', 'news', 'mine')");
        assert_eq!(answers, message("mine") + ":0|" + &own("mine"));
        for (line, answer) in [("MULTI", "+OK|"), ("PUBLISH news more", "+QUEUED|")] {
            assert_eq!(scripted.words(line), answer);
        }
        assert_eq!(scripted.words("EXEC"), message("more") + "*1|:2|" + &own("more"));
    });
}

#[test]
fn a_script_that_sleeps_keeps_its_time() {
    let directives = vec![("enable-debug-command".into(), "yes".into())];
    let config = NodeConfig { directives, ..super::config(AppendFsync::EverySecond) };
    let mut world = World::with(config);
    world.calm_down();
    world.connect(CLIENT);
    let script = "redis.call('SET', KEYS[1], 'v', 'PX', '1') redis.call('DEBUG', 'SLEEP', '0.01') \
                  return {redis.call('EXISTS', KEYS[1]), redis.call('DEBUG', 'PROTOCOL', 'attrib')}";
    let answer = world.answer(CLIENT, &["EVAL", script, "1", "a"]);
    assert_eq!(answer, "*2|:1|$39|Some real reply following the attribute|");
}

#[test]
fn what_is_executed_is_counted_by_its_subcommand() {
    let mut scripted = Scripted::new("eiger");
    assert_eq!(scripted.words("XGROUP CREATE s g $ MKSTREAM"), "+OK|");
    assert!(scripted.words("XGROUP CREATE s g $").starts_with("-BUSYGROUP"));
    let counted = scripted.words("INFO commandstats");
    assert!(counted.contains("|cmdstat_xgroup|create:calls=2,"), "{counted}");
    assert!(counted.contains("rejected_calls=0,failed_calls=1|"), "{counted}");
}

#[test]
fn what_a_script_calls_is_counted_and_an_error_counts_once() {
    let mut world = Scripted::new("eiger");
    let mut told = |script: &str| {
        world.words("CONFIG RESETSTAT");
        world.eval(script);
        let info = world.words("INFO commandstats") + &world.words("INFO errorstats");
        let is_about = |line: &&str| {
            ["set", "get", "incr", "select", "eval", "ERR", "WRONGTYPE", "NOSCRIPT"].iter().any(|name| {
                line.starts_with(&format!("cmdstat_{name}:"))
                    || line.starts_with(&format!("errorstat_{name}:"))
            })
        };
        let without_times = |line: &str| {
            let parts = line.split([',', ':']).filter(|part| !part.starts_with("usec"));
            parts.collect::<Vec<_>>().join(" ").replace("cmdstat_", "").replace("_calls", "")
        };
        let lines = info.split('|').filter(is_about).map(without_times);
        lines.collect::<Vec<_>>().join("; ")
    };
    let eval = |failed: u32| format!("eval calls=1 rejected=0 failed={failed}");
    assert_eq!(
        told("for i = 1, 3 do redis.call('SET', KEYS[1], i) end return redis.call('GET', KEYS[1])"),
        format!("{}; get calls=1 rejected=0 failed=0; set calls=3 rejected=0 failed=0", eval(0))
    );
    assert_eq!(
        told("redis.pcall('SELECT', 99) return 1"),
        format!("{}; select calls=1 rejected=0 failed=1; errorstat_ERR count=1", eval(0))
    );
    let raised = format!("{}; select calls=1 rejected=0 failed=1; errorstat_ERR count=1", eval(1));
    assert_eq!(told("redis.call('SELECT', 99)"), raised);
    assert_eq!(told("return redis.pcall('SELECT', 99)"), raised);
    assert_eq!(
        told("redis.pcall('GET') redis.pcall('nothing') return redis.error_reply('WRONGTYPE mine')"),
        format!(
            "{}; get calls=0 rejected=1 failed=0; errorstat_ERR count=2; errorstat_WRONGTYPE count=1",
            eval(1)
        )
    );
    assert_eq!(
        told("#!lua flags=no-writes\nredis.call('SET', KEYS[1], 1)"),
        format!("{}; set calls=0 rejected=1 failed=0; errorstat_ERR count=1", eval(1))
    );
}
