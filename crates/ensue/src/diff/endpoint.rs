//! Where a server is, and how to get in: an address or a URL.

use crate::import::{Address, Source};
use crate::login::LoginArgs;
use ensue_client::Options;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long an answer may take: a large value may hold up its server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    host: String,
    port: u16,
    /// The user, if there is one, and the password.
    login: Option<(Option<String>, String)>,
    pub(crate) database: Option<u64>,
    encryption: Encryption,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encryption {
    Off,
    On,
    /// As the flags say.
    ByFlags,
}

const EXPECTED: &str = "expected redis://[USER:PASSWORD@]HOST:PORT[/DB], rediss://… for TLS, or HOST:PORT";

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Endpoint, String> {
        let (url, encryption) = match (text.strip_prefix("rediss://"), text.starts_with("redis://")) {
            (Some(rest), _) => (format!("redis://{rest}"), Encryption::On),
            (None, true) => (text.to_string(), Encryption::Off),
            (None, false) => {
                let Address { host, port } = text.parse().map_err(|_| EXPECTED.to_string())?;
                if host.is_empty() || host.contains(['/', '@']) {
                    return Err(EXPECTED.into());
                }
                return Ok(Endpoint {
                    host,
                    port,
                    login: None,
                    database: None,
                    encryption: Encryption::ByFlags,
                });
            }
        };
        let Source { host, port, user, password, database } =
            url.parse().map_err(|_| EXPECTED.to_string())?;
        Ok(Endpoint { host, port, login: password.map(|password| (user, password)), database, encryption })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        write!(out, "{host}:{}", self.port)
    }
}

impl Endpoint {
    /// How to connect: by the flags, but for what the URL says.
    pub(crate) fn options(&self, flags: &LoginArgs) -> anyhow::Result<Options> {
        let own =
            Options { host: self.host.clone(), answer_timeout: ANSWER_TIMEOUT, ..Options::local(self.port) };
        let mut options = flags.with(own)?;
        if let Some((user, password)) = &self.login {
            (options.user, options.password) = (user.clone(), Some(password.clone()));
        }
        match self.encryption {
            Encryption::Off => options.tls = None,
            Encryption::On if options.tls.is_none() => anyhow::bail!("rediss:// needs --tls --cacert FILE"),
            Encryption::On | Encryption::ByFlags => {}
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests;
