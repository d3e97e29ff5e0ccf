//! `SUBSCRIBE` and its variants, `PUBLISH`, `SPUBLISH` and `PUBSUB`.
//!
//! All of them are answered at once, from this core's own subscriptions and the reports of other cores.

use crate::session::cx::Cx;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::{ProtocolVersion, command};
use ensue_types::{Args, Causes, Context, KeyspaceId, LogicalTime, Reply, TimeVector, limits};
use ensue_wire::{Address, ChannelKind, Message};

/// One of these commands, if it is one.
pub(crate) fn on_command<E>(
    cx: &mut Cx<'_>,
    version: ProtocolVersion,
    name: &str,
    args: &Args,
) -> Option<Step<E>> {
    let step = match name {
        "subscribe" => subscribe(cx, version, ChannelKind::Channel, args),
        "psubscribe" => subscribe(cx, version, ChannelKind::Pattern, args),
        "ssubscribe" => subscribe(cx, version, ChannelKind::Shard, args),
        "unsubscribe" => unsubscribe(cx, ChannelKind::Channel, args),
        "punsubscribe" => unsubscribe(cx, ChannelKind::Pattern, args),
        "sunsubscribe" => unsubscribe(cx, ChannelKind::Shard, args),
        "publish" => publish(cx, ChannelKind::Channel, args),
        "spublish" => publish(cx, ChannelKind::Shard, args),
        "pubsub" => Step::answer(pubsub(cx, args)),
        _ => return None,
    };
    Some(step)
}

/// Whether a session subscribes to anything.
pub(crate) fn is_subscribed(cx: &Cx<'_>) -> bool {
    let session = cx.requests.session();
    let kinds = [ChannelKind::Channel, ChannelKind::Pattern, ChannelKind::Shard];
    kinds.into_iter().any(|kind| cx.core.channels.count(session, kind) > 0)
}

fn subscribe<E>(cx: &mut Cx<'_>, version: ProtocolVersion, kind: ChannelKind, args: &Args) -> Step<E> {
    if args[1..].iter().any(|name| name.len() > limits::CHANNEL_BYTES_MAX) {
        return Step::answer(NAME_TOO_LONG);
    }
    if !cx.core.channels.has_room(kind, &args[1..]) {
        return Step::answer(TOO_MANY);
    }
    let session = cx.requests.session();
    let mut confirmed = Vec::with_capacity(args.len() - 1);
    for name in &args[1..] {
        cx.core.channels.subscribe(session, version, kind, name);
        confirmed.push(confirmation(cx, words(kind).0, Reply::Bulk(name.clone()), kind));
    }
    cx.core.report_interest();
    Step::Confirmed(confirmed)
}

/// Without names: of all.
fn unsubscribe<E>(cx: &mut Cx<'_>, kind: ChannelKind, args: &Args) -> Step<E> {
    let session = cx.requests.session();
    let names = match &args[1..] {
        [] => cx.core.channels.of_session(session, kind),
        names => names.to_vec(),
    };
    let word = words(kind).1;
    let mut confirmed = Vec::with_capacity(names.len().max(1));
    for name in names {
        cx.core.channels.unsubscribe(session, kind, &name);
        confirmed.push(confirmation(cx, word, Reply::Bulk(name), kind));
    }
    if confirmed.is_empty() {
        confirmed.push(confirmation(cx, word, Reply::Nil, kind));
    }
    cx.core.report_interest();
    Step::Confirmed(confirmed)
}

/// Channels and patterns are counted together, shard channels for themselves.
fn confirmation(cx: &Cx<'_>, word: &'static str, name: Reply, kind: ChannelKind) -> Vec<Reply> {
    let session = cx.requests.session();
    let count = |kind| cx.core.channels.count(session, kind);
    let count = match kind {
        ChannelKind::Shard => count(ChannelKind::Shard),
        _ => count(ChannelKind::Channel) + count(ChannelKind::Pattern),
    };
    vec![Reply::bulk(word), name, Reply::Integer(count as i64)]
}

fn words(kind: ChannelKind) -> (&'static str, &'static str) {
    match kind {
        // What begins and ends it; neither is confirmed as a subscription is.
        ChannelKind::Monitor => ("monitor", "reset"),
        ChannelKind::Channel => ("subscribe", "unsubscribe"),
        ChannelKind::Pattern => ("psubscribe", "punsubscribe"),
        ChannelKind::Shard => ("ssubscribe", "sunsubscribe"),
    }
}

/// To every core that has subscribers, and to those of this core: at once, if new sessions here can read what this one
/// has seen.
fn publish<E>(cx: &mut Cx<'_>, kind: ChannelKind, args: &Args) -> Step<E> {
    let (channel, payload) = (&args[1], &args[2]);
    if channel.len() > limits::CHANNEL_BYTES_MAX {
        return Step::answer(NAME_TOO_LONG);
    }
    let publisher = cx.requests.session();
    let own = cx.core.config.topology.datacenter;
    cx.core.counters.messages.published += 1;
    let mut receivers = 0;
    let (mut past, mut past_within) = (None, None);
    for (core, sessions) in cx.core.channels.targets(kind, channel) {
        let past = if core.datacenter == own {
            receivers += i64::from(sessions);
            past_within.get_or_insert_with(|| past_within_datacenter(cx)).clone()
        } else {
            past.get_or_insert_with(|| past_of(cx, |_| true)).clone()
        };
        let to = Address::Core { datacenter: core.datacenter, core: core.core };
        let (channel, payload) = (channel.clone(), payload.clone());
        cx.core.send(to, LogicalTime::ZERO, Message::Publish { publisher, kind, channel, payload, past });
    }
    let frames = cx.core.channels.frames(kind, channel, payload);
    receivers += frames.len() as i64;
    let past = match frames.is_empty() {
        true => Vec::new(),
        false => past_within.unwrap_or_else(|| past_within_datacenter(cx)),
    };
    // An earlier message may still wait for its past: this one comes behind it.
    if past.is_empty() && !cx.core.late_publishers.contains(&publisher) {
        cx.core.counters.messages.delivered += frames.len() as u64;
        let own = cx.core.push_frames(frames, Some(publisher));
        return Step::Published(Reply::Integer(receivers), own);
    }
    cx.core.late_publishers.insert(publisher);
    let to = cx.core.address();
    let (channel, payload) = (channel.clone(), payload.clone());
    cx.core.send(to, LogicalTime::ZERO, Message::Publish { publisher, kind, channel, payload, past });
    Step::Published(Reply::Integer(receivers), Vec::new())
}

/// What of it new sessions of this datacenter may not read yet. By operations a session sees here only what is applied
/// here; by times it reads what is not stable here, if it has seen it elsewhere, or, optimistically, at once.
fn past_within_datacenter(cx: &Cx<'_>) -> Vec<(KeyspaceId, Context)> {
    let own = cx.core.config.topology.datacenter;
    let names_others = |causes: &Causes| {
        causes.times().is_ok_and(|vector| !TimeVector::default().covers_but(own, &vector.times))
    };
    past_of(cx, names_others)
}

/// What the session depends on, in every keyspace in which it depends on something of this kind.
fn past_of(cx: &Cx<'_>, is_meant: impl Fn(&Causes) -> bool) -> Vec<(KeyspaceId, Context)> {
    let has_past = |keyspace: &KeyspaceId| {
        let causes = &cx.contexts.of(*keyspace).causes;
        !causes.is_empty() && is_meant(causes) && cx.core.protocol(*keyspace).capabilities().causality
    };
    let keyspaces = cx.contexts.keyspaces().filter(has_past);
    keyspaces.map(|keyspace| (keyspace, cx.contexts.of(keyspace).clone())).collect()
}

/// `PUBSUB`: what the clients of this datacenter subscribe to.
fn pubsub(cx: &Cx<'_>, args: &Args) -> Reply {
    let own = cx.core.config.topology.datacenter;
    let channels = &cx.core.channels;
    let names = |kind, pattern: Option<&Bytes>| {
        let names = channels.known(own, kind, pattern.map(AsRef::as_ref));
        Reply::Array(names.into_iter().map(Reply::Bulk).collect())
    };
    let numbers = |kind, names: &[Bytes]| {
        let number = |name: &Bytes| Reply::Integer(channels.sessions_of(own, kind, name) as i64);
        Reply::Array(names.iter().flat_map(|name| [Reply::Bulk(name.clone()), number(name)]).collect())
    };
    let subcommand = args[1].to_ascii_lowercase();
    match (subcommand.as_slice(), &args[2..]) {
        (b"channels", rest) if rest.len() <= 1 => names(ChannelKind::Channel, rest.first()),
        (b"shardchannels", rest) if rest.len() <= 1 => names(ChannelKind::Shard, rest.first()),
        (b"numsub", rest) => numbers(ChannelKind::Channel, rest),
        (b"shardnumsub", rest) => numbers(ChannelKind::Shard, rest),
        (b"numpat", []) => Reply::Integer(channels.known(own, ChannelKind::Pattern, None).len() as i64),
        (b"help", []) => Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
        _ => command::misused(args).reply(),
    }
}

/// Why a command is refused on a connection of RESP2 that subscribes to something, if it is.
pub(crate) fn refusal(name: &str) -> Option<Reply> {
    if ALLOWED.contains(&name) {
        return None;
    }
    let words = format!(
        "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
         context"
    );
    Some(Reply::Error(words.into()))
}

/// `PING` on such a connection: an array, so that it is not taken for the answer to something else.
pub(crate) fn pong(args: &Args) -> Reply {
    let message = args.get(1).cloned().unwrap_or_default();
    Reply::Array(vec![Reply::bulk("pong"), Reply::Bulk(message)])
}

const ALLOWED: [&str; 9] = [
    "subscribe",
    "unsubscribe",
    "psubscribe",
    "punsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "ping",
    "quit",
    "reset",
];

const NAME_TOO_LONG: Reply =
    Reply::error("ERR the name of a channel, or a pattern, is longer than 65536 bytes");
const TOO_MANY: Reply =
    Reply::error("ERR the clients of this core subscribe to too many channels; nothing is changed");

const HELP: [&str; 13] = [
    "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANNELS [<pattern>]",
    "    Return the channels of this datacenter that have subscribers and match a pattern (default: '*').",
    "NUMPAT",
    "    Return number of subscriptions to patterns in this datacenter, each pattern counted once.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers of this datacenter for the specified channels, excluding patterns.",
    "SHARDCHANNELS [<pattern>]",
    "    Return the shard channels of this datacenter that have subscribers and match a pattern (default: '*').",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers of this datacenter for the specified shard channels.",
    "HELP",
    "    Print this help.",
];
