//! Commands with a wrong argument, as Redis 7.0.15 answers them on keys that are absent, of another type, and right.

use super::*;

#[test]
fn keys_are_looked_at_before_arguments_where_redis_does() {
    let mut datacenter = Datacenter::new(0);
    for line in SETUP {
        assert!(!datacenter.run(line).is_error(), "{line}");
    }
    let mut failures = String::new();
    for (expected, lines) in ANSWERS {
        for line in *lines {
            let written = datacenter.log.len();
            let answer = show(&datacenter.run(line));
            if answer != *expected || datacenter.log.len() > written {
                writeln!(failures, "{line}\n  expected {expected}\n  answered {answer}").expect("a string");
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

const SETUP: [&str; 7] = [
    "SET s v",
    "RPUSH l a",
    "HSET h f v",
    "SADD se m",
    "ZADD z 1 m",
    "XADD x 1-1 a b",
    "XGROUP CREATE x g 0",
];

/// Each answer, and the commands that get it.
const ANSWERS: &[(&str, &[&str])] = &[
    ("nil", &["LINDEX none x", "GETEX none EX 0", "GETEX none EX x"]),
    (
        WRONG_TYPE,
        &[
            "LINDEX s x",
            "LSET s x v",
            "HSCAN s 0 COUNT x",
            "SSCAN s 0 FOO",
            "ZSCAN s 0 COUNT 0",
            "GETEX l EX 0",
            "XDEL s x",
            "XACK s g y",
            "XCLAIM s g c y 0-1",
            "XGROUP CREATE s g y MKSTREAM",
            "XGROUP CREATE s g y",
            "XREADGROUP GROUP g c STREAMS s y",
            "XREAD STREAMS s y",
            "XREAD STREAMS none s 0 y",
            "XREAD STREAMS s >",
            "XINFO STREAM s FULL COUNT y",
            "INCRBYFLOAT l x",
            "SETRANGE l 600000000 v",
            "ZUNION 1 s FOO",
            "ZUNION 2 none s WEIGHTS 1",
            "ZUNION 2 none s WEIGHTS 1 x",
            "ZINTER 2 none s AGGREGATE x",
            "ZDIFF 2 none s FOO",
            "ZINTERCARD 1 s LIMIT -1",
            "ZINTERCARD 1 s FOO",
            "ZUNIONSTORE d 1 s FOO",
            "GEOSEARCH s FROMLONLAT 0 0 BYRADIUS x m",
            "GEOSEARCHSTORE d s FROMLONLAT 0 0 BYRADIUS x m",
            "GEORADIUS s 0 0 1 x",
            "GEORADIUS s 0 0 x m",
            "GEORADIUS s 0 0 1 m FOO",
            "GEORADIUSBYMEMBER s m x km",
        ],
    ),
    (
        NOT_INTEGER,
        &[
            "LINDEX l x",
            "LSET l x v",
            "HSCAN h 0 COUNT x",
            "GETEX s EX x",
            "XPENDING none g - + x",
            "XGROUP CREATE none g y ENTRIESREAD q",
            "XREADGROUP GROUP g c COUNT q STREAMS none y",
            "XINFO STREAM x FULL COUNT y",
            "XTRIM none MAXLEN y",
            "XTRIM s MAXLEN y",
            "INCRBY l x",
            "HINCRBY s f x",
            "SETRANGE l x v",
            "ZUNION x s",
            "LRANGE s x y",
            "LTRIM s x y",
            "LREM s x v",
            "HRANDFIELD s x",
            "SRANDMEMBER s x",
            "ZRANDMEMBER s x",
            "ZRANGE s x y",
            "EXPIRE none x",
            "GETRANGE l x y",
            "SETEX l x v",
            "SET l v EX x",
        ],
    ),
    ("-ERR no such key", &["LSET none x v", "XINFO STREAM none FULL COUNT y", "XINFO STREAM none FOO"]),
    (
        "[\"0\" []]",
        &[
            "HSCAN none 0 COUNT x",
            "HSCAN none 0 COUNT 0",
            "HSCAN none 0 FOO",
            "SSCAN none 0 COUNT x",
            "ZSCAN none 0 COUNT 0",
        ],
    ),
    ("-ERR invalid cursor", &["HSCAN none x COUNT 0"]),
    (
        SYNTAX,
        &[
            "HSCAN h 0 COUNT 0",
            "SSCAN se 0 FOO",
            "ZSCAN z 0 COUNT 0",
            "GETEX none EX",
            "GETEX l EX",
            "ZUNION 1 none FOO",
            "ZUNION 3 none s",
            "ZDIFF 2 none z FOO",
            "ZUNIONSTORE s 1 none FOO",
            "GEORADIUSBYMEMBER none m 1 km FOO",
            "BITFIELD l GET",
        ],
    ),
    ("-ERR invalid expire time in 'getex' command", &["GETEX s EX 0"]),
    ("0", &["XDEL none x", "XACK none g y", "XACK x none y"]),
    (
        "-ERR Invalid stream ID specified as stream command argument",
        &[
            "XDEL x y",
            "XACK x g y",
            "XGROUP CREATE none g y MKSTREAM",
            "XGROUP CREATE x g y",
            "XGROUP SETID x g y",
            "XREADGROUP GROUP g c STREAMS x y",
            "XREADGROUP GROUP g c STREAMS x none y 0",
            "XREAD STREAMS none y",
            "XREAD STREAMS none s y 0",
            "XRANGE s y z",
            "XSETID none y",
            "XSETID s y",
        ],
    ),
    (
        "-NOGROUP No such key 'none' or consumer group 'g'",
        &["XCLAIM none g c y 0-1", "XCLAIM none g c 0 0-1 FOO"],
    ),
    ("-NOGROUP No such key 'x' or consumer group 'none'", &["XCLAIM x none c y 0-1"]),
    ("-ERR Invalid min-idle-time argument for XCLAIM", &["XCLAIM x g c y 0-1"]),
    ("-ERR Unrecognized XCLAIM option 'FOO'", &["XCLAIM x g c 0 0-1 FOO"]),
    ("-ERR Invalid min-idle-time argument for XAUTOCLAIM", &["XAUTOCLAIM none g c y 0"]),
    (
        "-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to \
            use the MKSTREAM option to create an empty stream automatically.",
        &["XGROUP CREATE none g y", "XGROUP SETID none g y"],
    ),
    ("-NOGROUP No such consumer group 'none' for key name 'x'", &["XGROUP SETID x none y"]),
    (
        "-NOGROUP No such key 'none' or consumer group 'g' in XREADGROUP with GROUP option",
        &[
            "XREADGROUP GROUP g c STREAMS none y",
            "XREADGROUP GROUP g c BLOCK 10 STREAMS none y",
            "XREADGROUP GROUP g c STREAMS x none 0 y",
            "XREADGROUP GROUP g c STREAMS none x",
        ],
    ),
    (
        "-NOGROUP No such key 'x' or consumer group 'none' in XREADGROUP with GROUP option",
        &["XREADGROUP GROUP none c STREAMS x y"],
    ),
    (
        "-ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of \
            this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would \
            just return an empty result set.",
        &["XREADGROUP GROUP g c STREAMS x none $ y"],
    ),
    (
        "-ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
            <consumer> option.",
        &["XREAD STREAMS none >"],
    ),
    (
        "-ERR value is not a valid float",
        &["INCRBYFLOAT none x", "INCRBYFLOAT s 1", "HINCRBYFLOAT s f x", "ZADD s x m", "ZINCRBY s x m"],
    ),
    ("-ERR string exceeds maximum allowed size (proto-max-bulk-len)", &["SETRANGE none 600000000 v"]),
    ("-ERR offset is out of range", &["SETRANGE l -1 v"]),
    ("-ERR weight value is not a float", &["ZUNION 2 none se WEIGHTS 1 x"]),
    ("-ERR at least 1 input key is needed for 'zunion' command", &["ZUNION 0 s"]),
    (
        "-ERR LIMIT can't be negative",
        &["ZINTERCARD 1 none LIMIT -1", "ZINTERCARD 1 z LIMIT x", "SINTERCARD 1 s LIMIT -1"],
    ),
    (
        "-ERR need numeric radius",
        &[
            "GEOSEARCH none FROMLONLAT 0 0 BYRADIUS x m",
            "GEOSEARCH z FROMLONLAT 0 0 BYRADIUS x m",
            "GEOSEARCHSTORE s none FROMLONLAT 0 0 BYRADIUS x m",
            "GEORADIUSBYMEMBER z m x km",
        ],
    ),
    ("-ERR wrong number of arguments for 'geosearch' command", &["GEOSEARCH s FROMLONLAT 0 0"]),
    (
        "-ERR unsupported unit provided. please use M, KM, FT, MI",
        &["GEORADIUS none 0 0 1 x", "GEODIST s a b x", "GEODIST none a b x"],
    ),
    (
        "-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use \
            negative to start from the end of the list",
        &["LPOS s v RANK 0"],
    ),
    ("-ERR value is out of range, must be positive", &["LPOP s x", "SPOP s x", "ZPOPMIN s x"]),
    ("-ERR min or max is not a float", &["ZCOUNT s x y"]),
    ("-ERR bit offset is not an integer or out of range", &["SETBIT l x 1", "GETBIT l x"]),
];

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const SYNTAX: &str = "-ERR syntax error";
