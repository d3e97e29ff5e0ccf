//! The same moment for none: `Execute` to several owners in parallel, their answers put together.
//!
//! For commands that every partition answers (`DBSIZE`, `KEYS`, `FLUSHDB`), and for commands over several keys in a
//! keyspace whose protocol has no snapshots or no write transactions. The contexts that come back are joined, so the
//! session depends on all that any share saw or wrote.

use super::Exchange;
use crate::Trace;
use crate::session::cx::Cx;
use crate::session::plan::{Answers, Keyspaces, Plan};
use crate::session::step::Step;
use ensue_types::{Context, KeyspaceId, LogicalTime, PartitionId};
use ensue_wire::Message;

/// Waiting for `Executed` of every part in every keyspace.
#[derive(Clone, Debug)]
pub(crate) struct Parallel {
    plan: Plan,
    answers: Answers,
    shares: Vec<Share>,
    missing: usize,
    /// The joined contexts of the answers so far, one a keyspace.
    contexts: Vec<(KeyspaceId, Context)>,
    /// Of a share that timed out waiting: what it made of the session counts, whatever the others saw.
    timed_out: Option<(KeyspaceId, Context)>,
}

/// One part in one keyspace.
#[derive(Clone, Debug)]
struct Share {
    keyspace: KeyspaceId,
    part: usize,
    answered: bool,
}

impl Parallel {
    /// Has every part executed in every one of the plan's keyspaces.
    pub(crate) fn begin(cx: &mut Cx<'_>, plan: Plan) -> Step<Exchange> {
        if plan.writes() {
            cx.requests.mark_write();
        }
        let keyspaces: Vec<KeyspaceId> = match plan.keyspaces() {
            Keyspaces::Selected => vec![cx.keyspace()],
            Keyspaces::One(keyspace) => vec![keyspace],
            Keyspaces::All => cx.contexts.keyspaces().collect(),
        };
        let parts = plan.parts().len();
        let shares: Vec<_> = keyspaces
            .iter()
            .flat_map(|&keyspace| (0..parts).map(move |part| Share { keyspace, part, answered: false }))
            .collect();
        cx.begin_request(shares.len());
        if let Some(failure) = cx.refusal(shares.iter().map(|share| plan.parts()[share.part].partition)) {
            return Step::Failed(failure);
        }
        for (index, &Share { keyspace, part, .. }) in shares.iter().enumerate() {
            let message = Message::Execute {
                request: cx.request(index),
                keyspace,
                context: cx.contexts.of(keyspace).clone(),
                commands: plan.commands_of(part),
                together: true,
            };
            cx.send_in(keyspace, plan.parts()[part].partition, message);
        }
        let (answers, missing) = (plan.answers(), shares.len());
        let parallel = Parallel { plan, answers, missing, shares, contexts: Vec::new(), timed_out: None };
        Step::Waits(Exchange::Parallel(Box::new(parallel)))
    }

    pub(crate) fn unanswered(&self) -> Vec<PartitionId> {
        let missing = self.shares.iter().filter(|share| !share.answered);
        missing.map(|share| self.plan.parts()[share.part].partition).collect()
    }

    pub(crate) fn on_answer(
        mut self: Box<Self>,
        cx: &mut Cx<'_>,
        share: usize,
        time: LogicalTime,
        message: Message,
    ) -> Step<Exchange> {
        let (timed_out, mut context, replies) = match message {
            Message::Executed { context, replies, .. } => (false, context, replies),
            Message::TimedOut { context, replies, .. } => (true, context, replies),
            _ => return cx.unexpected(Exchange::Parallel(self)),
        };
        context.time = context.time.max(time);
        let Share { keyspace, part, answered } = self.shares[share];
        if !answered {
            self.shares[share].answered = true;
            self.missing -= 1;
            self.answers.put_part(&self.plan.parts()[part], replies);
            if timed_out {
                self.timed_out = Some((keyspace, context));
            } else {
                self.join(cx, keyspace, context);
            }
        }
        if self.missing > 0 {
            return Step::Waits(Exchange::Parallel(self));
        }
        for (keyspace, context) in self.contexts.into_iter().chain(self.timed_out) {
            cx.contexts.replace(keyspace, context);
        }
        Step::Gathered(self.plan, self.answers)
    }

    /// Every context that comes back covers what the session had before, so the first one stands in for it.
    fn join(&mut self, cx: &mut Cx<'_>, keyspace: KeyspaceId, context: Context) {
        let Some((_, joined)) = self.contexts.iter_mut().find(|(of, _)| *of == keyspace) else {
            self.contexts.push((keyspace, context));
            return;
        };
        joined.time = joined.time.max(context.time);
        if cx.core.protocol(keyspace).merge(&mut joined.causes, &context.causes).is_err() {
            cx.core.trace(Trace::Refused { what: "an answer carried a context that is not the protocol's" });
        }
    }
}
