//! What several owners do as one: read transactions, reads at a snapshot, write transactions, and MULTI.
//!
//! How a plan is read or written is chosen here, by what the protocol of the selected keyspace can. A step returns what
//! it comes to, and names no other part of the session.

pub(crate) mod exec;
pub(crate) mod multi;
pub(crate) mod read;
pub(crate) mod snapshot_read;
pub(crate) mod watch;
pub(crate) mod write;

use super::cx::Cx;
use super::plan::{Check, Plan};
use super::step::Step;
use ensue_protocol::SnapshotReads;
use ensue_resp::{Combine, CommandSpec, Route};
use ensue_types::{Args, PartitionId, Reply};
use ensue_wire::Message;
use multi::Multi;
use read::{FirstRound, Reading, SecondRound};
use snapshot_read::SnapshotRead;
use write::WriteTransaction;

/// What transactions wait for.
#[derive(Clone, Debug)]
pub(crate) enum Exchange {
    FirstRound(Box<FirstRound>),
    SecondRound(Box<SecondRound>),
    Snapshot(Box<SnapshotRead>),
    Write(Box<WriteTransaction>),
}

/// Reads the parts of a plan as of one moment, if the protocol of the keyspace can.
pub(crate) fn read(cx: &mut Cx<'_>, plan: Plan) -> Step<Exchange> {
    if plan.parts().is_empty() {
        let answers = plan.answers();
        return Step::answer(plan.assemble(answers));
    }
    let protocol = cx.protocol();
    match protocol.capabilities().snapshot_reads {
        SnapshotReads::None => Step::InParallel(plan),
        SnapshotReads::OneRound if plan.parts().len() == 1 && !protocol.needs().vectors_in_one_partition => {
            Step::InParallel(plan)
        }
        SnapshotReads::OneRound => SnapshotRead::begin(cx, plan),
        SnapshotReads::TwoRounds => Reading::begin(cx, plan),
    }
}

/// A command of several keys whose owners differ, or of one key if it could not join a run.
pub(crate) fn on_command(cx: &mut Cx<'_>, spec: &'static CommandSpec, args: Args) -> Step<Exchange> {
    let mut plan = Plan::single(cx.spread());
    plan.add(spec, args);
    cx.requests.ask(1);
    if !plan.writes() {
        return read(cx, plan);
    }
    // A script has one owner, and may pause there: it is no transaction.
    if spec.route == Route::Script && plan.parts().len() == 1 {
        return Step::InParallel(plan);
    }
    // Of writes to several keys only those that say nothing of the keys together may be several writes.
    let apart = spec.route != Route::Split(Combine::AllOk);
    write::write(cx, plan, spec.name, apart)
}

/// `EXEC`; the session itself answers those commands that need no owner.
pub(crate) fn exec(
    cx: &mut Cx<'_>,
    multi: Multi,
    check: Option<Check>,
    answer: impl Fn(&CommandSpec, &Args) -> Reply,
) -> Step<Exchange> {
    let plan = match multi.into_plan(cx.spread(), check, answer) {
        Ok(plan) => plan,
        Err(refusal) => return Step::answer(refusal),
    };
    exec_plan(cx, plan)
}

/// The commands of an `EXEC` that are one step.
pub(crate) fn exec_plan(cx: &mut Cx<'_>, plan: Plan) -> Step<Exchange> {
    cx.requests.ask(1);
    if plan.writes() || plan.is_checked() { write::exec(cx, plan) } else { read(cx, plan) }
}

impl Exchange {
    /// An answer to one share of the exchange.
    pub(crate) fn on_answer(self, cx: &mut Cx<'_>, share: usize, message: Message) -> Step<Exchange> {
        match self {
            Exchange::FirstRound(round) => round.on_answer(cx, share, message),
            Exchange::SecondRound(round) => round.on_answer(cx, share, message),
            Exchange::Snapshot(read) => read.on_answer(cx, message),
            Exchange::Write(transaction) => transaction.on_answer(cx, message),
        }
    }

    /// Partitions whose answer is still missing.
    pub(crate) fn unanswered(&self) -> Vec<PartitionId> {
        match self {
            Exchange::FirstRound(round) => round.unanswered(),
            Exchange::SecondRound(round) => round.unanswered(),
            Exchange::Snapshot(read) => vec![read.first()],
            Exchange::Write(transaction) => vec![transaction.coordinator()],
        }
    }

    /// Partitions without which it comes to no end: those whose answers are missing, and those that they must ask. A
    /// write transaction that was begun is given its time: its coordinator goes on when a participant is back.
    pub(crate) fn needed(&self) -> Vec<PartitionId> {
        match self {
            Exchange::Snapshot(read) => read.needed(),
            _ => self.unanswered(),
        }
    }
}

const TRY_AGAIN: Reply =
    Reply::error("TRYAGAIN the values changed too often while they were being read together");
