//! `CLIENT` and its subcommands: what a connection is called, who is connected, and closing one.
//!
//! `CLIENT LIST` shows the connections of every core of the datacenter; `KILL` reaches those of this core.

use super::cluster_query::{ClusterQuery, Purpose};
use super::filter::Filter;
use crate::session::core_state::CoreState;
use crate::session::cx::Cx;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::{CommandError, ProtocolVersion, number};
use ensue_types::{Args, KeyspaceId, Now, Reply, SessionId};

/// Who is connected, and what it has said of itself.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    id: SessionId,
    address: String,
    local_address: String,
    connected_us: u64,
    active_us: u64,
    pub(super) name: Bytes,
    library_name: Bytes,
    library_version: Bytes,
    /// The name of the latest command, and of its subcommand, for `CLIENT LIST`.
    latest: (&'static str, Option<&'static str>),
    pub(super) version: ProtocolVersion,
    pub(super) authenticated: bool,
}

/// What a connection is at, for `CLIENT LIST`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    pub(crate) keyspace: KeyspaceId,
    /// How many commands its MULTI has, if it is in one.
    pub(crate) multi: Option<usize>,
    /// Bytes of answers that have not left.
    pub(crate) reply_bytes: usize,
}

impl Client {
    pub(crate) fn new(now: Now, id: SessionId, addresses: [String; 2], authenticated: bool) -> Client {
        let [address, local_address] = addresses;
        Client {
            id,
            address,
            local_address,
            connected_us: now.monotonic_us,
            active_us: now.monotonic_us,
            name: Bytes::new(),
            library_name: Bytes::new(),
            library_version: Bytes::new(),
            latest: ("NULL", None),
            version: ProtocolVersion::default(),
            authenticated,
        }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    /// The version of the protocol that it speaks.
    pub(crate) fn version(&self) -> ProtocolVersion {
        self.version
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// It has sent commands.
    pub(crate) fn on_commands(&mut self, now: Now) {
        self.active_us = now.monotonic_us;
    }

    /// A command of this name begins.
    pub(crate) fn on_command(&mut self, name: &'static str, subcommand: Option<&'static str>) {
        self.latest = (name, subcommand);
    }

    /// Back to what it was when it connected: `RESET`.
    pub(crate) fn reset(&mut self, authenticated: bool) {
        self.version = ProtocolVersion::default();
        self.name = Bytes::new();
        self.authenticated = authenticated;
    }

    /// `CLIENT` and its subcommands.
    pub(crate) fn on_client_command(
        &mut self,
        cx: &mut Cx<'_>,
        activity: Activity,
        args: &Args,
    ) -> Step<Box<ClusterQuery>> {
        let subcommand = args[1].to_ascii_lowercase();
        Step::answer(match (subcommand.as_slice(), &args[2..]) {
            (b"id", []) => Reply::Integer(self.id.0 as i64),
            (b"getname", []) if self.name.is_empty() => Reply::Nil,
            (b"getname", []) => Reply::Bulk(self.name.clone()),
            (b"setname", [name]) => self.set_name(name),
            (b"setinfo", [attribute, value]) => self.set_library(attribute, value),
            (b"info", []) => Reply::Verbatim((self.line(cx.now, activity) + "\n").into()),
            (b"list", filter) => match Filter::new(filter) {
                Ok(filter) => return ClusterQuery::begin(cx, Purpose::ClientList(filter)),
                Err(error) => error,
            },
            // There is no client-side caching, no pause, and no client without answers.
            (b"getredir", []) => Reply::Integer(-1),
            (b"trackinginfo", []) => Reply::Map(vec![
                (Reply::bulk("flags"), Reply::Set(vec![Reply::bulk("off")])),
                (Reply::bulk("redirect"), Reply::Integer(-1)),
                (Reply::bulk("prefixes"), Reply::Array(Vec::new())),
            ]),
            (b"unpause", []) => Reply::OK,
            (b"reply", [word]) if word.eq_ignore_ascii_case(b"on") => Reply::OK,
            (b"reply", [_]) => Reply::error("ERR only CLIENT REPLY ON is supported"),
            (b"kill", filter @ [_, ..]) => kill(cx.core, filter),
            (b"no-evict" | b"no-touch", [word]) if is_switch(word) => Reply::OK,
            (b"no-evict" | b"no-touch", [_]) => CommandError::Syntax.reply(),
            (b"help", []) => Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
            (name, _) => match KNOWN.iter().find(|known| known.as_bytes() == name) {
                Some(known) => CommandError::wrong_arity(format!("client|{known}")).reply(),
                None => CommandError::unknown_subcommand("client", &args[1]).reply(),
            },
        })
    }

    fn set_name(&mut self, name: &Bytes) -> Reply {
        if !is_name(name) {
            return BAD_CLIENT_NAME;
        }
        self.name = name.clone();
        Reply::OK
    }

    fn set_library(&mut self, attribute: &Bytes, value: &Bytes) -> Reply {
        let (name, place) = if attribute.eq_ignore_ascii_case(b"lib-name") {
            ("lib-name", &mut self.library_name)
        } else if attribute.eq_ignore_ascii_case(b"lib-ver") {
            ("lib-ver", &mut self.library_version)
        } else {
            let attribute = String::from_utf8_lossy(attribute).into_owned();
            return Reply::Error(format!("ERR Unrecognized option '{attribute}'").into());
        };
        if !is_name(value) {
            let words = format!("ERR {name} cannot contain spaces, newlines or special characters.");
            return Reply::Error(words.into());
        }
        *place = value.clone();
        Reply::OK
    }

    /// The connection as `CLIENT LIST` shows it, without the end of line.
    pub(crate) fn line(&self, now: Now, activity: Activity) -> String {
        let latest = match self.latest {
            (name, Some(subcommand)) => format!("{name}|{subcommand}"),
            (name, None) => name.to_owned(),
        };
        let seconds_since = |us: u64| now.monotonic_us.saturating_sub(us) / 1_000_000;
        format!(
            "id={} addr={} laddr={} fd=0 name={} age={} idle={} flags={} db={} sub=0 psub=0 ssub=0 multi={} qbuf=0 \
             qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={} oll=0 omem=0 tot-mem=0 events=r cmd={} user=default \
             redir=-1 resp={} lib-name={} lib-ver={}",
            self.id.0,
            self.address,
            self.local_address,
            String::from_utf8_lossy(&self.name),
            seconds_since(self.connected_us),
            seconds_since(self.active_us),
            if activity.multi.is_some() { "x" } else { "N" },
            activity.keyspace.0,
            activity.multi.map_or(-1, |commands| commands as i64),
            activity.reply_bytes,
            latest,
            self.version.number(),
            String::from_utf8_lossy(&self.library_name),
            String::from_utf8_lossy(&self.library_version),
        )
    }
}

/// `KILL ID id`: how many connections were closed.
fn kill(core: &mut CoreState, filter: &[Bytes]) -> Reply {
    let [word, id] = filter else {
        return Reply::error("ERR only CLIENT KILL ID <client-id> is supported");
    };
    if !word.eq_ignore_ascii_case(b"id") {
        return Reply::error("ERR only CLIENT KILL ID <client-id> is supported");
    }
    let Some(id) = number::parse_i64(id).and_then(|id| u64::try_from(id).ok()).filter(|&id| id > 0) else {
        return Reply::error("ERR client-id should be greater than 0");
    };
    Reply::Integer(i64::from(core.close_later(SessionId(id))))
}

/// Whether a name or version has only printable characters without blanks.
pub(crate) fn is_name(name: &[u8]) -> bool {
    name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn is_switch(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"on") || word.eq_ignore_ascii_case(b"off")
}

pub(crate) const BAD_CLIENT_NAME: Reply =
    Reply::error("ERR Client names cannot contain spaces, newlines or special characters.");

const KNOWN: [&str; 14] = [
    "getname",
    "getredir",
    "help",
    "id",
    "info",
    "kill",
    "list",
    "no-evict",
    "no-touch",
    "reply",
    "setinfo",
    "setname",
    "trackinginfo",
    "unpause",
];

const HELP: [&str; 29] = [
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETNAME",
    "    Return the name of the current connection.",
    "GETREDIR",
    "    Return -1: there is no client-side caching.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL ID <client-id>",
    "    Close a connection of the same core.",
    "LIST [TYPE NORMAL | ID <client-id> ...]",
    "    Return information about client connections.",
    "NO-EVICT (ON|OFF)",
    "    Accepted; connections are never evicted.",
    "NO-TOUCH (ON|OFF)",
    "    Accepted; reads do not touch keys.",
    "REPLY ON",
    "    Accepted; every command is answered.",
    "SETINFO <option> <value>",
    "    Set LIB-NAME or LIB-VER of the current connection.",
    "SETNAME <name>",
    "    Assign a name to the current connection.",
    "TRACKINGINFO",
    "    Report that client-side caching is off.",
    "UNPAUSE",
    "    Accepted; clients are never paused.",
    "HELP",
    "    Print this help.",
];
