//! `CLIENT` and its subcommands: what a connection is called, who is connected, and closing one.
//!
//! `CLIENT LIST` shows the connections of every core of the datacenter; `KILL` reaches those of this core.

use super::connection::Session;
use super::handshake::{BAD_CLIENT_NAME, is_name};
use super::survey::Purpose;
use super::turn::Turn;
use bytes::Bytes;
use ensue_resp::{CommandError, number};
use ensue_types::{Args, Now, Reply, SessionId};

impl Turn<'_> {
    pub(super) fn client(&mut self, args: &Args) {
        let subcommand = args[1].to_ascii_lowercase();
        let reply = match (subcommand.as_slice(), &args[2..]) {
            (b"id", []) => Reply::Integer(self.session.id.0 as i64),
            (b"getname", []) if self.session.name.is_empty() => Reply::Nil,
            (b"getname", []) => Reply::Bulk(self.session.name.clone()),
            (b"setname", [name]) => self.set_name(name),
            (b"setinfo", [attribute, value]) => self.set_library(attribute, value),
            (b"info", []) => Reply::Verbatim((line(self.session, self.now) + "\n").into()),
            (b"list", filter) => match Filter::new(filter) {
                Ok(filter) => return self.survey(Purpose::ClientList(filter)),
                Err(error) => error,
            },
            (b"kill", filter @ [_, ..]) => self.kill(filter),
            (b"no-evict" | b"no-touch", [word]) if is_switch(word) => Reply::OK,
            (b"no-evict" | b"no-touch", [_]) => CommandError::Syntax.reply(),
            (b"help", []) => Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
            (name, _) => match KNOWN.iter().find(|known| known.as_bytes() == name) {
                Some(known) => CommandError::wrong_arity(format!("client|{known}")).reply(),
                None => CommandError::unknown_subcommand("client", &args[1]).reply(),
            },
        };
        self.reply(&reply);
    }

    fn set_name(&mut self, name: &Bytes) -> Reply {
        if !is_name(name) {
            return BAD_CLIENT_NAME;
        }
        self.session.name = name.clone();
        Reply::OK
    }

    fn set_library(&mut self, attribute: &Bytes, value: &Bytes) -> Reply {
        let (name, place) = if attribute.eq_ignore_ascii_case(b"lib-name") {
            ("lib-name", &mut self.session.library_name)
        } else if attribute.eq_ignore_ascii_case(b"lib-ver") {
            ("lib-ver", &mut self.session.library_version)
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

    /// `KILL ID id`: how many connections were closed.
    fn kill(&mut self, filter: &[Bytes]) -> Reply {
        let [word, id] = filter else {
            return Reply::error("ERR only CLIENT KILL ID <client-id> is supported");
        };
        if !word.eq_ignore_ascii_case(b"id") {
            return Reply::error("ERR only CLIENT KILL ID <client-id> is supported");
        }
        let Some(id) = number::parse_i64(id).and_then(|id| u64::try_from(id).ok()).filter(|&id| id > 0)
        else {
            return Reply::error("ERR client-id should be greater than 0");
        };
        let id = SessionId(id);
        if !self.desk.connected.contains(&id) {
            return Reply::Integer(0);
        }
        self.desk.doomed.push(id);
        Reply::Integer(1)
    }
}

/// Which connections `CLIENT LIST` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    All,
    None,
    Ids(Vec<u64>),
}

impl Filter {
    fn new(words: &[Bytes]) -> Result<Filter, Reply> {
        match words {
            [] => Ok(Filter::All),
            [word, kind] if word.eq_ignore_ascii_case(b"type") => {
                match kind.to_ascii_lowercase().as_slice() {
                    b"normal" => Ok(Filter::All),
                    b"master" | b"replica" | b"slave" | b"pubsub" => Ok(Filter::None),
                    _ => {
                        let kind = String::from_utf8_lossy(kind).into_owned();
                        Err(Reply::Error(format!("ERR Unknown client type '{kind}'").into()))
                    }
                }
            }
            [word, ids @ ..] if word.eq_ignore_ascii_case(b"id") && !ids.is_empty() => {
                let parse = |id: &Bytes| number::parse_i64(id).and_then(|id| u64::try_from(id).ok());
                let ids: Option<Vec<u64>> = ids.iter().map(parse).collect();
                ids.map(Filter::Ids).ok_or(Reply::error("ERR Invalid client ID"))
            }
            _ => Err(CommandError::Syntax.reply()),
        }
    }

    /// Keeps the lines that the filter accepts.
    pub(super) fn apply(&self, lines: &str) -> String {
        let accepts = |line: &&str| match self {
            Filter::All => true,
            Filter::None => false,
            Filter::Ids(ids) => ids.iter().any(|id| line.starts_with(&format!("id={id} "))),
        };
        lines.split_inclusive('\n').filter(accepts).collect()
    }
}

/// One connection as `CLIENT LIST` shows it, without the end of line.
pub(super) fn line(session: &Session, now: Now) -> String {
    let seconds_since = |us: u64| now.monotonic_us.saturating_sub(us) / 1_000_000;
    format!(
        "id={} addr={} laddr={} fd=0 name={} age={} idle={} flags={} db={} sub=0 psub=0 ssub=0 multi={} qbuf=0 \
         qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={} oll=0 omem=0 tot-mem=0 events=r cmd={} user=default \
         redir=-1 resp={} lib-name={} lib-ver={}",
        session.id.0,
        session.address,
        session.local_address,
        String::from_utf8_lossy(&session.name),
        seconds_since(session.connected_us),
        seconds_since(session.active_us),
        if session.multi.is_some() { "x" } else { "N" },
        session.keyspace.0,
        session.multi.as_ref().map_or(-1, |multi| multi.len() as i64),
        session.bytes.len(),
        session.latest,
        session.version.number(),
        String::from_utf8_lossy(&session.library_name),
        String::from_utf8_lossy(&session.library_version),
    )
}

fn is_switch(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"on") || word.eq_ignore_ascii_case(b"off")
}

const KNOWN: [&str; 10] =
    ["getname", "help", "id", "info", "kill", "list", "no-evict", "no-touch", "setinfo", "setname"];

const HELP: [&str; 21] = [
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETNAME",
    "    Return the name of the current connection.",
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
    "SETINFO <option> <value>",
    "    Set LIB-NAME or LIB-VER of the current connection.",
    "SETNAME <name>",
    "    Assign a name to the current connection.",
    "HELP",
    "    Print this help.",
];
