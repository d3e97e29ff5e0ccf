//! One replica of a partition's directory: from its start, alone or as a member of its group, to its stop.

use crate::beginning::{Beginning, Begun};
use crate::config::{Config, mix};
use crate::disk::{Disk, Purpose};
use crate::member::Member;
use crate::message::{Hello, ReplicaMessage};
use crate::moving::{Move, Refusal, Report};
use crate::starting::{Started, Starting};
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp, failure_words};
use std::collections::VecDeque;

/// What a replica asks of its surroundings, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// To the replica on another node.
    Send { node: u16, message: Bytes },
    /// To the disk of this node.
    Disk(DiskOp),
    /// To the partition: the answer to what it asked of its directory.
    Done(DiskDone),
    /// The partition starts here: nobody else changes its directory in this term. `epoch` counts how often what was
    /// committed may have been lost.
    Lead { term: u64, epoch: u64 },
    /// The partition does not live here any more; what it has not said is not said.
    Follow,
    /// When the question of this number was asked, and all before, nobody else had led.
    Confirmed(u64),
    /// Something that an operator is to know.
    Troubled(String),
    /// Nothing more comes of this replica before its next start.
    Stopped(String),
    /// The group has no replica on this node, whose directory is empty: this one is to be dropped.
    Dismissed,
}

/// What the parts of a replica say.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) disk: Disk,
    pub(crate) queue: VecDeque<Output>,
}

impl Outputs {
    pub(crate) fn push(&mut self, output: Output) {
        self.gather();
        self.queue.push_back(output);
    }

    pub(crate) fn send(&mut self, node: u16, message: &ReplicaMessage) {
        self.push(Output::Send { node, message: message.encode() });
    }

    pub(crate) fn gather(&mut self) {
        self.queue.extend(self.disk.emitted.drain(..).map(Output::Disk));
    }
}

/// What a replica is to its group, as it knows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It reads its journal, or waits for the others to begin the group with it.
    Starting,
    /// The partition lives with it.
    Leader,
    /// It has a vote and follows a leader.
    Follower,
    /// It is sent what it lacks, or has no vote.
    Learner,
    /// Its power failed, and it has not been made whole yet.
    Recovering,
    /// It knows of no leader, or has not taken the lead yet.
    Leaderless,
    Stopped,
}

#[derive(Debug)]
enum Stage {
    /// It reads its journal.
    Starting(Starting),
    /// It has no directory: it begins the group with the others, or is admitted to it.
    Beginning(Beginning),
    Member(Box<Member>),
    Stopped,
}

/// A replica: inputs go in, outputs are drained.
#[derive(Debug)]
pub struct Replica {
    config: Config,
    stage: Stage,
    out: Outputs,
}

/// What ends a replica.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum End {
    #[error("{0}")]
    Failed(String),
    /// It stopped in good order.
    #[error("this node is shutting down")]
    Closed,
    /// What it has is of no use: it begins anew with an empty directory.
    #[error("the directory of this replica is given up: {0}")]
    GivenUp(String),
    /// The group has none on this node.
    #[error("the partition is not replicated on this node")]
    Dismissed,
}

impl Replica {
    /// Its first outputs read the disk.
    pub fn new(config: Config) -> Replica {
        let mut out = Outputs::default();
        let starting = Starting::new(&mut out);
        Replica { config, stage: Stage::Starting(starting), out }
    }

    /// The next output, oldest first; drain until empty after each input.
    pub fn next_output(&mut self) -> Option<Output> {
        self.out.gather();
        self.out.queue.pop_front()
    }

    /// Time passes: given every `Tuning::tick_us`, with a clock that never goes back.
    pub fn on_tick(&mut self, now_us: u64) {
        let Replica { config, stage, out } = self;
        let ended = match stage {
            Stage::Beginning(beginning) => {
                beginning.on_tick(config, out);
                Ok(())
            }
            Stage::Member(member) => member.on_tick(config, out, now_us),
            Stage::Starting(_) | Stage::Stopped => Ok(()),
        };
        self.go_on(ended);
    }

    /// Another node says something. Bytes that are no message, and what is said by a node without a replica, are
    /// nothing.
    pub fn on_message(&mut self, node: u16, message: Bytes) {
        let Replica { config, stage, out } = self;
        if node == config.node || !config.nodes.contains(&node) {
            return;
        }
        let Ok(message) = ReplicaMessage::decode(message) else { return };
        let ended = match stage {
            Stage::Beginning(beginning) => match beginning.on_message(config, out, node, message) {
                Ok(Some(Begun { records, base, life })) => Member::begin(config, out, records, base, life)
                    .map(|member| {
                        *stage = Stage::Member(Box::new(member));
                    }),
                Ok(None) => Ok(()),
                Err(end) => Err(end),
            },
            Stage::Member(member) => member.on_message(config, out, node, message),
            Stage::Starting(_) | Stage::Stopped => Ok(()),
        };
        self.go_on(ended);
    }

    /// The disk of this node answers.
    pub fn on_disk(&mut self, done: DiskDone) {
        let Replica { config, stage, out } = self;
        let Some(purpose) = out.disk.answered(&done) else { return };
        let is_old = matches!(stage, Stage::Starting(_)) && purpose != Purpose::Starting;
        if is_old || matches!(stage, Stage::Stopped) {
            return;
        }
        // What is read may be had elsewhere; all else is what this replica promises others to have.
        let only_reads = matches!(purpose, Purpose::Partition | Purpose::Verifying);
        if let (DiskDone::Failed { op, file, reason, .. }, false) = (&done, only_reads) {
            let words = failure_words(op, *file, reason);
            return self.go_on(Err(End::Failed(words)));
        }
        let ended = match stage {
            Stage::Starting(starting) => match starting.on_disk(config, out, done) {
                Ok(Some(Started::Empty)) => {
                    *stage = Stage::Beginning(Beginning::new(config));
                    Ok(())
                }
                Ok(Some(Started::Member(restart))) => Member::restart(config, out, *restart).map(|member| {
                    *stage = Stage::Member(Box::new(member));
                }),
                Ok(None) => Ok(()),
                Err(end) => Err(end),
            },
            Stage::Member(member) => member.on_disk(config, out, purpose, done),
            Stage::Beginning(_) | Stage::Stopped => Ok(()),
        };
        self.go_on(ended);
    }

    /// The partition asks something of its directory.
    pub fn on_request(&mut self, op: DiskOp) {
        if let Stage::Member(member) = &mut self.stage {
            let ended = member.on_request(&self.config, &mut self.out, op);
            self.go_on(ended);
        }
    }

    /// The partition asks whether it still leads; questions have rising numbers. The answer may stay away if it does
    /// not.
    pub fn confirm(&mut self, now_us: u64, number: u64) {
        if let Stage::Member(member) = &mut self.stage {
            let ended = member.confirm(&self.config, &mut self.out, now_us, number);
            self.go_on(ended);
        }
    }

    /// The partition, if it lives here, has stopped: the replica stops in good order.
    pub fn shut_down(&mut self) {
        let ended = match &mut self.stage {
            Stage::Member(member) => {
                member.shut_down(&mut self.out);
                Ok(())
            }
            Stage::Starting(_) | Stage::Beginning(_) => Err(End::Closed),
            Stage::Stopped => Ok(()),
        };
        self.go_on(ended);
    }

    /// Another node takes the lead, if it can.
    pub fn hand_over(&mut self) {
        if let Stage::Member(member) = &mut self.stage {
            let ended = member.hand_over(&self.config, &mut self.out);
            self.go_on(ended);
        }
    }

    /// The partition, which lives here, has stopped by itself: if that comes of this node's disk, another one is to
    /// have it.
    pub fn on_partition_stopped(&mut self) {
        if let Stage::Member(member) = &mut self.stage {
            member.verify_all(&self.config, &mut self.out);
        }
    }

    /// A replica is to move, for as long as that is said again; it is over when the report says so.
    pub fn on_wish(&mut self, wish: Move) -> Result<(), Refusal> {
        match &mut self.stage {
            Stage::Member(member) => member.on_wish(wish),
            _ => Err(Refusal::LeadsNot),
        }
    }

    /// Who belongs to the group, if this replica leads it.
    pub fn report(&self) -> Option<Report> {
        match &self.stage {
            Stage::Member(member) => member.report(),
            _ => None,
        }
    }

    /// The term that it is in, once it has read its directory: it has promised to hear nobody of an earlier one.
    pub fn term(&self) -> Option<u64> {
        match &self.stage {
            Stage::Member(member) => Some(member.term()),
            _ => None,
        }
    }

    /// Whether nothing more comes of it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.stage, Stage::Stopped)
    }

    /// What it is to its group.
    pub fn role(&self) -> Role {
        match &self.stage {
            Stage::Starting(_) | Stage::Beginning(_) => Role::Starting,
            Stage::Member(member) => member.role(),
            Stage::Stopped => Role::Stopped,
        }
    }

    /// In words, for operators: what the replica does.
    pub fn describe(&self) -> &'static str {
        match &self.stage {
            Stage::Starting(_) => "starting",
            Stage::Beginning(_) => "empty, waiting for the others",
            Stage::Member(member) => member.describe(),
            Stage::Stopped => "stopped",
        }
    }

    fn go_on(&mut self, ended: Result<(), End>) {
        let Err(end) = ended else { return };
        if let Stage::Member(member) = &self.stage {
            if member.has_partition() {
                self.out.push(Output::Follow);
            }
        }
        match end {
            End::GivenUp(_) => {
                self.out.push(Output::Troubled(end.to_string()));
                self.config.seed = mix(self.config.seed);
                self.out.disk.emit(DiskOp::List, Purpose::Starting);
                self.stage = Stage::Starting(Starting::emptying());
            }
            End::Dismissed => {
                self.stage = Stage::Stopped;
                self.out.push(Output::Dismissed);
            }
            end => {
                self.stage = Stage::Stopped;
                self.out.push(Output::Stopped(end.to_string()));
            }
        }
    }
}

/// What a node does that has no replica and is told something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It is to have one: a replica starts there, and is told the same.
    Invited,
    /// It says that it has none.
    Answers(Bytes),
    Nothing,
}

/// What a node without a replica of the partition does about a message to it.
/// `plan` is what its configuration says of the partition ([`crate::plan`]).
pub fn on_message_to_nobody(message: Bytes, plan: u64) -> Absent {
    match ReplicaMessage::decode(message) {
        Ok(ReplicaMessage::Invite) => Absent::Invited,
        Ok(ReplicaMessage::Hello(hello)) if !hello.answer => {
            let none = Hello { heard: hello.nonce, answer: true, plan, ..Hello::default() };
            Absent::Answers(ReplicaMessage::Hello(none).encode())
        }
        _ => Absent::Nothing,
    }
}

/// The answer to what another replica says of itself.
pub(crate) fn answer(out: &mut Outputs, node: u16, heard: &Hello, own: Hello) {
    if !heard.answer {
        let answer = Hello { heard: heard.nonce, answer: true, ..own };
        out.send(node, &ReplicaMessage::Hello(answer));
    }
}
