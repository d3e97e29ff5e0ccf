//! A run of neighbouring commands for one partition, as one message: the path of nearly every command.
//!
//! - Send: `Execute` with the commands, moved, and a copy of the context.
//! - On `Executed`: the context is the one that came back; the answers go out in order.
//! - On `ExecutedInPart`: the same for the first ones; the rest is at the front of the queue again, for the next turn.

use super::exchange::Exchange;
use super::failure::UNANSWERED;
use super::turn::{Run, Turn};
use ensue_types::{Args, PartitionId};
use ensue_wire::Message;

/// Waiting for `Executed`.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) partition: PartitionId,
}

impl Turn<'_> {
    pub(super) fn send_batch(&mut self, run: Run) {
        let queue = &mut self.session.queue;
        let commands = if run.commands == queue.len() {
            // The whole queue goes: its buffer becomes the message's.
            Vec::from(std::mem::take(queue))
        } else {
            queue.drain(..run.commands).collect()
        };
        self.desk.counters.commands += run.commands as u64;
        self.ask(run.commands);
        self.session.asked.writes = run.writes;
        self.begin_request(Exchange::Batch(Batch { partition: run.partition }), 1);
        if self.is_refused([run.partition]) {
            return;
        }
        let message = Message::Execute {
            request: self.request(0),
            keyspace: self.session.keyspace,
            context: self.session.context().clone(),
            commands,
            together: false,
        };
        self.send(run.partition, message);
    }
}

impl Turn<'_> {
    /// Commands of the present exchange that a partition left for the next turn; false if it did nothing of what it
    /// was asked.
    pub(super) fn take_back(&mut self, rest: Vec<Args>) -> bool {
        if rest.len() >= self.session.asked.count {
            return false;
        }
        self.desk.counters.commands -= rest.len() as u64;
        self.session.asked.count -= rest.len();
        self.session.turn.up = true;
        rest.into_iter().rev().for_each(|args| self.session.queue.push_front(args));
        true
    }
}

impl Batch {
    pub(super) fn on_answer(self, turn: &mut Turn<'_>, message: Message) {
        let (message, rest) = match message {
            Message::ExecutedInPart { request, context, replies, rest } => {
                (Message::Executed { request, context, replies }, rest)
            }
            message => (message, Vec::new()),
        };
        if !rest.is_empty() && !turn.take_back(rest) {
            return turn.unexpected(Exchange::Batch(self));
        }
        let (Message::Executed { context, mut replies, .. } | Message::GaveUp { context, mut replies, .. }) =
            message
        else {
            return turn.unexpected(Exchange::Batch(self));
        };
        turn.take_context(context);
        // An owner answers each command; a foreign one that does not must not shift the answers to the next.
        replies.resize(turn.session.asked.count, UNANSWERED);
        turn.complete(replies);
    }
}
