//! On which directory this partition runs, which directories the other datacenters' partitions run on, and which of
//! them are refused.
//!
//! A partition's directory has a random identity, made at its first start. The first message on a link to another
//! datacenter is an introduction: it names the sender's directory, the receiver's as the sender knows it, and how much
//! of the receiver's stream the sender has. The receiver compares:
//!
//! - The sender's directory is not the one known here: the sender started with an empty or foreign directory. It is
//!   refused: nothing of it is taken and nothing is sent to it, until it introduces itself with the known directory.
//!   Everybody else is served.
//! - The sender has received more of this partition's stream than there is here, or another entry at a position: this
//!   directory is an old copy, or has lost the end of its log. The partition stops, for what it would write from here
//!   on would take positions that are taken. Only a proof counts (`DirectoryId::proof`): a peer's mistake must not stop
//!   a healthy partition.
//! - The sender's stream ends before what was received of it here: the sender is the old copy. It is refused until it
//!   has recovered.
//!
//! What a peer claims or requests without ground (acknowledgements of what was never sent, entries that the log no
//! longer has) refuses it, too. A refusal is counted, logged and shown; it ends with a valid introduction, or by an
//! operator (`CAUSAL READMIT`). What to do about an empty directory is `joining`'s.

use super::Peers;
use crate::partition::cx::Cx;
use crate::partition::failover::failed::FailedDatacenters;
use crate::partition::failover::is_given_up;
use crate::partition::others::Others;
use crate::partition::others::catch_up::CatchUp;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, DirectoryId, Incarnation, LogicalTime, PartitionId, Position, Rule};
use ensue_wire::{Introduction, Message, PeerStage};
use std::collections::{BTreeMap, BTreeSet};

/// How often the other datacenters are asked.
const REQUEST_INTERVAL_US: u64 = 1_000_000;

/// The directories of a partition in all datacenters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    own: DirectoryId,
    peers: BTreeMap<DatacenterId, Peer>,
    /// Why nothing is exchanged with a datacenter.
    refused: BTreeMap<DatacenterId, String>,
    /// Datacenters that say that they know another directory of this partition.
    denied_by: BTreeSet<DatacenterId>,
    /// Datacenters whose introduction said that they cannot take part yet.
    absent: BTreeMap<DatacenterId, PeerStage>,
    /// Datacenters that are recovering, from an empty directory perhaps: they may request everything that the log
    /// still has.
    recovering: BTreeMap<DatacenterId, Lacking>,
    /// Datacenters that have introduced themselves to this process, and agree with what is here.
    heard: BTreeSet<DatacenterId>,
    /// Datacenters that have said to this process how much of the own stream they have, and agree with what is here,
    /// whether they serve or not.
    told: BTreeSet<DatacenterId>,
    /// Datacenters that the operator gave up before this start, one bit each.
    without: u16,
    /// Partitions of this datacenter that lost their tails and are answered when all have told, and the questions'
    /// numbers.
    repeats: BTreeMap<PartitionId, u64>,
    /// Datacenters that are refused for what they say of third ones, which may turn out.
    unsure: BTreeSet<DatacenterId>,
    /// The farthest place of the own stream that each datacenter has ever said, to this process, that a third one has
    /// come to. Who said it may forget it with a restart.
    hearsay: BTreeMap<DatacenterId, Position>,
    /// Datacenters whose word about third ones counts no longer: an operator said so.
    vouched: BTreeSet<DatacenterId>,
    /// How often a datacenter was refused.
    refusals: u64,
    /// The end of the own stream when this process began to serve.
    opened_at: Position,
    /// The incarnation in which the log was that this process has read.
    read_in: Incarnation,
    /// The directory is being filled again in the place of one that was lost, since this process or an earlier one
    /// began with an empty one.
    rejoined: bool,
    /// Introductions sent, for the one timer of a partition that waits for answers.
    next_request_us: u64,
}

/// How far a datacenter that recovers has this one's stream and its own.
#[derive(Clone, Copy, Debug)]
struct Lacking {
    received: Position,
    end: Position,
}

/// The same partition of another datacenter.
#[derive(Clone, Copy, Debug)]
struct Peer {
    directory: DirectoryId,
    /// The time of the last entry received from it.
    last: LogicalTime,
}

/// What an introduction shows.
pub(in crate::partition) enum Finding {
    Valid,
    /// Something is wrong with the sender.
    Refuse(String),
    /// The sender has heard of what would make this directory an old copy.
    Unsure(String),
    /// Something is wrong with this directory: entries of its own stream are missing here.
    Short(String),
    /// The same, and entries were written since at positions that were taken.
    Forked(String),
}

impl Identity {
    /// Panics if what is known of the others' directories contradicts itself. Answers at how many it looked.
    pub(in crate::partition) fn check_invariants(&self, own: DatacenterId) -> usize {
        let named = self.peers.keys().chain(self.refused.keys()).chain(self.absent.keys());
        let mut named = named.chain(self.recovering.keys()).chain(&self.heard).chain(&self.told);
        assert!(named.all(|datacenter| *datacenter != own), "a datacenter is no peer of itself: {self:?}");
        for datacenter in &self.unsure {
            assert!(self.refused.contains_key(datacenter), "{datacenter:?} is refused for nothing: {self:?}");
        }
        self.peers.len() + self.refused.len() + self.recovering.len()
    }

    /// Derives the identity of a directory that is new from the random number of this start.
    pub(crate) fn draw(seed: u128, datacenter: DatacenterId, partition: u16) -> DirectoryId {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let mix = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        let bytes = partition.to_le_bytes().into_iter().chain([datacenter.0]);
        DirectoryId(bytes.fold(seed, mix) | 1)
    }

    /// The identity of the directory that this partition runs on.
    pub(in crate::partition) fn own(&self) -> DirectoryId {
        self.own
    }

    /// What the superblock says: the directory, whom the operator gave up, and whether it is being filled again.
    pub(in crate::partition) fn restore_own(&mut self, own: DirectoryId, without: u16, is_refilled: bool) {
        self.own = own;
        self.without = without;
        self.rejoined = is_refilled;
    }

    /// The partition goes on under the identity of a directory that was lost.
    pub(in crate::partition) fn rejoin(&mut self, lost: DirectoryId) {
        self.own = lost;
        self.rejoined = true;
    }

    /// Whether the directory is being filled again in the place of one that was lost.
    pub(in crate::partition) fn is_refilled(&self) -> bool {
        self.rejoined
    }

    /// The log was read, in this incarnation.
    pub(in crate::partition) fn note_read_in(&mut self, incarnation: Incarnation) {
        self.read_in = incarnation;
    }

    /// Whether this process has ended the incarnation in which it read its log.
    pub(in crate::partition) fn has_ended_incarnation(&self, cx: &Cx) -> bool {
        cx.incarnation > self.read_in
    }

    /// This process begins to serve.
    pub(in crate::partition) fn note_opened(&mut self, cx: &Cx) {
        self.opened_at = cx.position;
    }

    /// The time of the last entry received from a datacenter.
    pub(in crate::partition) fn last_of(&self, datacenter: DatacenterId) -> LogicalTime {
        self.peers.get(&datacenter).map(|peer| peer.last).unwrap_or_default()
    }

    /// When the others are asked again.
    pub(in crate::partition) fn next_request_us(&self) -> u64 {
        self.next_request_us
    }

    /// Whether they are to be asked now; if so, the next time is an interval later.
    pub(in crate::partition) fn take_request_due(&mut self, cx: &Cx) -> bool {
        let is_due = cx.now.monotonic_us >= self.next_request_us;
        if is_due {
            self.request_later(cx);
        }
        is_due
    }

    /// They have just been asked.
    pub(in crate::partition) fn request_later(&mut self, cx: &Cx) {
        self.next_request_us = cx.now.monotonic_us + REQUEST_INTERVAL_US;
    }

    /// A datacenter has introduced itself with what agrees. Whether it was refused before.
    pub(in crate::partition) fn accept(&mut self, datacenter: DatacenterId) -> bool {
        self.told.insert(datacenter);
        self.denied_by.remove(&datacenter);
        self.unsure.remove(&datacenter);
        self.refused.remove(&datacenter).is_some()
    }

    /// It does not take part yet.
    pub(in crate::partition) fn note_absent(&mut self, datacenter: DatacenterId, stage: PeerStage) {
        self.absent.insert(datacenter, stage);
    }

    /// It takes part. Whether it did not before.
    pub(in crate::partition) fn note_present(&mut self, datacenter: DatacenterId) -> bool {
        self.heard.insert(datacenter);
        self.absent.remove(&datacenter).is_some()
    }

    /// Nothing is exchanged with it from here on. Whether the reason is a new one.
    pub(in crate::partition) fn refuse(&mut self, datacenter: DatacenterId, reason: String) -> bool {
        self.unsure.remove(&datacenter);
        self.refusals += 1;
        let is_new = self.refused.get(&datacenter) != Some(&reason);
        self.refused.insert(datacenter, reason);
        is_new
    }

    /// It is refused for what it says of third datacenters, which may turn out.
    pub(in crate::partition) fn note_unsure(&mut self, datacenter: DatacenterId) {
        self.unsure.insert(datacenter);
    }

    pub(in crate::partition) fn unsure(&self) -> Vec<DatacenterId> {
        self.unsure.iter().copied().collect()
    }

    /// An operator vouches for it. Whether it was refused.
    pub(in crate::partition) fn readmit(&mut self, datacenter: DatacenterId) -> bool {
        self.vouched.insert(datacenter);
        self.refused.remove(&datacenter).is_some()
    }

    /// How often a datacenter was refused since the start.
    pub(in crate::partition) fn refusals(&self) -> u64 {
        self.refusals
    }

    /// A partition of this datacenter that lost its tail is answered when all others have told.
    pub(in crate::partition) fn keep_repeat(&mut self, partition: PartitionId, number: u64) {
        self.repeats.insert(partition, number);
    }

    pub(in crate::partition) fn has_repeats(&self) -> bool {
        !self.repeats.is_empty()
    }

    pub(in crate::partition) fn take_repeats(&mut self) -> BTreeMap<PartitionId, u64> {
        std::mem::take(&mut self.repeats)
    }

    /// What the log or a checkpoint says.
    pub(crate) fn restore(&mut self, datacenter: DatacenterId, directory: DirectoryId, last: LogicalTime) {
        let peer = self.peers.entry(datacenter).or_insert(Peer { directory, last });
        *peer = Peer { directory, last: peer.last.max(last) };
    }

    /// An entry was received, or was read from the log as received.
    pub(in crate::partition) fn note_received(&mut self, datacenter: DatacenterId, time: LogicalTime) {
        self.peers.entry(datacenter).or_insert(Peer { directory: DirectoryId::UNKNOWN, last: time }).last =
            time;
    }

    /// What a checkpoint must hold.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        self.peers.iter().map(|(&datacenter, peer)| Record::Peer {
            datacenter,
            directory: peer.directory,
            last: peer.last,
        })
    }

    pub(in crate::partition) fn known(&self, datacenter: DatacenterId) -> DirectoryId {
        self.peers.get(&datacenter).map(|peer| peer.directory).unwrap_or_default()
    }

    /// Why a datacenter is refused.
    pub(crate) fn refusal(&self, datacenter: DatacenterId) -> Option<&str> {
        self.refused.get(&datacenter).map(String::as_str)
    }

    /// Whether a message of another datacenter may be taken.
    pub(crate) fn admits(&self, datacenter: DatacenterId, message: &Message) -> bool {
        if self.refused.is_empty() && self.absent.is_empty() {
            return true;
        }
        match message {
            Message::Introduce(_) => true,
            Message::TailFetch { .. } => !self.refused.contains_key(&datacenter),
            // Its directory is another one because it is empty.
            Message::CopyFetch { .. } => self.is_recovering(datacenter),
            _ => !self.refused.contains_key(&datacenter) && !self.absent.contains_key(&datacenter),
        }
    }

    /// Whether a datacenter has said to this process how much it has of the own stream, or need not, for the operator
    /// gave it up.
    pub(in crate::partition) fn has_reported(&self, datacenter: DatacenterId) -> bool {
        self.told.contains(&datacenter) || is_given_up(self.without, datacenter)
    }

    /// Whether a datacenter has said that it has lost what it had, and nothing else since.
    pub(in crate::partition) fn is_recovering(&self, datacenter: DatacenterId) -> bool {
        self.recovering.contains_key(&datacenter)
    }

    /// Whether the log must keep everything that it has, for a datacenter that recovers.
    pub(in crate::partition) fn keeps_the_log(&self, failed: &FailedDatacenters) -> bool {
        self.recovering.keys().any(|datacenter| !failed.contains(*datacenter))
    }

    /// The link is down: the next one begins with an introduction.
    pub(crate) fn on_link_down(&mut self, datacenter: DatacenterId) {
        self.absent.remove(&datacenter);
    }

    pub(in crate::partition) fn other_entry(&self, cx: &Cx, name: &str, received: Position) -> String {
        format!(
            "{name} has received another entry at position {received} of this partition's stream than the one here: {}",
            self.fork_advice(cx)
        )
    }

    /// Whether anything was written since this process began to serve.
    fn has_written(&self, cx: &Cx) -> bool {
        cx.position > self.opened_at
    }

    fn fork_advice(&self, cx: &Cx) -> String {
        format!(
            "the directory is an old copy, and {} writes were taken on it since position {}, which nobody else will \
             take. Put the directory away (`ensue fsck DIR --writes-after {}:{}` lists them) and put the newest one \
             back, or start with an empty one",
            cx.position.0.saturating_sub(self.opened_at.0),
            self.opened_at,
            cx.id.0,
            self.opened_at
        )
    }
}

impl Peers {
    /// Whether everything can be sent that a datacenter lacks which has said that it recovers. It is a promise: a
    /// checkpoint under way may yet give up the beginning of the log, a later one does not.
    pub(in crate::partition) fn has_what_is_lacking(
        &self,
        cx: &Cx,
        others: &Others,
        is_checkpointing: bool,
        datacenter: DatacenterId,
    ) -> bool {
        let Some(lacking) = self.identity.recovering.get(&datacenter) else { return false };
        let of_theirs = others.replication.received(datacenter);
        let has_own = cx.position <= lacking.received || {
            // What was lost in between is passed over.
            let next = others.replication.applied.next(cx.datacenter, lacking.received);
            cx.journal.has_own_after(lacking.received, next)
        };
        let has_theirs = of_theirs <= lacking.end || {
            let next = others.replication.applied.next(datacenter, lacking.end);
            cx.journal.has_received_after(datacenter, next)
        };
        has_own && has_theirs && !is_checkpointing
    }

    /// Whoever recovers was told what the log has, or will be. Nothing of that is given up before it has recovered, and
    /// what it had synced before it lost it counts no longer.
    pub(in crate::partition) fn keep_the_log_for(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        datacenter: DatacenterId,
        theirs: &Introduction,
    ) {
        if theirs.stage == PeerStage::Serving || others.failover.failed.contains(datacenter) {
            self.identity.recovering.remove(&datacenter);
        } else {
            let lacking = Lacking { received: theirs.received, end: theirs.end };
            self.identity.recovering.insert(datacenter, lacking);
        }
        if theirs.stage != PeerStage::Serving {
            cx.journal.keep_all();
        }
    }

    /// Compares what another datacenter says with what is here.
    pub(in crate::partition) fn check_introduction(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        datacenter: DatacenterId,
        theirs: &Introduction,
    ) -> Finding {
        let name = cx.name_of(datacenter);
        let stream = (cx.datacenter, cx.id);
        let is_about_us = theirs.known != DirectoryId::UNKNOWN;
        if is_about_us && theirs.proof != theirs.known.proof(stream, theirs.received, theirs.last) {
            return Finding::Refuse(format!(
                "{name} contradicts itself in what it says of this partition's stream"
            ));
        }
        let denies = is_about_us && theirs.known != self.identity.own;
        if denies && self.is_denied_by_all(others, datacenter) {
            return Finding::Forked(format!(
                "REJOIN {name} knows another directory of partition {} ({}) than this one, and so does every other \
                 datacenter: this one is of another cluster, was exchanged, or was started empty by an operator's word \
                 (first-start alone). Put the right one back; if it is lost, start with an empty directory and without \
                 that word",
                cx.id, theirs.known
            ));
        }
        let known = self.identity.known(datacenter);
        if known != DirectoryId::UNKNOWN && known != theirs.directory {
            return Finding::Refuse(format!(
                "{name} runs this partition on another directory ({}) than the one known here ({known}): it was started \
                 with an empty, foreign or exchanged one. Put the right one back, or, if it is lost, see CAUSAL DEAD",
                theirs.directory
            ));
        }
        if denies {
            return Finding::Refuse(format!(
                "{name} knows another directory of this partition ({}) than the one that is served ({}), and others \
                 have not said so: see which of the two was exchanged or started empty, and put the right directory \
                 back",
                theirs.known, self.identity.own
            ));
        }
        let received = others.replication.received(datacenter);
        if theirs.stage == PeerStage::Serving
            && theirs.end < received
            && !others.failover.failed.contains(datacenter)
        {
            return Finding::Refuse(format!(
                "{name} has its own stream up to position {} only, and {received} was received from it: it runs on an \
                 old copy of its directory, or lost the end of its log. Start it again when it has stopped",
                theirs.end
            ));
        }
        match self.check_received(cx, others, datacenter, is_about_us, theirs) {
            Finding::Valid => self.check_report(cx, others, datacenter, theirs),
            finding => finding,
        }
    }

    /// The sender has heard that a third datacenter has more of this stream than there is here. That proves nothing: a
    /// peer's mistake must not stop a partition. But if it is so, what is written here must not reach the sender: it
    /// would take the places of what the sender has yet to receive. The third one will say.
    fn check_report(
        &mut self,
        cx: &Cx,
        others: &Others,
        datacenter: DatacenterId,
        theirs: &Introduction,
    ) -> Finding {
        let elsewhere = self.identity.hearsay.entry(datacenter).or_default();
        *elsewhere = theirs.elsewhere.max(*elsewhere);
        let elsewhere = *elsewhere;
        let is_open = |third: &DatacenterId| *third != datacenter && !self.identity.heard.contains(third);
        let open: Vec<DatacenterId> = others.living().filter(is_open).collect();
        // Who has not introduced itself to this process has nothing that this process has written.
        let nobody_else = others.living().count() == open.len() + 1;
        let known = if nobody_else { self.identity.opened_at } else { cx.position };
        if elsewhere <= known
            || open.is_empty()
            || self.identity.vouched.contains(&datacenter)
            || !Rule::HearWhatOthersHave.holds()
        {
            return Finding::Valid;
        }
        let names: Vec<String> = open.into_iter().map(|third| cx.name_of(third)).collect();
        let (name, names) = (cx.name_of(datacenter), names.join(" or "));
        Finding::Unsure(format!(
            "{name} has heard that {names} has this partition's stream up to {}, and the log here ended at {}: the \
             directory may be an old copy, and nothing is exchanged with {name} before {names} can be asked. Put the \
             newest directory back, or heal the links; if {names} is lost, run CAUSAL DEAD for it, and if you know \
             better, CAUSAL READMIT {name}",
            elsewhere, known
        ))
    }

    /// The sender knows another directory of this datacenter; says whether everybody does. It may be the sender that
    /// runs on a foreign one: one that says so alone stops nobody who has met it, nor does one that has agreed since
    /// this process began.
    fn is_denied_by_all(&mut self, others: &Others, datacenter: DatacenterId) -> bool {
        if self.identity.heard.contains(&datacenter) {
            return false;
        }
        self.identity.denied_by.insert(datacenter);
        let has_met = self.identity.known(datacenter) != DirectoryId::UNKNOWN;
        let leaves = Rule::LeaveAForeignDirectory.holds() && others.living().count() > 1;
        others.living().all(|other| self.identity.denied_by.contains(&other)) && (leaves || !has_met)
    }

    /// The sender knows this directory, or none: compares the stream.
    fn check_received(
        &self,
        cx: &mut Cx,
        others: &mut Others,
        datacenter: DatacenterId,
        is_about_us: bool,
        theirs: &Introduction,
    ) -> Finding {
        let name = &cx.name_of(datacenter);
        let (received, end) = (theirs.received, cx.position);
        if !Rule::NoticeAnOldCopy.holds() {
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
            return match self.identity.has_written(cx) {
                true => Finding::Forked(missing + &self.identity.fork_advice(cx)),
                false => Finding::Short(missing + SHORT_ADVICE),
            };
        }
        let is_lost = others.replication.applied.set(cx.datacenter).is_some_and(|set| set.is_lost(received));
        if !is_about_us || is_lost {
            return Finding::Valid;
        }
        // In a directory that was filled by a copy, the time of the last entry is not known before the next one.
        if theirs.last == LogicalTime::ZERO {
            return Finding::Valid;
        }
        match cx.own_time_at(received) {
            Some(time) if time != theirs.last => {
                Finding::Forked(self.identity.other_entry(cx, name, received))
            }
            Some(_) => Finding::Valid,
            None if received <= self.identity.opened_at => Finding::Valid,
            None => {
                // The partition goes on while the log is read: it did so before the link was up, too.
                cx.journal.read_to_compare(datacenter, received, theirs.last);
                others.replication.read_old_entries(cx);
                Finding::Valid
            }
        }
    }
}

const SHORT_ADVICE: &str = "its end was lost, as by an error of the disk before it was synced, or the directory is an \
                            old copy. Start the process again: then the partition takes back \
                            what the other datacenters have";

impl Peers {
    /// What goes by times shows what is stable, and a directory that was lost knew that of all that has come back. A
    /// lost tail need not wait: the log before it says what was stable.
    pub(in crate::partition) fn knows_what_was_stable(&self, others: &Others, catch_up: &CatchUp) -> bool {
        let is_known = |(datacenter, time): (DatacenterId, LogicalTime)| {
            others.failover.failed.contains(datacenter)
                || others.stable_time.times.stable().at(datacenter) >= time
        };
        !self.identity.rejoined
            || !others.stable_time.times.has_snapshot_vectors()
            || catch_up.ended_at().all(is_known)
    }
}
