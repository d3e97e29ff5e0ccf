//! A turn of which something is executed elsewhere: a command that goes to the home of its keys, and what becomes of
//! it; and, at that home, a request of another datacenter.

use super::{Interruption, Turn, users};
use crate::homes::{MOVING, is_check};
use crate::session::causal::merge::TokenMerge;
use crate::session::commands::blocked::UNBLOCKED;
use crate::session::connection::Lifecycle;
use crate::session::exchange::{Exchange, Then};
use crate::session::failure::UNANSWERED;
use crate::session::homes::{self, Place};
use crate::session::plan::{Check, scripts};
use crate::session::step::Step;
use crate::session::transactions::exec::{self, Exec};
use crate::session::transactions::multi::Multi;
use bytes::Bytes;
use ensue_resp::CommandSpec;
use ensue_types::{Args, DatacenterId, KeyspaceId, Reply};
use ensue_wire::HomeOutcome;

/// A command that is executed at the home of its keys. The text of a script goes along: it need not be known there.
pub(super) fn command(turn: &mut Turn<'_>, home: DatacenterId, spec: &CommandSpec, args: Args) {
    match scripts::show(spec, &args, turn.cx.core.partitions()) {
        Some(plan) => {
            turn.cx.requests.ask(1);
            turn.execute(plan, Then::ScriptAtHome(home, args));
        }
        None => send(turn, home, vec![args], false),
    }
}

/// Commands go to the home of their keys.
pub(super) fn send(turn: &mut Turn<'_>, home: DatacenterId, commands: Vec<Args>, transaction: bool) {
    if turn.session.shared.is_used(&turn.cx) {
        return turn.reply(&homes::SHARED);
    }
    if turn.session.lifecycle == Lifecycle::Elsewhere {
        // It has moved since the request was taken: its origin asks there.
        return turn.reply(&MOVING);
    }
    let step = homes::send(&mut turn.cx, home, commands, transaction);
    turn.follow(step);
    if turn.session.has_ended {
        give_up_waiting(turn);
    }
}

/// An `EXEC` of keys with a home elsewhere.
pub(super) fn exec(turn: &mut Turn<'_>, home: DatacenterId, mut multi: Multi, check: Option<Check>) {
    let published = multi.take_published();
    match multi.into_request(check) {
        Err(reply) => turn.reply(&reply),
        Ok(commands) if published.is_empty() => send(turn, home, commands, true),
        Ok(commands) => turn.session.exec = Some(Exec::at_home(home, commands, published)),
    }
}

/// A step of an `EXEC` waits until what the session did at homes is visible here: what is published carries it.
pub(super) fn put_off(turn: &mut Turn<'_>, keyspace: KeyspaceId, step: exec::Step) {
    if let Some(exec) = &mut turn.session.exec {
        exec.put_off(step);
    }
    turn.cx.requests.ask(1);
    let step = TokenMerge::of_awaited(&mut turn.cx, keyspace, true);
    turn.follow(step);
}

/// `WATCH`: the owners of the keys are asked, here or at their home.
pub(super) fn watch(turn: &mut Turn<'_>, args: &Args) {
    let changes = turn.cx.core.homes.changes();
    turn.session.watched.note_homes(changes);
    let (cx, session) = (&turn.cx, &*turn.session);
    let place = homes::watch_place(cx.core, cx.contexts, &args[1..]);
    match (session.watched.plan(cx, args), place) {
        (Err(refusal), _) | (_, Place::Refused(refusal)) => turn.reply(&refusal),
        (Ok(plan), Place::Here) => {
            turn.cx.requests.ask(1);
            turn.execute(plan, Then::Watch(args.clone()));
        }
        (Ok(_), Place::Away(home)) => {
            send(turn, home, vec![args.clone()], false);
            if turn.session.exchange.is_at_home() {
                turn.session.then = Then::Watch(args.clone());
            }
        }
    }
}

/// The answer to a `WATCH` whose keys are watched under these numbers. A session elsewhere keeps them.
pub(super) fn watched(turn: &mut Turn<'_>, args: Args, numbers: Reply) -> Reply {
    match turn.session.lifecycle {
        Lifecycle::Elsewhere => numbers,
        _ => turn.session.watched.on_numbers(turn.cx.keyspace(), args, numbers),
    }
}

/// Where an `EXEC` runs.
pub(super) fn place(turn: &Turn<'_>, check: Option<&Check>, multi: &Multi) -> Place {
    let (core, contexts) = (&turn.cx.core, &turn.cx.contexts);
    match check {
        Some(check) => homes::place_of_watched(core, contexts, &check.args, multi.commands()),
        None => homes::place(core, contexts, multi.commands()),
    }
}

/// The home of keys has answered, or will never do so.
pub(in crate::session) fn on_answer(turn: &mut Turn<'_>, number: u64, outcome: HomeOutcome) {
    match std::mem::take(&mut turn.session.exchange) {
        Exchange::AtHome(waiting) if waiting.waits_for(number) => {
            let step =
                match (waiting.on_answer(&mut turn.cx, outcome), std::mem::take(&mut turn.session.then)) {
                    (Step::Answered(mut replies), Then::Watch(args)) => {
                        let numbers = replies.pop().unwrap_or(UNANSWERED);
                        Step::answer(watched(turn, args, numbers))
                    }
                    (step, then) => {
                        turn.session.then = then;
                        step
                    }
                };
            turn.follow(step);
            turn.advance();
        }
        exchange => turn.session.exchange = exchange,
    }
}

/// What waits there has done so for long, and is asked again under another number.
pub(in crate::session) fn request_anew(turn: &mut Turn<'_>, number: u64) {
    match std::mem::take(&mut turn.session.exchange) {
        Exchange::AtHome(waiting) if waiting.waits_for(number) => {
            let step = waiting.request_anew(&mut turn.cx, "has had too many requests since this one");
            turn.follow(step);
            turn.advance();
        }
        exchange => turn.session.exchange = exchange,
    }
}

/// Somebody ends what waits at a home; false if nothing waits there.
pub(super) fn interrupt(turn: &mut Turn<'_>, how: Interruption) -> bool {
    let Some(args) = turn.session.exchange.waiting().cloned() else { return false };
    let answer = match how {
        Interruption::Unpause => None,
        Interruption::Unblock { with_error } => Some(if with_error { UNBLOCKED } else { Reply::NilArray }),
        Interruption::Users => users::refusal_of_waiting(turn, &args),
    };
    let Some(answer) = answer else { return false };
    give_up(turn, answer);
    turn.advance();
    true
}

/// The client is gone, or sends nothing any more: what waits at a home is over.
pub(super) fn on_gone(turn: &mut Turn<'_>) {
    if give_up_waiting(turn) {
        turn.advance();
    }
}

/// Whether something waited at a home; it does so no longer, and nothing is its answer.
fn give_up_waiting(turn: &mut Turn<'_>) -> bool {
    let waits = turn.session.exchange.is_at_home() && turn.session.exchange.is_blocked();
    if waits {
        give_up(turn, Reply::NilArray);
    }
    waits
}

/// The client is answered this, and what was popped for it at the home, if anything, is put back there.
fn give_up(turn: &mut Turn<'_>, answer: Reply) {
    if let Exchange::AtHome(waiting) = &turn.session.exchange {
        waiting.abandon(&mut turn.cx);
    }
    turn.complete(vec![answer]);
}

/// A request of another datacenter: one command, or those of a `MULTI`.
pub(in crate::session) fn on_request(turn: &mut Turn<'_>, transaction: bool, mut commands: Vec<Args>) {
    if transaction {
        if commands.first().is_some_and(|first| is_check(first)) {
            let check = commands.remove(0);
            turn.session.watched.restore(turn.cx.keyspace(), &check);
        }
        let word = |name: &'static [u8]| vec![Bytes::from_static(name)];
        commands.insert(0, word(b"multi"));
        commands.push(word(b"exec"));
    }
    turn.session.queue.begin_turn(commands);
    turn.advance();
}

/// Who asked for a command that may wait hears no answer: it stops waiting, before it has begun if it has not. What it
/// pops all the same is put back, or is its answer.
pub(in crate::session) fn on_undelivered(turn: &mut Turn<'_>, puts_back: bool) {
    match &mut turn.session.exchange {
        Exchange::Commands(exchange) if puts_back => exchange.on_gone(&mut turn.cx),
        Exchange::Commands(exchange) => {
            exchange.end(&mut turn.cx, None);
        }
        exchange if exchange.only_waits() => {
            turn.session.queue.clear();
            std::mem::take(exchange).withdraw(&mut turn.cx);
            turn.end_exchange();
            turn.session.replies.push(turn.session.client.version(), &Reply::NilArray);
        }
        _ => {}
    }
}
