//! Handlers of conflicts: what they are given, what they come to, what bounds them, and what refutes them.

use super::{HandledSibling, HandlerFailure, HandlerLimits, HandlerRefused, HandlerScript, HandlerWarning};
use bytes::Bytes;

const LIMITS: HandlerLimits =
    HandlerLimits { steps_max: 200_000, memory_bytes_max: 32 << 20, value_bytes_max: 256 << 10 };

const UNION: &str = "
local seen, all = {}, {}
for _, sibling in ipairs(siblings) do
  for element in (sibling.value or ''):gmatch('[^,]+') do
    if not seen[element] then
      seen[element] = true
      all[#all + 1] = element
    end
  end
end
table.sort(all)
return table.concat(all, ',')";

fn siblings(values: &[Option<&str>]) -> Vec<HandledSibling> {
    let one = |(at, value): (usize, &Option<&str>)| HandledSibling {
        value: value.map(|value| Bytes::copy_from_slice(value.as_bytes())),
        stamp: format!("{at:04}"),
        datacenter: at as u32 + 1,
    };
    values.iter().enumerate().map(one).collect()
}

fn compiled(text: &str) -> HandlerScript {
    HandlerScript::compile(text.as_bytes(), LIMITS).expect(text)
}

/// What a text makes of `tea`, a delete, and `milk,tea`.
fn made(text: &str) -> Result<Option<String>, HandlerFailure> {
    let folded = compiled(text).fold(&siblings(&[Some("tea"), None, Some("milk,tea")]))?;
    Ok(folded.map(|value| String::from_utf8(value.to_vec()).expect("text")))
}

fn refusal(text: &str) -> HandlerRefused {
    HandlerScript::proved(text.as_bytes(), LIMITS).expect_err(text)
}

fn warnings(text: &str) -> Vec<HandlerWarning> {
    HandlerScript::proved(text.as_bytes(), LIMITS).expect(text).1
}

#[test]
fn a_handler_is_given_values_deletes_stamps_and_datacenters() {
    assert_eq!(made(UNION), Ok(Some("milk,tea".into())));
    let text = "local all = {} for at, s in ipairs(siblings) do
        all[at] = tostring(s.value) .. '/' .. s.stamp .. '/' .. s.datacenter end return table.concat(all, ' ')";
    assert_eq!(made(text), Ok(Some("tea/0000/1 nil/0001/2 milk,tea/0002/3".into())));
    assert_eq!(made("return nil"), Ok(None));
    assert_eq!(made("return siblings[#siblings].value"), Ok(Some("milk,tea".into())));
    assert_eq!(made("return cjson.encode({ #siblings })"), Ok(Some("[3]".into())));
}

#[test]
fn what_is_no_string_and_no_nil_is_a_failure() {
    for (text, kind) in [
        ("return 1", "a number"),
        ("return true", "a boolean"),
        ("return {}", "a table"),
        ("local x = 1", "nothing"),
        ("return 'a', 'b'", "several values"),
        ("return nil, 'b'", "several values"),
    ] {
        assert_eq!(made(text), Err(HandlerFailure::Kind(kind.into())), "{text}");
    }
}

#[test]
fn an_error_names_its_line() {
    let says = |words: &str| Err(HandlerFailure::Error(words.into()));
    assert_eq!(made("\nlocal x = siblings.none.x"), says("line 2: attempt to index nil with 'x'"));
    assert_eq!(made("error({ err = 'MINE' })"), says("MINE"));
    assert_eq!(made("error(function() end)"), says("an error that is a function"));
    let words = HandlerScript::compile(b"return (", LIMITS).expect_err("no expression");
    assert!(words.starts_with("line 1: ") && !words.contains('\n'), "{words}");
}

#[test]
fn nothing_of_the_machine_and_nothing_that_may_differ_is_in_reach() {
    for name in [
        "redis",
        "load",
        "loadstring",
        "collectgarbage",
        "os",
        "io",
        "debug",
        "require",
        "print",
        "KEYS",
        "math.random",
        "math.randomseed",
        "math.sin",
        "math.exp",
        "math.log",
        "math.pow",
        "string.dump",
    ] {
        let text = format!(
            "local ok, value = pcall(function() return {name} end) return tostring(ok and value ~= nil)"
        );
        assert_eq!(made(&text), Ok(Some("false".into())), "{name}");
    }
    for text in [
        "return tostring({})",
        "return string.format('%*', {})",
        "return ('%*'):format(siblings)",
        "return `{siblings}`",
        "return tostring(setmetatable({}, { __tostring = function() return 'mine' end }))",
    ] {
        assert_eq!(made(text), Ok(Some("table".into())), "{text}");
    }
    assert_eq!(made("return tostring(print == nil)").map_err(|_| ()), Err(()));
    assert_eq!(made("return tostring(tostring)"), Ok(Some("function".into())));
    assert_eq!(made("return tostring(cjson.null)"), Ok(Some("userdata".into())));
    assert_eq!(made("return tostring(0.1 + 0.2)"), Ok(Some("0.30000000000000004".into())));
}

#[test]
fn nothing_is_left_for_the_next_call() {
    let pair = siblings(&[Some("a"), Some("b")]);
    for text in [
        "x = (x or 0) + 1 return tostring(x)",
        "string.x = 'x' return 'x'",
        "getmetatable('').x = 'x' return 'x'",
        "rawset(_G, 'x', 1) return 'x'",
    ] {
        assert!(matches!(compiled(text).fold(&pair), Err(HandlerFailure::Error(_))), "{text}");
    }
    let counts =
        compiled("local count = 0 local function next() count += 1 return count end return tostring(next())");
    for _ in 0..3 {
        assert_eq!(counts.fold(&pair), Ok(Some(Bytes::from("1"))));
    }
    let given = compiled("siblings[1].value = siblings[1].value .. '!' return siblings[1].value");
    for _ in 0..3 {
        assert_eq!(given.fold(&pair), Ok(Some(Bytes::from("a!"))));
    }
}

#[test]
fn steps_and_memory_bound_a_call_and_the_next_one_goes_on() {
    let pair = siblings(&[Some("a"), Some("b")]);
    for (text, why) in [
        ("while true do end", HandlerFailure::Steps),
        ("while true do pcall(function() while true do end end) end", HandlerFailure::Steps),
        ("local s = ('x'):rep(1e5) for i = 1, 1e9 do s:upper() end", HandlerFailure::Steps),
        ("local s = ('x'):rep(1e5) for i = 1, 1e9 do s:sub(i) end", HandlerFailure::Memory),
        ("local s = 'x' while true do s = s .. s end", HandlerFailure::Memory),
        ("local s = 'x' while true do pcall(function() s = s .. s end) end", HandlerFailure::Memory),
        ("return ('x'):rep(300 * 1024)", HandlerFailure::Returned),
        ("error('not enough memory')", HandlerFailure::Memory),
    ] {
        let handler = compiled(&format!("if #siblings == 3 then return 'three' end {text}"));
        for _ in 0..2 {
            assert_eq!(handler.fold(&pair), Err(why.clone()), "{text}");
            let three = siblings(&[Some("a"), None, None]);
            assert_eq!(handler.fold(&three), Ok(Some(Bytes::from("three"))), "{text}");
        }
    }
    let long = "x".repeat(200 << 10);
    let handler = compiled("return 'x'");
    assert_eq!(handler.fold(&siblings(&[Some(&long), Some(&long)])), Err(HandlerFailure::Given));
}

/// What ran before in an interpreter moves neither bound.
#[test]
fn a_call_is_stopped_at_the_same_place_whatever_ran_before() {
    let text = "
        local count = tonumber(siblings[1].value)
        if siblings[2].value == 'bytes' then
          local all = {}
          for at = 1, count do all[at] = siblings[3].value .. at end
          return 'done'
        end
        for _ = 1, count do end
        return 'done'";
    let handler = compiled(text);
    let filler = "f".repeat(1 << 10);
    let ends = |count: u64, of: &str, anew: bool| {
        let count = count.to_string();
        let given = siblings(&[Some(&count), Some(of), Some(&filler)]);
        let folded = if anew { compiled(text).fold_anew(&given) } else { handler.fold(&given) };
        folded.is_ok()
    };
    for (of, most) in [("steps", 400_000), ("bytes", 100_000)] {
        let least_that_is_stopped = |anew: bool| {
            let (mut low, mut high) = (0, most);
            while low + 1 < high {
                let middle = (low + high) / 2;
                if ends(middle, of, anew) { low = middle } else { high = middle }
            }
            high
        };
        let anew = least_that_is_stopped(true);
        assert!(1_000 < anew && anew < most, "{of}: {anew}");
        // Garbage of other lengths each time.
        for count in [1, 700] {
            ends(count, "bytes", false);
            assert_eq!(least_that_is_stopped(false), anew, "{of}");
        }
    }
}

#[test]
fn handlers_that_are_functions_of_all_values_are_taken() {
    for text in [
        UNION,
        "return siblings[#siblings].value",
        "local longest = '' for _, s in ipairs(siblings) do
            local value = s.value or ''
            if #value > #longest or #value == #longest and value > longest then longest = value end
         end return longest",
        "local sum = 0 for _, s in ipairs(siblings) do
            local number = tonumber(s.value) or 0
            if math.abs(number) < 2^53 then sum += math.floor(number) end
         end return tostring(sum)",
    ] {
        HandlerScript::proved(text.as_bytes(), LIMITS).expect(text);
    }
}

#[test]
fn the_examples_are_taken_by_a_node() {
    use ensue_types::limits::{HANDLER_MEMORY_BYTES_MAX, HANDLER_STEPS_MAX, HANDLER_VALUE_BYTES_MAX};
    let limits = HandlerLimits {
        steps_max: HANDLER_STEPS_MAX,
        memory_bytes_max: HANDLER_MEMORY_BYTES_MAX,
        value_bytes_max: HANDLER_VALUE_BYTES_MAX,
    };
    for text in [
        include_str!("../../../../examples/handlers/basket.lua"),
        include_str!("../../../../examples/handlers/profile.lua"),
    ] {
        HandlerScript::proved(text.as_bytes(), limits).expect(text);
    }
}

#[test]
fn a_handler_that_fails_is_refused_with_the_smallest_values_that_it_fails_on() {
    let refused =
        |siblings: &str, why: HandlerFailure| HandlerRefused::Fails { siblings: siblings.into(), why };
    let nil = HandlerFailure::Error("line 1: attempt to get length of a nil value".into());
    let text = "local sum = 0 for _, s in ipairs(siblings) do sum += #s.value end return tostring(sum)";
    assert_eq!(refusal(text), refused("{nil, \"\"}", nil.clone()));
    let text = "if siblings[1].value == 'cart' then error('mine') end return siblings[1].value";
    let mine = HandlerFailure::Error("line 1: mine".into());
    assert_eq!(refusal(text), refused("{\"cart\", \"\"}", mine));
    let text = "if #siblings > 3 then return 1 end return 'x'";
    assert_eq!(refusal(text), refused("{\"\", \"\", \"\", \"\"}", HandlerFailure::Kind("a number".into())));
    let text = "for i = 1, #(siblings[1].value or '') do for j = 1, 1e4 do end end return 'x'";
    let HandlerRefused::Fails { why, .. } = refusal(text) else { panic!("it takes too many steps") };
    assert_eq!(why, HandlerFailure::Steps);
    // From each place of a long value to its end: each place that a pattern is tried at counts.
    let text = "for a, b in (siblings[1].value or ''):gmatch('(%S+) (%d+)') do end return 'x'";
    assert!(matches!(refusal(text), HandlerRefused::Fails { why: HandlerFailure::Steps, .. }));
    assert!(matches!(refusal("return ("), HandlerRefused::Compile(_)));
}

/// The one thing in reach that differs: the order of keys that are objects.
#[test]
fn a_handler_that_comes_to_two_things_is_refused() {
    let text = "local keys = {} for at, s in ipairs(siblings) do keys[{}] = tostring(at) end
        for at = 1, 40 do keys[{}] = tostring(at) end
        local order = {} for _, at in pairs(keys) do order[#order + 1] = at end return table.concat(order)";
    assert!(matches!(refusal(text), HandlerRefused::Differs { .. }), "{}", refusal(text));
}

#[test]
fn settings_of_a_library_end_with_the_call() {
    let text = "local made = pcall(cjson.encode, {{{}}}) cjson.encode_max_depth(1) return tostring(made)";
    let handler = compiled(text);
    for _ in 0..2 {
        let made = handler.fold(&siblings(&[Some("a"), Some("b")]));
        assert_eq!(made, Ok(Some(Bytes::from_static(b"true"))));
    }
}

#[test]
fn what_only_surprises_is_told() {
    assert_eq!(warnings("return siblings[#siblings].value"), []);
    let normalized = warnings(UNION);
    assert!(matches!(&normalized[..], [HandlerWarning::Alone { .. }, HandlerWarning::Twice { .. }]));
    let twice = "local all = '' for _, s in ipairs(siblings) do all ..= s.value or '' end return all";
    assert!(matches!(&warnings(twice)[..], [HandlerWarning::Twice { .. }]), "{:?}", warnings(twice));
    assert_eq!(
        HandlerWarning::Twice { value: "\"5\"".into(), makes: "\"10\"".into() }.to_string(),
        "where two datacenters write \"5\" at once, it makes \"10\""
    );
}

#[test]
fn cores_fold_at_once() {
    let handler = compiled(UNION);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let handler = &handler;
            scope.spawn(move || {
                for turn in 0..200 {
                    let (one, other) = (format!("a{number}"), format!("b{turn}"));
                    let folded = handler.fold(&siblings(&[Some(&other), Some(&one)]));
                    assert_eq!(folded, Ok(Some(Bytes::from(format!("{one},{other}")))));
                }
            });
        }
    });
    let idle = handler.idle().len();
    assert!((1..=4).contains(&idle), "{idle}");
}
