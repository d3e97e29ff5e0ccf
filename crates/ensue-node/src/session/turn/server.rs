//! Commands about the server, its clients, or what it knows of scripts: which part answers them.

use super::Turn;
use crate::session::admin::debug::Debugged;
use crate::session::admin::populating::Populating;
use crate::session::admin::slots::Clustered;
use crate::session::admin::{client, cluster_query, config, debug, latency, memory, order, saving, slots};
use crate::session::exchange::{Exchange, Then};
use crate::session::output::SessionOutput;
use crate::session::pause::Paused;
use crate::session::plan::{Plan, functions, scripts};
use crate::session::pubsub;
use crate::session::step::Step;
use ensue_resp::CommandError;
use ensue_types::{Args, Reply};

/// A command about the server, its clients or what it knows of scripts.
pub(super) fn server_command(turn: &mut Turn<'_>, name: &str, args: &Args) {
    let (cx, session) = (&mut turn.cx, &mut *turn.session);
    let planned = match name {
        "bgrewriteaof" | "bgsave" | "lastsave" | "save" => saving::plan(cx.core.partitions(), name, args),
        "client" => match client::reply_mode(args) {
            Some(muted) => {
                session.replies.mute(muted);
                Err(Reply::OK)
            }
            None => {
                let activity = session.activity(cx.keyspace(), &cx.core.channels);
                let step = session.client.on_client_command(cx, activity, args);
                return turn.follow(step);
            }
        },
        "cluster" => match slots::on_command(cx, session.client.local_address(), args) {
            Clustered::Answered(reply) => Err(reply),
            Clustered::Asks(plan, in_slot) => {
                cx.requests.ask(1);
                return turn.execute(plan, Then::InSlot(in_slot));
            }
        },
        "config" => {
            let step = config::on_command(cx, args);
            return turn.follow(step);
        }
        "debug" => return debug_command(turn, args),
        "function" => functions::admin(cx.core.partitions(), args),
        "info" => {
            let step = cluster_query::info(cx, args);
            return turn.follow(step);
        }
        "latency" => {
            let step = latency::on_command(cx, args);
            return turn.follow(step);
        }
        "memory" => {
            let step = memory::on_command(cx, args);
            return turn.follow(step);
        }
        "monitor" => {
            cx.core.monitor(session.client.id(), session.client.version());
            Err(Reply::OK)
        }
        "script" => scripts::admin(cx.core.partitions(), args),
        _ => {
            let step = order::slow_log(cx, args);
            return turn.follow(step);
        }
    };
    match planned {
        Err(reply) => turn.reply(&reply),
        Ok(plan) => {
            turn.cx.requests.ask(1);
            turn.execute(plan, Then::Answer);
        }
    }
}

/// `DEBUG`.
fn debug_command(turn: &mut Turn<'_>, args: &Args) {
    let (cx, session) = (&mut turn.cx, &mut *turn.session);
    match debug::on_command(&cx.core.config.directives, session.client.origin(), args) {
        Debugged::Answered(reply) => turn.reply(&reply),
        // What it answers is no element of an array.
        Debugged::Raw(_) if session.exec.is_some() => turn.reply(&CommandError::Syntax.reply()),
        Debugged::Raw(bytes) => session.replies.push_raw(bytes),
        Debugged::Expires(is_active) => {
            let step = order::expire_actively(cx, is_active);
            turn.follow(step);
        }
        Debugged::Object(key) => {
            cx.requests.ask(1);
            let plan = Plan::of_object(cx.spread(), key);
            turn.execute(plan, Then::Debug);
        }
        Debugged::Populates(populating) => {
            cx.requests.ask(1);
            populate(turn, populating, Vec::new());
        }
        Debugged::Sleeps(ms) => {
            cx.core.on_slept(cx.now, ms);
            cx.core.pause.begin(cx.now, Paused::All, ms);
            cx.requests.ask(1);
            cx.begin(0, ms);
            session.exchange = Exchange::Paused(Some(Reply::OK));
        }
    }
}

/// An answer is written: behind it comes what was published on the way to it, and that keys which it may show have
/// changed meanwhile.
pub(super) fn follow_answer(turn: &mut Turn<'_>) {
    let (core, session) = (&mut *turn.cx.core, &mut *turn.session);
    session.push_own_messages();
    if core.tracking.is_empty() {
        return;
    }
    for (told, bytes) in core.tracking.on_answered(session.client.id()) {
        match told == session.client.id() {
            true => session.replies.push_bytes(&bytes),
            false => core.output(SessionOutput::Push { session: told, bytes }),
        }
    }
}

/// Goes on with `DEBUG POPULATE` after these answers to its last step.
pub(super) fn populate(turn: &mut Turn<'_>, mut populating: Populating, replies: Vec<Reply>) {
    match (replies.into_iter().find(Reply::is_error), populating.next_step(turn.cx.spread())) {
        (Some(error), _) => turn.complete(vec![error]),
        (None, Some(plan)) => turn.execute(plan, Then::Populate(populating)),
        (None, None) => turn.complete(vec![Reply::OK]),
    }
}

/// Publishes what scripts have published, now that what they wrote belongs to the session's past.
pub(super) fn publish_called(turn: &mut Turn<'_>) {
    for args in std::mem::take(&mut turn.session.published) {
        let (cx, version) = (&mut turn.cx, turn.session.client.version());
        let name = args[0].to_ascii_lowercase();
        let name = std::str::from_utf8(&name).unwrap_or_default();
        let step = pubsub::command::on_command::<Exchange>(cx, version, name, &args);
        if let Some(Step::Published(_, own)) = step {
            turn.session.own_messages.extend(own);
        }
    }
}
