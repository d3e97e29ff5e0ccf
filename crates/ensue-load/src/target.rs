//! Where a server is: `redis://[[user:]password@]host[:port][/db]`.

use crate::error::TargetError;
use std::fmt;
use std::net::ToSocketAddrs;
use std::str::FromStr;

const PORT: u16 = 6379;

/// One address. It is shown without its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
}

impl Target {
    /// Whether the host is this machine, as far as its addresses say.
    pub fn is_loopback(&self) -> bool {
        (self.host.as_str(), self.port)
            .to_socket_addrs()
            .is_ok_and(|mut all| all.all(|address| address.ip().is_loopback()))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        write!(f, "redis://{host}:{}", self.port)?;
        if self.database > 0 { write!(f, "/{}", self.database) } else { Ok(()) }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        let Some(rest) = text.strip_prefix("redis://") else {
            let tls = text.starts_with("rediss://");
            return Err(if tls { TargetError::Tls(shown(text)) } else { TargetError::Scheme(shown(text)) });
        };
        let (who, place) = match rest.rsplit_once('@') {
            Some((who, place)) => (Some(who), place),
            None => (None, rest),
        };
        let (address, database) = place.split_once('/').unwrap_or((place, ""));
        let database = match database {
            "" => 0,
            number => number.parse().map_err(|_| TargetError::Database(shown(text)))?,
        };
        let (host, port) = host_and_port(address, text)?;
        let (user, password) = match who.map(|who| who.split_once(':').unwrap_or(("", who))) {
            Some((user, password)) => (decoded(user, text)?, decoded(password, text)?),
            None => (None, None),
        };
        Ok(Target { host, port, user, password, database })
    }
}

fn host_and_port(address: &str, text: &str) -> Result<(String, u16), TargetError> {
    let (host, port) = match address.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => {
            (host, Some(rest.strip_prefix(':').ok_or_else(|| TargetError::Port(shown(text)))?))
        }
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    if host.is_empty() {
        return Err(TargetError::Host(shown(text)));
    }
    let port = match port {
        None => PORT,
        Some(port) => {
            port.parse().ok().filter(|port| *port > 0).ok_or_else(|| TargetError::Port(shown(text)))?
        }
    };
    Ok((host.into(), port))
}

/// Without what may be a password.
fn shown(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://...@{place}"),
        _ => text.into(),
    }
}

/// With each %XX as the byte it stands for; nothing if it is empty.
fn decoded(part: &str, text: &str) -> Result<Option<String>, TargetError> {
    let wrong = || TargetError::Percent(shown(text));
    let (mut bytes, mut rest) = (Vec::new(), part.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits =
            rest.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).ok_or_else(wrong)?;
        let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = &rest[2..];
    }
    let decoded = String::from_utf8(bytes).map_err(|_| wrong())?;
    Ok(Some(decoded).filter(|decoded| !decoded.is_empty()))
}
