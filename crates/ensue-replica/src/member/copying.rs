//! How a member takes another replica's directory for its own: it fetches what it lacks, and gives up what differs.

use super::{Member, promised, unreadable};
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
        // The new engine has heard of no leader, and knows nothing of what the old one had promised it.
        self.trust.promise(promised(config));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Tuning, id_of};
    use crate::message::Last;
    use crate::replica::Output;
    use raft::eraftpb::{ConfState, Entry, MessageType};

    fn config() -> Config {
        Config {
            node: 1,
            nodes: vec![0, 1, 2],
            founders: vec![0, 1, 2],
            always: true,
            lease: true,
            boot_id: [1; 16],
            seed: 7,
            tuning: Tuning::default(),
        }
    }

    fn message(from: u16, kind: MessageType, term: u64, (log_term, index): Last) -> eraftpb::Message {
        let mut message = eraftpb::Message::new();
        message.set_msg_type(kind);
        (message.from, message.to, message.term) = (id_of(from, 0), id_of(1, 0), term);
        (message.log_term, message.index) = (log_term, index);
        message
    }

    /// Carries out what the member has asked of its disk; says what it has sent.
    fn settle(member: &mut Member, config: &Config, out: &mut Outputs) -> Vec<ReplicaMessage> {
        let mut sent = Vec::new();
        loop {
            out.gather();
            let Some(output) = out.queue.pop_front() else { return sent };
            match output {
                Output::Send { message, .. } => sent.extend(ReplicaMessage::decode(message)),
                Output::Disk(op) => {
                    let done = crate::operation::Operation::of(&op).and_then(|operation| operation.done());
                    let done = done.expect("it only writes");
                    let purpose = out.disk.answered(&done).expect("it was asked for");
                    member.on_disk(config, out, purpose, done).expect("it goes on");
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_replica_that_gives_up_its_tail_keeps_what_it_promised_its_leader() {
        let (config, mut out) = (config(), Outputs::default());
        let mut members = ConfState::new();
        members.voters = (0..3).map(|node| id_of(node, 0)).collect();
        let base = Base { id: id_of(1, 0), index: 1, term: 1, members, contents: Contents::default() };
        let records = opening(&config, base.clone(), (1, true), HardState::new());
        let mut member = Member::begin(&config, &mut out, records, base, 1).expect("it begins");
        // The leader of term 5 has an entry that is not committed yet.
        let mut append = message(0, MessageType::MsgAppend, 5, (1, 1));
        let mut entry = Entry::new();
        (entry.term, entry.index, append.commit) = (5, 2, 1);
        append.entries = vec![entry].into();
        let say = |member: &mut Member, out: &mut Outputs, from, message| {
            let message = ReplicaMessage::Raft(Box::new(message));
            member.on_message(&config, out, from, message).expect("it goes on");
            settle(member, &config, out)
        };
        say(&mut member, &mut out, 0, append);
        assert_eq!(member.last(), (5, 2));
        member.on_different(&config, &mut out).expect("it goes on");
        settle(&mut member, &config, &mut out);
        assert_eq!(member.last(), (1, 1));
        // As long as the lease of the leader may last, nobody else gets a vote.
        let vote = |sent: &[ReplicaMessage]| {
            sent.iter().any(|message| {
                matches!(message, ReplicaMessage::Raft(raft)
                    if raft.get_msg_type() == MessageType::MsgRequestPreVoteResponse && !raft.reject)
            })
        };
        for ticks in 0..=config.tuning.election_ticks {
            let asks = message(2, MessageType::MsgRequestPreVote, 6, (5, 9));
            let votes = vote(&say(&mut member, &mut out, 2, asks));
            assert_eq!(votes, ticks == config.tuning.election_ticks, "after {ticks} ticks");
            member.on_tick(&config, &mut out, 0).expect("it goes on");
            settle(&mut member, &config, &mut out);
        }
    }
}
