//! The commands of a client that no exchange has taken yet, and how much of its turn the session has used.

use crate::session::cx::Cx;
use ensue_types::Args;
use std::collections::VecDeque;

/// The client's commands, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    commands: VecDeque<Args>,
    turn: TurnUsed,
    /// The error that follows the answers to what was asked before the framing was lost.
    framing_error: Option<String>,
}

/// What a session has used of its turn.
#[derive(Clone, Copy, Debug, Default)]
struct TurnUsed {
    /// Bytes of answers that have left.
    bytes: usize,
    /// A partition, or the kind of command, says that it was enough.
    up: bool,
    /// Whoever gives turns knows that the session waits for the next one.
    announced: bool,
}

impl Queue {
    /// A new turn begins, with these commands behind the others.
    pub(crate) fn begin_turn(&mut self, commands: Vec<Args>) {
        self.turn = TurnUsed::default();
        if self.commands.is_empty() {
            self.commands = commands.into();
        } else {
            self.commands.extend(commands);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    pub(crate) fn front(&self) -> Option<&Args> {
        self.commands.front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Args> {
        self.commands.iter()
    }

    pub(crate) fn pop_front(&mut self) -> Option<Args> {
        self.commands.pop_front()
    }

    /// The first so many commands.
    pub(crate) fn take(&mut self, count: usize) -> Vec<Args> {
        if count == self.commands.len() {
            // The whole queue goes: its buffer becomes the message's.
            return Vec::from(std::mem::take(&mut self.commands));
        }
        self.commands.drain(..count).collect()
    }

    /// Commands of the present exchange are at the front again, for the next turn; false if that would be all of them.
    pub(crate) fn put_back(&mut self, cx: &mut Cx<'_>, rest: Vec<Args>) -> bool {
        if rest.len() >= cx.requests.asked_count() {
            return false;
        }
        cx.core.counters.commands -= rest.len() as u64;
        cx.requests.request_fewer(rest.len());
        self.turn.up = true;
        rest.into_iter().rev().for_each(|args| self.commands.push_front(args));
        true
    }

    /// Drops the first commands, which were answered with an error; how many there were.
    pub(crate) fn drop_front(&mut self, count: usize) -> usize {
        let count = count.min(self.commands.len());
        self.commands.drain(..count);
        count
    }

    /// The client is gone, so nobody waits for what only reads.
    pub(crate) fn retain_writes(&mut self) {
        self.commands.retain(|args| !only_reads(args));
    }

    pub(crate) fn clear(&mut self) {
        self.commands.clear();
    }

    /// The turn is over with this command.
    pub(crate) fn end_turn(&mut self) {
        self.turn.up = true;
    }

    /// Whether others have their turn before it goes on, when so many bytes of answers are about to leave.
    pub(crate) fn has_used_its_turn(&self, bytes: usize, bytes_max: usize) -> bool {
        self.turn.up || self.turn.bytes + bytes >= bytes_max
    }

    /// Answers leave. Whether somebody has yet to learn that the session waits for its next turn.
    pub(crate) fn on_answers(&mut self, bytes: usize, wants_turn: bool) -> bool {
        self.turn.bytes += bytes;
        wants_turn && !std::mem::replace(&mut self.turn.announced, wants_turn)
    }

    pub(crate) fn on_framing_lost(&mut self, error: String) {
        self.framing_error = Some(error);
    }

    /// The error that is the last thing the client is told.
    pub(crate) fn take_framing_error(&mut self) -> Option<String> {
        self.framing_error.take()
    }
}

fn only_reads(args: &Args) -> bool {
    let spec = args.first().and_then(|name| ensue_resp::lookup(name));
    spec.is_some_and(|spec| spec.flags.contains(ensue_resp::Flags::READONLY))
}
