//! Arguments of commands on streams, and the errors that Redis 7.0.15 answers.

use super::{NOT_INTEGER, SYNTAX, args, b, bad, good};
use crate::request::{Blocking, Kept, NewId, Request, Stream, Trim, WaitingPop};
use crate::{keys, lookup};
use ensue_types::StreamId;

const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";

fn id(ms: u64, sequence: u64) -> StreamId {
    StreamId { ms, sequence }
}

#[test]
fn ids() {
    let new = |words: &str| match good(words) {
        Request::Streams(Stream::Add { id, .. }) => id,
        other => panic!("{other:?}"),
    };
    assert_eq!(new("XADD s * f v"), NewId::Drawn);
    assert_eq!(new("XADD s 7-* f v"), NewId::DrawnAt(7));
    assert_eq!(new("XADD s 7 f v"), NewId::Given(id(7, 0)));
    assert_eq!(new("XADD s 7-18446744073709551615 f v"), NewId::Given(id(7, u64::MAX)));
    bad("XADD s 0-0 f v", "ERR The ID specified in XADD must be greater than 0-0");
    for words in ["x", "-1", "1-", "1-x", "1-2-3", "18446744073709551616", "-", "+", "x-*", "$", ">"] {
        bad(&format!("XADD s {words} f v"), INVALID_ID);
        bad(&format!("XDEL s {words}"), INVALID_ID);
    }
    bad("XADD s * f", "ERR wrong number of arguments for 'xadd' command");
    bad("XADD s * f v g", "ERR wrong number of arguments for 'xadd' command");
    bad("XADD s NOMKSTREAM * f", "ERR wrong number of arguments for 'xadd' command");
    let range = |words: &str| match good(words) {
        Request::Streams(Stream::Range { from, to, count, .. }) => (from, to, count),
        other => panic!("{other:?}"),
    };
    assert_eq!(range("XRANGE s - +"), (StreamId::MIN, StreamId::MAX, None));
    assert_eq!(range("XRANGE s 5 6"), (id(5, 0), id(6, u64::MAX), None));
    assert_eq!(range("XREVRANGE s (6 (5-3 COUNT 2"), (id(5, 4), id(6, u64::MAX - 1), Some(2)));
    assert_eq!(range("XRANGE s 1 2 COUNT -3"), (id(1, 0), id(2, u64::MAX), Some(0)));
    bad("XRANGE s (18446744073709551615-18446744073709551615 +", "ERR invalid start ID for the interval");
    bad("XRANGE s - (0-0", "ERR invalid end ID for the interval");
    bad("XRANGE s (- +", INVALID_ID);
    bad("XRANGE s - + COUNT", SYNTAX);
    bad("XRANGE s - + COUNT x", NOT_INTEGER);
}

#[test]
fn trims() {
    let trim = |words: &str| match good(words) {
        Request::Streams(Stream::Trim { trim, .. }) => trim,
        other => panic!("{other:?}"),
    };
    assert_eq!(trim("XTRIM s MAXLEN 5"), Trim { keeps: Kept::Latest(5), about: None });
    assert_eq!(trim("XTRIM s maxlen = 5"), Trim { keeps: Kept::Latest(5), about: None });
    assert_eq!(trim("XTRIM s MINID ~ 5 LIMIT 3"), Trim { keeps: Kept::From(id(5, 0)), about: Some(Some(3)) });
    bad("XTRIM s MAXLEN -1", "ERR The MAXLEN argument must be >= 0.");
    bad("XTRIM s MAXLEN x", NOT_INTEGER);
    bad("XTRIM s MINID x", INVALID_ID);
    bad("XTRIM s LIMIT 5", "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
    bad("XTRIM s MAXLEN 5 LIMIT 1", "ERR syntax error, LIMIT cannot be used without the special ~ option");
    bad(
        "XTRIM s MAXLEN 5 MINID 1",
        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
    );
    bad("XTRIM s MAXLEN ~ 5 LIMIT -1", "ERR The LIMIT argument must be >= 0.");
    bad("XTRIM s NEWEST 5", SYNTAX);
}

#[test]
fn reads() {
    let words = args("XREAD COUNT 2 BLOCK 0 STREAMS a b $ 5-1");
    let Ok(Request::Blocking(Blocking { pop: WaitingPop::Entries(read), timeout_ms: None })) =
        Request::parse(&words)
    else {
        panic!("it waits");
    };
    assert_eq!(read.streams, [(b("a"), None), (b("b"), Some(id(5, 1)))]);
    assert_eq!(read.count, Some(2));
    let spec = lookup(b"XREAD").expect("a command");
    assert_eq!(keys(spec, &words).collect::<Vec<_>>(), ["a", "b"]);
    assert!(matches!(good("XREAD STREAMS a 0"), Request::Streams(Stream::Read(_))));
    assert!(matches!(good("XREADGROUP GROUP g c BLOCK 5 STREAMS a >"), Request::Blocking(_)));
    assert!(matches!(
        good("XREADGROUP GROUP g c BLOCK 5 STREAMS a b > 0"),
        Request::Streams(Stream::ReadGroup(_))
    ));
    // A group may be called as anything.
    let words = args("XREADGROUP GROUP STREAMS streams STREAMS a >");
    assert_eq!(keys(lookup(b"xreadgroup").expect("a command"), &words).collect::<Vec<_>>(), ["a"]);
    bad(
        "XREAD STREAMS a b 0",
        "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified.",
    );
    bad("XREAD COUNT 5 STREAMS", SYNTAX);
    bad("XREAD COUNT x STREAMS a 0", NOT_INTEGER);
    bad("XREAD BLOCK x STREAMS a 0", "ERR timeout is not an integer or out of range");
    bad("XREAD BLOCK -1 STREAMS a 0", "ERR timeout is negative");
    bad(
        "XREAD NOACK STREAMS a 0",
        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
    );
    bad("XREADGROUP COUNT 1 NOACK STREAMS a >", "ERR Missing GROUP option for XREADGROUP");
}

#[test]
fn groups() {
    bad("XGROUP CREATE s g", "ERR wrong number of arguments for 'xgroup|create' command");
    bad("XGROUP DESTROY s", "ERR wrong number of arguments for 'xgroup|destroy' command");
    bad("XGROUP FOO s g", "ERR unknown subcommand 'FOO'. Try XGROUP HELP.");
    bad("XGROUP CREATE s g 0 ENTRIESREAD -2", "ERR value for ENTRIESREAD must be positive or -1");
    bad("XGROUP SETID s g 0 MKSTREAM", SYNTAX);
    bad("XINFO STREAM", "ERR wrong number of arguments for 'xinfo|stream' command");
    bad("XPENDING s g - +", SYNTAX);
    bad("XPENDING s g IDLE 5 - +", SYNTAX);
    bad("XCLAIM s g c x 1-1", "ERR Invalid min-idle-time argument for XCLAIM");
    bad("XCLAIM s g c 0 1-1 IDLE x", "ERR Invalid IDLE option argument for XCLAIM");
    bad("XCLAIM s g c 0 1-1 FOO", "ERR Unrecognized XCLAIM option 'FOO'");
    bad("XAUTOCLAIM s g c 0 - COUNT 0", "ERR COUNT must be > 0");
}
