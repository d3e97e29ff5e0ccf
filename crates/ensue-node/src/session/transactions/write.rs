//! Writes of several owners as one write transaction: `MSET` and `DEL` over owners, and every MULTI that writes.
//!
//! - Send: `Transact` with all parts to the owner of the first key, who coordinates and takes part (Eiger, section
//!   5.1).
//! - On `Transacted`: the context is the one that came back; the answers are put together by the numbers of the pieces.
//!
//! A keyspace whose protocol has no write transactions refuses MSET, RENAME and MULTI over several owners by name; one
//! without causality executes them in parallel, each owner's part for itself, MULTI excepted. Deletions go in parallel
//! in both. What one owner writes is atomic in every keyspace.

use super::Exchange;
use super::watch::SEVERAL;
use crate::session::cx::Cx;
use crate::session::failure::{ANSWER_LOST, Failure, UNANSWERED};
use crate::session::plan::Plan;
use crate::session::step::Step;
use ensue_types::{PartitionId, Reply};
use ensue_wire::Message;

/// Waiting for `Transacted`.
#[derive(Clone, Debug)]
pub(crate) struct WriteTransaction {
    coordinator: PartitionId,
    plan: Plan,
}

/// Writes the parts of a plan at once if the protocol of the keyspace can. Otherwise side by side, where that is
/// allowed.
pub(crate) fn write(cx: &mut Cx<'_>, plan: Plan, command: &str, apart: bool) -> Step<Exchange> {
    if is_atomic(cx, &plan) {
        return WriteTransaction::begin(cx, plan);
    }
    if !apart && cx.protocol().capabilities().causality {
        return Step::complete(no_write_transactions(cx, command));
    }
    Step::InParallel(plan)
}

/// Writes the parts of a MULTI at once, or nothing of it.
pub(crate) fn exec(cx: &mut Cx<'_>, plan: Plan) -> Step<Exchange> {
    if plan.has_scripts() && plan.parts().len() > 1 {
        return Step::answer(SCRIPTS_OVER_SEVERAL);
    }
    if plan.is_checked() && plan.parts().len() > 1 {
        return Step::answer(SEVERAL);
    }
    if is_atomic(cx, &plan) {
        return WriteTransaction::begin(cx, plan);
    }
    Step::answer(no_write_transactions(cx, "exec"))
}

const SCRIPTS_OVER_SEVERAL: Reply = Reply::error(
    "CROSSSLOT a MULTI with a script has keys of several partitions; give all of them one hash tag, such as \
     {tag}; nothing was executed",
);

/// Whether the parts of a plan can be written at once.
fn is_atomic(cx: &Cx<'_>, plan: &Plan) -> bool {
    plan.parts().len() == 1 || cx.protocol().capabilities().write_transactions
}

/// Why a write over several partitions is refused.
fn no_write_transactions(cx: &Cx<'_>, command: &str) -> Reply {
    let (keyspace, protocol) = (cx.keyspace(), cx.protocol().name());
    let words = format!(
        "ERR {} over several partitions is refused: keyspace {} uses protocol {protocol}, which has no write \
         transactions; nothing was executed",
        command.to_uppercase(),
        keyspace.0
    );
    Reply::Error(words.into())
}

impl WriteTransaction {
    /// Sends the parts of a plan as one transaction.
    fn begin(cx: &mut Cx<'_>, mut plan: Plan) -> Step<Exchange> {
        let parts = plan.take_parts();
        let coordinator = parts.first().map(|part| part.partition).expect("a plan that writes has a part");
        if plan.writes() {
            cx.requests.mark_write();
        }
        cx.begin_request(1);
        if let Some(failure) = cx.refusal(parts.iter().map(|part| part.partition)) {
            return Step::Failed(failure);
        }
        let message = Message::Transact {
            request: cx.request(0),
            keyspace: cx.keyspace(),
            context: cx.contexts.own().clone(),
            parts,
        };
        cx.send(coordinator, message);
        Step::Waits(Exchange::Write(Box::new(WriteTransaction { coordinator, plan })))
    }

    pub(crate) fn coordinator(&self) -> PartitionId {
        self.coordinator
    }

    pub(crate) fn on_answer(self: Box<Self>, cx: &mut Cx<'_>, message: Message) -> Step<Exchange> {
        let (context, replies) = match message {
            Message::Transacted { context, replies, .. } => (context, replies),
            Message::TimedOut { context, mut replies, .. } => {
                cx.contexts.replace(cx.keyspace(), context);
                let reply = replies.pop().unwrap_or(UNANSWERED);
                return Step::Failed(Failure::Refused(reply));
            }
            _ => return cx.unexpected(Exchange::Write(self)),
        };
        cx.contexts.replace(cx.keyspace(), context);
        let mut answers = self.plan.answers();
        for (piece, reply) in replies {
            answers.put(piece, reply);
        }
        // An owner that executed its part before a connection broke is asked again, and knows only that it did.
        Step::complete(if answers.are_whole() { self.plan.assemble(answers) } else { ANSWER_LOST })
    }
}
