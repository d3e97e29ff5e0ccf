//! A context shared by connections of one datacenter, by name: `CAUSAL SESSION name`.
//!
//! - Before each step: `ContextFetch` from the partition that keeps the name; what comes back joins the session's past.
//! - After it, before its answers leave: `ContextMerge` of the session's past. A step whose merge fails gets the error
//!   of an unanswered exchange, because another connection of the name might not see what it did.
//!
//! That is two more round trips a step. A step is one exchange: a run of pipelined commands for one partition pays
//! once. Only the context of the selected keyspace is shared by a step.

use super::Exchange;
use crate::Trace;
use crate::session::cx::Cx;
use crate::session::failure::{Failure, Reason};
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::Route;
use ensue_types::{Args, KeyspaceId, LogicalTime, PartitionId, Reply, Rule, partition_of};
use ensue_wire::{ContextName, Message};
use std::collections::BTreeMap;

/// The context that a session shares with other connections, if it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedContext {
    name: Option<Bytes>,
    /// It was fetched for the step that comes next.
    fresh: bool,
    /// Since when it is kept, as the first answer in each keyspace has named it.
    since: BTreeMap<KeyspaceId, LogicalTime>,
}

/// Waiting for `ContextFetched`.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    partition: PartitionId,
}

/// Waiting for `ContextMerged`, with the answers that leave then.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    partition: PartitionId,
    replies: Vec<Reply>,
}

impl SharedContext {
    /// Joins the context of this name, or leaves the one that was joined. The session's past so far goes into it with
    /// its next step.
    pub(crate) fn join(&mut self, name: Option<Bytes>) {
        if self.name.is_some() && self.name == name {
            // Whether it is forgotten is noticed with the next step all the same.
            return;
        }
        *self = SharedContext { name, ..SharedContext::default() };
    }

    /// Leaves the context: `RESET`.
    pub(crate) fn leave(&mut self) {
        self.name = None;
    }

    /// Whether what the session does in the selected keyspace belongs to a shared context.
    pub(crate) fn is_used(&self, cx: &Cx<'_>) -> bool {
        self.name.is_some() && cx.protocol().capabilities().causality
    }

    /// Whether the next step begins with a fetch.
    pub(crate) fn must_fetch(&self, cx: &Cx<'_>) -> bool {
        !self.fresh && self.is_used(cx)
    }

    /// A step is over: other connections of the name may have done something since it was fetched.
    pub(crate) fn on_step_done(&mut self) {
        self.fresh = false;
    }

    /// Whether another one was kept under the name when it was fetched before: that one is forgotten.
    fn is_forgotten(&mut self, keyspace: KeyspaceId, since: LogicalTime) -> bool {
        self.since.insert(keyspace, since).is_some_and(|before| before != since)
    }

    /// The answer to a step that was not executed, because what it should have seen is forgotten.
    fn forgotten(&self) -> Failure {
        let name = String::from_utf8_lossy(self.name.as_deref().unwrap_or_default());
        let words = format!(
            "FORGOTTEN the partition that keeps the causal session '{name}' was started anew, or nobody used the name \
             for an hour: what only its other connections had seen may be missing. Nothing was executed; this \
             connection's past is kept"
        );
        Failure::Refused(Reply::Error(words.into()))
    }

    /// Fetches it for the next so many commands of the queue.
    pub(crate) fn fetch(&self, cx: &mut Cx<'_>, commands: usize) -> Step<Exchange> {
        let Some((partition, context)) = self.address(cx) else { return Step::Ready };
        cx.requests.request_queued(commands);
        cx.begin_request(1);
        if let Some(failure) = cx.refusal([partition]) {
            return Step::Failed(failure);
        }
        let request = cx.request(0);
        cx.send(partition, Message::ContextFetch { request, context });
        Step::Waits(Exchange::Fetch(Fetch { partition }))
    }

    /// Merges the session's past into it; the answers wait for that.
    pub(crate) fn merge(&self, cx: &mut Cx<'_>, replies: Vec<Reply>) -> Step<Exchange> {
        let Some((partition, name)) = self.address(cx) else { return Step::Answered(replies) };
        cx.begin_request(1);
        if !cx.core.reaches(partition) {
            // What was asked has been executed.
            return Step::Failed(cx.no_answer(partition, Reason::LinkDown));
        }
        let (request, context) = (cx.request(0), cx.contexts.own().clone());
        cx.send(partition, Message::ContextMerge { request, name, context });
        Step::Waits(Exchange::Share(Share { partition, replies }))
    }

    /// The partition that keeps it, and its name there.
    fn address(&self, cx: &Cx<'_>) -> Option<(PartitionId, ContextName)> {
        let name = self.name.clone()?;
        let partition = partition_of(&name, cx.core.partitions());
        Some((partition, ContextName { keyspace: cx.keyspace(), name }))
    }
}

/// Whether a command reads or changes the session's context.
pub(crate) fn uses_context(args: &Args, in_multi: bool) -> bool {
    let Some(spec) = args.first().and_then(|name| ensue_resp::lookup(name)) else { return false };
    match (spec.name, in_multi) {
        ("exec", true) => true,
        (_, true) => false,
        ("causal", false) => args.get(1).is_some_and(|word| {
            [&b"token"[..], b"merge", b"wait"].iter().any(|name| word.eq_ignore_ascii_case(name))
        }),
        ("publish" | "spublish" | "watch" | "wait", false) => true,
        (_, false) => spec.route != Route::Session,
    }
}

impl Fetch {
    pub(crate) fn partition(&self) -> PartitionId {
        self.partition
    }

    pub(crate) fn on_answer(
        self,
        cx: &mut Cx<'_>,
        shared: &mut SharedContext,
        message: Message,
    ) -> Step<Exchange> {
        let Message::ContextFetched { since, context, .. } = message else {
            return cx.unexpected(Exchange::Fetch(self));
        };
        if shared.is_forgotten(cx.keyspace(), since) {
            return Step::Failed(shared.forgotten());
        }
        cx.contexts.observe(context.time);
        let protocol = cx.core.protocol(cx.contexts.selected());
        let brings = Rule::NamesBringTheirPast.holds();
        if brings && protocol.merge_shared(cx.contexts.causes_mut(), &context.causes).is_err() {
            cx.core.trace(Trace::Refused { what: "a shared context is not the protocol's" });
        }
        cx.requests.clear_deadline();
        shared.fresh = true;
        Step::Ready
    }
}

impl Share {
    pub(crate) fn partition(&self) -> PartitionId {
        self.partition
    }

    pub(crate) fn on_answer(self, cx: &mut Cx<'_>, message: Message) -> Step<Exchange> {
        let Message::ContextMerged { .. } = message else {
            return cx.unexpected(Exchange::Share(self));
        };
        Step::Answered(self.replies)
    }
}
