//! Contexts that sessions share by name (`CAUSAL SESSION`): this partition keeps those of the names that it owns, in
//! memory.
//!
//! - On `ContextFetch`: what is kept under the name, which is kept from now on. One name too many is refused, before
//!   the step
//!   that asked for it has begun.
//! - On `ContextMerge`: the session's past joins it.
//! - On the timer: what no step has used for an hour is forgotten.
//!
//! They do not outlive the process: a session brings its whole past along with every step, so what is lost is what only
//! sessions have brought that do not come again. Each answer names the time since which the context is kept, so that a
//! session notices.

use super::Keyspaces;
use crate::partition::cx::Cx;
use crate::partition::others::Others;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_types::{Context, KeyspaceId, LogicalTime, Reply, RequestId, limits};
use ensue_wire::{Address, ContextName, Message};
use std::collections::BTreeMap;

/// What is kept, by name.
#[derive(Clone, Debug, Default)]
pub(in crate::partition) struct Contexts {
    shared: BTreeMap<(KeyspaceId, Bytes), Shared>,
    /// When the unused ones are looked for again.
    next_look_us: u64,
}

#[derive(Clone, Debug)]
struct Shared {
    context: Context,
    /// When the name was first used, or used again after it was forgotten: a later use has a later time.
    since: LogicalTime,
    used_us: u64,
}

/// How often unused contexts are looked for.
const LOOK_INTERVAL_US: u64 = 60_000_000;

impl Contexts {
    /// What is kept under a name, which is used now.
    fn of(&mut self, cx: &mut Cx, name: &ContextName) -> &mut Shared {
        // A name is a piece of what a client or a peer has sent, and would keep all of that in memory.
        let own = Bytes::copy_from_slice(&name.name);
        let begin = || Shared { context: Context::default(), since: cx.tick(), used_us: 0 };
        let shared = self.shared.entry((name.keyspace, own)).or_insert_with(begin);
        shared.used_us = cx.now.monotonic_us;
        shared
    }

    /// All of them, each with its keyspace.
    pub(crate) fn each(&mut self) -> impl Iterator<Item = (KeyspaceId, &mut Context)> {
        self.shared.iter_mut().map(|((keyspace, _), shared)| (*keyspace, &mut shared.context))
    }

    /// Whether one more name would be too many.
    fn is_full_for(&self, name: &ContextName) -> bool {
        self.shared.len() >= limits::SHARED_CONTEXTS_MAX
            && !self.shared.contains_key(&(name.keyspace, name.name.clone()))
    }

    pub(in crate::partition) fn on_context_fetch(
        &mut self,
        cx: &mut Cx,
        from: Address,
        request: RequestId,
        name: ContextName,
    ) {
        if self.is_full_for(&name) {
            let most = limits::SHARED_CONTEXTS_MAX;
            let words = format!(
                "UNAVAILABLE partition {} keeps {most} causal sessions and has no room for another name",
                cx.id
            );
            return cx.send(from, Message::Refused { request, reply: Reply::Error(words.into()) });
        }
        let Shared { since, context, .. } = self.of(cx, &name).clone();
        cx.send(from, Message::ContextFetched { request, since, context });
    }

    /// Forgets the contexts that nobody uses.
    pub(in crate::partition) fn forget_unused_contexts(&mut self, cx: &Cx) {
        let now_us = cx.now.monotonic_us;
        if now_us < self.next_look_us {
            return;
        }
        self.next_look_us = now_us + LOOK_INTERVAL_US;
        let oldest_us = now_us.saturating_sub(1_000 * limits::SHARED_CONTEXT_UNUSED_MS_MAX);
        self.shared.retain(|_, shared| shared.used_us >= oldest_us);
    }
}

impl Keyspaces {
    /// There is room: the name was kept when its step began, or this process is younger than the step.
    pub(in crate::partition) fn on_context_merge(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        from: Address,
        request: RequestId,
        name: ContextName,
        mut context: Context,
    ) {
        // A past that is as if it had never been is shared no more.
        drop(others.failover.discarded.reset_if_lost(cx, name.keyspace, &mut context.causes));
        let shared = &mut self.contexts.of(cx, &name).context;
        shared.time = shared.time.max(context.time);
        if cx.protocol(name.keyspace).merge(&mut shared.causes, &context.causes).is_err() {
            cx.trace(Trace::Refused { what: "a context that the protocol cannot read" });
        }
        cx.send(from, Message::ContextMerged { request });
    }
}
