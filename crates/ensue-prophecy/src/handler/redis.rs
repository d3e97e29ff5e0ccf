//! The Redis protocol: one whole command arrives, one whole reply is returned as it is.
//!
//! On a command: it is a read if the table of commands flags it so, unless it blocks or its reply does not follow from
//! the state of the keys alone (a random member, a cursor, a time to live). What changes the state of a connection is
//! refused: sessions with replicas are shared by all clients. So is what correct replicas reply differently to, also
//! when they execute it in one order. Everything else is a write.

use super::{Handler, Inspected, RequestError, push_part};
use bytes::BytesMut;
use ensue_resp::{Flags, ParseLimits, Parser};

/// Flagged as reads, but two correct replicas, or one twice, may reply differently in one state.
const UNCERTAIN_READS: [&[u8]; 15] = [
    b"SRANDMEMBER",
    b"HRANDFIELD",
    b"ZRANDMEMBER",
    b"SCAN",
    b"SSCAN",
    b"HSCAN",
    b"ZSCAN",
    b"TTL",
    b"PTTL",
    b"HTTL",
    b"HPTTL",
    b"OBJECT",
    b"MEMORY",
    b"TOUCH",
    b"DUMP",
];
/// Commands whose reply is of the replica, its clock or its own chance; what a script does is not known here.
const DIFFERING_COMMANDS: [&[u8]; 10] = [
    b"TIME",
    b"INFO",
    b"LOLWUT",
    b"RANDOMKEY",
    b"EVAL",
    b"EVAL_RO",
    b"EVALSHA",
    b"EVALSHA_RO",
    b"FCALL",
    b"FCALL_RO",
];
/// Commands whose effect is on the connection, and those whose replies are not one for one.
const CONNECTION_COMMANDS: [&[u8]; 20] = [
    b"AUTH",
    b"HELLO",
    b"SELECT",
    b"MULTI",
    b"EXEC",
    b"DISCARD",
    b"WATCH",
    b"UNWATCH",
    b"RESET",
    b"QUIT",
    b"CLIENT",
    b"MONITOR",
    b"SUBSCRIBE",
    b"UNSUBSCRIBE",
    b"PSUBSCRIBE",
    b"PUNSUBSCRIBE",
    b"SSUBSCRIBE",
    b"SUNSUBSCRIBE",
    b"ASKING",
    b"CAUSAL",
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
        let Some(name) = args.first().map(|name| name.to_ascii_uppercase()) else {
            return Err(RequestError::Malformed("the command is too long"));
        };
        if !buffer.is_empty() {
            return Err(RequestError::Malformed("bytes follow the command"));
        }
        if CONNECTION_COMMANDS.contains(&&name[..]) {
            return Err(RequestError::ConnectionState(String::from_utf8_lossy(&name).into_owned()));
        }
        if DIFFERING_COMMANDS.contains(&&name[..]) {
            return Err(RequestError::Differs(String::from_utf8_lossy(&name).into_owned()));
        }
        let is_read = ensue_resp::lookup(&name).is_some_and(|spec| {
            spec.flags.contains(Flags::READONLY) && !spec.flags.contains(Flags::BLOCKING)
        });
        if !is_read || UNCERTAIN_READS.contains(&&name[..]) {
            return Ok(Inspected::Write);
        }
        let mut canonical = Vec::with_capacity(request.len() + 16);
        push_part(&mut canonical, &name);
        args[1..].iter().for_each(|argument| push_part(&mut canonical, argument));
        Ok(Inspected::Read { canonical })
    }

    fn canonical_response(&self, response: Vec<u8>) -> Vec<u8> {
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let writes = [
            &["SET", "k", "v"][..],
            &["SRANDMEMBER", "k"],
            &["TTL", "k"],
            &["XREAD", "STREAMS", "s", "0"],
            &["NO"],
        ];
        for write in writes {
            assert_eq!(inspect(write), Ok(Inspected::Write), "{write:?}");
        }
    }

    #[test]
    fn the_state_of_a_connection_is_not_shared() {
        for command in CONNECTION_COMMANDS {
            let name = String::from_utf8(command.to_vec()).unwrap();
            assert_eq!(inspect(&[&name]), Err(RequestError::ConnectionState(name)));
        }
    }

    #[test]
    fn what_replicas_cannot_agree_on_is_refused() {
        for command in DIFFERING_COMMANDS {
            let name = String::from_utf8(command.to_vec()).unwrap();
            assert_eq!(inspect(&[&name.to_lowercase(), "1"]), Err(RequestError::Differs(name)));
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
