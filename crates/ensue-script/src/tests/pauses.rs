//! Scripts that pause: they go on where they stood, and come to what they come to without a pause.

use super::{Store, limits};
use crate::{Invocation, Limits, Outcome, Run, Scripts};
use bytes::Bytes;
use ensue_types::Reply;

/// Runs a text with pauses, each run of commands against the same store; what it came to, and how often it paused.
fn run_with_pauses(steps_to_pause: u64, text: &str) -> (Run, usize) {
    let mut scripts = Scripts::new(Limits { steps_to_pause, ..limits() });
    let mut store = Store::default();
    let script = scripts.load(&Bytes::copy_from_slice(text.as_bytes())).expect("it compiles");
    let (keys, args) = ([Bytes::from("key")], [Bytes::from("arg")]);
    let with = Invocation { keys: &keys, args: &args, read_only: false, function: None, seed: 0 };
    let mut pauses = 0;
    let mut run = scripts.start(&script, with, &mut store);
    loop {
        match run {
            Some(run) => return (run, pauses),
            None => {
                pauses += 1;
                run = scripts.resume(&mut store);
            }
        }
    }
}

#[test]
fn a_script_comes_to_the_same_however_often_it_pauses() {
    for text in [
        "local n = 0 for i = 1, 1000 do n = n + redis.call('incr', KEYS[1]) end return n",
        "local t = {} for i = 1, 1000 do t[i] = math.random(9) .. 'x' end return table.concat(t)",
        "local ok, n = pcall(function() for i = 1, 1000 do redis.call('incr', 'n') end error('x') end) \
         return {tostring(ok), tostring(n), redis.call('get', 'n')}",
        "local function f(n) if n == 0 then error({err = 'deep'}) end f(n - 1) end \
         for i = 1, 50 do pcall(f, 50) end f(50)",
        "local c = coroutine.wrap(function(a) for i = 1, 500 do a = a + coroutine.yield(a) end return 'end' end) \
         local n = c(1) for i = 1, 499 do n = c(i) end return {n, c(0), coroutine.running() == nil and 1}",
        "local function gen(n) return coroutine.create(function() for i = 1, n do redis.call('incr', 'g') \
         coroutine.yield(i) end end) end local sum = 0 for j = 1, 20 do local c = gen(20) while true do \
         local ok, v = coroutine.resume(c) if not v then break end sum = sum + v end \
         sum = sum + #coroutine.status(c) end return {sum, redis.call('get', 'g')}",
        "local t = {} for i = 1, 500 do t[i] = (i * 7919) % 503 end table.sort(t, function(a, b) local x = 0 \
         for k = 1, 5 do x = x + k end return a < b end) return cjson.encode(t)",
        "return (('ab'):rep(500):gsub('a', function(c) local x = 0 for k = 1, 5 do x = x + k end return c .. x end))",
        "local t = setmetatable({}, {__index = function(_, k) local x = 0 for i = 1, 100 do x = x + i end \
         return x + k end}) local n = 0 for i = 1, 100 do n = n + t[i] end return n",
        "local t = setmetatable({}, {__index = function(_, k) local ok, v = coroutine.resume(coroutine.create( \
         function() local x = 0 for i = 1, 100 do x = x + i end coroutine.yield(x + k) end)) return v end}) \
         local n = 0 for i = 1, 100 do n = n + t[i] end return n",
        "local c = coroutine.create(function() table.sort({3, 2, 1, 5, 4, 9, 8}, function(a, b) local x = 0 for k = 1, 50 do \
         x = x + k end return a < b end) coroutine.yield('mine') return 'end' end) \
         local _, one = coroutine.resume(c) local _, two = coroutine.resume(c) return {one, two}",
        "coroutine.yield(1) return 2",
        "return coroutine.wrap(function() for i = 1, 100 do end error('inside') end)()",
        "local c = coroutine.wrap(function() for i = 1, 2e5 do end return 'deep' end) return c()",
        "redis.setresp(3) for i = 1, 100 do redis.call('ping') end return redis.call('ping')",
    ] {
        let (whole, pauses) = run_with_pauses(u64::MAX, text);
        assert_eq!(pauses, 0, "{text}");
        for steps in [3, 4, 5, 7, 50, 1_000] {
            let (run, pauses) = run_with_pauses(steps, text);
            assert_eq!(run.outcome, whole.outcome, "{text} with a pause every {steps} steps");
            assert!(pauses > 0 || steps > 7, "{text} never paused");
        }
    }
}

#[test]
fn only_the_whole_bounds_a_script_that_pauses() {
    let (run, pauses) = run_with_pauses(100_000, "for i = 1, 4e7 do end return 'long'");
    assert_eq!(run.outcome, Outcome::Ended(Reply::bulk("long")));
    assert!(pauses >= 400, "{pauses}");
    let (run, pauses) = run_with_pauses(100_000, "while true do pcall(function() while true do end end) end");
    let words = |outcome: Outcome| match outcome {
        Outcome::Stopped(Reply::Error(words)) => words.into_owned(),
        other => format!("{other:?}"),
    };
    assert!(words(run.outcome).starts_with("SCRIPTSTOPPED the script took more steps") && pauses > 400);
    // Where it cannot pause, it is bounded as one that does not.
    for text in [
        "('a'):gsub('a', function() while true do end end)",
        "return setmetatable({}, {__index = function() while true do end end}).x",
        "table.sort({1, 2}, function() local c = coroutine.wrap(function() while true do end end) c() end)",
    ] {
        let (run, pauses) = run_with_pauses(100_000, text);
        assert!(words(run.outcome).starts_with("SCRIPTSTOPPED the script took more steps"), "{text}");
        assert_eq!(pauses, 0, "{text}");
    }
}

#[test]
fn a_script_that_pauses_can_be_stopped_and_the_next_one_runs() {
    let mut scripts = Scripts::new(limits());
    let mut store = Store::default();
    let endless =
        scripts.load(&Bytes::from("redis.call('incr', 'n') while true do end")).expect("it compiles");
    let with = Invocation { keys: &[], args: &[], read_only: false, function: None, seed: 0 };
    let next = scripts.load(&Bytes::from("return redis.call('incr', 'n')")).expect("it compiles");
    for round in 0..3 {
        assert_eq!(scripts.start(&endless, with, &mut store), None);
        assert_eq!(scripts.resume(&mut store), None);
        let stopped = scripts.stop(Reply::error("ERR by hand"));
        assert_eq!(stopped.outcome, Outcome::Stopped(Reply::error("ERR by hand")));
        assert!((200_000..250_000).contains(&stopped.steps), "{}", stopped.steps);
        let ended = scripts.run(&next, with, &mut store);
        assert_eq!(ended.outcome, Outcome::Ended(Reply::Integer(2 * round + 2)));
    }
}

#[test]
fn a_function_of_a_library_pauses_also_while_its_library_is_run() {
    let text = "#!lua name=lib\nlocal n = 0 for i = 1, 1000 do n = n + 1 end \
                redis.register_function('f', function(keys, args) for i = 1, 1000 do \
                redis.call('incr', keys[1]) end return {n, redis.call('get', keys[1])} end)";
    let mut scripts = Scripts::new(Limits { steps_to_pause: 10, ..limits() });
    scripts.load_library(&Bytes::from(text), false).expect("it registers");
    let (library, function) = scripts.libraries().find(b"f").expect("it was registered");
    let (script, name) = (library.script.clone(), function.name.clone());
    let keys = [Bytes::from("k")];
    let with = Invocation { keys: &keys, args: &[], read_only: false, function: Some(&name), seed: 0 };
    let mut store = Store::default();
    let (mut run, mut pauses) = (scripts.start(&script, with, &mut store), 0);
    while run.is_none() {
        pauses += 1;
        run = scripts.resume(&mut store);
    }
    let answer = Reply::Array(vec![Reply::Integer(1000), Reply::bulk("1000")]);
    assert_eq!(run.map(|run| run.outcome), Some(Outcome::Ended(answer)));
    assert!(pauses > 200, "{pauses}");
}

#[test]
fn a_copy_cannot_go_on() {
    let mut scripts = Scripts::new(limits());
    let endless = scripts.load(&Bytes::from("while true do end")).expect("it compiles");
    let with = Invocation { keys: &[], args: &[], read_only: false, function: None, seed: 0 };
    assert_eq!(scripts.start(&endless, with, &mut Store::default()), None);
    let run = scripts.clone().resume(&mut Store::default()).expect("it has an end");
    assert!(matches!(run.outcome, Outcome::Stopped(_)));
    assert_eq!(scripts.resume(&mut Store::default()), None, "what was copied goes on");
}
