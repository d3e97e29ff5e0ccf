//! Options and their errors, as Redis 7.0.15 answers them.

use super::*;
use crate::command::{Route, TABLE};
use proptest::prelude::*;
use std::num::NonZeroUsize;

fn args(words: &str) -> Vec<Bytes> {
    words.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

fn b(word: &'static str) -> Bytes {
    Bytes::from_static(word.as_bytes())
}

#[track_caller]
fn good(words: &str) -> Request {
    Request::parse(&args(words)).unwrap_or_else(|error| panic!("{words}: {error}"))
}

#[track_caller]
fn bad(words: &str, expected: &str) {
    match Request::parse(&args(words)) {
        Ok(Request::Refused(refused)) => assert_eq!(refused.error.to_string(), expected, "{words}"),
        Ok(request) => panic!("{words} was accepted: {request:?}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{words}"),
    }
}

const SYNTAX: &str = "ERR syntax error";
const NOT_INTEGER: &str = "ERR value is not an integer or out of range";

/// The least arguments of commands that take more than a 7 in every place.
fn words_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "zunion" | "zinter" | "zdiff" | "zintercard" | "sintercard" => "1 7",
        "setbit" => "7 7 1",
        "object" => "ENCODING 7",
        "memory" => "USAGE 7",
        "pfdebug" => "GETREG 7",
        "bitpos" => "7 1",
        "bitop" => "and 7 7",
        "zunionstore" | "zinterstore" | "zdiffstore" => "7 1 7",
        "zmpop" => "1 7 min",
        "hexpire" | "hpexpire" | "hexpireat" | "hpexpireat" => "7 7 FIELDS 1 7",
        "httl" | "hpttl" | "hexpiretime" | "hpexpiretime" | "hpersist" => "7 FIELDS 1 7",
        "hgetex" | "hgetdel" => "7 FIELDS 1 7",
        "hsetex" => "7 FIELDS 1 7 7",
        "lmove" => "7 7 LEFT RIGHT",
        "blmove" => "7 7 LEFT RIGHT 7",
        "blmpop" => "7 1 7 LEFT",
        "bzmpop" => "7 1 7 MIN",
        "linsert" => "7 BEFORE 7 7",
        "lmpop" => "1 7 LEFT",
        "georadius" | "georadius_ro" => "7 7 7 7 KM",
        "georadiusbymember" | "georadiusbymember_ro" => "7 7 7 KM",
        "geosearch" => "7 FROMMEMBER 7 BYRADIUS 7 KM",
        "geosearchstore" => "7 7 FROMMEMBER 7 BYRADIUS 7 KM",
        "xtrim" => "7 MAXLEN 7",
        "xread" => "STREAMS 7 7",
        "bcreate" => "7 7 MIN 7",
        "xreadgroup" => "GROUP 7 7 STREAMS 7 >",
        "xgroup" => "DESTROY 7 7",
        "xinfo" => "GROUPS 7",
        "zlexcount" | "zrangebylex" | "zrevrangebylex" | "zremrangebylex" => "7 - +",
        _ => return None,
    })
}

#[test]
fn a_bitfield_that_is_only_read() {
    let get = good("BITFIELD_RO f GET u4 0 GET i8 #2");
    let field = |is_signed, width, offset| FieldStep::Get(BitField { is_signed, width, offset });
    let steps = vec![field(false, 4, 0), field(true, 8, 16)];
    assert_eq!(get, Request::Bits(Bits::Fields { key: b("f"), steps, reads_only: true }));
    bad("BITFIELD_RO f SET u4 0 1", "ERR BITFIELD_RO only supports the GET subcommand");
    bad("BITFIELD_RO f OVERFLOW", SYNTAX);
}

#[test]
fn every_row_for_owners_is_read_and_the_others_are_refused() {
    for spec in &TABLE {
        let count = usize::from(spec.arity.unsigned_abs());
        // A word that is a key, a value, a cursor and a number, so that the least arguments are good ones.
        let mut words = vec![Bytes::from_static(spec.name.as_bytes())];
        words.resize(count, Bytes::from_static(b"7"));
        if let Some(others) = words_of(spec.name) {
            words = args(&format!("{} {others}", spec.name));
        }
        match (spec.route, Request::parse(&words)) {
            // The session plans it, and its owners read it.
            (Route::Session, Ok(Request::Watch { keys })) => assert_eq!(keys, words[1..]),
            (Route::Session | Route::Owner | Route::Script, result) => {
                assert_eq!(result, Err(CommandError::NotAnOwnersCommand(spec.name)));
            }
            (_, Ok(request)) => {
                let is_least = words.len() == count || !spec.subcommands.is_empty();
                assert!(is_least, "{}", spec.name);
                assert_eq!(request.is_write(), spec.is_write(), "{}", spec.name);
                assert_eq!(request.key().is_some(), spec.route == Route::Key, "{}", spec.name);
            }
            (_, Err(error)) => panic!("{}: {error}", spec.name),
        }
        words.truncate(count - 1);
        if !words.is_empty() {
            assert_eq!(Request::parse(&words), Err(CommandError::wrong_arity(spec.name)));
        }
    }
}

#[test]
fn unknown_and_too_long() {
    bad("FOO a", "ERR unknown command 'FOO', with args beginning with: 'a' ");
    bad("GET", "ERR wrong number of arguments for 'get' command");
    assert!(Request::parse(&[]).is_err());
    let long = Bytes::from(vec![b'k'; limits::KEY_BYTES_MAX + 1]);
    assert_eq!(Request::parse(&[b("GET"), long.clone()]), Err(CommandError::KeyTooLong));
    assert_eq!(
        Request::parse(&[b("MSET"), b("a"), b("1"), long.clone(), b("2")]),
        Err(CommandError::KeyTooLong)
    );
    assert!(Request::parse(&[b("SET"), b("a"), long.clone()]).is_ok());
    assert_eq!(Request::parse(&[b("KEYS"), long]), Err(CommandError::PatternTooLong));
}

#[test]
fn memory_usage() {
    let samples = |words: &str| match good(words) {
        Request::Whole(Whole::MemoryUsage { key, samples }) if key == "k" => samples.map(NonZeroUsize::get),
        other => panic!("{other:?}"),
    };
    assert_eq!(samples("MEMORY USAGE k"), Some(5));
    assert_eq!(samples("memory usage k samples 7"), Some(7));
    assert_eq!(samples("MEMORY USAGE k SAMPLES 7 SAMPLES 0"), None, "all");
    assert_eq!(good("MEMORY HELP"), Request::Whole(Whole::MemoryHelp));
    bad("MEMORY USAGE k SAMPLES", SYNTAX);
    bad("MEMORY USAGE k SAMPLES -1", SYNTAX);
    bad("MEMORY USAGE k SAMPLES x", NOT_INTEGER);
    bad("MEMORY USAGE k FOO 1", SYNTAX);
    bad("MEMORY USAGE", "ERR wrong number of arguments for 'memory|usage' command");
    bad("MEMORY HELP k", "ERR wrong number of arguments for 'memory|help' command");
    bad("MEMORY FOO", "ERR unknown subcommand 'FOO'. Try MEMORY HELP.");
}

fn set_parts(words: &str) -> (SetCondition, SetExpiry, bool) {
    match good(words) {
        Request::Set { condition, expiry, get, .. } => (condition, expiry, get),
        other => panic!("{other:?}"),
    }
}

#[test]
fn set() {
    use SetCondition::*;
    assert_eq!(set_parts("SET a 1"), (Always, SetExpiry::None, false));
    assert_eq!(set_parts("set a 1 nx ex 10"), (IfAbsent, SetExpiry::InMs(10_000), false));
    assert_eq!(set_parts("SET a 1 PX 10 XX GET"), (IfPresent, SetExpiry::InMs(10), true));
    assert_eq!(set_parts("SET a 1 NX GET NX"), (IfAbsent, SetExpiry::None, true));
    assert_eq!(set_parts("SET a 1 KEEPTTL KEEPTTL"), (Always, SetExpiry::Keep, false));
    assert_eq!(set_parts("SET a 1 EX 10 EX 20"), (Always, SetExpiry::InMs(20_000), false));
    assert_eq!(set_parts("SET a 1 EXAT 9223372036854775").1, SetExpiry::AtMs(9_223_372_036_854_775_000));
    assert_eq!(set_parts("SET a 1 PXAT 1").1, SetExpiry::AtMs(1));
    assert_eq!(set_parts("SETEX a 5 1"), (Always, SetExpiry::InMs(5000), false));
    assert_eq!(set_parts("PSETEX a 5 1"), (Always, SetExpiry::InMs(5), false));
    assert_eq!(set_parts("GETSET a 1"), (Always, SetExpiry::None, true));
    for options in ["EX", "EX 10 PX 10", "EX 10 KEEPTTL", "KEEPTTL EX 10", "NX XX", "XX NX", "FOO", "PERSIST"]
    {
        bad(&format!("SET a 1 {options}"), SYNTAX);
    }
    bad("SET a 1 EX x FOO", SYNTAX);
    bad("SET a 1 EX x", NOT_INTEGER);
    for options in
        ["EX 0", "PX -1", "EX 99999999999999999", "PX 9223372036854775807", "EXAT 9223372036854775807"]
    {
        bad(&format!("SET a 1 {options}"), "ERR invalid expire time in 'set' command");
    }
    bad("SETEX a 0 x", "ERR invalid expire time in 'setex' command");
    bad("SETEX a 99999999999999999 x", "ERR invalid expire time in 'setex' command");
    let far = 9_223_300_000_000_000_000;
    assert_eq!(set_parts(&format!("PSETEX a {far} x")).1, SetExpiry::InMs(far), "before the end of time");
    bad("PSETEX a 9223372036854775807 x", "ERR invalid expire time in 'psetex' command");
    bad("PSETEX a -5 x", "ERR invalid expire time in 'psetex' command");
    bad("SETEX a x x", NOT_INTEGER);
}

#[test]
fn getex() {
    let expiry = |words: &str| match good(words) {
        Request::GetExpire { expiry, .. } => expiry,
        other => panic!("{other:?}"),
    };
    assert_eq!(expiry("GETEX a"), GetExpiry::Keep);
    assert_eq!(expiry("GETEX a PERSIST PERSIST"), GetExpiry::Persist);
    assert_eq!(expiry("GETEX a EX 10"), GetExpiry::InMs(10_000));
    assert_eq!(expiry("GETEX a PXAT 10"), GetExpiry::AtMs(10));
    for options in ["PERSIST EX 10", "EX 10 PERSIST", "EX", "KEEPTTL", "NX", "EX 10 PX 10", "GET"] {
        bad(&format!("GETEX a {options}"), SYNTAX);
    }
    bad("GETEX a EX 0", "ERR invalid expire time in 'getex' command");
    bad("GETEX a EX x", NOT_INTEGER);
}

#[test]
fn expire() {
    let parts = |words: &str| match good(words) {
        Request::Expire { deadline, condition, .. } => (deadline, condition),
        other => panic!("{other:?}"),
    };
    use ExpireCondition::*;
    assert_eq!(parts("EXPIRE a 10"), (Deadline::InMs(10_000), Always));
    assert_eq!(parts("PEXPIRE a -10 nx"), (Deadline::InMs(-10), IfNone));
    assert_eq!(parts("EXPIREAT a 10 XX"), (Deadline::AtMs(10_000), IfSome));
    assert_eq!(parts("PEXPIREAT a 9223372036854775807 XX GT"), (Deadline::AtMs(i64::MAX), IfLater));
    assert_eq!(parts("PEXPIREAT a -9223372036854775808 GT GT"), (Deadline::AtMs(i64::MIN), IfLater));
    assert_eq!(
        parts("EXPIRE a -9223372036854775 LT"),
        (Deadline::InMs(-9_223_372_036_854_775_000), IfEarlier)
    );
    assert_eq!(parts("EXPIRE a 1 XX LT").1, IfSomeAndEarlier);
    bad("EXPIRE a x", NOT_INTEGER);
    bad("EXPIRE a 10 FOO", "ERR Unsupported option FOO");
    bad("EXPIRE a x FOO", "ERR Unsupported option FOO");
    let nx = "ERR NX and XX, GT or LT options at the same time are not compatible";
    bad("EXPIRE a 10 NX XX", nx);
    bad("EXPIRE a 10 NX GT", nx);
    bad("EXPIRE a 10 LT NX", nx);
    bad("EXPIRE a 10 GT LT", "ERR GT and LT options at the same time are not compatible");
    for seconds in ["9223372036854775807", "9223372036854775", "-9223372036854775808"] {
        bad(&format!("EXPIRE a {seconds}"), "ERR invalid expire time in 'expire' command");
    }
    bad("EXPIREAT a 9223372036854775807", "ERR invalid expire time in 'expireat' command");
    bad("PEXPIRE a 9223372036854775807", "ERR invalid expire time in 'pexpire' command");
}

#[test]
fn counters() {
    let amount = |words: &str| match good(words) {
        Request::IncrementBy { amount, .. } => amount,
        other => panic!("{other:?}"),
    };
    assert_eq!(amount("INCR a"), 1);
    assert_eq!(amount("DECR a"), -1);
    assert_eq!(amount("INCRBY a -9223372036854775808"), i64::MIN);
    assert_eq!(amount("DECRBY a 9223372036854775807"), -i64::MAX);
    bad("DECRBY a -9223372036854775808", "ERR decrement would overflow");
    for text in ["x", "01", "+1", "-0", "9223372036854775808", ""] {
        bad(&format!("INCRBY a {text}"), NOT_INTEGER);
        bad(&format!("DECRBY a {text}"), NOT_INTEGER);
        bad(&format!("HINCRBY h f {text}"), NOT_INTEGER);
    }
    let half = Decimal::parse(b"0.5").expect("a number");
    assert_eq!(good("INCRBYFLOAT a 5e-1"), Request::IncrementByFloat { key: b("a"), amount: half });
    for text in ["x", "nan", ""] {
        bad(&format!("INCRBYFLOAT a {text}"), "ERR value is not a valid float");
        bad(&format!("HINCRBYFLOAT h f {text}"), "ERR value is not a valid float");
    }
    bad("INCRBYFLOAT a inf", "ERR increment would produce NaN or Infinity");
    bad("HINCRBYFLOAT h f inf", "ERR value is NaN or Infinity");
}

#[test]
fn ranges() {
    assert_eq!(good("GETRANGE a -3 -1"), Request::GetRange { key: b("a"), start: -3, end: -1 });
    bad("GETRANGE a x 1", NOT_INTEGER);
    bad("GETRANGE a 1 x", NOT_INTEGER);
    assert_eq!(good("SETRANGE a 5 xy"), Request::SetRange { key: b("a"), offset: 5, value: b("xy") });
    assert!(good("SETRANGE a 67108863 x").is_write());
    bad("SETRANGE a -1 x", "ERR offset is out of range");
    bad("SETRANGE a x x", NOT_INTEGER);
    let too_long = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    bad("SETRANGE a 67108864 x", too_long);
    bad("SETRANGE a 9223372036854775807 x", too_long);
    good("SETRANGE a 9223372036854775807 ");
}

#[test]
fn pairs_come_in_twos() {
    assert_eq!(good("MSET a 1 b 2"), Request::SetMany { pairs: vec![(b("a"), b("1")), (b("b"), b("2"))] });
    bad("MSET a 1 b", "ERR wrong number of arguments for 'mset' command");
    bad("HSET h a 1 b", "ERR wrong number of arguments for 'hset' command");
    bad("HMSET h a 1 b", "ERR wrong number of arguments for 'hmset' command");
    assert_eq!(
        good("HMSET h a 1"),
        Request::HashSet { key: b("h"), pairs: vec![(b("a"), b("1"))], answer: HashSetAnswer::Ok }
    );
}

#[test]
fn scans() {
    let options = ScanOptions { cursor: 5, pattern: Some(b("a*")), count: 100 };
    assert_eq!(
        good("SCAN 5 match a* Count 100 TYPE hash"),
        Request::Scan { options: options.clone(), type_name: Some(b("hash")) }
    );
    assert_eq!(
        good("HSCAN h 5 COUNT 100 MATCH a*"),
        Request::HashScan { key: b("h"), options: options.clone() }
    );
    assert_eq!(good("SRANDMEMBER s"), Request::SetRandom { key: b("s"), count: None });
    assert_eq!(good("SRANDMEMBER s -5"), Request::SetRandom { key: b("s"), count: Some(-5) });
    bad("SRANDMEMBER s x", NOT_INTEGER);
    bad("SRANDMEMBER s 1 2", SYNTAX);
    let range = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
    bad("SRANDMEMBER s -9223372036854775808", range);
    assert_eq!(good("SSCAN s 5 COUNT 100 MATCH a*"), Request::SetScan { key: b("s"), options });
    let every = ScanOptions { cursor: 0, pattern: None, count: 10 };
    assert_eq!(good("SCAN 0 MATCH *"), Request::Scan { options: every, type_name: None });
    for cursor in ["x", "18446744073709551616"] {
        bad(&format!("SCAN {cursor}"), "ERR invalid cursor");
        bad(&format!("HSCAN h {cursor}"), "ERR invalid cursor");
    }
    for options in ["COUNT", "COUNT 0", "COUNT -1", "FOO bar"] {
        bad(&format!("SCAN 0 {options}"), SYNTAX);
        bad(&format!("SSCAN s 0 {options}"), SYNTAX);
    }
    bad("HSCAN h 0 TYPE string", SYNTAX);
    bad("SCAN 0 COUNT x", NOT_INTEGER);
}

#[test]
fn flush() {
    assert_eq!(good("FLUSHALL async"), Request::Flush { every_keyspace: true });
    assert_eq!(good("FLUSHDB SYNC"), Request::Flush { every_keyspace: false });
    bad("FLUSHALL FOO", SYNTAX);
    bad("FLUSHALL SYNC ASYNC", SYNTAX);
}

proptest! {
    #[test]
    fn no_arguments_make_it_panic(row in 0..TABLE.len(), words in prop::collection::vec(
        prop_oneof!["NX|XX|GT|LT|EX|PX|GET|KEEPTTL|MATCH|COUNT|TYPE|PERSIST", "-?[0-9]{1,20}", "[a-z*]{0,4}"], 0..7)) {
        let mut args = vec![Bytes::from_static(TABLE[row].name.as_bytes())];
        args.extend(words.into_iter().map(Bytes::from));
        if let Ok(request) = Request::parse(&args) {
            prop_assert_eq!(request.is_write(), TABLE[row].is_write());
        }
    }
}

mod lists;
mod sorted_sets;
mod streams;
