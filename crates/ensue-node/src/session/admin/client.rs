//! `CLIENT` and its subcommands: what a connection is called, who is connected, and closing one.
//!
//! `CLIENT LIST` shows the connections of every core of the datacenter, and `KILL`, `PAUSE` and `UNBLOCK` reach them.

use super::cluster_query::{ClusterQuery, Purpose};
use super::filter::Filter;
use super::{order, tracking};
use crate::session::access::Access;
use crate::session::cx::Cx;
use crate::session::pause::Paused;
use crate::session::reply_buffer::Muted;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_acl::{User, UserVersion};
use ensue_resp::{CommandError, ProtocolVersion, command, number};
use ensue_types::{Args, KeyspaceId, Now, Reply, SessionId};
use std::sync::Arc;

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
    /// What that command took as it was sent, where `CLIENT` asks.
    query_bytes: usize,
    pub(super) version: ProtocolVersion,
    /// Nobody before it has logged in.
    user: Option<Arc<User>>,
    /// The version of the users in which it was looked up.
    looked_up: UserVersion,
}

/// What a connection is at, for `CLIENT LIST`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    pub(crate) keyspace: KeyspaceId,
    /// How many commands its MULTI has, if it is in one.
    pub(crate) multi: Option<usize>,
    /// Bytes of answers that have not left, and of the buffer that they are in.
    pub(crate) reply_bytes: usize,
    pub(crate) reply_buffer: usize,
    /// Bytes of the commands of its MULTI, and of those that it has sent and that have not begun.
    pub(crate) multi_bytes: usize,
    pub(crate) queued_bytes: usize,
    /// Channels, patterns and shard channels that it subscribes to.
    pub(crate) subscriptions: [usize; 3],
    /// It is told of every command.
    pub(crate) monitors: bool,
    /// It waits for somebody else.
    pub(crate) waits: bool,
}

impl Client {
    pub(crate) fn new(now: Now, id: SessionId, addresses: [String; 2], user: Option<Arc<User>>) -> Client {
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
            query_bytes: 0,
            version: ProtocolVersion::default(),
            user,
            looked_up: UserVersion::default(),
        }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    /// How it has called itself.
    pub(crate) fn name(&self) -> &Bytes {
        &self.name
    }

    /// Where it comes from, and the version of the protocol that it speaks.
    pub(crate) fn origin(&self) -> (&str, ProtocolVersion) {
        (&self.address, self.version)
    }

    /// Where it has connected to.
    pub(crate) fn local_address(&self) -> &str {
        &self.local_address
    }

    /// Where it comes from.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The version of the protocol that it speaks.
    pub(crate) fn version(&self) -> ProtocolVersion {
        self.version
    }

    /// Who it has said to be; nobody before it has logged in, where it has to.
    pub(crate) fn user(&self) -> Option<&Arc<User>> {
        self.user.as_ref()
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.user.is_some()
    }

    pub(super) fn log_in(&mut self, user: Arc<User>) {
        self.user = Some(user);
        self.looked_up = UserVersion::default();
    }

    /// Looks its user up again if any have changed. False if it is gone.
    pub(crate) fn look_up_user(&mut self, access: &Access) -> bool {
        if self.looked_up == access.version() {
            return true;
        }
        self.looked_up = access.version();
        let Some(name) = self.user.as_ref().map(|user| user.name().clone()) else { return true };
        match access.users().user(&name) {
            Some(user) => self.user = Some(Arc::clone(user)),
            None => return false,
        }
        true
    }

    /// It has sent commands.
    pub(crate) fn on_commands(&mut self, now: Now) {
        self.active_us = now.monotonic_us;
    }

    /// A command of this name begins.
    pub(crate) fn on_command(&mut self, name: &'static str, subcommand: Option<&'static str>) {
        self.latest = (name, subcommand);
        self.query_bytes = 0;
    }

    /// Back to what it was when it connected: `RESET`.
    pub(crate) fn reset(&mut self, user: Option<Arc<User>>) {
        self.version = ProtocolVersion::default();
        self.name = Bytes::new();
        self.user = user;
    }

    /// `CLIENT` and its subcommands.
    pub(crate) fn on_client_command(
        &mut self,
        cx: &mut Cx<'_>,
        activity: Activity,
        args: &Args,
    ) -> Step<Box<ClusterQuery>> {
        self.query_bytes = encoded_bytes(args);
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
            (b"kill", words @ [_, ..]) => {
                let line = self.line(cx.now, activity);
                return order::kill(cx, words, &line);
            }
            (b"pause", words @ ([_] | [_, _])) => match pause(words) {
                Ok((what, ms)) => return order::pause(cx, what, ms),
                Err(refusal) => refusal,
            },
            (b"unpause", []) => return order::unpause(cx),
            (b"unblock", words @ ([_] | [_, _])) => return order::unblock(cx, words),
            (b"tracking", words @ [_, ..]) => tracking::track(cx, self.version, words),
            (b"caching", [word]) => tracking::caching(cx, word),
            (b"getredir", []) => tracking::redirect(cx),
            (b"trackinginfo", []) => tracking::info(cx),
            (b"reply", [_]) => CommandError::Syntax.reply(),
            (b"no-evict" | b"no-touch", [word]) if is_switch(word) => Reply::OK,
            (b"no-evict" | b"no-touch", [_]) => CommandError::Syntax.reply(),
            (b"help", []) => Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
            _ => command::misused(args).reply(),
        })
    }

    fn set_name(&mut self, name: &Bytes) -> Reply {
        if !is_name(name) {
            return BAD_CLIENT_NAME;
        }
        // Of its own, so that it does not keep the client's whole read buffer alive.
        self.name = Bytes::copy_from_slice(name);
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
        *place = Bytes::copy_from_slice(value);
        Reply::OK
    }

    /// What its session is known to take.
    fn memory_bytes(&self, activity: Activity) -> usize {
        let words = [&self.name, &self.library_name, &self.library_version].map(Bytes::len);
        let own = size_of::<Client>() + self.address.capacity() + self.local_address.capacity();
        let commands = self.query_bytes + activity.queued_bytes + activity.multi_bytes;
        own + words.iter().sum::<usize>() + commands + activity.reply_buffer
    }

    /// The connection as `CLIENT LIST` shows it, without the end of line.
    pub(crate) fn line(&self, now: Now, activity: Activity) -> String {
        let latest = match self.latest {
            (name, Some(subcommand)) => format!("{name}|{subcommand}"),
            (name, None) => name.to_owned(),
        };
        let seconds_since = |us: u64| now.monotonic_us.saturating_sub(us) / 1_000_000;
        format!(
            "id={} addr={} laddr={} fd=0 name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} qbuf={} \
             qbuf-free=0 argv-mem={} multi-mem={} rbs={} rbp={} obl={} oll=0 omem=0 tot-mem={} events=r cmd={} \
             user={} redir=-1 resp={} lib-name={} lib-ver={}",
            self.id.0,
            self.address,
            self.local_address,
            String::from_utf8_lossy(&self.name),
            seconds_since(self.connected_us),
            seconds_since(self.active_us),
            flags_of(activity),
            activity.keyspace.0,
            activity.subscriptions[0],
            activity.subscriptions[1],
            activity.subscriptions[2],
            activity.multi.map_or(-1, |commands| commands as i64),
            self.query_bytes + activity.queued_bytes,
            self.query_bytes,
            activity.multi_bytes,
            activity.reply_buffer,
            activity.reply_buffer,
            activity.reply_bytes,
            self.memory_bytes(activity),
            latest,
            self.user.as_ref().map_or("(none)".into(), |user| String::from_utf8_lossy(user.name())),
            self.version.number(),
            String::from_utf8_lossy(&self.library_name),
            String::from_utf8_lossy(&self.library_version),
        )
    }
}

/// The length of a command as a client sends it.
fn encoded_bytes(args: &Args) -> usize {
    let mut encoded = Vec::new();
    ensue_resp::encode::encode_command(args, &mut encoded);
    encoded.len()
}

/// What `CLIENT REPLY` asks for, if that is the command.
pub(crate) fn reply_mode(args: &Args) -> Option<Muted> {
    let is_reply = args.len() == 3 && args[1].eq_ignore_ascii_case(b"reply");
    match args.get(2).filter(|_| is_reply)?.to_ascii_lowercase().as_slice() {
        b"on" => Some(Muted::No),
        b"off" => Some(Muted::Always),
        // This answer, and the next one.
        b"skip" => Some(Muted::Next(2)),
        _ => None,
    }
}

/// The letters of what a client is doing.
fn flags_of(activity: Activity) -> String {
    let letters = [
        (activity.monitors, 'O'),
        (activity.multi.is_some(), 'x'),
        (activity.waits, 'b'),
        (activity.subscriptions.iter().any(|&count| count > 0), 'P'),
    ];
    let flags: String = letters.iter().filter(|(is_so, _)| *is_so).map(|(_, letter)| letter).collect();
    if flags.is_empty() { "N".to_owned() } else { flags }
}

/// What `CLIENT PAUSE` holds back, and for how long.
fn pause(words: &[Bytes]) -> Result<(Paused, u64), Reply> {
    let what = match words.get(1) {
        None => Paused::All,
        Some(word) if word.eq_ignore_ascii_case(b"all") => Paused::All,
        Some(word) if word.eq_ignore_ascii_case(b"write") => Paused::Writes,
        Some(_) => return Err(Reply::error("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    match number::parse_i64(&words[0]) {
        None => Err(Reply::error("ERR timeout is not an integer or out of range")),
        Some(ms) => match u64::try_from(ms) {
            Ok(ms) => Ok((what, ms)),
            Err(_) => Err(Reply::error("ERR timeout is negative")),
        },
    }
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

const HELP: [&str; 38] = [
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETNAME",
    "    Return the name of the current connection.",
    "CACHING (YES|NO)",
    "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port> | <option> <value> [<option> <value> [...]]",
    "    Close connections. Options are ADDR, LADDR, ID, TYPE, USER and SKIPME.",
    "LIST [TYPE NORMAL|PUBSUB | ID <client-id> ...]",
    "    Return information about client connections.",
    "NO-EVICT (ON|OFF)",
    "    Accepted; connections are never evicted.",
    "NO-TOUCH (ON|OFF)",
    "    Accepted; reads do not touch keys.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just writes, of all clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETINFO <option> <value>",
    "    Set LIB-NAME or LIB-VER of the current connection.",
    "SETNAME <name>",
    "    Assign a name to the current connection.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Control server assisted client side caching.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "UNBLOCK <client-id> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "UNPAUSE",
    "    Stop the current client pause.",
    "HELP",
    "    Print this help.",
];
