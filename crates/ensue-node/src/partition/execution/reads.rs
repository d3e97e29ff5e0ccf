//! Reads that wait for coordinators or for times, taken up again.

use super::Executor;
use crate::evaluate::within_bound;
use crate::partition::cx::coordinator_of;
use crate::partition::keyspaces::snapshot::{FirstRead, SecondRead};
use crate::partition::reads::blocked::{SnapshotPart, Wait, Waiting};
use crate::partition::reads::snapshot::{Answered, Read};
use crate::partition::work::{Execution, FORGOTTEN};
use crate::trace::Trace;
use ensue_protocol::Choice;
use ensue_resp::Request;
use ensue_store::row::Gone;
use ensue_types::{LogicalTime, OperationId, Rule, limits};
use ensue_wire::{AtValues, Decision, Message};

impl Executor<'_> {
    /// First round: the newest values. What is undecided there is asked about at once: mostly it comes later, and no
    /// second round follows.
    pub(in crate::partition) fn on_read_first(&mut self, read: FirstRead) {
        if let Some(reply) = self.cx.home_refusal(read.keyspace, &read.commands) {
            return self.cx.send(read.from, Message::Refused { request: read.request, reply });
        }
        let at = self.cx.promise();
        self.keyspaces.mark(self.cx, read.keyspace, &read.commands);
        let is_pending = !self.keyspaces.order.is_idle()
            && self.keyspaces.must_wait(&self.cx.rows_of(read.keyspace, &read.commands));
        match is_pending && Rule::PendingAnswersNothing.holds() {
            true => self.request_then_read(at, Read::First(read), false),
            false => self.keyspaces.answer_first(self.cx, self.others, &read, at, at),
        }
    }

    /// Second round: the values at one time, and of what has come since what was named.
    pub(in crate::partition) fn on_read_at(&mut self, read: SecondRead, at: LogicalTime) {
        // Nothing may become visible here at or before a time that is being read.
        self.cx.advance_clock(at);
        self.request_then_read(at, Read::Second(read), true);
    }

    /// A batch whose next command reads a row with an undecided transaction.
    pub(in crate::partition) fn park_read(&mut self, execution: Execution, at: LogicalTime) {
        self.keyspaces.mark(self.cx, execution.keyspace, execution.commands.front());
        self.request_then_read(at, Read::Batch(Box::new(execution)), false);
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
                let at = self.reads.snapshots.time_of(check);
                if let (Some(at), Some(work)) = (at, self.transactions.work_of(transaction)) {
                    self.keyspaces.order.not_before(work, at);
                }
            }
        }
        self.reads.snapshots.answer_read(check, transaction);
        self.settle();
        self.read_what_is_answered();
    }

    /// A coordinator has decided that a transaction commits at this time, and has told nobody else.
    pub(in crate::partition) fn on_commit_unannounced(
        &mut self,
        check: u64,
        transaction: OperationId,
        commits_at: LogicalTime,
    ) {
        if let Some(work) = self.transactions.work_of(transaction) {
            self.keyspaces.order.not_before(work, commits_at.previous());
        }
        self.reads.snapshots.note_unannounced(check, commits_at);
        self.reads.snapshots.answer_read(check, transaction);
        self.settle();
        self.read_what_is_answered();
    }

    /// Carries out the reads that wait for nobody any more.
    pub(crate) fn read_what_is_answered(&mut self) {
        while !self.keyspaces.is_in_script() {
            let Some(answered) = self.reads.snapshots.take_answered() else { return };
            let Answered { at, read, unannounced, waits } = answered;
            match unannounced {
                Some(commits_at) if !waits => self.read_before(at, read, commits_at),
                // More may have been prepared before the time, while the answers were on their way.
                _ => self.request_then_read(at, read, waits),
            }
        }
    }

    /// Reads what is there before transactions commit that nobody had seen when they were asked about, the first of
    /// them at this time. Since then others may have seen them, and depend on them: what those write is of a later time
    /// than this read, which came before the answer. All is waited for if some of what is read is newer than the first
    /// of the transactions, since several rows are read as of one time; and if a decided one, which the session may
    /// have seen, waits behind them.
    fn read_before(&mut self, at: LogicalTime, read: Read, commits_at: LogicalTime) {
        let rows = read.rows(self.cx);
        let before = commits_at.previous();
        let (keyspace, commands) = read.commands();
        let found = self.keyspaces.read_all(self.cx, keyspace, commands, at, &Choice::Newest);
        let is_older = |earliest_valid| earliest_valid < commits_at || !Rule::PassOverOnlyFromBefore.holds();
        let is_whole = found.is_some_and(|(_, observed)| is_older(observed.earliest_valid))
            && !self.transactions.has_decided_part(self.keyspaces, &rows, at)
            && self.transactions.undecided_before(self.keyspaces, &rows, before).is_empty();
        match read {
            read if !is_whole => self.request_then_read(at, read, true),
            Read::First(first) => {
                self.cx.trace(Trace::PassedOver { partition: self.cx.id });
                self.keyspaces.answer_first(self.cx, self.others, &first, at, before);
            }
            read => {
                self.cx.trace(Trace::PassedOver { partition: self.cx.id });
                self.carry_out(at, read);
            }
        }
    }

    /// Asks about what may come before the time of a read, and carries it out when all of that is known.
    fn request_then_read(&mut self, at: LogicalTime, read: Read, waits: bool) {
        let rows = read.rows(self.cx);
        let unanswered = self.transactions.undecided_before(self.keyspaces, &rows, at);
        if unanswered.is_empty() || !Rule::AskTheCoordinator.holds() {
            return self.carry_out(at, read);
        }
        let check = self.cx.number();
        for &transaction in &unanswered {
            self.cx.trace(Trace::CommitCheck { partition: self.cx.id, transaction });
            let message = Message::CommitCheck { check, transaction, at, waits };
            self.cx.send_local(coordinator_of(transaction), message);
        }
        self.reads.snapshots.wait(self.cx, check, at, unanswered, waits, read);
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
                        Ok(Ok(reply)) => {
                            let reply = within_bound(reply);
                            self.count_resumed(&execution, &args, &reply);
                            execution.replies.push(reply);
                        }
                        Err(error) => execution.replies.push(error.reply()),
                        // The coordinators took longer to answer than past states are kept: it is read as of now.
                        Ok(Err(Gone)) if at < self.cx.promise() => execution.commands.push_front(args),
                        Ok(Err(Gone)) => execution.replies.push(FORGOTTEN),
                    }
                }
                self.advance(*execution);
            }
            Read::First(read) => self.keyspaces.answer_first(self.cx, self.others, &read, at, at),
            Read::Second(read) => {
                let latest = self.cx.clock.latest();
                let at = if Rule::ReadAtEffectiveTime.holds() { at } else { latest };
                let mut found = self.keyspaces.read_with(&read, at);
                if found.is_none() && !Rule::ForgottenMeansAgain.holds() {
                    found = self.keyspaces.read_with(&read, latest);
                }
                let values = found.map(|(replies, observed)| AtValues {
                    replies,
                    seen: self.others.causes_of(self.cx, read.keyspace, observed.sources),
                });
                self.cx.send(read.from, Message::ReadAtDone { request: read.request, values });
            }
        }
    }

    /// Takes up what need not wait any longer.
    pub(crate) fn resume_blocked(&mut self) {
        if self.keyspaces.is_in_script() || !self.others.stable_time.take_times_risen() {
            return;
        }
        self.others.answer_replica_waits(self.cx);
        self.notify_changes();
        self.reads.pops.look_again();
        for Wait { since_us, what } in self.reads.blocked.take_all() {
            if self.keyspaces.is_in_script() {
                // One of them has run it. The others are looked at when it has ended.
                self.others.stable_time.look_again();
                self.reads.blocked.put_back(Wait { since_us, what });
                continue;
            }
            let ready = match &what {
                Waiting::Commands(execution) => {
                    let mut causes = execution.context.causes.clone();
                    self.others.stable_time.times.select_version(self.cx, execution.keyspace, &mut causes)
                        != Choice::Wait
                }
                Waiting::SnapshotPart(part) => {
                    let now = self.cx.promise();
                    self.cx
                        .protocol(part.keyspace)
                        .has_all(&part.snapshot, &self.others.stable_time.times.stability(self.cx, now))
                }
                Waiting::Times(wait) => wait.is_over(self.cx, self.others),
            };
            if !ready {
                self.reads.blocked.put_back(Wait { since_us, what });
                continue;
            }
            self.reads.blocked.count_end(self.cx, since_us);
            match what {
                Waiting::Commands(execution) => self.go_on(*execution),
                Waiting::SnapshotPart(part) => {
                    self.reads.read_part(self.cx, self.others, self.keyspaces, part)
                }
                Waiting::Times(wait) => {
                    let unrecoverable = self.others.failover.discarded.nowhere(self.cx, &wait.times);
                    self.cx.send(wait.from, Message::DependenciesMet { check: wait.check, unrecoverable });
                }
            }
        }
    }

    /// Gives up what has waited too long.
    pub(in crate::partition) fn time_out_blocked(&mut self) {
        self.reads.pops.look_again();
        let now_us = self.cx.now.monotonic_us;
        let is_late = |wait: &Wait| {
            let patience_us = match &wait.what {
                Waiting::Commands(execution) => {
                    1_000 * self.cx.protocol(execution.keyspace).needs().patience_ms
                }
                Waiting::SnapshotPart(part) => 1_000 * self.cx.protocol(part.keyspace).needs().patience_ms,
                Waiting::Times(_) => 1_000 * limits::CAUSAL_TIMEOUT_MS_MAX,
            };
            now_us.saturating_sub(wait.begun_us()) >= patience_us
        };
        for Wait { since_us, what } in self.reads.blocked.take_late(is_late) {
            if self.keyspaces.is_in_script() {
                self.reads.blocked.put_back(Wait { since_us, what });
                continue;
            }
            let mut execution = match what {
                Waiting::Commands(execution) => execution,
                Waiting::SnapshotPart(SnapshotPart { from, read, snapshot, .. }) => {
                    let missing = self.others.stable_time.times.missing_times(self.cx, &snapshot);
                    self.cx.send(from, Message::SnapshotPartLate { read, missing });
                    continue;
                }
                Waiting::Times(_) => continue,
            };
            self.reads.blocked.count_given_up();
            self.reads.blocked.count_end(self.cx, since_us);
            let missing =
                self.others.stable_time.times.missing(self.cx, &execution.context.causes, execution.keyspace);
            let reply =
                self.cx.protocol(execution.keyspace).timed_out(&mut execution.context.causes, &missing);
            self.go_on_without(*execution, reply);
        }
    }
}
