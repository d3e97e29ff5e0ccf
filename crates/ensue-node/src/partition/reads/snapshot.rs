//! Reads at logical times: both rounds of a read transaction, and reads that meet an undecided transaction (Eiger 4, 5.4).
//!
//! A read never waits for a writer: it asks the coordinator of each undecided transaction that may come before its time
//! whether it did, and the coordinator answers at once.

use crate::command;
use crate::evaluate::{Evaluation, Observed, Room, within_bound};
use crate::partition::cx::{Cx, coordinator_of};
use crate::partition::execution::Executor;
use crate::partition::execution::execute::{Execution, FORGOTTEN};
use crate::partition::keyspaces::Keyspaces;
use crate::partition::keyspaces::order::{RowName, WorkId};
use crate::partition::others::Others;
use crate::partition::transactions::Transactions;
use crate::trace::Trace;
use crate::view::{Shown, view_of};
use ensue_protocol::Choice;
use ensue_resp::Request;
use ensue_store::keyspace::Keyspace;
use ensue_store::row::Gone;
use ensue_store::view::View;
use ensue_types::{Args, KeyspaceId, LogicalTime, OperationId, PartitionId, Reply, RequestId, Rule, Source};
use ensue_wire::{Address, AtValues, Decision, FirstValues, Message};
use std::collections::{BTreeMap, BTreeSet};

/// Reads that wait for coordinators.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshots {
    waiting: BTreeMap<u64, WaitingRead>,
}

#[derive(Clone, Debug)]
struct WaitingRead {
    at: LogicalTime,
    /// Transactions whose coordinators have not answered.
    unanswered: Vec<OperationId>,
    since_us: u64,
    read: Read,
}

#[derive(Clone, Debug)]
enum Read {
    /// The first command of a session's batch.
    Batch(Box<Execution>),
    Second(SecondRead),
}

/// A share of a second round.
#[derive(Clone, Debug)]
pub(in crate::partition) struct SecondRead {
    pub from: Address,
    pub request: RequestId,
    pub keyspace: KeyspaceId,
    pub commands: Vec<Args>,
    /// What is shown though it may have come after the time.
    pub with: Vec<OperationId>,
}

impl Snapshots {
    /// A transaction was decided by its coordinator's own message: nobody needs to hear of it again.
    pub(crate) fn answer_reads(&mut self, transaction: OperationId) {
        for waiting in self.waiting.values_mut() {
            waiting.unanswered.retain(|unanswered| *unanswered != transaction);
        }
    }

    /// Asks the coordinators on another core again, after the link to it broke.
    pub(in crate::partition) fn ask_coordinators_again(
        &mut self,
        cx: &mut Cx,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        let mut again = Vec::new();
        for (&check, waiting) in &self.waiting {
            for &transaction in waiting.unanswered.iter().filter(|t| owns(coordinator_of(**t))) {
                again.push((check, transaction, waiting.at));
            }
        }
        for (check, transaction, at) in again {
            let message = Message::CommitCheck { check, transaction, at };
            cx.send_local(coordinator_of(transaction), message);
        }
    }

    /// Gives up reads whose sessions have long given up.
    pub(in crate::partition) fn forget_old_reads(&mut self, cx: &Cx) {
        let oldest = cx.now.monotonic_us.saturating_sub(2_000 * cx.config.tuning.request_timeout_ms);
        self.waiting.retain(|_, waiting| waiting.since_us >= oldest);
    }

    pub(in crate::partition) fn waiting_reads(&self) -> usize {
        self.waiting.len()
    }
}

impl Keyspaces {
    fn read_with(&mut self, read: &SecondRead, at: LogicalTime) -> Option<(Vec<Reply>, Observed)> {
        let named: BTreeSet<OperationId> = read.with.iter().copied().collect();
        let sight = |source: &Source| named.contains(&source.operation);
        run_all(self.keyspace(read.keyspace), &read.commands, at, View::With(at, &sight))
    }

    /// Evaluates reads, of what is shown or of a logical time.
    pub(in crate::partition) fn read_all(
        &mut self,
        cx: &Cx,
        keyspace: KeyspaceId,
        commands: &[Args],
        at: LogicalTime,
        choice: &Choice,
    ) -> Option<(Vec<Reply>, Observed)> {
        let number = usize::from(keyspace.0);
        let shown = Shown::of(cx.protocols[number].as_ref(), choice);
        run_all(&mut self.rows[number], commands, at, view_of(&shown, View::At(at)))
    }

    pub(crate) fn mark(&mut self, cx: &Cx, rows: &[RowName]) {
        let until = cx.now.monotonic_us / 1_000 + cx.config.tuning.read_mark_ms;
        for (keyspace, key) in rows {
            if cx.protocol(*keyspace).needs().second_rounds {
                self.rows[usize::from(keyspace.0)].mark(key, until);
            }
        }
    }
}

impl Keyspaces {
    /// First round: the newest values with their validity, or only the promise.
    pub(in crate::partition) fn on_read_first(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        from: Address,
        request: RequestId,
        keyspace: KeyspaceId,
        commands: Vec<Args>,
    ) {
        let rows = cx.rows_of(keyspace, &commands);
        let latest_valid = cx.promise();
        self.mark(cx, &rows);
        let pending = self.must_wait(&rows) && Rule::PendingAnswersNothing.holds();
        let values = if pending {
            None
        } else {
            self.read_all(cx, keyspace, &commands, latest_valid, &Choice::Newest).map(
                |(replies, observed)| FirstValues {
                    replies,
                    earliest_valid: observed.earliest_valid,
                    seen: others.facts_of(cx, keyspace, observed.sources),
                },
            )
        };
        cx.send(from, Message::ReadFirstDone { request, latest_valid, values });
    }
}

impl Transactions {
    fn undecided_before(&self, keyspaces: &Keyspaces, rows: &[RowName], at: LogicalTime) -> Vec<OperationId> {
        let name = |work: WorkId| keyspaces.order.work(work).and_then(|work| self.transaction_name(work));
        keyspaces.order.blockers(rows, at).into_iter().filter_map(name).collect()
    }
}

/// Evaluates reads; nothing if what they look at is forgotten.
fn run_all(
    rows: &mut Keyspace,
    commands: &[Args],
    at: LogicalTime,
    view: View<'_>,
) -> Option<(Vec<Reply>, Observed)> {
    let mut desk = Evaluation::reading(rows, at, view);
    let mut replies = Vec::with_capacity(commands.len());
    let mut room = Room::default();
    for args in commands {
        replies.push(match Request::parse(args) {
            // No node of ours sends one here; a broken peer may.
            Ok(request) if request.is_write() => Reply::error("ERR a write among reads"),
            Ok(request) => room.fit(command::run(&request, &mut desk).ok()?, false),
            Err(error) => error.reply(),
        });
    }
    Some((replies, desk.observed))
}

impl Executor<'_> {
    /// Second round: the values at one time, and of what has come since what was named.
    pub(in crate::partition) fn on_read_at(&mut self, read: SecondRead, at: LogicalTime) {
        // Nothing may become visible here at or before a time that is being read.
        self.cx.observe(at);
        self.ask_then_read(at, Read::Second(read));
    }

    /// A batch whose next command reads a row with an undecided transaction.
    pub(in crate::partition) fn park_read(&mut self, execution: Execution, at: LogicalTime) {
        let rows = self.cx.rows_of(execution.keyspace, execution.commands.front());
        self.keyspaces.mark(self.cx, &rows);
        self.ask_then_read(at, Read::Batch(Box::new(execution)));
    }

    /// A coordinator answered.
    pub(in crate::partition) fn on_commit_checked(
        &mut self,
        check: u64,
        transaction: OperationId,
        decision: Option<Decision>,
    ) {
        match decision {
            Some(decision) => self.on_commit(transaction, decision),
            None => {
                let at = self.reads.snapshots.waiting.get(&check).map(|waiting| waiting.at);
                if let (Some(at), Some(work)) = (at, self.transactions.work_of(transaction)) {
                    self.keyspaces.order.not_before(work, at);
                }
            }
        }
        if let Some(waiting) = self.reads.snapshots.waiting.get_mut(&check) {
            waiting.unanswered.retain(|unanswered| *unanswered != transaction);
        }
        self.settle();
        self.read_what_is_answered();
    }

    /// Carries out the reads that wait for nobody any more.
    pub(crate) fn read_what_is_answered(&mut self) {
        let answered =
            |(check, waiting): (&u64, &WaitingRead)| waiting.unanswered.is_empty().then_some(*check);
        while let Some(check) = self.reads.snapshots.waiting.iter().find_map(answered) {
            let waiting = self.reads.snapshots.waiting.remove(&check).expect("found above");
            // More may have been prepared before the time, while the answers were on their way.
            self.ask_then_read(waiting.at, waiting.read);
        }
    }

    fn ask_then_read(&mut self, at: LogicalTime, read: Read) {
        let rows = match &read {
            Read::Batch(execution) => self.cx.rows_of(execution.keyspace, execution.commands.front()),
            Read::Second(read) => self.cx.rows_of(read.keyspace, &read.commands),
        };
        let unanswered = self.transactions.undecided_before(self.keyspaces, &rows, at);
        if unanswered.is_empty() || !Rule::AskTheCoordinator.holds() {
            return self.carry_out(at, read);
        }
        let check = self.cx.number();
        for &transaction in &unanswered {
            self.cx.trace(Trace::CommitCheck { partition: self.cx.id, transaction });
            let message = Message::CommitCheck { check, transaction, at };
            self.cx.send_local(coordinator_of(transaction), message);
        }
        let since_us = self.cx.now.monotonic_us;
        self.reads.snapshots.waiting.insert(check, WaitingRead { at, unanswered, since_us, read });
    }

    fn carry_out(&mut self, at: LogicalTime, read: Read) {
        match read {
            Read::Batch(mut execution) => {
                if let Some(args) = execution.commands.pop_front() {
                    match Request::parse(&args).map(|request| {
                        self.keyspaces.read_now(
                            self.cx,
                            self.others,
                            &mut execution,
                            at,
                            &request,
                            &Choice::Newest,
                        )
                    }) {
                        Ok(Ok(reply)) => execution.replies.push(within_bound(reply)),
                        Err(error) => execution.replies.push(error.reply()),
                        // The coordinators took longer to answer than past states are kept: it is read as of now.
                        Ok(Err(Gone)) if at < self.cx.promise() => execution.commands.push_front(args),
                        Ok(Err(Gone)) => execution.replies.push(FORGOTTEN),
                    }
                }
                self.advance(*execution);
            }
            Read::Second(read) => {
                let latest = self.cx.clock.latest();
                let at = if Rule::ReadAtEffectiveTime.holds() { at } else { latest };
                let mut found = self.keyspaces.read_with(&read, at);
                if found.is_none() && !Rule::ForgottenMeansAgain.holds() {
                    found = self.keyspaces.read_with(&read, latest);
                }
                let values = found.map(|(replies, observed)| AtValues {
                    replies,
                    seen: self.others.facts_of(self.cx, read.keyspace, observed.sources),
                });
                self.cx.send(read.from, Message::ReadAtDone { request: read.request, values });
            }
        }
    }
}
