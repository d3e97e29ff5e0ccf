//! Writes of several owners as one write transaction: `MSET` and `DEL` over owners, and every MULTI that writes.
//!
//! - Send: `Transact` with all parts to the owner of the first key, who coordinates and takes part (Eiger, section 5.1).
//! - On `Transacted`: the context is the one that came back; the answers are put together by the numbers of the pieces.
//!
//! A keyspace whose protocol has no write transactions refuses MSET, RENAME and MULTI over several owners by name; one without
//! causality executes them in parallel, each owner's part for itself, MULTI excepted. Deletions go in parallel in both.
//! What one owner writes is atomic in every keyspace.

use super::exchange::Exchange;
use super::failure::{ANSWER_LOST, Failure, UNANSWERED};
use super::parallel::Then;
use super::plan::Plan;
use super::turn::Turn;
use ensue_resp::{Combine, CommandSpec, Route};
use ensue_types::{Args, PartitionId, Reply};
use ensue_wire::Message;

/// Waiting for `Transacted`.
#[derive(Clone, Debug)]
pub(super) struct WriteTransaction {
    pub(super) coordinator: PartitionId,
    plan: Plan,
}

impl Turn<'_> {
    /// A command of several keys whose owners differ, or of one key if it could not join a run.
    pub(super) fn split_command(&mut self, spec: &'static CommandSpec, args: Args) {
        let mut plan = Plan::single(self.desk.spread(self.session.keyspace));
        plan.add(spec, args);
        self.ask(1);
        if !plan.writes {
            return self.read(plan, Then::Answer);
        }
        // Of writes to several keys only those that say nothing of the keys together may be several writes.
        let apart = spec.route != Route::Split(Combine::AllOk);
        self.write(plan, spec.name, apart);
    }

    /// Writes the parts of a plan at once if the protocol of the keyspace can. Otherwise side by side, where that is allowed.
    pub(super) fn write(&mut self, plan: Plan, command: &str, apart: bool) {
        if plan.parts.len() == 1 || self.has_write_transactions() {
            return self.transact(plan);
        }
        if !apart && self.desk.protocol(self.session.keyspace).capabilities().causality {
            let refusal = self.no_write_transactions(command);
            return self.complete(vec![refusal]);
        }
        let keyspaces = [self.session.keyspace];
        self.execute_in_parallel(plan, &keyspaces, Then::Answer);
    }

    /// Why a write over several partitions is refused.
    pub(super) fn no_write_transactions(&self, command: &str) -> Reply {
        let (keyspace, protocol) = (self.session.keyspace, self.desk.protocol(self.session.keyspace).name());
        let words = format!(
            "ERR {} over several partitions is refused: keyspace {} uses protocol {protocol}, which has no write \
             transactions; nothing was executed",
            command.to_uppercase(),
            keyspace.0
        );
        Reply::Error(words.into())
    }

    pub(super) fn has_write_transactions(&self) -> bool {
        self.desk.protocol(self.session.keyspace).capabilities().write_transactions
    }

    /// Sends the parts of a plan as one transaction.
    pub(super) fn transact(&mut self, mut plan: Plan) {
        let parts = std::mem::take(&mut plan.parts);
        let coordinator = parts.first().map(|part| part.partition).expect("a plan that writes has a part");
        if plan.writes {
            self.session.asked.writes.mark(0);
        }
        let participants: Vec<PartitionId> = parts.iter().map(|part| part.partition).collect();
        self.begin_request(Exchange::Transaction(Box::new(WriteTransaction { coordinator, plan })), 1);
        if self.is_refused(participants) {
            return;
        }
        let message = Message::Transact {
            request: self.request(0),
            keyspace: self.session.keyspace,
            context: self.session.context().clone(),
            parts,
        };
        self.send(coordinator, message);
    }
}

impl WriteTransaction {
    pub(super) fn on_answer(self: Box<Self>, turn: &mut Turn<'_>, message: Message) {
        let (context, replies) = match message {
            Message::Transacted { context, replies, .. } => (context, replies),
            Message::GaveUp { context, mut replies, .. } => {
                turn.take_context(context);
                let reply = replies.pop().unwrap_or(UNANSWERED);
                return turn.fail(&Failure::Refused(reply));
            }
            _ => return turn.unexpected(Exchange::Transaction(self)),
        };
        turn.take_context(context);
        let mut answers = self.plan.answers();
        for (piece, reply) in replies {
            answers.put(piece, reply);
        }
        // An owner that executed its part before a connection broke is asked again, and knows only that it did.
        let reply = if answers.are_whole() { self.plan.assemble(answers) } else { ANSWER_LOST };
        turn.complete(vec![reply]);
    }
}
