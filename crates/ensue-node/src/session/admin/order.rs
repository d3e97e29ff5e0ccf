//! What one session has all cores of the datacenter do: set parameters, pause or unpause, close or unblock clients.
//!
//! An order is words, as a command is; each core answers with one number or status, and they are put together here.

use super::cluster_query::{ClusterQuery, Purpose};
use super::filter::Kill;
use super::latency;
use crate::session::access::Stamp;
use crate::session::core_state::CoreState;
use crate::session::cx::Cx;
use crate::session::parameters::Setting;
use crate::session::pause::Paused;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::{CommandError, number};
use ensue_types::{Args, Now, Reply, SessionId};

/// How the answers of the cores become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gathering {
    AllOk,
    /// How many connections were closed, the one that asks among them if it closes itself.
    Killed {
        itself: bool,
        by_address: bool,
    },
    /// 1 if one of them has it.
    Any,
    Sum,
    /// So many entries with their times, of all together the latest; fewer than none is all.
    Latest(i64),
    /// When commands took long.
    Spikes(latency::View),
    /// How many different names they have told.
    Distinct,
    /// So many entries of who was refused, of all together the latest.
    Refusals(i64),
    /// This many users were known here, and are gone.
    Deleted(usize),
}

impl Gathering {
    pub(crate) fn answer(self, cx: &mut Cx<'_>, replies: &[Reply]) -> Reply {
        let sum: i64 =
            replies.iter().map(|reply| if let Reply::Integer(count) = reply { *count } else { 0 }).sum();
        match self {
            Gathering::AllOk => Reply::OK,
            Gathering::Any => Reply::Integer(sum.min(1)),
            Gathering::Sum => Reply::Integer(sum),
            Gathering::Latest(count) => latest_by(replies, count, begun_s),
            Gathering::Spikes(view) => latency::gather(&view, (cx.now.wall_ms / 1_000) as i64, replies),
            Gathering::Refusals(count) => latest_by(replies, count, updated_ms),
            Gathering::Deleted(count) => Reply::Integer(count as i64),
            Gathering::Distinct => latency::count_forgotten(replies),
            Gathering::Killed { itself, by_address } => {
                if itself {
                    // When it has its answer.
                    let own = cx.requests.session();
                    cx.core.close_later(own);
                }
                match (sum + i64::from(itself), by_address) {
                    (0, true) => Reply::error("ERR No such client"),
                    (_, true) => Reply::OK,
                    (count, false) => Reply::Integer(count),
                }
            }
        }
    }
}

/// Has every core set these parameters.
pub(crate) fn set(cx: &mut Cx<'_>, settings: Vec<Setting>) -> Step<Box<ClusterQuery>> {
    let words = settings.into_iter().flat_map(|(name, value)| [Bytes::from(name), Bytes::from(value)]);
    give(cx, "set", words.collect(), Gathering::AllOk)
}

/// Has the cores of this node set these parameters.
pub(crate) fn set_of_node(cx: &mut Cx<'_>, settings: Vec<Setting>) -> Step<Box<ClusterQuery>> {
    let first = Bytes::from(cx.core.config.first_core.0.to_string());
    let words = settings.into_iter().flat_map(|(name, value)| [Bytes::from(name), Bytes::from(value)]);
    give(cx, "set-of-node", std::iter::once(first).chain(words).collect(), Gathering::AllOk)
}

/// Has every core set these parameters, and know what a user is from now on.
pub(crate) fn set_with_user(
    cx: &mut Cx<'_>,
    settings: Vec<Setting>,
    stamp: Stamp,
    line: Bytes,
) -> Step<Box<ClusterQuery>> {
    let words = settings.into_iter().flat_map(|(name, value)| [Bytes::from(name), Bytes::from(value)]);
    let user = [stamp.text().into(), line].into_iter();
    give(cx, "user-and-set", user.chain(words).collect(), Gathering::AllOk)
}

/// Has every core look at deadlines by time, or only after a command has found nothing, as tests ask for it.
pub(crate) fn expire_actively(cx: &mut Cx<'_>, is_active: bool) -> Step<Box<ClusterQuery>> {
    let word: &'static str = if is_active { "yes" } else { "no" };
    give(cx, "expire-actively", vec![Bytes::from(word)], Gathering::AllOk)
}

/// Has every core pause.
pub(crate) fn pause(cx: &mut Cx<'_>, what: Paused, ms: u64) -> Step<Box<ClusterQuery>> {
    let word: &'static str = if what == Paused::All { "all" } else { "writes" };
    give(cx, "pause", vec![Bytes::from(word), Bytes::from(ms.to_string())], Gathering::AllOk)
}

pub(crate) fn unpause(cx: &mut Cx<'_>) -> Step<Box<ClusterQuery>> {
    give(cx, "unpause", Vec::new(), Gathering::AllOk)
}

/// Has every core close the clients that `CLIENT KILL` means. The one that asks, whose line this is, closes itself.
pub(crate) fn kill(cx: &mut Cx<'_>, words: &[Bytes], own_line: &str) -> Step<Box<ClusterQuery>> {
    let kill = match Kill::new(words) {
        Ok(kill) => kill,
        Err(refusal) => return Step::answer(refusal),
    };
    if let Some(name) = kill.user() {
        if cx.core.access.users().user(name.as_bytes()).is_none() {
            return Step::answer(Reply::Error(format!("ERR No such user '{name}'").into()));
        }
    }
    let itself = !kill.skip_me && kill.filter.accepts(own_line);
    let mut order = vec![Bytes::from(cx.requests.session().0.to_string())];
    order.extend_from_slice(words);
    give(cx, "kill", order, Gathering::Killed { itself, by_address: kill.by_address })
}

/// Has the core of a client end what it waits for.
pub(crate) fn unblock(cx: &mut Cx<'_>, words: &[Bytes]) -> Step<Box<ClusterQuery>> {
    let with_error = match words {
        [_] => false,
        [_, word] if word.eq_ignore_ascii_case(b"timeout") => false,
        [_, word] if word.eq_ignore_ascii_case(b"error") => true,
        _ => {
            return Step::answer(Reply::error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
    };
    if number::parse_i64(&words[0]).is_none() {
        return Step::answer(CommandError::NotInteger.reply());
    }
    let word: &'static str = if with_error { "error" } else { "timeout" };
    give(cx, "unblock", vec![words[0].clone(), Bytes::from(word)], Gathering::Any)
}

/// Has every core tell who was refused.
pub(crate) fn refusals(cx: &mut Cx<'_>, count: i64) -> Step<Box<ClusterQuery>> {
    give(cx, "refusals-get", Vec::new(), Gathering::Refusals(count))
}

pub(crate) fn forget_refusals(cx: &mut Cx<'_>) -> Step<Box<ClusterQuery>> {
    give(cx, "refusals-reset", Vec::new(), Gathering::AllOk)
}

/// Tells every core what a user is from now on: a line of an ACL file.
pub(crate) fn set_user(cx: &mut Cx<'_>, stamp: Stamp, line: Bytes) -> Step<Box<ClusterQuery>> {
    give(cx, "user-set", vec![stamp.text().into(), line], Gathering::AllOk)
}

/// Tells every core which users are gone, of which this core knew so many.
pub(crate) fn delete_users(
    cx: &mut Cx<'_>,
    stamp: Stamp,
    names: &[Bytes],
    known: usize,
) -> Step<Box<ClusterQuery>> {
    let words = std::iter::once(stamp.text().into()).chain(names.iter().cloned()).collect();
    give(cx, "user-delete", words, Gathering::Deleted(known))
}

/// Tells every core all users: the text of an ACL file.
pub(crate) fn load_users(cx: &mut Cx<'_>, stamp: Stamp, text: Bytes) -> Step<Box<ClusterQuery>> {
    give(cx, "users-load", vec![stamp.text().into(), text], Gathering::AllOk)
}

/// Has every core tell when its commands took long.
pub(super) fn latency(cx: &mut Cx<'_>, gathering: Gathering) -> Step<Box<ClusterQuery>> {
    give(cx, "latency-get", Vec::new(), gathering)
}

/// Has every core forget that of these events, or of all.
pub(super) fn reset_latency(cx: &mut Cx<'_>, events: &[Bytes]) -> Step<Box<ClusterQuery>> {
    give(cx, "latency-reset", events.to_vec(), Gathering::Distinct)
}

/// `SLOWLOG`.
pub(crate) fn slow_log(cx: &mut Cx<'_>, args: &Args) -> Step<Box<ClusterQuery>> {
    let wrong_arity = |name: &'static str| Step::answer(CommandError::wrong_arity(name).reply());
    match (args[1].to_ascii_lowercase().as_slice(), &args[2..]) {
        (b"get", words @ ([] | [_])) => {
            let count = words.first().map_or(Some(SLOW_ENTRIES), |count| number::parse_i64(count));
            match count {
                Some(count @ -1..) => give(cx, "slow-get", Vec::new(), Gathering::Latest(count)),
                Some(_) => Step::answer(Reply::error("ERR count should be greater than or equal to -1")),
                None => Step::answer(CommandError::NotInteger.reply()),
            }
        }
        (b"len", []) => give(cx, "slow-len", Vec::new(), Gathering::Sum),
        (b"reset", []) => give(cx, "slow-reset", Vec::new(), Gathering::AllOk),
        (b"help", []) => {
            Step::answer(Reply::Array(SLOW_HELP.iter().map(|&line| Reply::Status(line.into())).collect()))
        }
        (b"get", _) => wrong_arity("slowlog|get"),
        (b"len", _) => wrong_arity("slowlog|len"),
        (b"reset", _) => wrong_arity("slowlog|reset"),
        _ => Step::answer(CommandError::unknown_subcommand("slowlog", &args[1]).reply()),
    }
}

/// When a slow command was, as its entry tells.
fn begun_s(entry: &Reply) -> i64 {
    match entry {
        Reply::Array(parts) => parts.get(1).map_or(0, integer),
        _ => 0,
    }
}

/// When somebody was refused last, as its entry tells.
fn updated_ms(entry: &Reply) -> i64 {
    match entry {
        Reply::Map(fields) => {
            fields.iter().find(|(name, _)| *name == Reply::bulk(UPDATED)).map_or(0, |(_, time)| integer(time))
        }
        _ => 0,
    }
}

fn integer(reply: &Reply) -> i64 {
    if let Reply::Integer(number) = reply { *number } else { 0 }
}

/// Entries of all cores, the latest first.
fn latest_by(replies: &[Reply], count: i64, time: fn(&Reply) -> i64) -> Reply {
    let mut entries: Vec<Reply> = Vec::new();
    for reply in replies {
        if let Reply::Array(some) = reply {
            entries.extend_from_slice(some);
        }
    }
    // Those of one core are in order already.
    entries.sort_by_key(|entry| std::cmp::Reverse(time(entry)));
    entries.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    Reply::Array(entries)
}

/// The field by which entries of several cores are put into one order.
const UPDATED: &str = "timestamp-last-updated";
/// Entries that are shown unless told.
const SLOW_ENTRIES: i64 = 10;

const SLOW_HELP: [&str; 12] = [
    "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
    "HELP",
    "    Print this help.",
];

fn give(
    cx: &mut Cx<'_>,
    name: &'static str,
    mut words: Args,
    gathering: Gathering,
) -> Step<Box<ClusterQuery>> {
    words.insert(0, Bytes::from(name));
    ClusterQuery::begin(cx, Purpose::Order(words, gathering))
}

/// What a core does with an order that is about its sessions.
#[derive(Debug)]
pub(crate) enum OfSessions {
    Unpause,
    Kill(SessionId, Kill),
    Unblock(SessionId, bool),
    /// Users have changed, and those of some may be closed.
    Users,
}

/// Carries out an order, or says what its sessions have to do.
pub(crate) fn carry_out(core: &mut CoreState, now: Now, words: &[Bytes]) -> Result<Reply, OfSessions> {
    let text = |word: &Bytes| String::from_utf8_lossy(word).into_owned();
    match words {
        [name, pairs @ ..] if name[..] == b"set"[..] => {
            if let Ok(settings) = crate::session::parameters::check(pairs, &[]) {
                core.set_parameters(&settings);
            }
        }
        [name, first, pairs @ ..] if name[..] == b"set-of-node"[..] => {
            let is_meant = text(first) == core.config.first_core.0.to_string();
            if let Some(Ok(settings)) = is_meant.then(|| crate::session::parameters::check(pairs, &[])) {
                core.set_parameters(&settings);
            }
        }
        [name, word] if name[..] == b"expire-actively"[..] => core.expire_actively(word[..] == b"yes"[..]),
        [name, word, ms] if name[..] == b"pause"[..] => {
            let what = if word[..] == b"all"[..] { Paused::All } else { Paused::Writes };
            core.pause.begin(now, what, text(ms).parse().unwrap_or(0));
        }
        [name] if name[..] == b"slow-get"[..] => return Ok(core.slow_log.replies()),
        [name] if name[..] == b"slow-len"[..] => return Ok(Reply::Integer(core.slow_log.len() as i64)),
        [name] if name[..] == b"slow-reset"[..] => core.slow_log.clear(),
        [name] if name[..] == b"refusals-get"[..] => {
            return Ok(core.access.refusals(now));
        }
        [name] if name[..] == b"refusals-reset"[..] => core.access.forget_refusals(),
        [name, stamp, rest @ ..] if name.starts_with(b"user") => {
            let Some(stamp) = Stamp::parse(stamp) else { return Ok(Reply::OK) };
            if let (b"user-and-set", [_, pairs @ ..]) = (&name[..], rest) {
                if let Ok(settings) = crate::session::parameters::check(pairs, &[]) {
                    core.set_parameters(&settings);
                }
            }
            core.change_users(|access| match (&name[..], rest) {
                (b"user-set", [line]) | (b"user-and-set", [line, ..]) => access.on_user(stamp, line),
                (b"user-delete", names) => access.on_deleted(stamp, names),
                (b"users-load", [text]) => access.on_loaded(stamp, text),
                _ => {}
            });
            return Err(OfSessions::Users);
        }
        [name] if name[..] == b"latency-get"[..] => return Ok(core.latency.replies()),
        [name, events @ ..] if name[..] == b"latency-reset"[..] => {
            return Ok(core.latency.reset(&events.iter().map(text).collect::<Vec<_>>()));
        }
        [name] if name[..] == b"unpause"[..] => {
            core.pause.end();
            return Err(OfSessions::Unpause);
        }
        [name, asker, words @ ..] if name[..] == b"kill"[..] => {
            if let (Ok(asker), Ok(kill)) = (text(asker).parse(), Kill::new(words)) {
                return Err(OfSessions::Kill(SessionId(asker), kill));
            }
        }
        [name, id, how] if name[..] == b"unblock"[..] => {
            if let Ok(id) = text(id).parse() {
                return Err(OfSessions::Unblock(SessionId(id), how[..] == b"error"[..]));
            }
        }
        _ => {}
    }
    Ok(Reply::OK)
}
