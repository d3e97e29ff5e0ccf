//! Copies for datacenters whose directory of this partition is empty, and whose past the logs no longer have.
//!
//! A copy is a checkpoint that is sent instead of being written: what the partition holds when it begins, and each row
//! as it stands when the walk comes to it. The log is kept from before the beginning (`Peers::keep_the_log_for`), so
//! that streams bring again whatever a row was too late or too early for, and merging it twice does no harm. As with a
//! checkpoint, nothing is collected before the walk has ended: what a tombstone has ended would come back with its
//! stream. The last part leaves when the log is durable up to where it stood at the end of the walk: rows may hold own
//! writes that a power failure would take, and nobody could take them back from the copy.

use super::Persistence;
use super::checkpoint::Walk;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::peers::Peers;
use crate::partition::transactions::Transactions;
use bytes::{BufMut, Bytes, BytesMut};
use ensue_store::checkpoint::Items;
use ensue_store::log::Lsn;
use ensue_types::{DatacenterId, Rule};
use ensue_wire::{Address, Message};
use std::collections::{BTreeMap, VecDeque};

/// Parts that are sent ahead of what the joiner has said to have.
const WINDOW_PARTS: u64 = 16;
/// Slices of rows that one turn makes into parts, for all copies together.
const SLICES_A_TURN: usize = 4;
/// Bytes at which a part is closed; one item may be longer.
const PART_BYTES: usize = 256 << 10;
/// A copy that nobody has asked for more of for so long is given up: while it is made nothing is collected.
const IDLE_US: u64 = 30_000_000;

/// The copies under way, by who takes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    by_joiner: BTreeMap<DatacenterId, Copy>,
}

#[derive(Clone, Debug)]
struct Copy {
    number: u64,
    walk: Walk,
    parts: Parts,
    /// The parts before this one are with the joiner.
    taken: u64,
    /// The next part to be sent.
    next: u64,
    asked_us: u64,
}

/// Parts that the joiner may not have yet.
#[derive(Clone, Debug, Default)]
struct Parts {
    first: u64,
    closed: VecDeque<Vec<Bytes>>,
    open: Vec<Bytes>,
    open_bytes: usize,
    /// Nothing comes behind the closed ones.
    is_complete: bool,
}

impl Items for Parts {
    fn item(&mut self, kind: u8, bytes: &[u8]) {
        let mut item = BytesMut::with_capacity(bytes.len() + 1);
        item.put_u8(kind);
        item.extend_from_slice(bytes);
        self.open_bytes += item.len();
        self.open.push(item.freeze());
        if self.open_bytes >= PART_BYTES {
            self.close();
        }
    }
}

impl Parts {
    fn close(&mut self) {
        self.open_bytes = 0;
        self.closed.push_back(std::mem::take(&mut self.open));
    }

    fn forget_before(&mut self, part: u64) {
        while self.first < part && self.closed.pop_front().is_some() {
            self.first += 1;
        }
    }

    fn get(&self, part: u64) -> Option<&Vec<Bytes>> {
        self.closed.get(usize::try_from(part.checked_sub(self.first)?).ok()?)
    }

    fn is_last(&self, part: u64) -> bool {
        self.is_complete && part + 1 == self.first + self.closed.len() as u64
    }
}

/// Whether the partition holds what no copy can hold: states that fork are no rows.
fn cannot_be_copied(keyspaces: &Keyspaces) -> bool {
    keyspaces.branching.each().next().is_some()
}

fn refuse(cx: &mut Cx, joiner: DatacenterId, copy: u64, cannot: bool) {
    let to = Address::Partition { datacenter: joiner, partition: cx.id };
    cx.send(to, Message::CopyRefused { copy, cannot });
}

impl Persistence {
    /// Whether rows are being written aside, for a checkpoint or a copy.
    pub(in crate::partition) fn is_walking(&self) -> bool {
        self.writer.as_ref().is_some_and(|(_, walk)| !walk.done)
            || self.copies.by_joiner.values().any(|copy| !copy.walk.done)
                && Rule::KeepTombstonesForCopies.holds()
    }

    /// A datacenter that begins with an empty directory asks for a copy, or for more of it.
    pub(in crate::partition) fn on_copy_fetch(
        &mut self,
        (cx, others, keyspaces): (&mut Cx, &Others, &mut Keyspaces),
        (transactions, peers): (&Transactions, &Peers),
        joiner: DatacenterId,
        (number, part, again): (u64, u64, bool),
    ) {
        let copies = &mut self.copies.by_joiner;
        let is_known = copies.get(&joiner).is_some_and(|copy| copy.number == number);
        if !is_known {
            copies.remove(&joiner);
            let cannot = cannot_be_copied(keyspaces);
            if cannot || part > 0 || others.is_catching_up() || !peers.identity.is_recovering(joiner) {
                cx.note_checkpointing(self.is_walking());
                return refuse(cx, joiner, number, cannot);
            }
            let mut parts = Parts::default();
            Persistence::write_head(cx, others, keyspaces, (transactions, peers), &mut parts);
            let (walk, asked_us) = (Walk::default(), cx.now.monotonic_us);
            copies.insert(joiner, Copy { number, walk, parts, taken: 0, next: 0, asked_us });
            cx.note_checkpointing(self.is_walking());
        }
        let Some(copy) = self.copies.by_joiner.get_mut(&joiner) else { return };
        copy.asked_us = cx.now.monotonic_us;
        copy.taken = part.clamp(copy.taken, copy.next.max(copy.taken));
        copy.parts.forget_before(copy.taken);
        if again {
            copy.next = copy.taken;
        }
    }

    /// Makes the next parts, and sends what joiners have room for.
    pub(in crate::partition::persistence) fn continue_copies(
        &mut self,
        cx: &mut Cx,
        others: &mut Others,
        keyspaces: &Keyspaces,
    ) {
        if self.copies.by_joiner.is_empty() {
            return;
        }
        let (end, synced) = (Lsn(cx.journal.log_end()), Lsn(cx.journal.log_synced()));
        let mut slices = SLICES_A_TURN;
        let mut awaits_sync = false;
        let mut refused = None;
        for (&joiner, copy) in &mut self.copies.by_joiner {
            while copy.next < copy.taken + WINDOW_PARTS {
                if copy.parts.get(copy.next).is_some() {
                    copy.send_next(cx, joiner, keyspaces);
                } else if copy.parts.is_complete || !copy.walk.done && slices == 0 {
                    break;
                } else if !copy.walk.done {
                    slices -= 1;
                    copy.walk.write_slice(keyspaces, &mut copy.parts);
                    copy.walk.end = end;
                    // Also an empty one: the joiner's answer is what goes on with the walk.
                    if !copy.walk.done {
                        copy.parts.close();
                    }
                } else if cannot_be_copied(keyspaces) {
                    // The first of them came while the rows were walked.
                    refuse(cx, joiner, copy.number, true);
                    refused = Some(joiner);
                    break;
                } else if synced >= copy.walk.end || !Rule::CopyWhatIsDurable.holds() {
                    copy.parts.close();
                    copy.parts.is_complete = true;
                } else {
                    awaits_sync = true;
                    break;
                }
            }
        }
        if let Some(joiner) = refused {
            self.copies.by_joiner.remove(&joiner);
        }
        cx.note_checkpointing(self.is_walking());
        if awaits_sync {
            self.begin_sync(cx, others);
        }
    }

    /// Gives up copies that nobody takes any more.
    pub(in crate::partition::persistence) fn abandon_idle_copies(&mut self, cx: &mut Cx) {
        let now_us = cx.now.monotonic_us;
        self.copies.by_joiner.retain(|_, copy| now_us.saturating_sub(copy.asked_us) < IDLE_US);
        cx.note_checkpointing(self.is_walking());
    }
}

impl Copy {
    fn send_next(&mut self, cx: &mut Cx, joiner: DatacenterId, keyspaces: &Keyspaces) {
        let (copy, part) = (self.number, self.next);
        let Some(items) = self.parts.get(part).cloned() else { return };
        let is_last = self.parts.is_last(part);
        let (done, of) = self.walk.progress(keyspaces);
        self.next += 1;
        let to = Address::Partition { datacenter: joiner, partition: cx.id };
        cx.send(to, Message::Copied { copy, part, is_last, done, of, items });
    }
}
