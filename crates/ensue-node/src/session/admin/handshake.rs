//! `HELLO` and `AUTH`: who the client is, and which version of the protocol it speaks. The words are those of Redis
//! 7.2.

use super::client::{BAD_CLIENT_NAME, Client, is_name};
use super::info::REDIS_VERSION;
use super::login::{After, Login};
use crate::session::access::Access;
use bytes::Bytes;
use ensue_acl::{DEFAULT_USER, User};
use ensue_resp::{CommandError, ProtocolVersion, number};
use ensue_types::Reply;
use std::sync::Arc;

/// What a client asks for.
pub(crate) enum Wish {
    /// To be this user, and then the rest.
    Login(Login),
    /// To stay who it is.
    Hello(After),
}

/// `AUTH`.
pub(crate) fn auth(access: &Access, args: &[Bytes]) -> Result<Wish, Reply> {
    let default = Bytes::from_static(DEFAULT_USER.as_bytes());
    let (user, password) = match &args[1..] {
        [_] if access.users().default_user().is_nopass() => return Err(NO_PASSWORD_SET),
        [password] => (default, password.clone()),
        [user, password] => (user.clone(), password.clone()),
        _ => return Err(CommandError::Syntax.reply()),
    };
    Ok(Wish::Login(Login { user, password, after: After::Auth, compared: None }))
}

/// `HELLO`: `[version [AUTH user password] [SETNAME name]]`. Nothing is changed if anything is wrong.
pub(crate) fn hello(present: ProtocolVersion, args: &[Bytes]) -> Result<Wish, Reply> {
    let Some((version, mut options)) = args[1..].split_first() else {
        return Ok(Wish::Hello(After::Hello { version: present, name: None }));
    };
    let version = number::parse_i64(version).ok_or(VERSION_NOT_INTEGER)?;
    let version = ProtocolVersion::from_number(version).ok_or(NO_PROTOCOL)?;
    let (mut credentials, mut name) = (None, None);
    loop {
        options = match options {
            [] => break,
            [word, user, password, rest @ ..] if word.eq_ignore_ascii_case(b"auth") => {
                credentials = Some((user.clone(), password.clone()));
                rest
            }
            [word, given, ..] if word.eq_ignore_ascii_case(b"setname") && !is_name(given) => {
                return Err(BAD_CLIENT_NAME);
            }
            [word, given, rest @ ..] if word.eq_ignore_ascii_case(b"setname") => {
                name = Some(given.clone());
                rest
            }
            [word, ..] => {
                let word = String::from_utf8_lossy(word).into_owned();
                return Err(Reply::Error(format!("ERR Syntax error in HELLO option '{word}'").into()));
            }
        };
    }
    let after = After::Hello { version, name };
    Ok(match credentials {
        Some((user, password)) => Wish::Login(Login { user, password, after, compared: None }),
        None => Wish::Hello(after),
    })
}

impl Client {
    /// It has proved to be this user.
    pub(crate) fn on_login(&mut self, user: Arc<User>, after: After) -> Reply {
        self.log_in(user);
        self.on_handshake(after)
    }

    /// It goes on as who it is.
    pub(crate) fn on_handshake(&mut self, after: After) -> Reply {
        match after {
            After::Auth => Reply::OK,
            After::Hello { .. } if !self.is_authenticated() => HELLO_NOAUTH,
            After::Hello { version, name } => {
                if let Some(name) = name {
                    self.name = Bytes::copy_from_slice(&name);
                }
                self.version = version;
                self.greeting()
            }
        }
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

const NO_PASSWORD_SET: Reply = Reply::error(
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration \
     is correct?",
);
const VERSION_NOT_INTEGER: Reply = Reply::error("ERR Protocol version is not an integer or out of range");
const NO_PROTOCOL: Reply = Reply::error("NOPROTO unsupported protocol version");
const HELLO_NOAUTH: Reply = Reply::error(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
     option can be used to authenticate the client and select the RESP protocol version at the same time",
);
