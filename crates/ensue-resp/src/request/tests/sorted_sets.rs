//! Arguments of commands on sorted sets, and the errors that Redis 7.0.15 answers.

use super::{NOT_INTEGER, SYNTAX, bad, good};
use crate::request::{Request, SetOperation, SortedSet};

const NOT_FLOAT: &str = "ERR value is not a valid float";
const NOT_FLOATS: &str = "ERR min or max is not a float";
const NOT_NAMES: &str = "ERR min or max not valid string range item";

#[test]
fn add() {
    let incompatible = "ERR GT, LT, and/or NX options at the same time are not compatible";
    bad("ZADD z 1", "ERR wrong number of arguments for 'zadd' command");
    bad("ZADD z CH 1", SYNTAX);
    bad("ZADD z 1 a 2", SYNTAX);
    bad("ZADD z NX XX 1 a", "ERR XX and NX options at the same time are not compatible");
    bad("ZADD z NX GT 1 a", incompatible);
    bad("ZADD z NX LT 1 a", incompatible);
    bad("ZADD z GT LT 1 a", incompatible);
    bad("ZADD z INCR 1 a 2 b", "ERR INCR option supports a single increment-element pair");
    for score in ["x", "nan", "1e400", "1e-400", "1_0", "0x", "1e", "0x1p", "--1", "+-1", ".", ""] {
        bad(&format!("ZADD z {score} a"), NOT_FLOAT);
    }
    let scores = [
        ("0x10", 16.0),
        ("-0x1.8p1", -3.0),
        ("+5", 5.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-310", 1e-310),
        ("0x1p-1074", 5e-324),
        ("iNf", f64::INFINITY),
        ("-infinity", f64::NEG_INFINITY),
    ];
    for (text, score) in scores {
        match good(&format!("ZADD z {text} a")) {
            Request::Sorted(SortedSet::Add { pairs, .. }) => assert_eq!(pairs[0].0.value(), score, "{text}"),
            other => panic!("{other:?}"),
        }
    }
    bad("ZINCRBY z x a", NOT_FLOAT);
}

#[test]
fn ranges() {
    bad("ZRANGE z a b", NOT_INTEGER);
    bad(
        "ZRANGE z 0 1 LIMIT 0 1",
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
    );
    good("ZRANGE z 0 1 LIMIT 0 -1");
    bad(
        "ZRANGE z - + BYLEX WITHSCORES",
        "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
    );
    bad("ZRANGE z 1 2 BYSCORE BYLEX", SYNTAX);
    bad("ZREVRANGE z 0 1 REV", SYNTAX);
    bad("ZREVRANGE z 0 1 BYSCORE", SYNTAX);
    bad("ZRANGEBYSCORE z 0 1 LIMIT 0", SYNTAX);
    bad("ZRANGEBYSCORE z 0 1 LIMIT a 1", NOT_INTEGER);
    bad("ZRANGESTORE t z 0 -1 WITHSCORES", SYNTAX);
    for line in ["ZCOUNT z", "ZRANGEBYSCORE z", "ZREVRANGEBYSCORE z", "ZREMRANGEBYSCORE z"] {
        bad(&format!("{line} a 1"), NOT_FLOATS);
        bad(&format!("{line} 1 (nan"), NOT_FLOATS);
        bad(&format!("{line} 1x 2"), NOT_FLOATS);
    }
    for line in ["ZLEXCOUNT z", "ZRANGEBYLEX z", "ZREVRANGEBYLEX z", "ZREMRANGEBYLEX z"] {
        bad(&format!("{line} a [b"), NOT_NAMES);
        bad(&format!("{line} [a ++"), NOT_NAMES);
    }
    bad("ZREMRANGEBYRANK z a 1", NOT_INTEGER);
    assert_eq!(good("ZREVRANGEBYSCORE z 5 1"), good("ZRANGE z 5 1 BYSCORE REV"));
    assert_eq!(good("ZREVRANGEBYLEX z + ["), good("ZRANGE z + [ REV BYLEX"));
    assert_eq!(good("ZREVRANGE z 1 2 WITHSCORES"), good("ZRANGE z 1 2 REV WITHSCORES"));
    // The end of a range is read more loosely than a score.
    assert_eq!(good("ZRANGEBYSCORE z  1e400"), good("ZRANGEBYSCORE z 0 inf"));
}

#[test]
fn others() {
    bad("ZRANK z a b", SYNTAX);
    bad("ZRANK z a WITHSCORE b", "ERR wrong number of arguments for 'zrank' command");
    for count in ["x", "-1"] {
        bad(&format!("ZPOPMIN z {count}"), "ERR value is out of range, must be positive");
    }
    bad("ZPOPMIN z 1 1", SYNTAX);
    bad("ZRANDMEMBER z x", NOT_INTEGER);
    bad("ZRANDMEMBER z 1 x", SYNTAX);
    bad("ZRANDMEMBER z 9223372036854775807 WITHSCORES", "ERR value is out of range");
    bad(
        "ZRANDMEMBER z -9223372036854775808",
        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
    );
    bad("ZSCAN z x", "ERR invalid cursor");
}

#[test]
fn several_keys() {
    for keys in ["0", "x", "-1"] {
        bad(&format!("ZMPOP {keys} z MIN"), "ERR numkeys should be greater than 0");
    }
    bad("ZMPOP 1 z x", SYNTAX);
    bad("ZMPOP 2 z MIN", SYNTAX);
    bad("ZMPOP 1 z MIN COUNT 0", "ERR count should be greater than 0");
    bad("ZMPOP 1 z MIN COUNT", SYNTAX);
    bad("ZMPOP 1 z MIN COUNT 1 COUNT 2", SYNTAX);
    bad("ZUNION 0 z", "ERR at least 1 input key is needed for 'zunion' command");
    bad("ZDIFFSTORE t 0 z", "ERR at least 1 input key is needed for 'zdiffstore' command");
    bad("ZUNION x z", NOT_INTEGER);
    bad("ZUNION 2 z", SYNTAX);
    bad("ZUNION 1 z WEIGHTS", SYNTAX);
    bad("ZUNION 1 z WEIGHTS x", "ERR weight value is not a float");
    bad("ZUNION 1 z AGGREGATE x", SYNTAX);
    bad("ZDIFF 1 z WEIGHTS 1", SYNTAX);
    bad("ZINTERSTORE t 1 z WITHSCORES", SYNTAX);
    bad("ZINTERCARD 1 z LIMIT -1", "ERR LIMIT can't be negative");
    bad("ZINTERCARD 1 z LIMIT", SYNTAX);
    bad("ZINTERCARD 1 z WITHSCORES", SYNTAX);
    match good("ZUNION 2 a b AGGREGATE MAX WITHSCORES WEIGHTS 2 3") {
        Request::Sorted(SortedSet::Combine { operation, with_scores: true }) => {
            assert_eq!(operation.keys(), ["a", "b"]);
            assert!(matches!(operation, SetOperation::Union { .. }));
        }
        other => panic!("{other:?}"),
    }
}
