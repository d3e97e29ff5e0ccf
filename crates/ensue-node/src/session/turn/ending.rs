//! What ends with a client: what waits for somebody else, and what it is told.

use super::{Turn, away};

/// Nothing waits for the client any more: what is popped for it from now on is put back.
pub(super) fn end_waiting(turn: &mut Turn<'_>) {
    if !std::mem::replace(&mut turn.session.has_ended, true) {
        turn.session.exchange.on_gone(&mut turn.cx);
        away::on_gone(turn);
    }
}

/// Its connection may stay for a while until it has read its answers: it hears of nothing new.
pub(super) fn forget_listener(turn: &mut Turn<'_>) {
    let client = turn.session.client.id();
    turn.cx.core.unsubscribe(client);
    turn.cx.core.stop_tracking(client);
}
