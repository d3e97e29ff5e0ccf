//! Scripts as a whole: what Redis was seen to answer, what scripts may reach, and what stops them.

mod hostile;
mod pauses;
mod recorded;
mod store;

use crate::{Call, Called, Calls, Growth, Invocation, Limits, Outcome, Run, Scripts, says_no_writes};
use bytes::Bytes;
use ensue_types::Reply;
use store::Store;

fn limits() -> Limits {
    Limits {
        scripts_max: 500,
        text_bytes_max: 1 << 20,
        memory_bytes_max: 64 << 20,
        steps_max: 10_000_000,
        paused_steps_max: 50_000_000,
        steps_to_pause: 100_000,
    }
}

/// Runs a text with one key and one argument against a store.
fn run_on(scripts: &mut Scripts, text: &str, calls: &mut dyn Calls) -> Run {
    let text = Bytes::copy_from_slice(text.as_bytes());
    let script = match scripts.load(&text) {
        Ok(script) => script,
        Err(reply) => return Run { outcome: Outcome::Ended(reply), steps: 0 },
    };
    let (keys, args) = ([Bytes::from("key")], [Bytes::from("arg")]);
    scripts.run(
        &script,
        Invocation { keys: &keys, args: &args, read_only: false, function: None, seed: 0 },
        calls,
    )
}

fn run(text: &str) -> Run {
    run_on(&mut Scripts::new(limits()), text, &mut Store::default())
}

fn answer(text: &str) -> Reply {
    match run(text).outcome {
        Outcome::Ended(reply) => reply,
        Outcome::Stopped(reply) => panic!("{text} was stopped: {reply:?}"),
    }
}

#[test]
fn what_a_script_says_of_itself() {
    let mut scripts = Scripts::new(limits());
    for (text, read_only, growth) in [
        ("return 1", false, Growth::ByCommand),
        ("#!lua\nreturn 1", false, Growth::Refused),
        ("#!lua flags=allow-oom\nreturn 1", false, Growth::Allowed),
        ("#!lua flags=no-writes,allow-stale\nreturn 1", true, Growth::Allowed),
    ] {
        let script = scripts.load(&Bytes::from(text)).expect(text);
        assert_eq!((script.read_only, script.growth), (read_only, growth), "{text}");
        assert_eq!(says_no_writes(text.as_bytes()), read_only, "{text}");
    }
    assert!(!says_no_writes(b"#!lua flags=what\nreturn 1"), "it is none");
}

#[test]
fn a_script_is_named_by_the_digest_of_its_text() {
    let mut scripts = Scripts::new(limits());
    let script = scripts.load(&Bytes::from("return 1")).expect("it compiles");
    assert_eq!(script.sha.as_str(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    assert_eq!(scripts.find(b"E0E1F9FABFC9D4800C877A703B823AC0578FF8DB"), Some(script));
    scripts.flush();
    assert_eq!(scripts.find(b"e0e1f9fabfc9d4800c877a703b823ac0578ff8db"), None);
}

#[test]
fn the_scripts_that_came_first_are_forgotten_first() {
    let mut scripts = Scripts::new(Limits { scripts_max: 2, ..limits() });
    let shas: Vec<_> = (0..3)
        .map(|number| scripts.load(&Bytes::from(format!("return {number}"))).expect("it compiles").sha)
        .collect();
    let known: Vec<bool> = shas.iter().map(|sha| scripts.find(sha.as_bytes()).is_some()).collect();
    assert_eq!((known, scripts.count(), scripts.text_bytes()), (vec![false, true, true], 2, 16));
}

#[test]
fn a_copy_knows_the_same_scripts_and_runs_them() {
    let mut scripts = Scripts::new(limits());
    let script = scripts.load(&Bytes::from("return ARGV[1]")).expect("it compiles");
    let mut copy = scripts.clone();
    assert_eq!(format!("{scripts:?}"), format!("{copy:?}"));
    let run = copy.run(
        &script,
        Invocation { keys: &[], args: &[Bytes::from("x")], read_only: false, function: None, seed: 0 },
        &mut Store::default(),
    );
    assert_eq!(run.outcome, Outcome::Ended(Reply::bulk("x")));
}

#[test]
fn nothing_is_left_between_two_runs() {
    let mut scripts = Scripts::new(limits());
    let mut again = |text: &str| run_on(&mut scripts, text, &mut Store::default()).outcome;
    let first = again("KEYS[2] = 'x'; math.randomseed(7); redis.setresp(3); return math.random(1000000)");
    assert_ne!(first, again("return math.random(1000000)"));
    assert_eq!(again("return math.random(1000000)"), again("return  math.random(1000000)"));
    assert_eq!(
        again("return {#KEYS, true}"),
        Outcome::Ended(Reply::Array(vec![Reply::Integer(1), Reply::Integer(1)]))
    );
    // A compiled text that was called before looks its keys up anew.
    let text = Bytes::from("return KEYS[1]");
    let script = scripts.load(&text).expect("it compiles");
    for key in ["a", "b"] {
        let keys = [Bytes::from(key)];
        let invocation = Invocation { keys: &keys, args: &[], read_only: false, function: None, seed: 0 };
        let run = scripts.run(&script, invocation, &mut Store::default());
        assert_eq!(run.outcome, Outcome::Ended(Reply::bulk(key)));
    }
}

#[test]
fn chance_is_the_same_in_every_run() {
    let text =
        "local t = {math.random()} for i = 1, 5 do t[i + 1] = math.random(10) end return cjson.encode(t)";
    assert_eq!(answer(text), Reply::bulk("[0.17082803611217,8,1,9,6,8]"));
}

#[test]
fn what_a_script_may_write_is_said_with_each_command() {
    struct Asked(Vec<bool>);
    impl Calls for Asked {
        fn call(&mut self, call: Call) -> Called {
            self.0.push(call.read_only);
            Called::Answered(Reply::OK, 1)
        }

        fn log(&mut self, _: u8, _: &[u8]) {}
    }
    let mut scripts = Scripts::new(limits());
    let mut asked = Asked(Vec::new());
    run_on(&mut scripts, "redis.call('x')", &mut asked);
    run_on(&mut scripts, "#!lua flags=no-writes\nredis.call('x')", &mut asked);
    let script = scripts.load(&Bytes::from("redis.call('x')")).expect("known");
    scripts.run(
        &script,
        Invocation { keys: &[], args: &[], read_only: true, function: None, seed: 0 },
        &mut asked,
    );
    assert_eq!(asked.0, [false, true, true]);
}

#[test]
fn a_first_line_may_name_the_engine_and_flags() {
    let error = |text: &str| match answer(text) {
        Reply::Error(words) => words.into_owned(),
        other => format!("{other:?}"),
    };
    assert_eq!(error("#!js\nreturn 1"), "ERR Unexpected engine in script shebang: #!js");
    assert_eq!(error("#!lua flags=foo\nreturn 1"), "ERR Unexpected flag in script shebang: foo");
    assert_eq!(answer("#!lua flags=allow-oom,no-cluster\nreturn 1"), Reply::Integer(1));
    assert!(error("#!lua\nerror('x')").contains("user_script:2:"));
}

#[test]
fn answers_of_commands_are_converted_by_the_version_of_the_protocol() {
    struct Typed;
    impl Calls for Typed {
        fn call(&mut self, call: Call) -> Called {
            let reply = match &call.args[0][..] {
                b"map" => Reply::Map(vec![(Reply::bulk("k"), Reply::bulk("v"))]),
                b"set" => Reply::Set(vec![Reply::bulk("m")]),
                b"double" => Reply::Double(0.5),
                b"truth" => Reply::Boolean(true),
                _ => Reply::Verbatim("text".into()),
            };
            Called::Answered(reply, 1)
        }

        fn log(&mut self, _: u8, _: &[u8]) {}
    }
    let all = "return {type(redis.call('map')), redis.call('map')[2] or redis.call('map').map.k, \
               redis.call('set')[1] or tostring(redis.call('set').set.m), redis.call('truth'), \
               tostring(redis.call('double').double), redis.call('text')}";
    let mut scripts = Scripts::new(limits());
    let two = run_on(&mut scripts, all, &mut Typed).outcome;
    let three = run_on(&mut scripts, &format!("redis.setresp(3) {all}"), &mut Typed).outcome;
    let bulk = |words: &'static str| Reply::bulk(words);
    let expected = |set, truth, double, text| {
        let items = vec![bulk("table"), bulk("v"), bulk(set), truth, bulk(double), text];
        Outcome::Ended(Reply::Array(items))
    };
    assert_eq!(two, expected("m", Reply::Integer(1), "nil", bulk("text")));
    assert_eq!(three, expected("true", Reply::Boolean(true), "0.5", Reply::Verbatim("text".into())));
}

#[test]
fn values_that_only_the_third_version_of_the_protocol_has() {
    let answered = |text: &str| run_on(&mut Scripts::new(limits()), text, &mut Store::default()).outcome;
    let big = |digits: &'static str| Outcome::Ended(Reply::BigNumber(digits.into()));
    assert_eq!(answered("return {big_number='12345678901234567890'}"), big("12345678901234567890"));
    assert_eq!(answered("return {big_number='1\\r\\n2'}"), big("1  2"), "it stays one line");
    let verbatim = answered("return {verbatim_string={format='txt', string='words'}}");
    assert_eq!(verbatim, Outcome::Ended(Reply::Verbatim("words".into())));
}

#[test]
fn chance_begins_where_the_caller_says() {
    let mut scripts = Scripts::new(limits());
    let script = scripts.load(&Bytes::from("return tostring(math.random())")).expect("it compiles");
    let mut drawn = |seed| {
        let invocation = Invocation { keys: &[], args: &[], read_only: false, function: None, seed };
        scripts.run(&script, invocation, &mut Store::default()).outcome
    };
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
    let seeded = |seed| format!("math.randomseed('{seed}'); return tostring(math.random())");
    let mut drawn = |text: &str| run_on(&mut scripts, text, &mut Store::default()).outcome;
    assert_ne!(drawn(&seeded(10)), drawn(&seeded(20)));
}

#[test]
fn settings_of_json_hold_until_the_script_ends() {
    let mut scripts = Scripts::new(limits());
    let mut answered = |text: &str| run_on(&mut scripts, text, &mut Store::default()).outcome;
    let bulk = |text: &'static str| Outcome::Ended(Reply::bulk(text));
    let failed = "return tostring(pcall(cjson.encode, {{}}) or pcall(cjson.decode, '[[1]]'))";
    let set = "cjson.encode_max_depth(1); cjson.decode_max_depth(1); ";
    assert_eq!(answered(&format!("{set}{failed}")), bulk("false"));
    assert_eq!(answered(failed), bulk("true"));
    let nan = "return cjson.encode({0/0})";
    assert_eq!(answered(&format!("cjson.encode_invalid_numbers(true); {nan}")), bulk("[nan]"));
    assert_eq!(answered(&format!("cjson.encode_invalid_numbers('null'); {nan}")), bulk("[null]"));
    assert!(matches!(answered(nan), Outcome::Ended(Reply::Error(_))));
}

#[test]
fn a_library_sees_little_while_it_registers_its_functions() {
    let mut scripts = Scripts::new(limits());
    let mut load = |text: &str| {
        let text =
            format!("#!lua name=lib\n{text}\nredis.register_function('f', function() return math.pi end)");
        match scripts.load_library(&Bytes::from(text), true) {
            Ok(name) => name,
            Err(Reply::Error(words)) => words.into_owned(),
            Err(other) => panic!("{other:?}"),
        }
    };
    for (name, text) in
        [("math", "local x = math.random()"), ("call", "redis.call('PING')"), ("x", "local y = x")]
    {
        let absent = format!("nonexistent global variable '{name}'");
        assert!(load(text).contains(&absent), "{}", load(text));
    }
    assert!(load("local y = getmetatable(_G)").contains("variable 'getmetatable'"));
    assert!(load("x = 1").ends_with("Attempt to modify a readonly table"), "{}", load("x = 1"));
    assert_eq!(load("redis.log(redis.LOG_NOTICE, redis.REDIS_VERSION)"), "lib");
}

#[test]
fn a_script_asks_whether_its_user_may_and_nothing_is_carried_out() {
    let mut store = Store::default();
    let mut scripts = Scripts::new(limits());
    let text =
        "return {tostring(redis.acl_check_cmd('get', 'k')), tostring(redis.acl_check_cmd('incr', 'k'))}";
    let told = [Reply::bulk("true"), Reply::bulk("false")];
    assert_eq!(run_on(&mut scripts, text, &mut store).outcome, Outcome::Ended(Reply::Array(told.to_vec())));
    assert!(store.values.is_empty());
}

#[test]
fn a_function_registers_no_other() {
    let text =
        "#!lua name=lib\nredis.register_function('f', function() redis.register_function('g', print) end)";
    let text = text.replace("print", "function() end");
    let mut scripts = Scripts::new(limits());
    scripts.load_library(&Bytes::from(text), false).expect("it registers");
    let script = scripts.libraries().find(b"f").expect("it was registered").0.script.clone();
    let with = Invocation { keys: &[], args: &[], read_only: false, function: Some("f"), seed: 0 };
    let words = "ERR redis.register_function can only be called on FUNCTION LOAD command script: f";
    let outcome = scripts.run(&script, with, &mut Store::default()).outcome;
    assert!(matches!(&outcome, Outcome::Ended(Reply::Error(told)) if told.starts_with(words)), "{outcome:?}");
}

#[test]
fn what_is_logged_arrives_with_its_level() {
    let (mut scripts, mut store) = (Scripts::new(limits()), Store::default());
    let text = "redis.log(redis.LOG_WARNING, 'one', 2, nil, {}, 'three') redis.log(0, 'x') return redis.call('ping')";
    assert_eq!(run_on(&mut scripts, text, &mut store).outcome, Outcome::Ended(Reply::Status("PONG".into())));
    assert_eq!(store.lines, [(3, "one 2 three".to_owned()), (0, "x".to_owned())]);
}
