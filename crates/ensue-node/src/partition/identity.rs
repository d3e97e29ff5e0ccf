//! On which directory this partition runs, which directories the other datacenters' partitions run on, and which of
//! them
//! are refused.
//!
//! A partition's directory has a random identity, made at its first start. The first message on a link to another
//! datacenter is
//! an introduction: it names the sender's directory, the receiver's as the sender knows it, and how much of the
//! receiver's stream the sender has. The receiver compares:
//!
//! - The sender's directory is not the one known here: the sender started with an empty or foreign directory. It is
//!   refused:
//!   nothing of it is taken and nothing is sent to it, until it introduces itself with the known directory. Everybody
//!   else is served.
//! - The sender has received more of this partition's stream than there is here, or another entry at a position: this
//!   directory
//!   is an old copy, or has lost the end of its log. The partition stops, for what it would write from here on would
//!   take
//!   positions that are taken. Only a proof counts (`DirectoryId::proof`): a peer's mistake must not stop a healthy
//!   partition.
//! - The sender's stream ends before what was received of it here: the sender is the old copy. It is refused until it
//!   has
//!   recovered.
//!
//! What a peer claims or requests without ground (acknowledgements of what was never sent, entries that the log no
//! longer
//! has) refuses it, too. A refusal is counted, logged and shown; it ends with a valid introduction, or by an operator
//! (`CAUSAL READMIT`). What to do about an empty directory is `joining`'s.

use super::{Partition, Stage};
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::layout;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, DirectoryId, LogicalTime, Position, Reply, Rule};
use ensue_wire::{Address, Introduction, Message, PeerStage};
use std::collections::{BTreeMap, BTreeSet};

/// The directories of a partition in all datacenters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    pub(super) own: DirectoryId,
    peers: BTreeMap<DatacenterId, Peer>,
    /// Why nothing is exchanged with a datacenter.
    refused: BTreeMap<DatacenterId, String>,
    /// Datacenters that say that they know another directory of this partition.
    denied_by: BTreeSet<DatacenterId>,
    /// Datacenters whose introduction said that they cannot take part yet.
    absent: BTreeMap<DatacenterId, PeerStage>,
    /// Datacenters that are recovering, from an empty directory perhaps: they may request everything that the log
    /// still has.
    recovering: BTreeSet<DatacenterId>,
    /// How often a datacenter was refused.
    pub(super) refusals: u64,
    /// The end of the own stream when this process began to serve.
    pub(super) opened_at: Position,
    /// This process began with an empty directory in the place of one that was lost.
    pub(super) rejoined: bool,
    /// Introductions sent, for the one timer of a partition that waits for answers.
    pub(super) next_request_us: u64,
}

/// The same partition of another datacenter.
#[derive(Clone, Copy, Debug)]
struct Peer {
    directory: DirectoryId,
    /// The time of the last entry received from it.
    last: LogicalTime,
}

/// What an introduction shows.
pub(super) enum Finding {
    Valid,
    /// Something is wrong with the sender.
    Refuse(String),
    /// Something is wrong with this directory: entries of its own stream are missing here.
    Short(String),
    /// The same, and entries were written since at positions that were taken.
    Forked(String),
}

impl Identity {
    /// Derives the identity of a directory that is new from the random number of this start.
    pub(super) fn draw(seed: u128, datacenter: DatacenterId, partition: u16) -> DirectoryId {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let mix = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        let bytes = partition.to_le_bytes().into_iter().chain([datacenter.0]);
        DirectoryId(bytes.fold(seed, mix) | 1)
    }

    /// What the log or a checkpoint says.
    pub(super) fn restore(&mut self, datacenter: DatacenterId, directory: DirectoryId, last: LogicalTime) {
        let peer = self.peers.entry(datacenter).or_insert(Peer { directory, last });
        *peer = Peer { directory, last: peer.last.max(last) };
    }

    /// An entry was received, or was read from the log as received.
    pub(super) fn note_received(&mut self, datacenter: DatacenterId, time: LogicalTime) {
        self.peers.entry(datacenter).or_insert(Peer { directory: DirectoryId::UNKNOWN, last: time }).last =
            time;
    }

    /// What a checkpoint must hold.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.peers.iter().map(|(&datacenter, peer)| Record::Peer {
            datacenter,
            directory: peer.directory,
            last: peer.last,
        })
    }

    fn known(&self, datacenter: DatacenterId) -> DirectoryId {
        self.peers.get(&datacenter).map(|peer| peer.directory).unwrap_or_default()
    }

    /// Why a datacenter is refused.
    pub(crate) fn refusal(&self, datacenter: DatacenterId) -> Option<&str> {
        self.refused.get(&datacenter).map(String::as_str)
    }

    /// Whether a message of another datacenter may be taken.
    pub(super) fn admits(&self, datacenter: DatacenterId, message: &Message) -> bool {
        if self.refused.is_empty() && self.absent.is_empty() {
            return true;
        }
        match message {
            Message::Introduce(_) => true,
            Message::Regain { .. } => !self.refused.contains_key(&datacenter),
            _ => !self.refused.contains_key(&datacenter) && !self.absent.contains_key(&datacenter),
        }
    }

    /// Whether the log must keep everything that it has, for a datacenter that recovers.
    pub(super) fn keeps_the_log(&self) -> bool {
        !self.recovering.is_empty()
    }

    /// A datacenter is lost for good.
    pub(super) fn forget_recovering(&mut self, datacenter: DatacenterId) {
        self.recovering.remove(&datacenter);
    }

    /// The link is down: the next one begins with an introduction.
    pub(super) fn on_link_down(&mut self, datacenter: DatacenterId) {
        self.absent.remove(&datacenter);
    }
}

impl Partition {
    /// The message with which everything between two datacenters begins.
    pub(super) fn introduce(&mut self, datacenter: DatacenterId, asks: bool) {
        let stage = match &self.stage {
            Stage::Joining(_) => PeerStage::Joining,
            Stage::Regaining(_) => PeerStage::Recovering,
            _ => PeerStage::Serving,
        };
        let received =
            self.receivers.get(&datacenter).map(|receiver| receiver.received()).unwrap_or_default();
        let peer = self.identity.peers.get(&datacenter).copied();
        let known = self.identity.known(datacenter);
        let last = peer.map(|peer| peer.last).unwrap_or_default();
        let introduction = Introduction {
            directory: self.identity.own,
            stage,
            known,
            received,
            last,
            proof: known.proof((datacenter, self.id), received, last),
            applied: self.applied.set(datacenter).map(|set| set.watermark).unwrap_or_default(),
            end: self.position,
            // A promise, once the receiver is known to recover; a checkpoint under way may yet give up the beginning
            // of the log.
            is_whole: self.persistence.is_whole()
                && self.persistence.writer.is_none()
                && self.identity.recovering.contains(&datacenter),
            asks,
        };
        let to = Address::Partition { datacenter, partition: self.id };
        self.send(to, Message::Introduce(introduction));
    }

    /// Introduces this partition, and requests the stream.
    pub(super) fn greet(&mut self, datacenter: DatacenterId) {
        self.introduce(datacenter, false);
        if self.identity.refusal(datacenter).is_none() {
            self.resume_stream(datacenter);
            self.tell_of_the_dead_again(datacenter);
        }
    }

    /// Another datacenter's partition says who it is.
    pub(super) fn on_introduce(&mut self, datacenter: DatacenterId, introduction: &Introduction) {
        if !self.senders.contains_key(&datacenter) {
            return self.trace(Trace::Refused { what: "an introduction of no datacenter" });
        }
        self.keep_the_log_for(datacenter, introduction);
        let finding = self.judge_introduction(datacenter, introduction);
        match finding {
            Finding::Valid => self.accept_peer(datacenter, introduction),
            Finding::Refuse(reason) => self.refuse_peer(datacenter, reason),
            Finding::Short(reason) => return self.stop_short(reason),
            Finding::Forked(reason) => return self.stop_forked(reason),
        }
        if introduction.asks {
            self.greet(datacenter);
        }
    }

    /// Whoever recovers was told what the log has, or will be. Nothing of that is given up before it has recovered,
    /// and what it had
    /// synced before it lost it counts no longer.
    fn keep_the_log_for(&mut self, datacenter: DatacenterId, theirs: &Introduction) {
        if theirs.stage == PeerStage::Serving || self.dead.contains(datacenter) {
            self.identity.recovering.remove(&datacenter);
        } else {
            self.identity.recovering.insert(datacenter);
        }
        if let (true, Some(log)) = (theirs.stage != PeerStage::Serving, &self.persistence.log) {
            self.persistence.stream_floor = log.first();
        }
    }

    /// Compares what another datacenter says with what is here.
    pub(super) fn judge_introduction(&mut self, datacenter: DatacenterId, theirs: &Introduction) -> Finding {
        let name = self.name_of(datacenter);
        let stream = (self.datacenter, self.id);
        let is_about_us = theirs.known != DirectoryId::UNKNOWN;
        if is_about_us && theirs.proof != theirs.known.proof(stream, theirs.received, theirs.last) {
            return Finding::Refuse(format!(
                "{name} contradicts itself in what it says of this partition's stream"
            ));
        }
        let known = self.identity.known(datacenter);
        let is_foreign = known != DirectoryId::UNKNOWN && known != theirs.directory;
        if is_foreign && self.config.rules.hold(Rule::KnowTheDirectory) {
            return Finding::Refuse(format!(
                "{name} runs this partition on another directory ({}) than the one known here ({known}): it was started \
                 with an empty, foreign or exchanged one. Put the right one back, or, if it is lost, see CAUSAL DEAD",
                theirs.directory
            ));
        }
        if is_about_us && theirs.known != self.identity.own {
            return self.judge_other_directory(datacenter, theirs);
        }
        let received =
            self.receivers.get(&datacenter).map(|receiver| receiver.received()).unwrap_or_default();
        if theirs.stage == PeerStage::Serving && theirs.end < received && !self.dead.contains(datacenter) {
            return Finding::Refuse(format!(
                "{name} has its own stream up to position {} only, and {received} was received from it: it runs on an \
                 old copy of its directory, or lost the end of its log. Start it again when it has stopped",
                theirs.end
            ));
        }
        self.judge_received(datacenter, is_about_us, theirs)
    }

    /// The sender knows another directory of this datacenter.
    fn judge_other_directory(&mut self, datacenter: DatacenterId, theirs: &Introduction) -> Finding {
        let name = self.name_of(datacenter);
        if self.identity.known(datacenter) != DirectoryId::UNKNOWN {
            return Finding::Refuse(format!(
                "{name} knows another directory of this partition ({}), though it has known the one that is served ({})",
                theirs.known, self.identity.own
            ));
        }
        // It may be the other one that runs on foreign directories: one that says so alone stops nobody.
        self.identity.denied_by.insert(datacenter);
        if !self.living().all(|other| self.identity.denied_by.contains(&other)) {
            return Finding::Refuse(format!(
                "{name} knows another directory of this partition ({}) than the one that is served ({}), and others have not said \
                 so: see which of the two was exchanged or started empty, and put the right directory back",
                theirs.known, self.identity.own
            ));
        }
        Finding::Forked(format!(
            "REJOIN {name} knows an earlier directory of partition {} ({}): this one was started empty by an \
             operator's word (first-start alone). Put the earlier one back; if it is lost, start with an empty \
             directory and without that word",
            self.id, theirs.known
        ))
    }

    /// The sender knows this directory, or none: compares the stream.
    fn judge_received(
        &mut self,
        datacenter: DatacenterId,
        is_about_us: bool,
        theirs: &Introduction,
    ) -> Finding {
        let name = &self.name_of(datacenter);
        let (received, end) = (theirs.received, self.position);
        if !self.config.rules.hold(Rule::NoticeAnOldCopy) {
            return Finding::Valid;
        }
        if received > end {
            if !is_about_us {
                return Finding::Refuse(format!(
                    "{name} says that it has received this partition's stream up to {received}, which ends at {end}"
                ));
            }
            let missing = format!(
                "{name} has received this partition's stream up to {received}, and the log here ends at {end}: "
            );
            return match self.has_written() {
                true => Finding::Forked(missing + &self.fork_advice()),
                false => Finding::Short(missing + SHORT_ADVICE),
            };
        }
        let is_lost = self.applied.set(self.datacenter).is_some_and(|set| set.is_lost(received));
        if !is_about_us || is_lost || received <= self.identity.opened_at {
            return Finding::Valid;
        }
        match self.own_time_at(received) {
            Some(time) if time != theirs.last => Finding::Forked(self.other_entry(name, received)),
            Some(_) => Finding::Valid,
            None => {
                // The partition goes on while the log is read: it did so before the link was up, too.
                self.persistence.read_to_compare(datacenter, received, theirs.last);
                self.read_old_entries();
                Finding::Valid
            }
        }
    }

    fn other_entry(&self, name: &str, received: Position) -> String {
        format!(
            "{name} has received another entry at position {received} of this partition's stream than the one here: {}",
            self.fork_advice()
        )
    }

    /// The own entry that another datacenter has received was read from the log.
    pub(super) fn compare_with(
        &mut self,
        datacenter: DatacenterId,
        last: LogicalTime,
        read: &[(Position, Bytes)],
    ) {
        let Some((position, bytes)) = read.first() else { return };
        if layout::decode_entry(bytes).is_ok_and(|entry| entry.stamp.time != last) {
            let reason = self.other_entry(&self.name_of(datacenter), *position);
            self.stop_forked(reason);
        }
    }

    /// Whether anything was written since this process began to serve.
    fn has_written(&self) -> bool {
        self.position > self.identity.opened_at
    }

    fn fork_advice(&self) -> String {
        format!(
            "the directory is an old copy, and {} writes were taken on it since position {}, which nobody else will take. \
             Put the directory away (`ensue fsck DIR --writes-after {}:{}` lists them) and put the newest one back, or start with an \
             empty one",
            self.position.0.saturating_sub(self.identity.opened_at.0),
            self.identity.opened_at,
            self.id.0,
            self.identity.opened_at
        )
    }

    /// The time of the own entry at a position, if it is in memory.
    fn own_time_at(&self, position: Position) -> Option<LogicalTime> {
        let bytes = self.persistence.entry_in_memory(position)?;
        layout::decode_entry(&bytes).ok().map(|entry| entry.stamp.time)
    }

    /// The sender is who it was, and its claims agree with what is here.
    fn accept_peer(&mut self, datacenter: DatacenterId, theirs: &Introduction) {
        if let Some(sender) = self.senders.get_mut(&datacenter) {
            sender.on_introduced(theirs.received);
        }
        self.identity.denied_by.remove(&datacenter);
        let was_refused = self.identity.refused.remove(&datacenter).is_some();
        if was_refused {
            self.trace(Trace::PeerReadmitted { partition: self.id, datacenter });
        }
        if theirs.stage != PeerStage::Serving {
            self.identity.absent.insert(datacenter, theirs.stage);
            if let Some(sender) = self.senders.get_mut(&datacenter) {
                sender.on_link_down();
            }
            return;
        }
        let was_absent = self.identity.absent.remove(&datacenter).is_some();
        if self.identity.known(datacenter) == DirectoryId::UNKNOWN {
            let last = self.identity.peers.get(&datacenter).map(|peer| peer.last).unwrap_or_default();
            let directory = theirs.directory;
            self.identity.restore(datacenter, directory, last);
            if self.persistence.log.is_some() {
                self.persistence.log(&Record::Peer { datacenter, directory, last });
            }
        }
        if (was_refused || was_absent) && !theirs.asks {
            self.greet(datacenter);
        }
    }

    /// Nothing is exchanged with a datacenter any more, until it introduces itself with what agrees.
    pub(super) fn refuse_peer(&mut self, datacenter: DatacenterId, reason: String) {
        if !self.config.rules.hold(Rule::RefuseThePeerAlone) {
            return self.stop(reason);
        }
        if let Some(sender) = self.senders.get_mut(&datacenter) {
            sender.on_link_down();
        }
        self.paused.remove(&datacenter);
        self.identity.refusals += 1;
        let before = self.identity.refused.insert(datacenter, reason.clone());
        if before.as_ref() != Some(&reason) {
            self.trace(Trace::PeerRefused { partition: self.id, datacenter, reason });
        }
    }

    /// An operator wants a refused datacenter to be looked at again.
    pub(super) fn execute_readmit(&mut self, name: &Bytes) -> Reply {
        let Some(datacenter) = self.config.topology.datacenter_named(name) else {
            return Reply::error("ERR there is no datacenter of this name");
        };
        if self.identity.refused.remove(&datacenter).is_some() {
            self.trace(Trace::PeerReadmitted { partition: self.id, datacenter });
        }
        self.introduce(datacenter, true);
        Reply::OK
    }

    /// The end of the own log was lost though it was taken for whole, as when a file system is mounted again after an
    /// error: the next
    /// start recovers it from the other datacenters.
    fn stop_short(&mut self, reason: String) {
        // A checkpoint under way must not be named before it is whole; then the next stop marks it.
        let marked = match (&mut self.persistence.superblock, &self.persistence.writer) {
            (Some(superblock), None) => Some(superblock.mark_tail_lost()),
            _ => None,
        };
        self.stop(reason);
        self.disk.extend(marked);
    }

    /// The directory is not the datacenter's newest, and was written to: it must not be served by a next start either.
    fn stop_forked(&mut self, reason: String) {
        let marked = match (&mut self.persistence.superblock, &self.persistence.writer) {
            (Some(superblock), None) => Some(superblock.mark_not_admitted()),
            _ => None,
        };
        self.stop(reason);
        self.disk.extend(marked);
    }

    pub(super) fn name_of(&self, datacenter: DatacenterId) -> String {
        let named = self.config.topology.datacenters.get(usize::from(datacenter.0));
        named.map_or_else(|| datacenter.to_string(), |datacenter| datacenter.name.clone())
    }
}

const SHORT_ADVICE: &str = "its end was lost, as by an error of the disk before it was synced, or the directory is an old copy. \
                            Start the process again: then the partition takes back what the other datacenters have";
