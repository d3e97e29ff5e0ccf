//! Reads over several owners as of one cut, in one round: for protocols whose partitions run them (`partition/cuts`).
//!
//! - Send: `ReadCut` with all parts to the owner of the first key, who draws the cut.
//! - On the values: the session's past includes them; answer.
//! - Too late: by logical time, in two rounds (`read`), where the protocol can; otherwise the client tries again.
//! - Given up: every command gets the protocol's error, and the session is what the protocol made of it.

use super::exchange::Exchange;
use super::failure::Failure;
use super::parallel::Then;
use super::plan::Plan;
use super::read::TRY_AGAIN;
use super::turn::Turn;
use ensue_types::PartitionId;
use ensue_wire::{CutOutcome, Message};

/// Waiting for `CutRead`.
#[derive(Clone, Debug)]
pub(super) struct CutReading {
    pub(super) first: PartitionId,
    /// All partitions that are read.
    pub(super) needed: Vec<PartitionId>,
    plan: Plan,
    then: Then,
}

impl Turn<'_> {
    pub(super) fn read_cut(&mut self, plan: Plan, then: Then) {
        let first = plan.parts[0].partition;
        let parts = plan.parts.clone();
        let needed: Vec<PartitionId> = parts.iter().map(|part| part.partition).collect();
        let reading = CutReading { first, needed: needed.clone(), plan, then };
        self.begin_request(Exchange::Cut(Box::new(reading)), 1);
        if self.is_refused(needed) {
            return;
        }
        let message = Message::ReadCut {
            request: self.request(0),
            keyspace: self.session.keyspace,
            context: self.session.context().clone(),
            parts,
        };
        self.send(first, message);
    }
}

impl CutReading {
    pub(super) fn on_answer(self: Box<Self>, turn: &mut Turn<'_>, message: Message) {
        let Message::CutRead { outcome, .. } = message else {
            return turn.unexpected(Exchange::Cut(self));
        };
        match outcome {
            CutOutcome::Read { context, replies } => {
                turn.take_context(context);
                let mut answers = self.plan.answers();
                replies.into_iter().for_each(|(piece, reply)| answers.put(piece, reply));
                turn.finish(self.plan, self.then, answers);
            }
            CutOutcome::TooLate if turn.desk.protocol(turn.session.keyspace).keeps_old_versions() => {
                turn.read_in_rounds(self.plan, self.then);
            }
            CutOutcome::TooLate => turn.fail(&Failure::Refused(TRY_AGAIN)),
            CutOutcome::GaveUp { context, reply } => {
                turn.take_context(context);
                turn.fail(&Failure::Refused(reply));
            }
        }
    }
}
