//! Commands that need no transaction: batches for one partition, commands at several or all of them in parallel, and
//! what the session answers itself.
//!
//! A step is given the queue of the session, and returns what it comes to. It names no other part of the session.

pub(crate) mod batch;
pub(crate) mod blocked;
pub(crate) mod fan_out;
pub(crate) mod local;
pub(crate) mod parallel;
pub(crate) mod queue;
pub(crate) mod rename;

use super::cx::Cx;
use super::failure::Reason;
use super::step::Step;
use batch::Batch;
use blocked::Blocked;
use ensue_types::{Args, LogicalTime, PartitionId, Reply};
use ensue_wire::Message;
use parallel::Parallel;
use queue::Queue;

/// What commands wait for.
#[derive(Clone, Debug)]
pub(crate) enum Exchange {
    Batch(Batch),
    Blocked(Box<Blocked>),
    Parallel(Box<Parallel>),
}

impl Exchange {
    /// An answer to one share of the exchange, with the time that it carried.
    pub(crate) fn on_answer(
        self,
        cx: &mut Cx<'_>,
        queue: &mut Queue,
        share: usize,
        time: LogicalTime,
        message: Message,
    ) -> Step<Exchange> {
        match self {
            Exchange::Batch(batch) => batch.on_answer(cx, queue, message),
            Exchange::Blocked(blocked) => blocked.on_answer(cx, share, message),
            Exchange::Parallel(parallel) => parallel.on_answer(cx, share, time, message),
        }
    }

    /// Its time is over: what waits lets it go first.
    pub(crate) fn on_timeout(self, cx: &mut Cx<'_>) -> Step<Exchange> {
        match self {
            Exchange::Blocked(blocked) => blocked.on_timeout(cx),
            exchange => {
                let silent = exchange.unanswered().first().copied().unwrap_or_default();
                Step::Failed(cx.no_answer(silent, Reason::Timeout))
            }
        }
    }

    /// The client is gone.
    pub(crate) fn on_gone(&mut self, cx: &mut Cx<'_>) {
        if let Exchange::Blocked(blocked) = self {
            blocked.on_gone(cx);
        }
    }

    /// The command that waits for somebody else, if one does.
    pub(crate) fn waiting(&self) -> Option<&Args> {
        match self {
            Exchange::Blocked(blocked) => blocked.waiting(),
            _ => None,
        }
    }

    /// Ends what waits, as its own time does, or with an error; false if nothing waits.
    pub(crate) fn end(&mut self, cx: &mut Cx<'_>, error: Option<Reply>) -> bool {
        match self {
            Exchange::Blocked(blocked) => blocked.end(cx, error),
            _ => false,
        }
    }

    /// Whether the client waits for somebody else.
    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self, Exchange::Blocked(_))
    }

    /// Partitions whose answer is still missing.
    pub(crate) fn unanswered(&self) -> Vec<PartitionId> {
        match self {
            Exchange::Batch(batch) => vec![batch.partition()],
            Exchange::Blocked(blocked) => vec![blocked.partition()],
            Exchange::Parallel(parallel) => parallel.unanswered(),
        }
    }
}
