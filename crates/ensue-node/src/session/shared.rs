//! A context shared by connections of one datacenter, by name: `CAUSAL SESSION name`.
//!
//! - Before each step: `ContextFetch` from the partition that keeps the name; what comes back joins the session's past.
//! - After it, before its answers leave: `ContextMerge` of the session's past. A step whose merge fails gets the error of
//!   an unanswered exchange, because another connection of the name might not see what it did.
//!
//! That is two more round trips a step. A step is one exchange: a run of pipelined commands for one partition pays once.
//! Only the context of the selected keyspace is shared by a step.

use super::exchange::Exchange;
use super::failure::Reason;
use super::turn::Turn;
use crate::Trace;
use ensue_types::{PartitionId, Reply, partition_of};
use ensue_wire::{ContextName, Message};

/// Waiting for `ContextFetched`.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    pub(super) partition: PartitionId,
}

/// Waiting for `ContextMerged`, with the answers that leave then.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) partition: PartitionId,
    replies: Vec<Reply>,
}

impl Turn<'_> {
    /// Whether what the session does in the selected keyspace belongs to a shared context.
    pub(super) fn shares_context(&self) -> bool {
        self.session.shared.is_some() && self.desk.protocol(self.session.keyspace).capabilities().causality
    }

    /// Fetches the shared context for the next so many commands of the queue.
    pub(super) fn fetch_shared(&mut self, commands: usize) {
        let Some((partition, context)) = self.shared_name() else { return };
        self.ask(commands);
        self.begin_request(Exchange::Fetch(Fetch { partition }), 1);
        if self.is_refused([partition]) {
            return;
        }
        let request = self.request(0);
        self.send(partition, Message::ContextFetch { request, context });
    }

    /// Merges the session's past into the shared context; the answers wait for it.
    pub(super) fn merge_shared(&mut self, replies: Vec<Reply>) {
        let Some((partition, name)) = self.shared_name() else { return self.answer(&replies) };
        self.begin_request(Exchange::Share(Share { partition, replies }), 1);
        if !self.reaches(partition) {
            // What was asked has been executed.
            return self.fail_silent(partition, Reason::LinkDown);
        }
        let request = self.request(0);
        let context = self.session.context().clone();
        self.send(partition, Message::ContextMerge { request, name, context });
    }

    fn shared_name(&self) -> Option<(PartitionId, ContextName)> {
        let name = self.session.shared.clone()?;
        let partition = partition_of(&name, self.desk.partitions());
        Some((partition, ContextName { keyspace: self.session.keyspace, name }))
    }
}

impl Fetch {
    pub(super) fn on_answer(self, turn: &mut Turn<'_>, message: Message) {
        let Message::ContextFetched { context, .. } = message else {
            return turn.unexpected(Exchange::Fetch(self));
        };
        turn.see(context.time);
        let keyspace = turn.session.keyspace;
        if turn.desk.protocol(keyspace).meet(&mut turn.session.context_mut().facts, &context.facts).is_err() {
            turn.desk.trace(Trace::Refused { what: "a shared context is not the protocol's" });
        }
        turn.session.deadline_us = None;
        turn.session.fresh = true;
    }
}

impl Share {
    pub(super) fn on_answer(self, turn: &mut Turn<'_>, message: Message) {
        let Message::ContextMerged { .. } = message else {
            return turn.unexpected(Exchange::Share(self));
        };
        turn.answer(&self.replies);
    }
}
