//! The same moment for none: `Execute` to several owners in parallel, their answers put together.
//!
//! For commands that every partition answers (`DBSIZE`, `KEYS`, `FLUSHDB`), and for commands over several keys in a
//! keyspace whose protocol has no snapshots or no write transactions. The contexts that come back are joined, so the
//! session depends on all that any share saw or wrote.

use super::dead::Declaring;
use super::exchange::Exchange;
use super::plan::{Answers, Plan};
use super::rename::Renaming;
use super::turn::Turn;
use crate::Trace;
use crate::evaluate::{ANSWER_TOO_LONG, within_bound};
use ensue_types::{Args, Context, KeyspaceId, LogicalTime, PartitionId, Reply};
use ensue_wire::Message;

/// What the answers are for.
#[derive(Clone, Debug)]
pub(super) enum Then {
    /// The client's answer.
    Answer,
    /// The answers of several commands of the client.
    Each,
    /// The second half of `RENAME`.
    Rename(Renaming),
    /// The second half of `CAUSAL DEAD`, if it is confirmed.
    Declare(Declaring),
}

/// Waiting for `Executed` of every part in every keyspace.
#[derive(Clone, Debug)]
pub(super) struct Parallel {
    plan: Plan,
    then: Then,
    answers: Answers,
    shares: Vec<Share>,
    missing: usize,
    /// The joined contexts of the answers so far, one a keyspace.
    contexts: Vec<(KeyspaceId, Context)>,
    /// Of a share that gave up waiting: what it made of the session counts, whatever the others saw.
    gave_up: Option<(KeyspaceId, Context)>,
}

/// One part in one keyspace.
#[derive(Clone, Debug)]
struct Share {
    keyspace: KeyspaceId,
    part: usize,
    /// How many of its commands are answered.
    done: usize,
    answered: bool,
}

impl Turn<'_> {
    pub(super) fn read_in_parallel(&mut self, plan: Plan, then: Then) {
        let keyspaces = [self.session.keyspace];
        self.execute_in_parallel(plan, &keyspaces, then);
    }

    /// Executes every part in every one of these keyspaces.
    pub(super) fn execute_in_parallel(&mut self, plan: Plan, keyspaces: &[KeyspaceId], then: Then) {
        if plan.writes {
            self.session.asked.writes.mark(0);
        }
        let parts = plan.parts.len();
        let shares: Vec<_> = keyspaces
            .iter()
            .flat_map(|&keyspace| {
                (0..parts).map(move |part| Share { keyspace, part, done: 0, answered: false })
            })
            .collect();
        let messages: Vec<_> = shares
            .iter()
            .map(|&Share { keyspace, part, .. }| {
                (keyspace, plan.parts[part].partition, plan.commands_of(part))
            })
            .collect();
        let answers = plan.answers();
        let parallel = Parallel {
            plan,
            then,
            answers,
            missing: shares.len(),
            shares,
            contexts: Vec::new(),
            gave_up: None,
        };
        self.begin_request(Exchange::Parallel(Box::new(parallel)), messages.len());
        if self.is_refused(messages.iter().map(|(_, partition, _)| *partition)) {
            return;
        }
        for (share, (keyspace, partition, commands)) in messages.into_iter().enumerate() {
            let request = self.request(share);
            let context = self.session.contexts[usize::from(keyspace.0)].clone();
            let together = true;
            self.send_in(
                keyspace,
                partition,
                Message::Execute { request, keyspace, context, commands, together },
            );
        }
    }

    /// All answers of a plan are here.
    pub(super) fn finish(&mut self, plan: Plan, then: Then, answers: Answers) {
        match then {
            Then::Answer => self.complete(vec![within_bound(plan.assemble(answers))]),
            Then::Each => self.complete_each(plan, answers),
            Then::Rename(renaming) => self.rename_write(renaming, plan.into_replies(answers)),
            Then::Declare(declaring) => self.on_known(declaring, plan.assemble(answers)),
        }
    }
}

impl Turn<'_> {
    /// Commands that were read together though the client did not ask for that. Those whose answers were too long
    /// together are read
    /// again; the first of them is alone then, or its answer is too long by itself.
    fn complete_each(&mut self, plan: Plan, answers: Answers) {
        let commands = plan.commands_in_order();
        let mut replies = plan.into_replies(answers);
        let too_long = replies.iter().position(|reply| *reply == ANSWER_TOO_LONG).filter(|&place| place > 0);
        if let Some(place) = too_long {
            replies.truncate(place);
            self.take_back(commands.into_iter().skip(place).collect());
        }
        self.complete(replies);
    }
}

impl Parallel {
    pub(super) fn unanswered(&self) -> Vec<PartitionId> {
        let missing = self.shares.iter().filter(|share| !share.answered);
        missing.map(|share| self.plan.parts[share.part].partition).collect()
    }

    pub(super) fn on_answer(
        mut self: Box<Self>,
        turn: &mut Turn<'_>,
        share: usize,
        time: LogicalTime,
        message: Message,
    ) {
        let (gave_up, mut context, replies) = match message {
            Message::Executed { context, replies, .. } => (false, context, replies),
            Message::GaveUp { context, replies, .. } => (true, context, replies),
            Message::ExecutedInPart { context, replies, rest, .. } => {
                return self.ask_rest(turn, share, context, replies, rest);
            }
            _ => return turn.unexpected(Exchange::Parallel(self)),
        };
        context.time = context.time.max(time);
        let Share { keyspace, part, done, answered } = self.shares[share];
        if !answered {
            self.shares[share].answered = true;
            self.missing -= 1;
            self.answers.put_part(&self.plan.parts[part], done, replies);
            if gave_up {
                self.gave_up = Some((keyspace, context));
            } else {
                self.join(turn, keyspace, context);
            }
        }
        if self.missing > 0 {
            turn.session.exchange = Exchange::Parallel(self);
            return;
        }
        for (keyspace, context) in self.contexts.into_iter().chain(self.gave_up) {
            let own = &mut turn.session.contexts[usize::from(keyspace.0)];
            own.time = own.time.max(context.time);
            own.facts = context.facts;
        }
        turn.finish(self.plan, self.then, self.answers);
    }

    /// An owner has done enough for one turn: it is asked for the rest after the others that wait for it.
    fn ask_rest(
        mut self: Box<Self>,
        turn: &mut Turn<'_>,
        share: usize,
        context: Context,
        replies: Vec<Reply>,
        rest: Vec<Args>,
    ) {
        let Share { keyspace, part, done, answered } = &mut self.shares[share];
        let (keyspace, part) = (*keyspace, &self.plan.parts[*part]);
        if *answered || replies.is_empty() || *done + replies.len() + rest.len() != part.commands.len() {
            return turn.unexpected(Exchange::Parallel(self));
        }
        self.answers.put_part(part, *done, replies.clone());
        *done += replies.len();
        let partition = part.partition;
        let request = turn.request(share);
        turn.session.exchange = Exchange::Parallel(self);
        turn.send_in(
            keyspace,
            partition,
            Message::Execute { request, keyspace, context, commands: rest, together: true },
        );
    }

    /// Every context that comes back covers what the session had before, so the first one stands in for it.
    fn join(&mut self, turn: &mut Turn<'_>, keyspace: KeyspaceId, context: Context) {
        let Some((_, joined)) = self.contexts.iter_mut().find(|(of, _)| *of == keyspace) else {
            self.contexts.push((keyspace, context));
            return;
        };
        joined.time = joined.time.max(context.time);
        if turn.desk.protocol(keyspace).join(&mut joined.facts, &context.facts).is_err() {
            turn.desk
                .trace(Trace::Refused { what: "an answer carried a context that is not the protocol's" });
        }
    }
}
