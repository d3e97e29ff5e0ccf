//! What a step of a part comes to. The conductor, `turn`, goes on from there; a part never does so itself.

use super::failure::Failure;
use super::plan::{Answers, Plan};
use bytes::Bytes;
use ensue_types::Reply;

/// The outcome of a step, of a part whose exchanges are `E`.
#[derive(Debug)]
pub(super) enum Step<E> {
    /// Answers that leave with the turn.
    Answered(Vec<Reply>),
    /// Answers that rest on what the session has read or written: where its past is shared, they leave after it was
    /// merged.
    Completed(Vec<Reply>),
    /// Frames that are the answer to one command about channels, one for each of them.
    Confirmed(Vec<Vec<Reply>>),
    /// The answer to a command that published something, and what of it the session itself subscribes to.
    Published(Reply, Vec<Bytes>),
    /// The owners have answered everything in this plan.
    Gathered(Plan, Answers),
    /// This plan is to be executed by its owners in parallel.
    InParallel(Plan),
    /// Requests were sent, or some answers are still missing: this waits for them.
    Waits(E),
    /// Each command of the exchange gets its error.
    Failed(Failure),
    /// Nothing is outstanding any more, and the commands in the queue can be executed.
    Ready,
}

impl<E> Step<E> {
    /// One answer that leaves with the turn.
    pub(super) fn answer(reply: Reply) -> Step<E> {
        Step::Answered(vec![reply])
    }

    /// One answer that rests on what the session has read or written.
    pub(super) fn complete(reply: Reply) -> Step<E> {
        Step::Completed(vec![reply])
    }

    /// The same, among the exchanges of more parts.
    pub(super) fn map<F>(self, widen: impl FnOnce(E) -> F) -> Step<F> {
        match self {
            Step::Answered(replies) => Step::Answered(replies),
            Step::Completed(replies) => Step::Completed(replies),
            Step::Confirmed(frames) => Step::Confirmed(frames),
            Step::Published(reply, own) => Step::Published(reply, own),
            Step::Gathered(plan, answers) => Step::Gathered(plan, answers),
            Step::InParallel(plan) => Step::InParallel(plan),
            Step::Waits(exchange) => Step::Waits(widen(exchange)),
            Step::Failed(failure) => Step::Failed(failure),
            Step::Ready => Step::Ready,
        }
    }
}
