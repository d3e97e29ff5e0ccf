//! Who may see what on the metrics port: users are those of the clients, and so are the rules.
//!
//! On a request: its name and password, if it has them, are tried by a session of its own, and the session is asked for
//! what is wanted. Who has none is `default`, as a client is that has just connected, and from another machine nobody.
//! The figures of a node need the right to `INFO`. As long as `default` has no password, another machine is answered
//! nothing, whatever it says: that is `protected-mode`.

use super::Site;
use super::http::{Credentials, Refusal, Request};
use crate::inbox::{Inbox, Mail};
use crate::listener::is_loopback;
use crate::visitors::Visit;
use bytes::{Bytes, BytesMut};
use ensue_resp::Decoder;
use ensue_types::{Args, Reply};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The way to the sessions of a node's first core.
#[derive(Debug)]
pub(super) struct Visits {
    pub(super) inbox: Arc<Inbox>,
    /// Where the port is.
    pub(super) address: SocketAddr,
    pub(super) patience: Duration,
}

/// A request, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) request: &'a Request,
    pub(super) from: SocketAddr,
}

/// Names by which a browser may know this node.
#[derive(Debug)]
pub(super) struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    /// These, `localhost`, and every address.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a String>) -> Hosts {
        Hosts { names: names.map(|name| plain(name)).collect() }
    }

    /// A page of a foreign site can have its own name lead to this machine, and then its visitors' browsers take what
    /// they find here for a part of that site. They say the name that they believe; an address is nobody's name. Who
    /// says none is no browser.
    pub(super) fn knows(&self, host: &str) -> bool {
        let host = plain(host);
        host.is_empty()
            || host == "localhost"
            || host.parse::<IpAddr>().is_ok()
            || self.names.iter().any(|name| *name == host || name == "*")
    }
}

/// As names are compared.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Whether this request may see the figures of the node.
pub(super) fn may_see_figures(site: &Site, asked: Asked<'_>) -> Result<(), Refusal> {
    if site.open {
        return Ok(());
    }
    let answers = ask(site, asked, vec![command(&["INFO", "none"])])?;
    match &answers[..] {
        [Reply::Error(words)] => Err(refusal(words)),
        _ => Ok(()),
    }
}

/// The answers to these commands, executed for whoever the request is of; a refusal if it is nobody.
pub(super) fn ask(site: &Site, asked: Asked<'_>, commands: Vec<Args>) -> Result<Vec<Reply>, Refusal> {
    let is_elsewhere = !is_loopback(asked.from.ip());
    let wanted = commands.len();
    let mut all = Vec::new();
    if is_elsewhere {
        // Who has not logged in may do nothing, unless everybody may.
        all.push(command(&["INFO", "none"]));
    }
    if let Some(Credentials { user, password }) = &asked.request.credentials {
        all.push(vec![Bytes::from_static(b"AUTH"), user.clone(), password.clone()]);
    } else if is_elsewhere {
        all.push(command(&["PING"]));
    }
    all.extend(commands);
    let answers = site.visits.answers(asked.from, all).ok_or(Refusal::Silent)?;
    let mut answers = answers.into_iter();
    if is_elsewhere {
        let is_closed = |words: &str| words.starts_with("NOAUTH");
        if !matches!(answers.next(), Some(Reply::Error(words)) if is_closed(&words)) {
            return Err(Refusal::NotFromHere);
        }
    }
    if is_elsewhere || asked.request.credentials.is_some() {
        if let Some(Reply::Error(words)) = answers.next() {
            return Err(refusal(&words));
        }
    }
    let answers: Vec<Reply> = answers.collect();
    if answers.len() == wanted { Ok(answers) } else { Err(Refusal::Silent) }
}

/// What an error of a session is over HTTP.
pub(super) fn refusal(words: &str) -> Refusal {
    match words.split(' ').next() {
        Some("NOAUTH" | "WRONGPASS") => Refusal::Unauthenticated,
        Some("NOPERM") => Refusal::Forbidden,
        Some("BUSY") => Refusal::Busy,
        _ => Refusal::Silent,
    }
}

pub(super) fn command(words: &[&str]) -> Args {
    words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

impl Visits {
    /// All answers that came; nothing if the core is silent.
    fn answers(&self, from: SocketAddr, commands: Vec<Args>) -> Option<Vec<Reply>> {
        let (answers, answered) = channel();
        self.inbox.post(Mail::Visit(Visit { from, to: self.address, commands, answers }));
        let bytes = answered.recv_timeout(self.patience).ok()?;
        let mut buffer = BytesMut::from(&bytes[..]);
        let mut decoder = Decoder::new();
        let mut found = Vec::new();
        while let Ok(Some(reply)) = decoder.next(&mut buffer) {
            found.push(reply);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests;
