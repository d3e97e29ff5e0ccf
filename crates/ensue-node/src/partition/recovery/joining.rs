//! A partition that starts with an empty directory finds out whether its datacenter has lost an earlier one.
//!
//! It serves nothing and introduces itself to the same partition of every other datacenter. All must answer:
//!
//! - Nobody knows an earlier directory: it is the datacenter's first. In a cluster that begins it is served. Beside
//!   others that hold something it is that of a datacenter that is added: it takes that from their logs, or as a copy,
//!   as if it had lost it, once every core of every other datacenter knows of it.
//! - Some know an earlier one: that directory was lost, or is not where this process looks for it. If every other
//!   datacenter serves, still has its whole log, and has applied all that it received of the lost one, everything can
//!   be sent again: the partition takes over the earlier identity, takes its own stream back (`tail_recovery`),
//!   receives the others' from their beginnings (`catch_up`), and serves when all of that is applied.
//! - If their logs no longer have everything, one of them gives a copy of what it holds (`copying`), and the rest is
//!   taken back as from an old copy of the directory.
//! - Otherwise nothing can be served that would be causally complete: sessions are told `REJOIN` and what to do, and
//!   the others are asked again every second, for an operator may put that right.
//!
//! The same happens to a directory that was found to be an old copy which was written to: it is never served again.

use super::copying::Copying;
use crate::partition::failover::is_given_up;
use crate::partition::journal::open::Open;
use crate::partition::others::Others;
use crate::partition::peering::Peering;
use crate::partition::peers::lost_directory::Lost;
use crate::trace::Trace;
use ensue_protocol::Protocol;
use ensue_types::{DatacenterId, DirectoryId, Incarnation, PartitionId, Position, Rule};
use ensue_wire::{Address, Envelope, Introduction, Message, PeerStage};
use std::collections::{BTreeMap, BTreeSet};

/// The other datacenters are being asked.
#[derive(Clone, Debug, Default)]
pub struct Joining {
    records: u64,
    open: Open,
    answers: BTreeMap<DatacenterId, Introduction>,
    /// Datacenters that have said that their logs lack something, and were asked whether that is so.
    requested_again: BTreeSet<DatacenterId>,
    /// Datacenters that were declared dead meanwhile, one bit each.
    pub(in crate::partition::recovery) without: u16,
    /// What another datacenter holds is being copied.
    pub(in crate::partition::recovery) copying: Option<Copying>,
    /// Whether the other partitions of this datacenter are being filled, too, as they say, once that matters.
    siblings: BTreeMap<PartitionId, bool>,
    queries_siblings: bool,
    /// How many copies of each datacenter broke off.
    pub(in crate::partition::recovery) failed_copies: BTreeMap<DatacenterId, u32>,
    /// Why it cannot be served though all have answered.
    pub(in crate::partition::recovery) refusal: Option<String>,
}

/// What the answers say.
pub(in crate::partition) enum Join {
    /// Nobody knows an earlier directory; what others hold is to be had, but from datacenters of this mask.
    AsFirst { beside: Option<u16> },
    /// This one was lost, and all that it held can be had again.
    Again(DirectoryId, Vec<(DatacenterId, Introduction)>),
}

impl Joining {
    pub(in crate::partition) fn new(records: u64, open: Open) -> Joining {
        Joining { records, open, ..Joining::default() }
    }

    /// The datacenters that have not answered.
    pub(in crate::partition) fn awaited(&self, others: &Others) -> Vec<DatacenterId> {
        let is_awaited = |d: &DatacenterId| {
            !is_given_up(self.without, *d)
                && !others.failover.failed.contains(*d)
                && !self.answers.contains_key(d)
        };
        others.replication.datacenters().filter(is_awaited).collect()
    }

    pub(in crate::partition) fn on_message(&mut self, p: &mut Peering<'_>, envelope: Envelope) -> bool {
        let from = envelope.from.datacenter();
        p.others.take_time(p.cx, &envelope);
        match envelope.message {
            Message::Introduce(introduction) if p.others.replication.knows(from) => {
                let asks = introduction.asks;
                p.peers.keep_the_log_for(p.cx, p.others, from, &introduction);
                self.abandon_copy_of_another(p, from, introduction.directory);
                let is_answer = self.confirms(from, &introduction);
                if is_answer {
                    self.answers.insert(from, introduction);
                } else {
                    let answered = self.answers.get(&from).map(|earlier| earlier.directory);
                    if answered.is_some_and(|directory| directory != introduction.directory) {
                        self.answers.remove(&from);
                    }
                }
                if asks || !is_answer {
                    p.introduce(from, !is_answer);
                }
                return true;
            }
            // It must not wait for one that waits for it.
            Message::TailFetch { after } if self.is_known_to_nobody(p.others) => {
                p.others.replication.on_tail_fetch(p.cx, from, after);
            }
            Message::Copied { copy, part, is_last, done, of, items } => {
                self.on_copied(p, from, (copy, part, is_last), (done, of), &items);
            }
            Message::CopyRefused { copy, cannot } => self.on_copy_refused(p, from, copy, cannot),
            Message::FillQuery => p.cx.send(envelope.from, Message::FillAnswer { fills: true }),
            Message::FillAnswer { fills } => {
                if let Address::Partition { partition, .. } = envelope.from {
                    self.siblings.insert(partition, fills);
                }
                return true;
            }
            Message::DatacenterFailed { datacenter, .. } => {
                if datacenter.0 < 16 && datacenter != from {
                    self.without |= 1 << datacenter.0;
                }
                p.peers.buffer(p.cx, envelope);
                return true;
            }
            Message::ReportChanges { .. } => p.peers.buffer(p.cx, envelope),
            _ if matches!(envelope.from, Address::Core { .. }) => {
                let reason = self.joining_words(p);
                p.cx.refuse(&envelope, &reason);
            }
            // Partitions of this datacenter wait, and those of others send again what they are not answered.
            _ if from == p.cx.datacenter => p.peers.buffer(p.cx, envelope),
            _ => {}
        }
        false
    }

    /// Whoever holds something greets each link before it has heard of this partition, and cannot say then that its log
    /// has everything, nor that it keeps it. So where it matters, that something is missing is only believed of who was
    /// asked since: a wrong answer would have an operator declare this datacenter dead, or a copy taken that nobody
    /// needs.
    fn confirms(&mut self, from: DatacenterId, introduction: &Introduction) -> bool {
        let holds = introduction.known != DirectoryId::UNKNOWN || introduction.end > Position(0);
        let lacks = holds && !introduction.is_whole;
        let is_first = lacks && self.requested_again.insert(from);
        if !is_first {
            self.requested_again.remove(&from);
        }
        !is_first
    }

    /// Whether all have said that they know no directory of this datacenter: then it has nothing of theirs.
    fn is_known_to_nobody(&self, others: &Others) -> bool {
        let mut known = self.answers.values().map(|introduction| introduction.known);
        self.awaited(others).is_empty() && known.all(|known| known == DirectoryId::UNKNOWN)
    }

    /// What sessions are told, and an operator is to do.
    fn joining_words(&self, p: &Peering<'_>) -> String {
        if let Some(copying) = self.copying.as_ref().filter(|_| self.refusal.is_none()) {
            return copying.words(p);
        }
        let awaited = self.awaited(p.others);
        if let (Some(core), true, None) = (p.cx.unmet, awaited.is_empty(), &self.refusal) {
            return format!(
                "LOADING partition {} is of a datacenter that is new, and waits for a link to core {} of {}: every node of \
                 the other datacenters must have been started with `node` lines that name this one",
                p.cx.id,
                core.core.0,
                p.cx.name_of(core.datacenter)
            );
        }
        if let (Some(sibling), true, None) =
            (self.open_siblings(p).first(), awaited.is_empty(), &self.refusal)
        {
            return format!(
                "LOADING partition {} starts with an empty directory, takes a copy of what another datacenter holds, and \
                 waits for partition {sibling} of this datacenter to say whether its directory is filled, too",
                p.cx.id
            );
        }
        let missing: Vec<String> = awaited.into_iter().map(|d| p.cx.name_of(d)).collect();
        match (&self.refusal, missing.is_empty()) {
            (Some(reason), true) => format!("REJOIN partition {}: {reason}", p.cx.id),
            _ => format!(
                "LOADING partition {} starts with an empty directory and waits for {} to say that this datacenter \
                 has not lost an earlier one: start them and heal the links, or, if the cluster is new or they \
                 are gone for good, start this process with `--first-start alone`",
                p.cx.id,
                missing.join(", ")
            ),
        }
    }

    /// When all have answered: what that says.
    pub(in crate::partition) fn look_at_answers(&mut self, p: &mut Peering<'_>) -> Option<Join> {
        let asks = Rule::AskBeforeTheFirstServing.holds();
        if self.copying.is_some() || asks && !self.awaited(p.others).is_empty() {
            return None;
        }
        let living = self.answers.iter().filter(|(d, _)| !is_given_up(self.without, **d));
        let answers: Vec<(DatacenterId, Introduction)> = living.map(|(d, i)| (*d, i.clone())).collect();
        // One with entries of its own was marked for them, though nobody has more of its stream.
        let is_marked = p.cx.position > Position(0);
        let is_of_another = |introduction: &Introduction| {
            introduction.known != DirectoryId::UNKNOWN
                && (introduction.known != p.peers.identity.own()
                    || introduction.received > p.cx.position
                    || is_marked)
        };
        let joined = if !asks {
            Ok(Join::AsFirst { beside: None })
        } else if answers.iter().any(|(_, introduction)| is_of_another(introduction)) {
            let directory = p.peers.lost_directory(p.cx, p.others, self.without, &answers);
            match directory {
                Ok(Lost::InLogs(directory)) => Ok(Join::Again(directory, answers)),
                Ok(Lost::InCopies(directory, otherwise)) => {
                    self.begin_copy(p, directory, &answers, otherwise);
                    return None;
                }
                Err(reason) => Err(reason),
            }
        } else {
            match self.as_first(p) {
                Ok(()) => return self.as_new(p, &answers),
                Err(reason) => Err(reason),
            }
        };
        match joined {
            Ok(join) => Some(join),
            Err(reason) => {
                self.note_refusal(p, reason);
                None
            }
        }
    }

    pub(in crate::partition::recovery) fn note_refusal(&mut self, p: &mut Peering<'_>, reason: String) {
        if self.refusal.as_ref() != Some(&reason) {
            self.refusal = Some(reason.clone());
            p.cx.trace(Trace::CannotRejoin { partition: p.cx.id, reason });
        }
    }

    /// Nobody who lives knows an earlier directory. One that was declared dead may have been the only one that did, and
    /// cannot say so any more.
    fn as_first(&self, p: &Peering<'_>) -> Result<(), String> {
        let failed = &p.others.failover.failed;
        let is_dead = |d: &DatacenterId| is_given_up(self.without, *d) || failed.contains(*d);
        let dead: Vec<String> =
            p.others.replication.datacenters().filter(is_dead).map(|d| p.cx.name_of(d)).collect();
        if dead.is_empty() {
            return Ok(());
        }
        Err(format!(
            "the directory is empty, and {}, declared dead, cannot say whether this datacenter has lost an earlier one: \
             put that one back. If there was none, start this process with `--first-start alone`; if it is lost, say \
             `CAUSAL DEAD` for this datacenter on another one",
            dead.join(" and ")
        ))
    }

    /// The datacenter is new, and may be added to others that have been there for long. What they hold is taken from
    /// their logs, if they are whole, or as a copy.
    fn as_new(&mut self, p: &mut Peering<'_>, answers: &[(DatacenterId, Introduction)]) -> Option<Join> {
        let is_empty = |i: &Introduction| i.stage == PeerStage::Joining && i.end == Position(0);
        let (empty, holders): (Vec<_>, Vec<_>) = answers.iter().cloned().partition(|(_, i)| is_empty(i));
        if holders.is_empty() {
            p.others.note_new();
            return Some(Join::AsFirst { beside: None });
        }
        if p.cx.unmet.is_some() && Rule::JoinWhenAllKnow.holds() {
            return None;
        }
        let is_recovering = |i: &Introduction| i.stage != PeerStage::Serving;
        let trimmed: Vec<String> =
            holders.iter().filter(|(_, i)| !i.is_whole).map(|(d, _)| p.cx.name_of(*d)).collect();
        let others = holders.iter().filter(|(_, i)| is_recovering(i)).chain(&empty);
        let waiting: Vec<String> = others.map(|(d, _)| p.cx.name_of(*d)).collect();
        if trimmed.is_empty() {
            p.others.note_new();
            fill(p, p.peers.identity.own());
            return Some(Join::AsFirst { beside: Some(self.without) });
        }
        let trimmed = trimmed.join(" and ");
        if !waiting.is_empty() {
            let waiting = waiting.join(" and ");
            self.note_refusal(
                p,
                format!(
                    "the directory is new, and the logs of {trimmed} begin later than their data: a copy is taken as \
                     soon as {waiting} serves"
                ),
            );
            return None;
        }
        let otherwise = format!(
            "the directory is new, and what it needs cannot be had from the logs, which {trimmed} trimmed, nor by a copy, \
             which cannot hold branches: a datacenter cannot be added to this cluster any more"
        );
        self.begin_copy(p, p.peers.identity.own(), answers, otherwise);
        None
    }

    /// Where write transactions span partitions, whether all partitions of this datacenter are being filled. One that
    /// kept its directory coordinates transactions perhaps whose parts were executed in what was lost here, and may be
    /// in the copy: it would have them executed once more. And who is served does not wait for what is filled.
    pub(in crate::partition::recovery) fn are_all_filled(&mut self, p: &mut Peering<'_>) -> bool {
        let spans = |protocol: &dyn Protocol| {
            protocol.capabilities().write_transactions && !protocol.needs().one_stream
        };
        if !p.cx.protocols.iter().any(|protocol| spans(protocol.as_ref())) || !Rule::FillAllTogether.holds() {
            return true;
        }
        if !std::mem::replace(&mut self.queries_siblings, true) {
            self.ask_siblings(p);
        }
        let open = self.open_siblings(p);
        let kept = open.iter().find(|other| self.siblings.contains_key(other)).copied();
        if let Some(kept) = kept {
            let reason = format!(
                "the directory is empty, and what it held is to be had by a copy alone. Write transactions span \
                 partitions, and partition {kept} of this datacenter still has its directory: put that of this \
                 partition back, or put those of all partitions of this datacenter away, so that all take copies"
            );
            self.note_refusal(p, reason);
        }
        open.is_empty()
    }

    /// Asks the other partitions of this datacenter that have not said that they are being filled.
    pub(in crate::partition::recovery) fn ask_siblings(&self, p: &mut Peering<'_>) {
        for other in self.open_siblings(p) {
            p.cx.send_local(other, Message::FillQuery);
        }
    }

    /// The other partitions of this datacenter that have not said that they are being filled, if that matters.
    fn open_siblings(&self, p: &Peering<'_>) -> Vec<PartitionId> {
        let others = (0..p.cx.partitions()).map(PartitionId).filter(|partition| *partition != p.cx.id);
        others.filter(|other| self.queries_siblings && self.siblings.get(other) != Some(&true)).collect()
    }

    /// Goes on under the identity that was lost, and takes everything back.
    pub(in crate::partition) fn rejoin(
        &mut self,
        p: &mut Peering<'_>,
        directory: DirectoryId,
        answers: &[(DatacenterId, Introduction)],
    ) -> (u16, u64, Open) {
        let (records, open, without) = (self.records, std::mem::take(&mut self.open), self.without);
        let of_others = answers.iter().map(|(_, introduction)| introduction.received.incarnation());
        p.cx.incarnation = of_others.fold(p.cx.incarnation, Incarnation::max);
        fill(p, directory);
        (without, records, open)
    }

    /// What was read, and what the others said.
    pub(in crate::partition) fn take(&mut self) -> (u64, Open, BTreeMap<DatacenterId, Introduction>) {
        (self.records, std::mem::take(&mut self.open), std::mem::take(&mut self.answers))
    }
}

/// What the others hold is taken into this directory, which begins with nothing; another start goes on with that.
fn fill(p: &mut Peering<'_>, directory: DirectoryId) {
    p.peers.identity.rejoin(directory);
    p.others.note_filled(true);
    p.durability.mark_filling(p.cx, directory);
    p.cx.trace(Trace::Rejoining { partition: p.cx.id });
}
