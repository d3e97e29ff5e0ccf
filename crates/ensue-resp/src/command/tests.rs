//! The table agrees with itself, and finds what it holds.

use super::*;

fn args(words: &str) -> Vec<Bytes> {
    words.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

#[test]
fn rows_are_sorted_and_spelt_in_lower_case() {
    for pair in TABLE.windows(2) {
        assert!(pair[0].name < pair[1].name, "{} and {}", pair[0].name, pair[1].name);
    }
    for spec in &TABLE {
        let is_spelt = spec.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(is_spelt, "{}", spec.name);
        assert!(spec.subcommands.is_sorted(), "{}", spec.name);
    }
}

#[test]
fn rows_are_consistent() {
    for spec in &TABLE {
        let name = spec.name;
        assert!(spec.arity != 0, "{name}");
        let routed = matches!(spec.route, Route::Key | Route::Split(_) | Route::Rename);
        assert!(!routed || spec.first_key == 1, "{name} has no key to be routed by");
        if spec.route == Route::Together {
            let has_keys = spec.first_key > 0 || spec.counted_keys > 0 || spec.keys_of_streams;
            assert!(has_keys, "{name} has no key to be routed by");
        }
        assert!(spec.first_key == 0 || spec.step > 0, "{name}");
        // Each subcommand has an arity of its own.
        let least = if spec.subcommands.is_empty() { spec.arity.unsigned_abs() } else { 3 };
        assert!(spec.first_key == 0 || least > spec.first_key.unsigned_abs(), "{name}");
        let placed = (spec.first_key, spec.last_key, spec.counted_keys);
        let has_one_key = placed == (1, 1, 0) && spec.keys_behind.is_empty();
        // Patterns among its arguments make other keys, which have to be of the same owner.
        let makes_keys = name == "sort_ro";
        assert_eq!(spec.route == Route::Key, has_one_key && !makes_keys, "{name}");
        if matches!(spec.route, Route::Split(_)) {
            assert_eq!(spec.last_key, -1, "{name}");
        }
        let (write, read) = (spec.is_write(), spec.flags.contains(Flags::READONLY));
        if spec.route == Route::Script {
            assert!(spec.flags.contains(Flags::NOSCRIPT | Flags::MOVABLE_KEYS) && write, "{name}");
            continue;
        }
        if spec.route == Route::Session {
            assert!(!write && !read, "{name} touches data but has no owner");
        } else {
            assert!(write != read, "{name} must either write or read");
        }
        assert!(!spec.flags.contains(Flags::DENYOOM) || write, "{name}");
        for words in [spec.group, spec.since, spec.summary, spec.concurrency] {
            assert!(!words.is_empty(), "{name}");
        }
        assert!(spec.summary.ends_with('.') && spec.concurrency.ends_with('.'), "{name}");
    }
}

#[test]
fn lookup_in_any_case() {
    for spec in &TABLE {
        assert_eq!(lookup(spec.name.as_bytes()).map(|found| found.name), Some(spec.name));
        let upper = spec.name.to_ascii_uppercase();
        assert_eq!(lookup(upper.as_bytes()).map(|found| found.name), Some(spec.name));
    }
    assert_eq!(lookup(b"hSeT").map(|found| found.name), Some("hset"));
    for unknown in
        [&b""[..], b"g", b"ge", b"gets", b"get\0", b"\0get", b"get ", b"\0", &[b'a'; 17], &[b'a'; 99]]
            .into_iter()
            .chain([&b"georadiusbymembe"[..], b"georadiusbymembers", b"georadiusbymember\0"])
    {
        assert!(lookup(unknown).is_none(), "{unknown:?}");
    }
}

#[test]
fn arity() {
    let fits = |words: &str| {
        let args = args(words);
        check_arity(lookup(&args[0]).expect("a known command"), args.len())
    };
    assert!(fits("get a") && fits("set a b") && fits("set a b nx") && fits("del a b c"));
    assert!(!fits("get") && !fits("get a b") && !fits("set a") && !fits("del"));
}

#[test]
fn keys_by_place() {
    let keys_of = |words: &str| {
        let args = args(words);
        let found: Vec<String> = keys(lookup(&args[0]).expect("a known command"), &args)
            .map(|key| String::from_utf8_lossy(key).into_owned())
            .collect();
        found.join(" ")
    };
    assert_eq!(keys_of("get a"), "a");
    assert_eq!(keys_of("set a b ex 10"), "a");
    assert_eq!(keys_of("del a b a"), "a b a");
    assert_eq!(keys_of("mset a 1 b 2"), "a b");
    assert_eq!(keys_of("mset a 1 b"), "a b");
    assert_eq!(keys_of("rename a b"), "a b");
    assert_eq!(keys_of("rename a"), "a");
    assert_eq!(keys_of("ping a"), "");
    assert_eq!(keys_of("zrangestore a b 0 -1"), "a b");
    assert_eq!(keys_of("zunion 2 a b withscores"), "a b");
    assert_eq!(keys_of("zunionstore a 2 b c weights 1 2"), "a b c");
    assert_eq!(keys_of("zunionstore a 3 b c"), "a");
    assert_eq!(keys_of("georadius a 1 2 3 m store b"), "a b");
    assert_eq!(keys_of("georadius a 1 2 3 m StoreDist b STORE c"), "a b c");
    assert_eq!(keys_of("georadius_ro a 1 2 3 m store b"), "a");
    assert_eq!(keys_of("georadius a 1 2 3 m store"), "a");
    assert_eq!(keys_of("georadius a 1 2 3 m store store store c"), "a store c");
    assert_eq!(keys_of("georadiusbymember store store 100 km"), "store");
    assert_eq!(keys_of("zmpop 1 a min"), "a");
    assert_eq!(keys_of("zmpop x a min"), "");
    assert_eq!(keys_of("zmpop -1 a min"), "");
    assert_eq!(keys_of("zmpop 9223372036854775807 a min"), "");
    assert_eq!(keys_of("get"), "");
    assert_eq!(keys_of("eval x 2 a b c"), "a b");
    assert_eq!(keys_of("evalsha_ro x 0 a"), "");
    assert_eq!(keys_of("eval x 1"), "");
    assert_eq!(keys_of("eval x"), "");
    assert_eq!(keys_of("eval x -1 a"), "");
    assert_eq!(keys_of("del"), "");
}

#[test]
fn the_keys_of_a_script_are_counted() {
    let keys_of = |words: &str| script_keys(&args(words)).map_err(|error| error.to_string());
    assert_eq!(keys_of("eval x 2 a b c"), Ok(3..5));
    assert_eq!(keys_of("eval x 0"), Ok(3..3));
    assert_eq!(
        keys_of("eval x 3 a b"),
        Err("ERR Number of keys can't be greater than number of args".into())
    );
    assert_eq!(keys_of("eval x -1"), Err("ERR Number of keys can't be negative".into()));
    assert_eq!(keys_of("eval x y"), Err("ERR value is not an integer or out of range".into()));
}

#[test]
fn flags_have_names() {
    let names: Vec<&str> = lookup(b"incr").expect("a known command").flags.names().collect();
    assert_eq!(names, ["write", "denyoom", "fast"]);
}

#[test]
fn sort_stores_at_the_last_key_that_it_is_told() {
    let keys_of = |line: &str| {
        let args: Vec<Bytes> = line.split(' ').map(|word| Bytes::from(word.to_owned())).collect();
        let spec = lookup(&args[0]).expect("it is known");
        keys(spec, &args).map(|key| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys_of("sort a store b store c"), "a c");
    assert_eq!(keys_of("sort a by store get store limit 0 1 STORE b"), "a b");
    assert_eq!(keys_of("sort a store b by store"), "a b");
    assert_eq!(keys_of("sort store"), "store");
}
