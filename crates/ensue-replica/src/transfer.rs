//! The directory of another replica, file by file: only what this one lacks is fetched, since files only grow.

use crate::config::Config;
use crate::contents::{Contents, Grown};
use crate::message::ReplicaMessage;
use crate::replica::Outputs;
use crate::writer::Writer;
use bytes::Bytes;
use ensue_store::disk::FileName;
use raft::eraftpb;
use std::collections::VecDeque;

const ASK_AGAIN_TICKS: u32 = 15;
const PATIENCE_TICKS: u32 = 100;

/// What follows from a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    GoesOn,
    /// Everything is here.
    Done,
    /// It does not come.
    Failed,
    /// What this replica has is no beginning of what the other has.
    Differs,
}

/// A directory that is being fetched.
#[derive(Debug)]
pub(crate) struct Fetching {
    node: u16,
    index: u64,
    /// What the engine is told when everything is here.
    message: Option<eraftpb::Message>,
    /// Files to complete, the first one next: what is here, and what it is to be.
    plan: VecDeque<(FileName, Grown, Grown)>,
    differs: bool,
    idle: u32,
}

impl Fetching {
    pub(crate) fn new(
        node: u16,
        index: u64,
        message: eraftpb::Message,
        target: Contents,
        now: &Contents,
    ) -> Fetching {
        let mut plan = VecDeque::new();
        let mut differs = false;
        for (file, wanted) in target.grown {
            let has = now.grown.get(&file).copied().unwrap_or_default();
            if has.length > wanted.length || has.length > 0 && has.checksum.is_none() {
                differs = true;
            } else if has.length < wanted.length {
                plan.push_back((file, has, wanted));
            } else {
                differs |= has.checksum != wanted.checksum;
            }
        }
        Fetching { node, index, message: Some(message), plan, differs, idle: 0 }
    }

    pub(crate) fn is_of(&self, node: u16, index: u64) -> bool {
        (self.node, self.index) == (node, index)
    }

    pub(crate) fn take_message(&mut self) -> Option<eraftpb::Message> {
        self.message.take()
    }

    /// Asks for what is next.
    pub(crate) fn go_on(&mut self, config: &Config, out: &mut Outputs) -> Step {
        if self.differs {
            return Step::Differs;
        }
        let Some((file, has, wanted)) = self.plan.front() else { return Step::Done };
        let left = wanted.length - has.length;
        let length = left.min(u64::from(config.tuning.chunk_bytes)) as u32;
        let (index, file, offset) = (self.index, *file, has.length);
        out.send(self.node, &ReplicaMessage::Fetch { index, file, offset, length });
        Step::GoesOn
    }

    pub(crate) fn on_chunk(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        writer: &mut Writer,
        file: FileName,
        offset: u64,
        bytes: &Bytes,
    ) -> Step {
        let Some((wanted_file, has, wanted)) = self.plan.front_mut() else { return Step::GoesOn };
        let is_next = *wanted_file == file && has.length == offset && !bytes.is_empty();
        if !is_next || has.length + bytes.len() as u64 > wanted.length {
            return Step::GoesOn; // An answer to a question that was asked twice.
        }
        self.idle = 0;
        writer.append_bytes(out, file, bytes);
        has.grow(bytes);
        if has.length == wanted.length {
            if wanted.checksum.is_some() && has.checksum != wanted.checksum {
                return Step::Differs;
            }
            self.plan.pop_front();
        }
        self.go_on(config, out)
    }

    pub(crate) fn on_tick(&mut self, config: &Config, out: &mut Outputs) -> Step {
        self.idle += 1;
        if self.idle > PATIENCE_TICKS {
            return Step::Failed;
        }
        if self.idle % ASK_AGAIN_TICKS == 0 && self.message.is_some() {
            return self.go_on(config, out);
        }
        Step::GoesOn
    }
}
