//! How a member takes another replica's directory for its own: it fetches what it lacks, and gives up what differs.

use super::{Member, unreadable};
use crate::codec::Fields;
use crate::config::Config;
use crate::contents::Contents;
use crate::engine::engine;
use crate::held::Held;
use crate::journal::Base;
use crate::message::ReplicaMessage;
use crate::replica::{End, Output, Outputs};
use crate::starting::opening;
use crate::transfer::{Fetching, Step};
use bytes::Bytes;
use ensue_store::disk::FileName;
use raft::eraftpb::{self, HardState};

impl Member {
    pub(super) fn begin_fetching(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        node: u16,
        message: eraftpb::Message,
    ) -> Result<(), End> {
        let index = message.get_snapshot().get_metadata().index;
        if self.fetching.as_ref().is_some_and(|fetching| fetching.is_of(node, index)) {
            return Ok(());
        }
        if self.writer.begins_anew() {
            // What has come of the one before may be a beginning of this one.
            self.fetching = None;
        }
        self.abandon_fetching(out)?;
        let mut fields = Fields(message.get_snapshot().data.clone());
        let target = Contents::take(&mut fields).map_err(unreadable)?;
        let fetching = Fetching::new(node, index, message, target, self.writer.contents());
        let step = fetching.go_on(config, out);
        self.fetching = Some(fetching);
        self.after_fetching(config, out, step)
    }

    pub(super) fn on_chunk(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        (node, index): (u16, u64),
        (file, offset): (FileName, u64),
        bytes: &Bytes,
    ) -> Result<(), End> {
        let Some(fetching) = self.fetching.as_mut().filter(|fetching| fetching.is_of(node, index)) else {
            return Ok(());
        };
        let step = fetching.on_chunk(config, out, &mut self.writer, file, offset, bytes);
        self.after_fetching(config, out, step)
    }

    fn after_fetching(&mut self, config: &Config, out: &mut Outputs, step: Step) -> Result<(), End> {
        match step {
            Step::GoesOn => Ok(()),
            Step::Failed => self.abandon_fetching(out),
            Step::Differs => self.on_different(config, out),
            Step::Replaces(file) => {
                let node = self.fetching.as_ref().map_or(0, Fetching::node);
                out.push(Output::Troubled(format!("{file} is fetched anew from core {node}")));
                Ok(())
            }
            Step::Lost(file) => Err(End::GivenUp(format!("{file} changed while it was fetched"))),
            Step::Spoiled(file) => {
                let node = self.fetching.as_ref().map_or(0, Fetching::node);
                if self.found_spoiled.replace((node, file)) != Some((node, file)) {
                    let words = format!("{file} of core {node} is not what was written, and is not taken");
                    out.push(Output::Troubled(words));
                }
                out.send(node, &ReplicaMessage::Spoiled { file });
                self.abandon_fetching(out)
            }
            Step::Done => {
                let Some(fetching) = &mut self.fetching else { return Ok(()) };
                let Some(message) = fetching.take_message() else { return Ok(()) };
                self.step(config, message)?;
                self.go_on(config, out)?;
                // The engine had no use for it after all.
                self.abandon_fetching(out)
            }
        }
    }

    /// The leader has other bytes than this replica. Where this one has entries that nobody has committed, they never
    /// will be, and go first. What differs then are files that began anew among the entries that this one lacks, or
    /// whose bytes are damaged on one of the two disks.
    fn on_different(&mut self, config: &Config, out: &mut Outputs) -> Result<(), End> {
        let (committed, last) = (self.raw.raft.raft_log.committed, self.raw.store().last());
        if self.raw.store().applied.0 < committed {
            // Not everything is carried out yet: the leader sends it again.
            return self.abandon_fetching(out);
        }
        if last > committed {
            return self.give_up_tail(config, out, committed);
        }
        let Some(fetching) = &mut self.fetching else { return Ok(()) };
        let step = fetching.compare(config, out, &mut self.writer);
        self.after_fetching(config, out, step)
    }

    /// The engine begins again without entries that are not committed.
    fn give_up_tail(&mut self, config: &Config, out: &mut Outputs, committed: u64) -> Result<(), End> {
        self.fetching = None;
        let mut held = Held::new(HardState::new(), &Base::default());
        std::mem::swap(&mut held, self.raw.mut_store());
        held.cut(committed);
        held.hard = self.raw.raft.hard_state();
        let contents = held.contents.clone();
        self.raw = engine(config, self.id, held)?;
        self.after.clear();
        self.steps_before = self.last_step;
        self.writer.cut(out, contents);
        self.trust.begin_life();
        self.begin_journal(config, out)?;
        self.greet(config, out);
        Ok(())
    }

    /// What was fetched is no part of the log.
    pub(super) fn abandon_fetching(&mut self, out: &mut Outputs) -> Result<(), End> {
        if self.writer.begins_anew() {
            return Err(End::GivenUp(
                "a file was deleted here, and does not come from another replica".into(),
            ));
        }
        if self.fetching.take().is_some() {
            let held = self.raw.store();
            let contents = held.contents_at(held.last(), self.executed).map_err(unreadable)?;
            self.writer.cut(out, contents);
        }
        Ok(())
    }

    /// The engine takes another replica's directory, which has been fetched, for its own.
    pub(super) fn take_over(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        number: u64,
        metadata: eraftpb::SnapshotMetadata,
        data: Bytes,
    ) -> Result<(), End> {
        self.fetching = None;
        self.taking_over = Some((number, metadata.index));
        let contents = Contents::take(&mut Fields(data)).map_err(unreadable)?;
        let (index, term, members) = (metadata.index, metadata.term, metadata.get_conf_state().clone());
        let mut hard = self.raw.raft.hard_state();
        hard.commit = hard.commit.max(index);
        let base = Base { id: self.id, index, term, members: members.clone(), contents: contents.clone() };
        let records = opening(config, base, (self.trust.life(), self.trust.is_whole()), hard.clone());
        self.writer.take_over(out, records, &contents, number);
        self.executed = index;
        let held = self.raw.mut_store();
        held.hard = hard;
        held.restart(index, term, members, contents);
        Ok(())
    }
}
