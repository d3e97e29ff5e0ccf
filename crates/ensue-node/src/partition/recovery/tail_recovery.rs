//! A log that may have lost its tail with the power takes back what the other datacenters have of it (trap 15).
//!
//! On a start after an unclean stop on an earlier boot of the machine: ask the same partition of every other datacenter
//! what it has of the own stream beyond the end of this log, take these entries back as own ones, begin a new
//! incarnation whose first entry says where the old one ended, and sync all that. Everybody must have answered: one
//! that did not might hold an entry that was declared lost, and nobody could take that back. Whoever the operator gave
//! up (`ensue recover`) is not asked. Positions of the old incarnation are never used again.
//!
//! An old copy of a directory comes here, too, when others have proved that they received more. They may have trimmed
//! what it lacks: they say whether they can send all of it, of its own stream and of theirs. If not, it is not served,
//! and says `REJOIN`. What nobody received is gone in all its partitions, whether they noticed or not: those that did
//! not are told when one catches up (`catch_up`), and end their incarnations, too.

use crate::partition::cx::Cx;
use crate::partition::failover::failed::FailedDatacenters;
use crate::partition::failover::is_given_up;
use crate::partition::failover::retirement::EVERYTHING;
use crate::partition::journal::Needed;
use crate::partition::journal::open::Open;
use crate::partition::peering::Peering;
use crate::partition::peers::buffered::waits_for_the_log;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, FileName, failure_words};
use ensue_store::entry::Change;
use ensue_store::layout;
use ensue_types::{DatacenterId, DirectoryId, Position, Rule};
use ensue_wire::{Address, Envelope, Introduction, Message};
use std::collections::{BTreeMap, BTreeSet};

/// Incarnations beyond what the superblock knows that are believed to be this partition's own: it began them, and lost
/// that. More than so many are a mistake of whoever names them.
const FORGOTTEN_INCARNATIONS_MAX: u16 = 16;

/// The others are being asked.
#[derive(Clone, Debug)]
pub struct TailRecovery {
    /// Datacenters that the operator gave up, one bit each.
    without: u16,
    /// How far each datacenter has received the own stream.
    received: BTreeMap<DatacenterId, Position>,
    /// What a datacenter last said of what it can send. It counts until it is said anew, also when the link is down.
    offers: BTreeMap<DatacenterId, Offer>,
    /// Datacenters that run this partition on another directory than the one known here. What that has of the own
    /// stream says nothing: the right one, when it is put back, may have what was declared lost meanwhile.
    foreign: BTreeSet<DatacenterId>,
    /// Others have proved that the end is missing, though no power failed: more may be gone than a power failure takes.
    is_old_copy: bool,
    /// Why it cannot go on though all have answered.
    refusal: Option<String>,
    /// What they sent could not be taken: they are asked again, and not at once.
    stalled: BTreeSet<DatacenterId>,
    taken: u64,
    /// Everything is logged, and being synced.
    logged: bool,
    records: u64,
    open: Open,
}

/// What another datacenter says to one that has lost the end of its log.
#[derive(Clone, Copy, Debug)]
struct Offer {
    /// It can send everything that is lacking.
    is_whole: bool,
    /// It has applied all that it received of the own stream: no transaction waits for a part.
    has_applied: bool,
}

impl TailRecovery {
    /// The datacenters that have trimmed what is lacking here, or wait for what may be lost for good.
    fn who_cannot_send(&self, cx: &Cx, failed: &FailedDatacenters) -> Vec<DatacenterId> {
        if !Rule::RecoverOnlyWhatCanBeHad.holds() {
            return Vec::new();
        }
        let is_asked = |d: &&DatacenterId| !is_given_up(self.without, **d) && !failed.contains(**d);
        // A decision is synced before it is told, so a power failure takes no transaction that others have heard of. An
        // old copy may lack the part of a partition, or the decision, that others wait for: nobody has it any more.
        let transactions =
            self.is_old_copy && cx.protocols.iter().any(|p| p.capabilities().write_transactions);
        let lacks = |offer: &Offer| !offer.is_whole || transactions && !offer.has_applied;
        let cannot = self.offers.iter().filter(|(_, offer)| lacks(offer)).map(|(datacenter, _)| datacenter);
        cannot.filter(is_asked).copied().collect()
    }
}

/// How it goes on when the disk has answered.
pub(in crate::partition) enum TailStep {
    GoesOn,
    /// All is back and synced.
    Done {
        without: u16,
        records: u64,
        open: Open,
    },
    Failed(String),
}

impl TailRecovery {
    /// The log was read, and may have lost its end.
    pub(in crate::partition) fn new(
        without: u16,
        records: u64,
        open: Open,
        is_old_copy: bool,
    ) -> TailRecovery {
        TailRecovery {
            without,
            received: BTreeMap::new(),
            offers: BTreeMap::new(),
            foreign: BTreeSet::new(),
            is_old_copy,
            refusal: None,
            stalled: BTreeSet::new(),
            taken: 0,
            logged: false,
            records,
            open,
        }
    }

    /// Asks everybody.
    pub(in crate::partition) fn begin(&mut self, p: &mut Peering<'_>) {
        p.peers.identity.request_later(p.cx);
        p.durability.begin_opening(p.cx);
        let others: Vec<DatacenterId> = p.others.replication.datacenters().collect();
        for datacenter in others {
            p.introduce(datacenter, true);
            p.cx.request_tail(datacenter);
        }
        self.go_on_when_all_is_back(p);
    }

    pub(in crate::partition) fn on_message(&mut self, p: &mut Peering<'_>, envelope: Envelope) {
        let from = envelope.from.datacenter();
        // What is given back counts whatever the giver's clock says.
        p.others.take_time(p.cx, &envelope);
        match envelope.message {
            Message::TailFetch { after } => {
                // What waits here of its lost life is not in the answer, and so may be declared lost.
                let is_entries = |message: &Message| matches!(message, Message::StreamEntries { .. });
                p.peers
                    .buffered
                    .retain(|buffered| buffered.from != envelope.from || !is_entries(&buffered.message));
                p.others.replication.on_tail_fetch(p.cx, from, after);
            }
            Message::TailFetched { received, entries, .. } => {
                self.on_tail_fetched(p, from, received, entries)
            }
            Message::Introduce(introduction) => {
                let envelope = Envelope { message: Message::Introduce(introduction.clone()), ..envelope };
                self.on_introduce(p, envelope, &introduction);
            }
            Message::FillQuery => {
                let fills = p.peers.identity.is_refilled();
                p.cx.send(envelope.from, Message::FillAnswer { fills });
            }
            Message::DatacenterFailed { datacenter, time, .. } => {
                // It need not be asked; the rest is taken up when this partition has its own stream. One that is
                // removed answers until this one knows of it.
                if datacenter != from && time != EVERYTHING {
                    self.do_without(p, datacenter);
                }
                p.peers.buffer(p.cx, envelope);
            }
            _ if matches!(envelope.from, Address::Core { .. }) && !waits_for_the_log(&envelope.message) => {
                self.refuse_for_now(p, &envelope);
            }
            // Partitions wait.
            _ => p.peers.buffer(p.cx, envelope),
        }
    }

    /// It is judged when this partition has its own stream; but what it can send is asked now, and answered.
    fn on_introduce(&mut self, p: &mut Peering<'_>, envelope: Envelope, introduction: &Introduction) {
        let from = envelope.from.datacenter();
        p.peers.keep_the_log_for(p.cx, p.others, from, introduction);
        if introduction.asks {
            p.introduce(from, false);
        }
        let known = p.peers.identity.known(from);
        if known != DirectoryId::UNKNOWN
            && known != introduction.directory
            && Rule::AskTheRightDirectory.holds()
        {
            self.foreign.insert(from);
        } else {
            if self.foreign.remove(&from) {
                p.cx.request_tail(from);
            }
            let has_applied = introduction.applied >= introduction.received;
            self.offers.insert(from, Offer { is_whole: introduction.is_whole, has_applied });
        }
        p.peers.buffer(p.cx, envelope);
        // One that begins, or has just begun, has answered nothing before it knew whether it had anything.
        if !self.received.contains_key(&from) && !self.foreign.contains(&from) {
            p.cx.request_tail(from);
        }
        self.go_on_when_all_is_back(p);
    }

    /// What another datacenter cannot send may be in a checkpoint that is just being written, or come from an operator.
    pub(in crate::partition) fn request_available_again(&mut self, p: &mut Peering<'_>) {
        if !p.peers.identity.take_request_due(p.cx) {
            return;
        }
        let lacking =
            if self.logged { Vec::new() } else { self.who_cannot_send(p.cx, &p.others.failover.failed) };
        self.report_unavailable(p, &lacking);
        std::mem::take(&mut self.stalled).into_iter().for_each(|datacenter| p.cx.request_tail(datacenter));
        lacking.into_iter().for_each(|datacenter| p.introduce(datacenter, true));
    }

    fn on_tail_fetched(
        &mut self,
        p: &mut Peering<'_>,
        from: DatacenterId,
        received: Position,
        entries: Vec<Bytes>,
    ) {
        if self.logged || self.foreign.contains(&from) {
            return;
        }
        self.received.insert(from, received);
        let before = p.cx.position;
        for bytes in entries {
            if !self.take_back(p, &bytes) {
                break;
            }
        }
        // Whatever is said from here on rests on what came back.
        p.durability.write_log(p.cx);
        if received > p.cx.position {
            match p.cx.position > before {
                true => p.cx.request_tail(from),
                // Nothing of it could be taken: it is asked again a little later.
                false => drop(self.stalled.insert(from)),
            }
        }
        self.go_on_when_all_is_back(p);
    }

    /// An own entry came back. It is what it was: same position, same stamp, same name.
    fn take_back(&mut self, p: &mut Peering<'_>, bytes: &Bytes) -> bool {
        let Ok(entry) = layout::decode_entry(bytes) else {
            p.cx.trace(Trace::Refused { what: "a returned entry that cannot be read" });
            return false;
        };
        if entry.position <= p.cx.position {
            return true;
        }
        let declares = match entry.change {
            // Where an earlier incarnation ended, in a directory that has none of it.
            Change::Lost { after } => {
                let incarnation = entry.position.incarnation();
                let is_first = entry.position == Position::before(incarnation).next();
                // One of which this log has no entry, and that is over: the next is begun when all is back.
                let begun = p.cx.journal.open().incarnation();
                let known = p.cx.incarnation.0.saturating_add(FORGOTTEN_INCARNATIONS_MAX);
                let is_over = p.cx.position.incarnation() < incarnation
                    && begun <= incarnation
                    && incarnation.0 <= known;
                (is_first && is_over && after == p.cx.position).then_some((after, incarnation))
            }
            _ => None,
        };
        let follows = entry.position == p.cx.position.next() || declares.is_some();
        if !follows || entry.stamp.datacenter != p.cx.datacenter {
            p.cx.trace(Trace::Refused { what: "a returned entry that does not follow" });
            return false;
        }
        if let Err(what) = p.cx.check_own(&entry) {
            p.cx.trace(Trace::Refused { what });
            return false;
        }
        if let Some((_, incarnation)) = declares {
            p.cx.journal.begin_incarnation(incarnation);
            p.cx.incarnation = p.cx.incarnation.max(incarnation);
        }
        p.cx.position = entry.position;
        p.cx.clock.observe(entry.stamp.time);
        p.cx.journal.log_own(entry.position, bytes);
        if let Change::Effects { transaction: Some(operation), .. } = entry.change {
            // Its coordinator has no answer to rest on, whatever `appendfsync` says: it is told when the part is
            // synced.
            p.cx.journal.note_needed(Needed::Executed(operation));
            p.transactions.report_when_synced(operation, None, p.cx.journal.log_end());
        }
        self.open.note_returned(&entry);
        p.keyspaces.merge_own(p.cx, p.others, entry);
        p.others.replication.own_entry_applied(p.cx);
        p.others.replication.count_recovered();
        self.taken += 1;
        true
    }

    /// Another survivor says that a datacenter is lost for good.
    fn do_without(&mut self, p: &mut Peering<'_>, datacenter: DatacenterId) {
        if datacenter.0 < 16 {
            self.without |= 1 << datacenter.0;
        }
        self.go_on_when_all_is_back(p);
    }

    fn go_on_when_all_is_back(&mut self, p: &mut Peering<'_>) {
        let has_all = |datacenter: &DatacenterId| {
            is_given_up(self.without, *datacenter)
                || p.others.failover.failed.contains(*datacenter)
                || self.received.get(datacenter).is_some_and(|received| *received <= p.cx.position)
        };
        let complete = p.others.replication.datacenters().all(|datacenter| has_all(&datacenter));
        let complete = complete && self.who_cannot_send(p.cx, &p.others.failover.failed).is_empty();
        if !self.logged && (complete || !Rule::TakeBackTheTail.holds()) {
            self.begin_incarnation(p);
        }
    }

    fn report_unavailable(&mut self, p: &mut Peering<'_>, cannot: &[DatacenterId]) {
        let names: Vec<String> = cannot.iter().map(|datacenter| p.cx.name_of(*datacenter)).collect();
        let names = names.join(" and ");
        let reason = format!(
            "the directory is an old copy, or lost the end of its log, and what followed cannot be had again from \
             {names}: it was trimmed there, or waits for a part of a transaction that nobody has. Put the newest \
             directory back. If it is lost, put this one away and start with an empty one, which takes a copy of what \
             another datacenter holds; where it says that there can be no copy, run `CAUSAL DEAD` for this datacenter \
             on another one, and the others go on without it"
        );
        let refusal = (!cannot.is_empty()).then(|| reason.clone());
        if self.refusal != refusal {
            self.refusal = refusal;
            if !cannot.is_empty() {
                p.cx.trace(Trace::CannotRejoin { partition: p.cx.id, reason });
            }
        }
    }

    /// Nobody has more: the rest of the old incarnation is lost, and a new one begins by saying so.
    fn begin_incarnation(&mut self, p: &mut Peering<'_>) {
        self.logged = true;
        self.refusal = None;
        let taken = self.taken;
        if taken > 0 {
            p.cx.trace(Trace::TailRecovered { partition: p.cx.id, entries: taken });
        }
        p.visibility().end_incarnation();
        p.durability.write_what_came_back(p.cx);
    }

    /// The disk answered.
    pub(in crate::partition) fn on_disk(&mut self, p: &mut Peering<'_>, done: DiskDone) -> TailStep {
        match &done {
            DiskDone::Failed { file: Some(file), full: true, .. } => p.durability.on_no_room(p.cx, *file),
            DiskDone::Appended { file: FileName::Reserve } => p.durability.on_reserve_made(p.cx),
            DiskDone::Deleted { file: FileName::Reserve } => p.cx.on_reserve_gone(),
            DiskDone::Rewritten { .. } | DiskDone::Replaced { .. } => {
                p.durability.on_opened_in_recovery(p.cx)
            }
            DiskDone::Failed { op, file, reason, .. } => {
                return TailStep::Failed(failure_words(op, *file, reason));
            }
            DiskDone::Appended { file: file @ FileName::Segment(_) } => {
                p.cx.journal.open().on_appended(*file);
                p.cx.release();
                p.durability.write_what_came_back(p.cx);
            }
            DiskDone::Synced { file: file @ FileName::Segment(_) } => {
                p.cx.journal.open().on_synced(*file);
                p.durability.testify(p.cx);
                // Under `always` what is asked of the others rests on what was read, and that may not have been known
                // to be synced.
                p.cx.release();
                let log = p.cx.journal.open();
                match log.take_sync() {
                    Some(op) => p.cx.disk_ops.push_back(op),
                    None if log.synced() == log.end() && self.logged => {
                        let open = std::mem::take(&mut self.open);
                        return TailStep::Done { without: self.without, records: self.records, open };
                    }
                    None => {}
                }
            }
            DiskDone::Read { .. } => p.on_old_entries(done),
            _ => {}
        }
        TailStep::GoesOn
    }

    /// A session meets a partition that has lost its tail.
    fn refuse_for_now(&self, p: &mut Peering<'_>, envelope: &Envelope) {
        if let Some(refusal) = &self.refusal {
            return p.cx.refuse(envelope, &format!("REJOIN partition {}: {refusal}", p.cx.id));
        }
        let open = |d: &DatacenterId| {
            !self.received.contains_key(d)
                && !is_given_up(self.without, *d)
                && !p.others.failover.failed.contains(*d)
        };
        let waits: Vec<String> =
            p.others.replication.datacenters().filter(open).map(|d| p.cx.name_of(d)).collect();
        p.cx.refuse_without_tail(envelope, &waits);
    }
}
