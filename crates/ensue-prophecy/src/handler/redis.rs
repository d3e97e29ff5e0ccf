//! The Redis protocol: one whole command arrives, one whole reply is returned as it is.
//!
//! On a command: serve it if it is listed here, since a server that is not changed would do whatever any client asks.
//! What is listed neither blocks nor changes the server or the connection, whose sessions are shared by all clients,
//! and what it does follows from the keys: the time and chance of correct replicas differ. A read's reply does, too;
//! the rest is a write. Some commands are served with some of their options only.

use super::{Handler, Inspected, RequestError, push_part};
use bytes::{Bytes, BytesMut};
use ensue_resp::{ParseLimits, Parser};

/// Their reply follows from the state of the keys alone.
#[rustfmt::skip]
const READS: [&str; 61] = [
    "BITCOUNT", "BITFIELD_RO", "BITPOS", "DBSIZE", "EXISTS", "GEODIST", "GEOHASH", "GEOPOS",
    "GEORADIUSBYMEMBER_RO", "GEORADIUS_RO", "GEOSEARCH", "GET", "GETBIT", "GETRANGE", "HEXISTS",
    "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HSTRLEN", "HVALS", "KEYS", "LCS", "LINDEX",
    "LLEN", "LPOS", "LRANGE", "MGET", "SCARD", "SDIFF", "SINTER", "SINTERCARD", "SISMEMBER",
    "SMEMBERS", "SMISMEMBER", "SORT_RO", "STRLEN", "SUBSTR", "SUNION", "TYPE", "XLEN", "XRANGE",
    "XREVRANGE", "ZCARD", "ZCOUNT", "ZDIFF", "ZINTER", "ZINTERCARD", "ZLEXCOUNT", "ZMSCORE",
    "ZRANGE", "ZRANGEBYLEX", "ZRANGEBYSCORE", "ZRANK", "ZREVRANGE", "ZREVRANGEBYLEX",
    "ZREVRANGEBYSCORE", "ZREVRANK", "ZSCORE", "ZUNION",
];
/// Their effect does, and their reply does in the order.
#[rustfmt::skip]
const WRITES: [&str; 74] = [
    "APPEND", "BITFIELD", "BITOP", "DECR", "DECRBY", "DEL", "ECHO", "EXPIRETIME", "FLUSHALL",
    "FLUSHDB", "GEOADD", "GEOSEARCHSTORE", "GETDEL", "GETSET", "HDEL", "HINCRBY", "HINCRBYFLOAT",
    "HMSET", "HSET", "HSETNX", "INCR", "INCRBY", "INCRBYFLOAT", "LINSERT", "LMOVE", "LMPOP", "LPOP",
    "LPUSH", "LPUSHX", "LREM", "LSET", "LTRIM", "MSET", "MSETNX", "PERSIST", "PEXPIRETIME", "PFADD",
    "PFCOUNT", "PFMERGE", "PING", "PTTL", "RENAME", "RENAMENX", "RPOP", "RPOPLPUSH", "RPUSH",
    "RPUSHX", "SADD", "SDIFFSTORE", "SETBIT", "SETNX", "SETRANGE", "SINTERSTORE", "SMOVE", "SREM",
    "SUNIONSTORE", "TOUCH", "TTL", "UNLINK", "XDEL", "XTRIM", "ZADD", "ZDIFFSTORE", "ZINCRBY",
    "ZINTERSTORE", "ZMPOP", "ZPOPMAX", "ZPOPMIN", "ZRANGESTORE", "ZREM", "ZREMRANGEBYLEX",
    "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE", "ZUNIONSTORE",
];
/// Their effect depends on the clock of a replica, or on its own chance.
#[rustfmt::skip]
const DIVERGING_COMMANDS: [&str; 15] = [
    "EXPIRE", "EXPIREAT", "GETEX", "HEXPIRE", "HEXPIREAT", "HGETEX", "HPEXPIRE", "HPEXPIREAT",
    "HSETEX", "MSETEX", "PEXPIRE", "PEXPIREAT", "PSETEX", "SETEX", "SPOP",
];
/// Their reply is of the replica, its clock or its own chance; what a script does is not known here.
#[rustfmt::skip]
const DIFFERING_COMMANDS: [&str; 17] = [
    "EVAL", "EVALSHA", "EVALSHA_RO", "EVAL_RO", "FCALL", "FCALL_RO", "HRANDFIELD", "HSCAN", "INFO",
    "LOLWUT", "RANDOMKEY", "SCAN", "SRANDMEMBER", "SSCAN", "TIME", "ZRANDMEMBER", "ZSCAN",
];
/// Their effect is on the connection, or their replies are not one for one.
#[rustfmt::skip]
const CONNECTION_COMMANDS: [&str; 20] = [
    "AUTH", "HELLO", "SELECT", "MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH", "RESET", "QUIT", "CLIENT", "MONITOR",
    "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE", "ASKING", "CAUSAL",
];

/// The handler.
#[derive(Clone, Copy, Debug, Default)]
pub struct RedisHandler;

impl Handler for RedisHandler {
    fn inspect(&self, request: &[u8]) -> Result<Inspected, RequestError> {
        let mut buffer = BytesMut::from(request);
        let args = match Parser::new(ParseLimits::default()).next(&mut buffer) {
            Ok(Some(args)) => args,
            Ok(None) => return Err(RequestError::Malformed("the command does not end")),
            Err(_) => return Err(RequestError::Malformed("this is no command")),
        };
        let Some(name) = args.first().map(|name| String::from_utf8_lossy(name).to_ascii_uppercase()) else {
            return Err(RequestError::Malformed("the command is too long"));
        };
        if !buffer.is_empty() {
            return Err(RequestError::Malformed("bytes follow the command"));
        }
        let is_of = |list: &[&str]| list.contains(&&name[..]);
        if is_of(&READS) {
            let mut canonical = Vec::with_capacity(request.len() + 16);
            push_part(&mut canonical, name.as_bytes());
            args[1..].iter().for_each(|argument| push_part(&mut canonical, argument));
            return Ok(Inspected::Read { canonical });
        }
        if is_of(&WRITES) {
            return Ok(Inspected::Write);
        }
        if is_of(&CONNECTION_COMMANDS) {
            return Err(RequestError::ConnectionState(name));
        }
        if is_of(&DIFFERING_COMMANDS) {
            return Err(RequestError::Differs(name));
        }
        if is_of(&DIVERGING_COMMANDS) {
            return Err(RequestError::Diverges(name));
        }
        by_options(name, &args)
    }

    fn canonical_response(&self, response: Vec<u8>) -> Vec<u8> {
        response
    }
}

/// Commands of which it depends on their options.
fn by_options(name: String, args: &[Bytes]) -> Result<Inspected, RequestError> {
    let is = |argument: &Bytes, words: &[&str]| {
        words.iter().any(|word| argument.eq_ignore_ascii_case(word.as_bytes()))
    };
    let options = args.get(3..).unwrap_or_default();
    let is_safe = match &name[..] {
        "SET" if options.iter().any(|option| is(option, &["EX", "PX", "EXAT", "PXAT"])) => {
            return Err(RequestError::Diverges(name));
        }
        "SET" => options.iter().all(|option| is(option, &["NX", "XX", "GET", "KEEPTTL"])),
        // Not to another database.
        "COPY" => options.iter().all(|option| is(option, &["REPLACE"])),
        "XADD" if has_id_of_the_time(args) => return Err(RequestError::Diverges(name)),
        "XADD" => true,
        // The streams are the last of its arguments.
        "XREAD" => {
            let mut options = args.iter().take_while(|argument| !is(argument, &["STREAMS"]));
            !options.any(|option| is(option, &["BLOCK"]))
        }
        _ => false,
    };
    if is_safe { Ok(Inspected::Write) } else { Err(RequestError::NotServed(name)) }
}

/// Whether the id of an entry, which stands behind options, may be made of the clock.
fn has_id_of_the_time(args: &[Bytes]) -> bool {
    let mut place = 2;
    while let Some(argument) = args.get(place) {
        let word = String::from_utf8_lossy(argument).to_ascii_uppercase();
        place += match &word[..] {
            "NOMKSTREAM" | "KEEPREF" | "DELREF" | "ACKED" | "=" | "~" => 1,
            "MAXLEN" | "MINID" => {
                let has_sign = args.get(place + 1).is_some_and(|sign| [&b"="[..], b"~"].contains(&&sign[..]));
                2 + usize::from(has_sign)
            }
            "LIMIT" => 2,
            // Options that are not known here stand before the id, too.
            _ => {
                return word == "*"
                    || !word.bytes().all(|byte| byte.is_ascii_digit() || b"-*".contains(&byte));
            }
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_resp::Flags;

    fn inspect(words: &[&str]) -> Result<Inspected, RequestError> {
        let mut request = Vec::new();
        ensue_resp::encode::encode_command(words, &mut request);
        RedisHandler.inspect(&request)
    }

    #[test]
    fn reads_are_those_whose_reply_follows_from_the_keys() {
        for read in [&["GET", "k"][..], &["hgetall", "k"], &["ZRANGE", "k", "0", "-1"], &["MGET", "a", "b"]] {
            assert!(matches!(inspect(read), Ok(Inspected::Read { .. })), "{read:?}");
        }
        for read in READS {
            let spec = ensue_resp::lookup(read.as_bytes());
            let may = |flag| spec.is_some_and(|spec| spec.flags.contains(flag));
            assert!(!may(Flags::WRITE) && !may(Flags::BLOCKING) && !may(Flags::ADMIN), "{read}");
        }
        let writes =
            [&["SET", "k", "v"][..], &["TTL", "k"], &["xread", "count", "1", "streams", "block", "0"]];
        for write in writes {
            assert_eq!(inspect(write), Ok(Inspected::Write), "{write:?}");
        }
    }

    #[test]
    fn what_blocks_or_is_of_an_operator_or_is_unknown_is_refused() {
        for spec in &ensue_resp::TABLE {
            if spec.flags.contains(Flags::BLOCKING) && spec.name != "xread"
                || spec.flags.contains(Flags::ADMIN)
            {
                assert!(inspect(&[spec.name, "1", "2"]).is_err(), "{}", spec.name);
            }
        }
        for name in [
            "ACL",
            "BGSAVE",
            "BLPOP",
            "BLMOVE",
            "CONFIG",
            "DEBUG",
            "FAILOVER",
            "MIGRATE",
            "MODULE",
            "MOVE",
            "NO",
            "PSYNC",
            "PUBLISH",
            "REPLCONF",
            "REPLICAOF",
            "RESTORE",
            "SAVE",
            "SHUTDOWN",
            "SLAVEOF",
            "SORT",
            "SWAPDB",
            "SYNC",
            "WAIT",
            "WAITAOF",
            "XREADGROUP",
        ] {
            assert_eq!(inspect(&[name, "none", "0"]), Err(RequestError::NotServed(name.into())));
        }
        for words in [
            &["XREAD", "BLOCK", "0", "STREAMS", "s", "$"][..],
            &["COPY", "a", "b", "DB", "1"],
            &["SET", "k", "v", "SOON"],
        ] {
            assert_eq!(inspect(words), Err(RequestError::NotServed(words[0].into())));
        }
        assert_eq!(inspect(&["COPY", "a", "b", "replace"]), Ok(Inspected::Write));
    }

    #[test]
    fn what_makes_states_of_the_time_or_of_chance_is_refused() {
        for command in DIVERGING_COMMANDS {
            assert_eq!(inspect(&[&command.to_lowercase(), "k"]), Err(RequestError::Diverges(command.into())));
        }
        for words in [
            &["SET", "k", "5", "PX", "300"][..],
            &["SET", "k", "v", "NX", "ex", "9"],
            &["XADD", "s", "*", "f", "v"],
            &["XADD", "s", "SOON", "*", "f", "v"],
            &["XADD", "s", "NOMKSTREAM", "MAXLEN", "~", "9", "LIMIT", "3", "*", "f", "v"],
        ] {
            assert_eq!(inspect(words), Err(RequestError::Diverges(words[0].into())), "{words:?}");
        }
        for words in [
            &["SET", "EX", "PX", "xx", "GET"][..],
            &["XADD", "s", "1-1", "f", "*"],
            &["XADD", "s", "MINID", "4", "5-*", "*", "v"],
        ] {
            assert_eq!(inspect(words), Ok(Inspected::Write), "{words:?}");
        }
    }

    #[test]
    fn the_state_of_a_connection_is_not_shared() {
        for name in CONNECTION_COMMANDS {
            assert_eq!(inspect(&[name]), Err(RequestError::ConnectionState(name.into())));
        }
    }

    #[test]
    fn what_replicas_cannot_agree_on_is_refused() {
        for name in DIFFERING_COMMANDS {
            assert_eq!(inspect(&[&name.to_lowercase(), "1"]), Err(RequestError::Differs(name.into())));
        }
    }

    #[test]
    fn one_read_has_one_form_and_two_reads_have_two() {
        assert_eq!(inspect(&["get", "k"]), inspect(&["GET", "k"]));
        assert_ne!(inspect(&["GET", "k"]), inspect(&["GET", "K"]));
        assert_ne!(inspect(&["MGET", "ab", "c"]), inspect(&["MGET", "a", "bc"]));
    }

    #[test]
    fn what_is_not_one_command_is_refused() {
        for bytes in [&b""[..], b"*2\r\n$3\r\nGET\r\n", b"*1\r\n$4\r\nPING\r\n*", b"*x\r\n"] {
            assert!(matches!(RedisHandler.inspect(bytes), Err(RequestError::Malformed(_))), "{bytes:?}");
        }
    }
}
