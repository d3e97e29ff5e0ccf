//! Who a session's client is, and what it may do.

use super::{Turn, record};
use crate::errand::ErrandDone;
use crate::session::access::refused;
use crate::session::access::scripts::{self, mark};
use crate::session::admin::handshake::{self, Wish};
use crate::session::admin::login::{Login, Verdict, WRONG_PASSWORD};
use crate::session::admin::{acl, errand};
use crate::session::connection::{Lifecycle, Parts};
use crate::session::core_state::CoreState;
use crate::session::exchange::Exchange;
use crate::session::transactions::multi::Multi;
use bytes::Bytes;
use ensue_acl::{Channel, Context, User};
use ensue_resp::{CommandSpec, Route};
use ensue_types::{Args, KeyspaceId, Reply, SessionId};
use ensue_wire::ChannelKind;
use std::sync::Arc;

/// `AUTH` and `HELLO`.
pub(super) fn handshake(turn: &mut Turn<'_>, name: &str, args: &Args) {
    let (cx, client) = (&mut turn.cx, &turn.session.client);
    let wish = match name {
        "auth" => handshake::auth(&cx.core.access, args),
        _ => handshake::hello(client.version(), args),
    };
    match wish {
        Err(refusal) => turn.reply(&refusal),
        Ok(Wish::Hello(after)) => {
            let reply = turn.session.client.on_handshake(after);
            greet(turn, &reply);
        }
        Ok(Wish::Login(login)) => {
            let verdict = login.clone().begin(cx);
            settle(turn, login, verdict);
        }
    }
}

/// Goes on by what is known of a login.
fn settle(turn: &mut Turn<'_>, login: Login, verdict: Verdict) {
    match verdict {
        Verdict::Right(user) => {
            let reply = turn.session.client.on_login(user, login.into_after());
            greet(turn, &reply);
        }
        Verdict::Wrong => refuse(turn, &login),
        Verdict::Waits(waiting) => turn.session.exchange = Exchange::Errand(waiting),
    }
}

/// Answers, and has everybody know which version the client speaks now.
fn greet(turn: &mut Turn<'_>, reply: &Reply) {
    let (cx, session) = (&mut turn.cx, &mut *turn.session);
    let (id, version) = (session.client.id(), session.client.version());
    cx.core.channels.set_version(id, version);
    cx.core.tracking.set_version(id, version);
    let subscribes = crate::session::pubsub::command::is_subscribed(cx);
    session.restrict(subscribes);
    turn.reply(reply);
}

fn refuse(turn: &mut Turn<'_>, login: &Login) {
    let line = line(turn);
    login.refuse(&mut turn.cx, line);
    turn.reply(&WRONG_PASSWORD);
}

/// The line of `CLIENT LIST`.
fn line(turn: &Turn<'_>) -> String {
    let activity = turn.session.activity(turn.cx.keyspace(), &turn.cx.core.channels);
    turn.session.client.line(turn.cx.now, activity)
}

/// What was sent for is there.
pub(in crate::session) fn on_errand_done(turn: &mut Turn<'_>, number: u64, done: ErrandDone) {
    match std::mem::take(&mut turn.session.exchange) {
        Exchange::Errand(waiting) if waiting.is_for(number) => match waiting.into_login() {
            Ok(login) => {
                turn.end_exchange();
                match done {
                    ErrandDone::Busy => turn.reply(&errand::BUSY),
                    done => {
                        let is_right = matches!(done, ErrandDone::Compared(true));
                        let verdict = login.clone().end(&mut turn.cx, is_right);
                        settle(turn, login, verdict);
                    }
                }
            }
            Err(waiting) => {
                let step = waiting.on_done(&mut turn.cx, done);
                turn.follow(step);
            }
        },
        exchange => turn.session.exchange = exchange,
    }
    turn.advance();
}

/// Whether a client's user is gone, or may no longer be told what it is: messages, commands, or which keys have
/// changed.
pub(in crate::session) fn has_lost_rights(core: &CoreState, session: &Parts, keyspace: KeyspaceId) -> bool {
    let (client, users) = (&session.client, core.access.users());
    let Some(name) = client.user().map(|user| user.name()).filter(|_| session.lifecycle == Lifecycle::Open)
    else {
        return false;
    };
    let Some(user) = users.user(name) else { return true };
    let is_lost = |(kind, name): &(ChannelKind, Bytes)| {
        let channel = match kind {
            ChannelKind::Pattern => Channel::Pattern(name),
            _ => Channel::Literal(name),
        };
        !user.allows_channel(channel)
    };
    !user.allows_all()
        && (core.channels.named_by(client.id()).iter().any(is_lost)
            || !may_be_told(core, client.id(), keyspace, user))
}

/// A client has lost rights. Whoever has asked for that itself, or asks about all sessions, has its answer first.
pub(in crate::session) fn close_without_rights(turn: &mut Turn<'_>) {
    match turn.session.exchange {
        Exchange::Admin(_) => turn.session.looks_again = true,
        _ => turn.close(),
    }
}

/// The answer is there for which a session was left open that had lost its rights.
pub(super) fn look_again(turn: &mut Turn<'_>) {
    let looks_again = std::mem::take(&mut turn.session.looks_again);
    if looks_again && has_lost_rights(turn.cx.core, turn.session, turn.cx.keyspace()) {
        turn.cx.core.close_later(turn.session.client.id());
    }
}

/// `ACL`.
pub(super) fn acl_command(turn: &mut Turn<'_>, args: &Args) {
    let Some(user) = turn.session.client.user().cloned() else { return };
    let step = acl::on_command(&mut turn.cx, &user, args);
    turn.follow(step);
}

/// Why the client's user may not execute a command; nothing if it may. A refusal is noted.
pub(super) fn refusal(turn: &mut Turn<'_>, spec: &'static CommandSpec, args: &Args) -> Option<Reply> {
    let user = Arc::clone(turn.session.client.user()?);
    if user.allows_all() {
        return None;
    }
    let context = if turn.session.multi.is_some() { Context::Multi } else { Context::Toplevel };
    let command = (spec, &args[..]);
    // The line of the client is made only for who is refused.
    let (reply, refusal) = refused::refusal(&user, turn.cx.keyspace(), command, (context, || line(turn)))?;
    turn.cx.core.note_refusal(turn.cx.now, refusal);
    Some(reply)
}

/// A script of this session was denied these commands. Those that its user may execute by now are not noted.
pub(in crate::session) fn note_denied_to_script(turn: &mut Turn<'_>, keyspace: KeyspaceId, denied: &[Args]) {
    let Some(user) = turn.session.client.user().map(Arc::clone) else { return };
    for args in denied {
        let Some(spec) = args.first().and_then(|name| ensue_resp::lookup(name)) else { continue };
        let command = (spec, &args[..]);
        let refused = refused::refusal(&user, keyspace, command, (Context::Lua, || line(turn)));
        if let Some((_, refusal)) = refused {
            turn.cx.core.note_refusal(turn.cx.now, refusal);
        }
    }
}

/// The same of a command that waits for somebody else, after users have changed: Redis checks one again when it would
/// be served.
pub(super) fn refusal_of_waiting(turn: &mut Turn<'_>, args: &Args) -> Option<Reply> {
    if turn.session.lifecycle != Lifecycle::Open || !turn.session.client.look_up_user(&turn.cx.core.access) {
        return None;
    }
    let spec = args.first().and_then(|name| ensue_resp::lookup(name))?;
    refusal(turn, spec, args)
}

/// Whether it may, without a note.
pub(super) fn may(turn: &Turn<'_>, spec: &'static CommandSpec, args: &Args) -> bool {
    let keyspace = turn.cx.keyspace();
    turn.session.client.user().is_none_or(|user| refused::may(user, keyspace, spec, args))
}

/// The same of a command of which nothing is known yet.
pub(super) fn may_run(turn: &Turn<'_>, args: &Args) -> bool {
    let spec = args.first().and_then(|name| ensue_resp::lookup(name));
    spec.is_none_or(|spec| may(turn, spec, args))
}

/// Whether a user may be told what its client is: the commands of all, if it monitors, and which keys have changed of
/// those that it has read.
fn may_be_told(core: &CoreState, client: SessionId, keyspace: KeyspaceId, user: &User) -> bool {
    let may = |words: &[&'static str]| {
        let args: Args = words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect();
        ensue_resp::lookup(&args[0]).is_none_or(|spec| refused::may(user, keyspace, spec, &args))
    };
    let tracking = &core.tracking;
    (core.channels.count(client, ChannelKind::Monitor) == 0 || may(&["monitor"]))
        && (tracking.options(client).is_none() || may(&["client", "tracking", "on"]))
        && tracking.read_by(client).all(|key| user.allows_reading(key))
}

/// The command, which says what its client's user may do if it is a script of one that may not do everything.
pub(super) fn marked(turn: &Turn<'_>, spec: &CommandSpec, args: Args) -> Args {
    match turn.session.client.user() {
        Some(user) if spec.route == Route::Script && !user.allows_all() => mark(args, user),
        _ => args,
    }
}

/// Scripts are executed with what their user may do now, and not with what it might when they were queued.
pub(super) fn mark_anew(turn: &Turn<'_>, multi: &mut Multi) {
    let user = turn.session.client.user().filter(|user| !user.allows_all());
    multi.scripts_mut().for_each(|args| scripts::mark_anew(args, user.map(|user| &**user)));
}

/// Whether a command that was queued may not be executed any more.
pub(super) fn has_lost_permissions(turn: &Turn<'_>) -> bool {
    let mut queued = turn.session.multi.iter().flat_map(|multi| multi.commands());
    queued.any(|(spec, args)| !may(turn, spec, args))
}

pub(super) const CHANGED: Reply = Reply::error(
    "EXECABORT Transaction discarded because what its user may do has changed, and a command in it is not allowed any \
     more.",
);

/// A command as it is queued, if its user may execute it; else it is answered, and `EXEC` will be refused.
pub(super) fn admit_to_multi(
    turn: &mut Turn<'_>,
    spec: Option<&'static CommandSpec>,
    args: Args,
) -> Option<Args> {
    let Some(spec) = spec else { return Some(args) };
    // What is not whole is refused for that.
    let is_whole = ensue_resp::check_arity(spec, args.len());
    let Some(refusal) = (if is_whole { refusal(turn, spec, &args) } else { None }) else {
        return Some(marked(turn, spec, args));
    };
    record::refused(turn, spec, &args, &refusal);
    turn.session.multi.iter_mut().for_each(Multi::fail);
    turn.reply(&refusal);
    None
}
