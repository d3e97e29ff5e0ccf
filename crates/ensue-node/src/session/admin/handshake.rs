//! `HELLO` and `AUTH`: who the client is, and which version of the protocol it speaks. The words are those of Redis
//! 7.0.
//!
//! There is one user, `default`, with the password of the configuration or with none. Passwords are compared in a time
//! that depends on the length of what the client sent and on nothing else.

use super::client::{Activity, BAD_CLIENT_NAME, Client, is_name};
use super::info::REDIS_VERSION;
use crate::NodeConfig;
use crate::session::cx::Cx;
use bytes::Bytes;
use ensue_resp::{CommandError, ProtocolVersion, number};
use ensue_types::{Args, Reply};
use std::hint::black_box;

impl Client {
    /// `AUTH`.
    pub(crate) fn auth(&mut self, cx: &mut Cx<'_>, activity: Activity, args: &Args) -> Reply {
        let config = &cx.core.config;
        let (user, reply) = match &args[1..] {
            [_] if config.password.is_none() => return NO_PASSWORD_SET,
            [password] => (&b"default"[..], self.authenticate(config, b"default", password)),
            [user, password] => (&user[..], self.authenticate(config, user, password)),
            _ => return CommandError::Syntax.reply(),
        };
        if reply == WRONG_PASSWORD {
            cx.core.denials.note(cx.now, "AUTH", user, self.line(cx.now, activity));
        }
        reply
    }

    fn authenticate(&mut self, config: &NodeConfig, user: &[u8], password: &[u8]) -> Reply {
        let right = match &config.password {
            Some(expected) => same(password, expected.as_bytes()),
            None => true,
        };
        if user != b"default" || !right {
            return WRONG_PASSWORD;
        }
        self.authenticated = true;
        Reply::OK
    }

    /// `HELLO`.
    pub(crate) fn hello(&mut self, cx: &mut Cx<'_>, activity: Activity, args: &Args) -> Reply {
        match self.handshake(&cx.core.config, &args[1..]) {
            Ok(()) => self.greeting(),
            Err(refusal) => {
                if refusal == WRONG_PASSWORD {
                    let user = args.get(USER_OF_HELLO).map_or(&b""[..], |user| user);
                    cx.core.denials.note(cx.now, "HELLO", user, self.line(cx.now, activity));
                }
                refusal
            }
        }
    }

    /// `[version [AUTH user password] [SETNAME name]]`; nothing is changed if anything is wrong, authentication apart.
    fn handshake(&mut self, config: &NodeConfig, words: &[Bytes]) -> Result<(), Reply> {
        let Some((version, mut options)) = words.split_first() else { return self.require_authenticated() };
        let version = number::parse_i64(version).ok_or(VERSION_NOT_INTEGER)?;
        let version = ProtocolVersion::from_number(version).ok_or(NO_PROTOCOL)?;
        let (mut credentials, mut name) = (None, None);
        loop {
            options = match options {
                [] => break,
                [word, user, password, rest @ ..] if word.eq_ignore_ascii_case(b"auth") => {
                    credentials = Some((user, password));
                    rest
                }
                [word, given, rest @ ..] if word.eq_ignore_ascii_case(b"setname") => {
                    name = Some(given);
                    rest
                }
                [word, ..] => {
                    let word = String::from_utf8_lossy(word).into_owned();
                    return Err(Reply::Error(format!("ERR Syntax error in HELLO option '{word}'").into()));
                }
            };
        }
        if let Some((user, password)) = credentials {
            let answer = self.authenticate(config, user, password);
            if answer.is_error() {
                return Err(answer);
            }
        }
        self.require_authenticated()?;
        if let Some(name) = name {
            if !is_name(name) {
                return Err(BAD_CLIENT_NAME);
            }
            self.name = name.clone();
        }
        self.version = version;
        Ok(())
    }

    fn require_authenticated(&self) -> Result<(), Reply> {
        if self.authenticated { Ok(()) } else { Err(HELLO_NOAUTH) }
    }

    fn greeting(&self) -> Reply {
        let text = |words: &'static str| Reply::bulk(words);
        Reply::Map(vec![
            (text("server"), text("ensue")),
            (text("version"), text(REDIS_VERSION)),
            (text("proto"), Reply::Integer(self.version.number())),
            (text("id"), Reply::Integer(self.id().0 as i64)),
            (text("mode"), text("standalone")),
            (text("role"), text("master")),
            (text("modules"), Reply::Array(Vec::new())),
        ])
    }
}

/// Where most clients name the user; whoever names itself before is noted under its name.
const USER_OF_HELLO: usize = 3;

/// Compares without stopping at the first difference.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let mut difference = u8::from(given.len() != expected.len());
    for (index, byte) in given.iter().enumerate() {
        let other = if expected.is_empty() { 0 } else { expected[index % expected.len()] };
        difference |= black_box(byte ^ other);
    }
    black_box(difference) == 0
}

const NO_PASSWORD_SET: Reply = Reply::error(
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration \
     is correct?",
);
const WRONG_PASSWORD: Reply = Reply::error("WRONGPASS invalid username-password pair or user is disabled.");
const VERSION_NOT_INTEGER: Reply = Reply::error("ERR Protocol version is not an integer or out of range");
const NO_PROTOCOL: Reply = Reply::error("NOPROTO unsupported protocol version");
const HELLO_NOAUTH: Reply = Reply::error(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
     option can be used to authenticate the client and select the RESP protocol version at the same time",
);
