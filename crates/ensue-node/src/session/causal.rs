//! The causal past of a session as something that clients hold, share and wait for.
//!
//! A step is given the shared context that the session has joined, and returns what it comes to. It names no other part
//! of the session.

pub(crate) mod command;
pub(crate) mod merge;
pub(crate) mod replicas;
pub(crate) mod shared;
pub(crate) mod token;

use super::cx::Cx;
use super::failure::Reason;
use super::step::Step;
use ensue_types::PartitionId;
use ensue_wire::Message;
use merge::TokenMerge;
use replicas::ReplicaWait;
use shared::{Fetch, Share, SharedContext};

/// What the causal commands, and steps with a shared context, wait for.
#[derive(Clone, Debug)]
pub(crate) enum Exchange {
    Fetch(Fetch),
    Share(Share),
    Merge(Box<TokenMerge>),
    Replicas(Box<ReplicaWait>),
}

impl Exchange {
    /// An answer to one share of the exchange.
    pub(crate) fn on_answer(
        self,
        cx: &mut Cx<'_>,
        shared: &mut SharedContext,
        share: usize,
        message: Message,
    ) -> Step<Exchange> {
        match self {
            Exchange::Fetch(fetch) => fetch.on_answer(cx, shared, message),
            Exchange::Share(share) => share.on_answer(cx, message),
            Exchange::Merge(merge) => merge.on_answer(cx, share, message),
            Exchange::Replicas(wait) => wait.on_answer(cx, share, message),
        }
    }

    /// Its time is over.
    pub(crate) fn on_timeout(self, cx: &mut Cx<'_>) -> Step<Exchange> {
        match self {
            Exchange::Merge(merge) if merge.is_waiting() => merge.on_timeout(cx),
            Exchange::Replicas(wait) if wait.is_waiting() => wait.on_timeout(cx),
            exchange => {
                let silent = exchange.unanswered().first().copied().unwrap_or_default();
                exchange.withdraw(cx);
                Step::Failed(cx.no_answer(silent, Reason::Timeout))
            }
        }
    }

    /// It is over before all have answered: nobody shall wait for its sake.
    pub(crate) fn withdraw(self, cx: &mut Cx<'_>) {
        match self {
            Exchange::Fetch(_) | Exchange::Share(_) => {}
            Exchange::Merge(merge) => drop(merge.end(cx)),
            Exchange::Replicas(wait) => wait.withdraw(cx),
        }
    }

    /// Whether it changes nothing but what the client knows, so that it ends when the client is gone.
    pub(crate) fn only_waits(&self) -> bool {
        matches!(self, Exchange::Merge(_) | Exchange::Replicas(_))
    }

    /// Partitions whose answer is still missing.
    pub(crate) fn unanswered(&self) -> Vec<PartitionId> {
        match self {
            Exchange::Fetch(fetch) => vec![fetch.partition()],
            Exchange::Share(share) => vec![share.partition()],
            Exchange::Merge(merge) => merge.unanswered(),
            Exchange::Replicas(wait) => wait.unanswered(),
        }
    }
}
