//! The directory of another replica, file by file: only what this one lacks is fetched, since files only grow.
//!
//! Of what does not fit together, one side is wrong: the file of this replica, because it was deleted and began anew
//! among the entries that this one lacks, or that of the other, whose disk is bad. So the other's file is read as a
//! whole before this one is deleted.

use crate::config::Config;
use crate::contents::{Contents, Grown};
use crate::message::ReplicaMessage;
use crate::replica::Outputs;
use crate::writer::Writer;
use bytes::Bytes;
use ensue_store::disk::FileName;
use raft::eraftpb;
use std::cmp::Ordering;
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
    /// What this replica has of a file is no beginning of what the other is to have.
    Differs,
    /// The other has not got in a file what it is to have.
    Spoiled(FileName),
    /// The file begins anew here: what the other has is what it is to have.
    Replaces(FileName),
    /// A file that began anew has become another one.
    Lost(FileName),
}

/// What is done about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// What is here is completed.
    Complete,
    /// What the other has is read from its start and not kept: what is here stays until it is known who is right.
    Compare,
    /// It is written anew.
    Replace,
}

/// A file that is not here yet as it is to be: how much of it came, and what it is to be.
#[derive(Debug)]
struct Part {
    file: FileName,
    task: Task,
    has: Grown,
    wanted: Grown,
}

impl Part {
    fn new(file: FileName, has: Grown, wanted: Grown) -> Option<Part> {
        let part = |task, has| Some(Part { file, task, has, wanted });
        let begins_alike = has.length == 0 || has.checksum.is_some() && wanted.checksum.is_some();
        match (wanted.checksum, has.length.cmp(&wanted.length)) {
            (Some(_), Ordering::Equal) if has.checksum == wanted.checksum => None,
            (None, Ordering::Equal) if has.length == 0 => None,
            (_, Ordering::Less) if begins_alike => part(Task::Complete, has),
            (Some(_), _) => part(Task::Compare, Grown::default()),
            // It lost bytes once, and nobody knows the checksum of the rest.
            (None, _) => part(Task::Replace, Grown::default()),
        }
    }
}

/// A directory that is being fetched.
#[derive(Debug)]
pub(crate) struct Fetching {
    node: u16,
    index: u64,
    /// What the engine is told when everything is here.
    message: Option<eraftpb::Message>,
    /// Files to complete, the first one next.
    plan: VecDeque<Part>,
    /// All that is here is committed, so what differs is not the end of another leader's log.
    all_committed: bool,
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
        let has = |file| now.grown.get(&file).copied().unwrap_or_default();
        let parts = target.grown.into_iter().filter_map(|(file, wanted)| Part::new(file, has(file), wanted));
        let plan = parts.collect();
        Fetching { node, index, message: Some(message), plan, all_committed: false, idle: 0 }
    }

    pub(crate) fn is_of(&self, node: u16, index: u64) -> bool {
        (self.node, self.index) == (node, index)
    }

    pub(crate) fn node(&self) -> u16 {
        self.node
    }

    pub(crate) fn take_message(&mut self) -> Option<eraftpb::Message> {
        self.message.take()
    }

    /// Nothing that is here can be taken back: files that differ are compared, and written anew.
    pub(crate) fn compare(&mut self, config: &Config, out: &mut Outputs, writer: &mut Writer) -> Step {
        self.all_committed = true;
        self.begin_part(config, out, writer)
    }

    /// Asks for what is next.
    pub(crate) fn go_on(&self, config: &Config, out: &mut Outputs) -> Step {
        if !self.all_committed && self.plan.iter().any(|part| part.task != Task::Complete) {
            return Step::Differs;
        }
        let Some(Part { file, has, wanted, .. }) = self.plan.front() else { return Step::Done };
        let left = wanted.length - has.length;
        let length = left.min(u64::from(config.tuning.chunk_bytes)) as u32;
        let (index, file, offset) = (self.index, *file, has.length);
        out.send(self.node, &ReplicaMessage::Fetch { index, file, offset, length });
        Step::GoesOn
    }

    /// Comes to the file that is next now.
    fn begin_part(&mut self, config: &Config, out: &mut Outputs, writer: &mut Writer) -> Step {
        let mut replaces = None;
        while let Some(part) =
            self.plan.front().filter(|part| part.task == Task::Replace && self.all_committed)
        {
            replaces = Some(part.file);
            writer.begin_anew(out, part.file);
            if part.wanted.length > 0 {
                break;
            }
            self.plan.pop_front();
        }
        let step = self.go_on(config, out);
        replaces.filter(|_| step == Step::GoesOn).map_or(step, Step::Replaces)
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
        let Some(part) = self.plan.front_mut() else { return Step::GoesOn };
        let is_next = part.file == file && part.has.length == offset && !bytes.is_empty();
        if !is_next || part.has.length + bytes.len() as u64 > part.wanted.length {
            return Step::GoesOn; // An answer to a question that was asked twice.
        }
        self.idle = 0;
        if part.task != Task::Compare {
            writer.append_bytes(out, file, bytes);
        }
        part.has.grow(bytes);
        if part.has.length < part.wanted.length {
            return self.go_on(config, out);
        }
        let is_alike = part.wanted.checksum.is_none() || part.has.checksum == part.wanted.checksum;
        match (part.task, is_alike) {
            (Task::Complete | Task::Replace, true) => drop(self.plan.pop_front()),
            (Task::Complete, false) => (part.task, part.has) = (Task::Compare, Grown::default()),
            (Task::Compare, true) => (part.task, part.has) = (Task::Replace, Grown::default()),
            (Task::Compare, false) => return Step::Spoiled(file),
            (Task::Replace, false) => return Step::Lost(file),
        }
        self.begin_part(config, out, writer)
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
