//! A replica: which height it decides, what it is given and gives for that, and what follows from a decision.
//!
//! - On a request: answer it again if it is answered. Otherwise, if its client signed it, let it wait for a block.
//! - Begin a height when requests wait, or when more replicas than may be faulty have begun it.
//! - On a decision: keep the block with its proof, give its requests their places in the order, and execute them.
//! - On a message of a later height: ask its sender for the blocks between. A block with the precommits of a quorum is
//!   decided, whoever sends it.
//! - On an executed request: answer its session.
//! - While many requests are not executed: take no further part. The blocks that are missed can be had later.
//!
//! Outputs are carried out in their order, and that order keeps what must be kept: what was logged is durable before
//! anything behind it is sent, and a block is durable before its requests are executed. The application is given every
//! request once in each run of a replica, from the first one on: it has to be in its first state when a replica starts.

mod answers;
mod pool;
mod running;

pub use answers::Answer;

use crate::block::Request;
use crate::codec::Malformed;
use crate::context::Height;
use crate::keys::{Group, Member, Signer};
use crate::limits::{
    ASK_US, CATCH_UP_BLOCKS, HEIGHTS_A_PROPOSER, HELD_MESSAGES_MAX, HELD_PROPOSALS_MAX, STATUS_US,
};
use crate::message::{Decided, Message, Said};
use answers::Answers;
use pool::Pool;
use running::{Cx, Logged, Running};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Microseconds between two answers to one replica that asks for other blocks than before.
const FETCH_US: u64 = ASK_US / 2;

/// What a replica wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Keep this record. It is durable before any later [`Output::Send`] is carried out.
    Log(Vec<u8>),
    /// Keep this block. It is durable before any later output is carried out, and the records so far are of no use.
    Decided {
        /// Which.
        height: u64,
        /// For [`Replica::restore_block`].
        record: Vec<u8>,
    },
    /// Have the application execute this, after all before it; then call [`Replica::on_executed`].
    Execute {
        /// Its place in the order, from 1.
        sequence: u64,
        /// What the client wants.
        body: Vec<u8>,
    },
    /// Send a message to a replica.
    Send {
        /// Which.
        to: Member,
        /// For [`Message::decode`].
        bytes: Arc<[u8]>,
    },
    /// Send a replica the blocks from this height on, at most [`CATCH_UP_BLOCKS`] and
    /// [`crate::limits::CATCH_UP_BYTES_MAX`], unless what it was sent before still waits.
    Fetch {
        /// Which.
        to: Member,
        /// The first.
        height: u64,
    },
    /// Send a client an answer.
    Answer(Answer),
}

/// What was counted since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks that this replica decided with the others.
    pub decided: u64,
    /// Those among them that took more than one round.
    pub late: u64,
    /// Blocks that it was given.
    pub given: u64,
    /// Of each replica, by its number: votes and proposals that contradict earlier ones, under its signature.
    pub equivocations: Vec<u64>,
}

/// The machine. Times are microseconds of any clock that does not go back.
pub struct Replica {
    group: Arc<Group>,
    signer: Signer,
    me: Member,
    height: Height,
    first_proposer: Member,
    running: Option<Running>,
    /// Messages of this height, while it has not begun, and of the next one.
    held: BTreeMap<u64, Held>,
    pool: Pool,
    answers: Answers,
    is_replayed: bool,
    status_us: u64,
    asked_us: u64,
    /// When each replica was sent blocks, and from which height on.
    fetched: Vec<(u64, Height)>,
    counts: Counts,
    outputs: VecDeque<Output>,
}

/// What arrived of a height that has not begun. A lying replica can displace its own messages only.
#[derive(Default)]
struct Held {
    senders: BTreeSet<Member>,
    messages: Vec<(Member, Said)>,
}

impl Held {
    fn hold(&mut self, from: Member, said: Said) {
        self.senders.insert(from);
        let is_proposal = |said: &Said| matches!(said, Said::Proposal(_));
        let of_sender = || self.messages.iter().filter(|(sender, _)| *sender == from);
        let proposals = of_sender().filter(|(_, said)| is_proposal(said)).count();
        let has_room = of_sender().count() < HELD_MESSAGES_MAX
            && (!is_proposal(&said) || proposals < HELD_PROPOSALS_MAX);
        // Each replica passes on what the others said.
        if has_room && self.messages.iter().all(|(_, held)| *held != said) {
            self.messages.push((from, said));
        }
    }
}

impl Replica {
    /// The replica of this number, with an empty order. What it kept comes next, by [`Replica::restore_block`] for each
    /// block, [`Replica::restore_record`] for each record behind the last block, and then [`Replica::on_restored`].
    pub fn new(group: Arc<Group>, me: Member, signer: Signer) -> Replica {
        let replicas = group.replicas();
        assert!((me.0 as usize) < replicas, "a replica is a member of its group");
        Replica {
            group,
            signer,
            me,
            height: Height(1),
            first_proposer: Member(0),
            running: None,
            held: BTreeMap::new(),
            pool: Pool::default(),
            answers: Answers::default(),
            is_replayed: true,
            status_us: 0,
            asked_us: 0,
            fetched: vec![(0, Height(0)); replicas],
            counts: Counts { equivocations: vec![0; replicas], ..Counts::default() },
            outputs: VecDeque::new(),
        }
    }

    /// What is to be done, in this order.
    pub fn take_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The height that is decided next.
    pub fn height(&self) -> u64 {
        self.height.0
    }

    /// Requests in the order that are not executed.
    pub fn unexecuted(&self) -> usize {
        self.answers.unexecuted()
    }

    /// What was counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// When [`Replica::on_tick`] has something to do at the earliest.
    pub fn next_deadline_us(&self) -> u64 {
        self.running.as_ref().map_or(self.status_us, |running| running.next_deadline_us().min(self.status_us))
    }

    /// A block that this replica has kept, in their order.
    pub fn restore_block(&mut self, record: &[u8]) -> Result<(), Malformed> {
        let decided = Decided::decode(record)?;
        if decided.height != self.height {
            return Err(Malformed("a block is missing"));
        }
        self.follow(&decided);
        Ok(())
    }

    /// A record that this replica has kept, in their order.
    pub fn restore_record(&mut self, now_us: u64, record: &[u8]) -> Result<(), Malformed> {
        let (height, logged) = Logged::decode(record)?;
        if height != self.height {
            return Ok(());
        }
        if self.running.is_none() {
            self.begin(now_us);
        }
        self.run(now_us, |running, cx| running.on_logged(cx, logged));
        Ok(())
    }

    /// All that was kept is restored.
    pub fn on_restored(&mut self, now_us: u64) {
        self.is_replayed = false;
        self.run(now_us, Running::on_replayed);
        self.settle(now_us);
    }

    /// A client's request arrives.
    pub fn on_request(&mut self, now_us: u64, request: Request) {
        if let Some(answer) = self.answers.again(request.session, request.number) {
            self.outputs.push_back(Output::Answer(answer));
            return;
        }
        let is_new = self.answers.is_new(request.session, request.number);
        if is_new && !self.pool.has(&request) && request.is_valid(&self.group) {
            self.pool.add(request);
            self.settle(now_us);
        }
    }

    /// A message of another replica arrives.
    pub fn on_message(&mut self, now_us: u64, from: Member, message: Message) {
        if (from.0 as usize) >= self.group.replicas() || self.is_crammed() {
            return;
        }
        match message.0 {
            Said::Status(height) => self.on_status(now_us, from, height),
            Said::Decided(decided) => self.on_given(from, &decided),
            Said::Vote(ref vote) => self.on_said(now_us, from, vote.height, message.0),
            Said::Polka(ref polka) => self.on_said(now_us, from, polka.height, message.0),
            Said::Proposal(ref proposal) => self.on_said(now_us, from, proposal.height, message.0),
        }
        self.settle(now_us);
    }

    /// The application has executed the next request of the order.
    pub fn on_executed(&mut self, now_us: u64, response: Arc<[u8]>) {
        if let Some(answer) = self.answers.on_executed(response) {
            self.outputs.push_back(Output::Answer(answer));
        }
        self.settle(now_us);
    }

    /// Time has passed.
    pub fn on_tick(&mut self, now_us: u64) {
        if self.status_us <= now_us {
            self.status_us = now_us.saturating_add(STATUS_US);
            let others = (0..self.group.replicas() as u32).map(Member).filter(|member| *member != self.me);
            others.collect::<Vec<_>>().into_iter().for_each(|other| self.send_status(other));
        }
        self.run(now_us, Running::on_tick);
        self.settle(now_us);
    }

    fn is_crammed(&self) -> bool {
        self.answers.is_crammed()
    }

    fn on_status(&mut self, now_us: u64, from: Member, height: Height) {
        if height > self.height {
            self.ask(now_us, from);
        }
        // Whoever asks for the same again may not have received it yet.
        let (last_us, last) = &mut self.fetched[from.0 as usize];
        let pause_us = if height > *last { FETCH_US } else { STATUS_US };
        if height < self.height && last_us.saturating_add(pause_us) <= now_us {
            (*last_us, *last) = (now_us, height);
            self.outputs.push_back(Output::Fetch { to: from, height: height.0.max(1) });
        }
    }

    fn ask(&mut self, now_us: u64, from: Member) {
        if self.asked_us.saturating_add(ASK_US) <= now_us {
            self.asked_us = now_us;
            self.send_status(from);
        }
    }

    fn send_status(&mut self, to: Member) {
        let bytes = Message(Said::Status(self.height)).encode().into();
        self.outputs.push_back(Output::Send { to, bytes });
    }

    fn on_given(&mut self, from: Member, decided: &Decided) {
        if decided.height != self.height || !decided.is_proved(&self.group) {
            return;
        }
        self.commit(decided);
        self.counts.given += 1;
        if self.counts.given.is_multiple_of(CATCH_UP_BLOCKS) {
            self.send_status(from);
        }
    }

    fn on_said(&mut self, now_us: u64, from: Member, height: Height, said: Said) {
        if height == self.height && self.running.is_some() {
            return self.run(now_us, |running, cx| running.on_said(cx, &said));
        }
        if height > Height(self.height.0 + 1) {
            return self.ask(now_us, from);
        }
        if height >= self.height {
            self.held.entry(height.0).or_default().hold(from, said);
        }
    }

    /// Follows from what has happened, until nothing more does.
    fn settle(&mut self, now_us: u64) {
        while !self.is_replayed {
            if let Some(decided) = self.running.as_ref().and_then(Running::decided) {
                self.counts.decided += 1;
                self.counts.late += u64::from(decided.round.as_u32() != Some(0));
                self.commit(&decided);
            } else if self.running.is_none() && self.has_reason_to_begin() {
                self.begin(now_us);
                for (_, said) in self.held.remove(&self.height.0).unwrap_or_default().messages {
                    self.run(now_us, |running, cx| running.on_said(cx, &said));
                }
            } else {
                return;
            }
        }
    }

    /// A lying replica alone cannot make the others agree on empty blocks again and again.
    fn has_reason_to_begin(&self) -> bool {
        let senders = self.held.get(&self.height.0).map_or(0, |held| held.senders.len());
        !self.is_crammed() && (!self.pool.is_empty() || senders > self.group.faults_max())
    }

    fn begin(&mut self, now_us: u64) {
        let height = self.height;
        let running = Running::begin(&mut self.cx(now_us).0, height);
        self.running = Some(running);
    }

    fn run(&mut self, now_us: u64, step: impl FnOnce(&mut Running, &mut Cx<'_>)) {
        let (mut cx, running) = self.cx(now_us);
        if let Some(running) = running {
            step(running, &mut cx);
        }
    }

    fn cx(&mut self, now_us: u64) -> (Cx<'_>, Option<&mut Running>) {
        let cx = Cx {
            now_us,
            group: &self.group,
            signer: &self.signer,
            me: self.me,
            first_proposer: self.first_proposer,
            pool: &self.pool,
            answers: &self.answers,
            is_replayed: self.is_replayed,
            equivocations: &mut self.counts.equivocations,
            outputs: &mut self.outputs,
        };
        (cx, self.running.as_mut())
    }

    fn commit(&mut self, decided: &Decided) {
        self.outputs.push_back(Output::Decided { height: decided.height.0, record: decided.encode() });
        self.follow(decided);
    }

    /// Its requests are the next ones of the order. A correct replica votes for no block with a request that was
    /// ordered before; if there are too many liars to rely on that, at least nothing is executed twice.
    fn follow(&mut self, decided: &Decided) {
        for request in decided.block.requests() {
            if self.answers.is_new(request.session, request.number) {
                self.pool.on_ordered(request);
                let sequence = self.answers.on_ordered(request);
                self.outputs.push_back(Output::Execute { sequence, body: request.body.clone() });
            }
        }
        let creator = decided.block.creator().0;
        let turn = u32::from(decided.height.0.is_multiple_of(HEIGHTS_A_PROPOSER));
        self.first_proposer = Member((creator + turn) % self.group.replicas() as u32);
        self.running = None;
        self.height = Height(self.height.0 + 1);
        self.held = self.held.split_off(&self.height.0);
    }
}

#[cfg(test)]
mod tests;
