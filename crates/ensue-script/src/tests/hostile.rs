//! Scripts that want to hang, to crash, to grow or to escape.

use super::{Store, answer, limits, run, run_on};
use crate::{Call, Called, Calls, Limits, Outcome, Scripts};
use ensue_types::Reply;

fn is_stopped(text: &str) -> bool {
    matches!(run(text).outcome, Outcome::Stopped(Reply::Error(words)) if words.starts_with("SCRIPTSTOPPED"))
}

#[test]
fn scripts_without_end_are_stopped() {
    for text in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "repeat until pcall(error) and false",
        "local function f() pcall(f) f() end while true do pcall(f) end",
        "local s = ('a?'):rep(32)..('a'):rep(32) return ('a'):rep(32):find(s)",
        "return (('a'):rep(100)):find(('.-'):rep(50)..'b')",
        "while true do pcall(string.rep, 'x', 1e6) end",
        "local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, 1, 0) end",
        "local t = {} for i = 1, 1e5 do t[i] = -i end while true do table.sort(t) end",
        "coroutine.wrap(function() while true do end end)()",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "while true do redis.call('ping') end",
        "while true do redis.pcall('nope') end",
        "local s = ('x'):rep(1e6) while true do s:find('y') end",
        "local s = ('x'):rep(1e6) while true do s:find('y', 1, true) end",
        "local s = ('x'):rep(1e6) while true do s:upper() end",
        "local s = ('1'):rep(1e6) while true do tonumber(s) end",
        "while true do string.rep('', 1e9) end",
        "xpcall(function() error('x') end, function() while true do end end)",
        "pcall(error, setmetatable({}, {__tostring = error})) while true do end",
        "return cjson.encode(setmetatable({}, {__index = function() while true do end end})) .. ('x'):rep(1e9)",
        "for i = 1, 1e9 do loadstring('return '..i) end",
        "for _ in ('x'):rep(1e6):gmatch('.-.-.-.-y') do end",
        "local t = {1} while true do t = {t, t} cjson.encode(t) end",
    ] {
        assert!(is_stopped(text), "{text}: {:?}", run(text));
    }
}

#[test]
fn scripts_that_grow_are_stopped() {
    for text in [
        "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
        "local s = 'x' while true do s = s .. s end",
        "return ('x'):rep(2^31)",
        "local s = 'x' while true do pcall(function() s = s .. s end) end",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local f = function() end while true do local g = f f = function() return g() end end",
        "local t = {} while true do t = {t} end",
        "local t = {1} for i = 1, 40 do t = {t, t} end return t",
        "local s = ('x'):rep(1e7) local t = {} for i = 1, 1000 do t[i] = s end return table.concat(t)",
    ] {
        assert!(is_stopped(text), "{text}: {:?}", run(text));
    }
}

#[test]
fn an_error_whose_words_are_those_of_short_memory_is_an_error_of_the_script() {
    let Reply::Error(words) = answer("redis.call('set', 'kept', '1') error('we have not enough memory')")
    else {
        panic!("it is an error");
    };
    assert!(words.contains("we have not enough memory"), "{words}");
}

#[test]
fn compiling_takes_steps_for_each_byte() {
    let steps = run("loadstring(('x = 1 '):rep(10000))").steps;
    assert!(steps > 10 * 60_000, "{steps} steps for 60,000 bytes");
}

#[test]
fn what_is_too_deep_or_too_much_is_an_error_of_the_script() {
    let is_error = |text: &str| matches!(answer(text), Reply::Error(_));
    for text in [
        "local function f() return f() + 1 end return f()",
        "return unpack({}, 0, 2^31 - 1)",
        "return unpack({}, 1, 1e8)",
        "return select('#', unpack({}, 1, 1e7))",
        "local t = {} t[1] = t return t",
        "local t = {} t[1] = t return cjson.encode(t)",
        "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x.y",
        "return string.char(unpack({}, 1, 1e7))",
        "return loadstring(('('):rep(1e5) .. '1' .. (')'):rep(1e5))()",
        "return coroutine.wrap(function() return coroutine.wrap(coroutine.yield)() end)()()()",
    ] {
        assert!(is_error(text), "{text}: {:?}", run(text));
    }
}

#[test]
fn nothing_of_the_machine_and_nothing_for_the_next_script_is_in_reach() {
    for text in [
        "os",
        "io",
        "debug",
        "require",
        "buffer",
        "print",
        "getfenv",
        "setfenv",
        "dofile",
        "loadfile",
        "newproxy",
        "package",
        "module",
        "bit32",
        "utf8",
        "vector",
        "typeof",
        "string.dump",
        "coroutine.close",
        "table.freeze",
        "table.clear",
    ] {
        let script =
            format!("local ok, value = pcall(function() return {text} end) return ok and value ~= nil");
        assert_eq!(answer(&script), Reply::Nil, "{text}");
    }
    for text in [
        "x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "redis.call = nil",
        "string.rep = nil",
        "rawset(cjson, 'encode', nil)",
        "getmetatable('').__index = nil",
        "rawset(getmetatable(''), '__add', error)",
        "setmetatable(_G, {})",
        "rawset(getmetatable(_G), '__index', nil)",
        "table.sort(redis, error) table.insert(string, 1)",
    ] {
        let script = format!("{text} return 'done'");
        assert!(matches!(answer(&script), Reply::Error(_)), "{text}");
    }
}

#[test]
fn bytecode_is_not_read() {
    for text in ["\u{1b}Lua", "\u{5}\u{3}\u{0}", "\u{6}\u{1}"] {
        assert!(matches!(answer(text), Reply::Error(_)), "{text:?}");
    }
    assert_eq!(answer("return tostring(loadstring(string.char(5, 3, 0, 0)))"), Reply::bulk("nil"));
}

#[test]
fn after_a_stop_the_next_script_runs() {
    let mut scripts = Scripts::new(Limits { steps_max: 10_000, ..limits() });
    let mut store = Store::default();
    for _ in 0..20 {
        let stopped = run_on(&mut scripts, "local t = {} while true do t[#t + 1] = #t end", &mut store);
        assert!(matches!(stopped.outcome, Outcome::Stopped(_)) && stopped.steps == 10_000);
        let ended = run_on(&mut scripts, "return redis.call('incr', 'n')", &mut store);
        assert!(matches!(ended.outcome, Outcome::Ended(Reply::Integer(_))) && ended.steps < 100);
    }
}

#[test]
fn who_carries_out_commands_can_stop_a_script_for_good() {
    let text = "redis.call('set', 'a', 1) pcall(redis.call, 'stop') redis.call('set', 'b', 1) return 1";
    let mut store = Store::default();
    let run = run_on(&mut Scripts::new(limits()), text, &mut store);
    assert_eq!(run.outcome, Outcome::Stopped(Reply::error("TRYAGAIN not now")));
    assert!(!store.values.contains_key(&b"b"[..]));
}

#[test]
fn the_same_script_takes_the_same_steps_everywhere() {
    let text =
        "local t = {} for i = 1, 1000 do t[i] = redis.call('incr', 'n') .. 'x' end return cjson.encode(t)";
    let steps = run(text).steps;
    assert!(steps > 1000);
    assert!((0..5).all(|_| run(text).steps == steps));
}

/// The interpreter's own collector would go by a clock.
#[test]
fn garbage_is_collected_at_the_same_places_however_long_calls_take() {
    /// Turns round so often.
    struct Slow(u64);
    impl Calls for Slow {
        fn call(&mut self, _call: Call) -> Called {
            let turns = (0..self.0).map(std::hint::black_box).max();
            assert!(turns < Some(u64::MAX));
            Called::Answered(Reply::Integer(1), 1)
        }
    }
    let text = "local kept = {}\n\
                for i = 1, 30000 do\n\
                  kept[i % 900] = string.rep('x', 500) .. i\n\
                  if i % 1500 == 0 then redis.call('GET', 'key') end\n\
                end\n\
                return 1";
    let steps = |turns| run_on(&mut Scripts::new(limits()), text, &mut Slow(turns)).steps;
    assert_eq!([steps(0), steps(4_000_000), steps(1_000_000)], [steps(0); 3]);
}

#[test]
fn scripts_that_are_only_loaded_leave_no_garbage() {
    let mut scripts = Scripts::new(Limits { scripts_max: 4, memory_bytes_max: 4 << 20, ..limits() });
    for number in 0..400 {
        let text = format!("return '{}{number}'", "x".repeat(50_000));
        scripts.load(&text.into()).expect("it compiles");
    }
}
