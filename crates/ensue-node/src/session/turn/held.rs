//! A turn while `CLIENT PAUSE` is on: what waits, and what is found to write nothing and goes on. And a turn while a
//! script has run for long in every partition that there is: what is refused.

use super::Turn;
use crate::session::begin::{self, Held};
use crate::session::exchange::{Exchange, Then};
use crate::session::pause;
use crate::session::transactions::multi::{self, Multi};
use ensue_resp::CommandSpec;
use ensue_types::{Args, Reply};

/// Whether the next command waits for the end of a pause, or for a partition that knows whether it writes.
pub(super) fn is_held_back(turn: &mut Turn<'_>) -> bool {
    if std::mem::take(&mut turn.session.passes_pause) {
        return false;
    }
    match begin::held(&turn.cx, turn.session) {
        Held::Not => false,
        Held::ForMs(ms) => {
            hold(turn, ms);
            true
        }
        Held::Unless(plan) => {
            turn.cx.requests.ask(0);
            turn.execute(plan, Then::Pass);
            true
        }
    }
}

/// Whether a command is refused because the node stops, or because of a script that runs for long; then it has its
/// answer.
pub(super) fn is_refused(turn: &mut Turn<'_>, spec: Option<&'static CommandSpec>, args: &Args) -> bool {
    if turn.cx.core.is_stopping() {
        turn.reply(&STOPPING);
        return true;
    }
    let (Some(words), Some(spec)) = (turn.cx.core.busy(), spec) else { return false };
    let is_looked_at = turn.session.visits && pause::is_of_an_observer(spec);
    if is_looked_at || may_run_while_busy(spec, args) || !ensue_resp::check_arity(spec, args.len()) {
        return false;
    }
    turn.cx.core.counters.on_rejected(Some(spec));
    let refusal = Reply::error(words);
    match spec.name {
        "exec" if turn.session.multi.is_some() => {
            turn.session.end_multi();
            turn.reply(&multi::aborted_by(refusal));
        }
        _ => {
            turn.session.multi.iter_mut().for_each(Multi::fail);
            turn.reply(&refusal);
        }
    }
    true
}

/// What Redis lets clients do while a script runs for long.
fn may_run_while_busy(spec: &CommandSpec, args: &Args) -> bool {
    let is = |words: &[&str]| {
        args.get(1).is_some_and(|word| words.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes())))
    };
    match spec.name {
        "auth" | "discard" | "hello" | "multi" | "quit" | "reset" | "unwatch" | "watch" => true,
        "script" => is(&["kill"]),
        "function" => is(&["kill", "stats"]),
        _ => false,
    }
}

/// A partition has answered whether the next command says that it writes nothing, or will not.
pub(super) fn on_whether_it_reads(turn: &mut Turn<'_>, answer: &Reply) {
    turn.end_exchange();
    if *answer == Reply::Integer(1) {
        turn.session.passes_pause = true;
    } else if let Some(ms) = turn.cx.core.pause.remaining_ms(turn.cx.now, true) {
        hold(turn, ms);
    }
}

const STOPPING: Reply = Reply::error("UNAVAILABLE this node is shutting down");

fn hold(turn: &mut Turn<'_>, ms: u64) {
    turn.cx.requests.ask(0);
    turn.cx.begin(0, ms);
    turn.session.exchange = Exchange::Paused(None);
}
