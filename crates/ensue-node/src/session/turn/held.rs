//! A turn while `CLIENT PAUSE` is on: what waits, and what is found to write nothing and goes on.

use super::Turn;
use crate::session::begin::{self, Held};
use crate::session::exchange::{Exchange, Then};
use ensue_types::Reply;

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

/// A partition has answered whether the next command says that it writes nothing, or will not.
pub(super) fn on_whether_it_reads(turn: &mut Turn<'_>, answer: &Reply) {
    turn.end_exchange();
    if *answer == Reply::Integer(1) {
        turn.session.passes_pause = true;
    } else if let Some(ms) = turn.cx.core.pause.remaining_ms(turn.cx.now, true) {
        hold(turn, ms);
    }
}

fn hold(turn: &mut Turn<'_>, ms: u64) {
    turn.cx.requests.ask(0);
    turn.cx.begin(0, ms);
    turn.session.exchange = Exchange::Paused(None);
}
