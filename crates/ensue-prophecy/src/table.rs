//! The history table: for each request its latest accepted response, as sketches (section 3.1).
//!
//! An entry takes 44 bytes with sketches of 128 bits (16 each for request and response, 8 for the sequence number, 4
//! for lists and outcomes), and nothing else is kept: 22 million entries, the paper's figure, take 968 MB. This is why
//! the table is one array of sets of 16 entries, as caches of processors are, and no map with a list through it: the
//! links and the index of an exact LRU would cost 16 bytes more. Each set is in order of use, and a new entry replaces
//! the least recently used one of its set. A request's set follows from its sketch, which nobody without the key can
//! choose; in D-Prophecy there is no key, and anybody can find requests of one set. Sets do not fill evenly: a table
//! holds nine tenths of the first requests that are as many as its entries, and is full when about twice as many have
//! come.
//!
//! Eviction loses a sequence number. A replicated read that was issued long ago could then enter its old response as if
//! it were the first, after a newer one had been returned to a client. The table remembers the highest sequence number
//! of all that it evicted, and a new entry must be above it. The paper, whose table never evicts, has no such rule.

use crate::limits::{TABLE_ENTRIES_MAX, TABLE_WAYS};
use crate::outcomes::Outcomes;
use crate::rule::{Broken, Rule};
use crate::sketch::Sketch;

/// The place of a replicated request in the order in which the replica group executed them; the first is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// How a request is treated (the two bits `b` of section 3.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum List {
    /// Fast if the history table has a response for it.
    #[default]
    Neither,
    /// Always fast, and never compared: a lying replica can answer anything.
    White,
    /// Always replicated.
    Black,
}

/// What the table knows of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<const BYTES: usize> {
    /// s(r); none before the first replicated read.
    pub response: Option<Sketch<BYTES>>,
    /// The sequence number of that response.
    pub sequence: Sequence,
    /// Whether the request is whitelisted, blacklisted, or neither.
    pub list: List,
    /// How often its response changed of late.
    pub outcomes: Outcomes,
}

/// Why there is no such table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Less than one entry, or more than [`TABLE_ENTRIES_MAX`].
    #[error("a history table has 1 to {TABLE_ENTRIES_MAX} entries, not {0}")]
    Entries(usize),
}

/// An entry as it lies in memory. The fields have no alignment above four bytes, so that nothing is padded.
#[derive(Clone, Copy)]
struct Slot<const BYTES: usize> {
    request: [u8; BYTES],
    response: [u8; BYTES],
    sequence: [u32; 2],
    state: u32,
}

const USED: u32 = 1 << 31;
const HAS_RESPONSE: u32 = 1 << 30;
const WHITE: u32 = 1 << 29;
const BLACK: u32 = 1 << 28;

/// The table. It is as large as it will ever be from the start.
#[derive(Clone)]
pub struct HistoryTable<const BYTES: usize> {
    slots: Vec<Slot<BYTES>>,
    ways: usize,
    used: usize,
    floor: Sequence,
    evicted: u64,
    below_floor: u64,
    broken: Broken,
}

impl<const BYTES: usize> HistoryTable<BYTES> {
    /// Bytes that an entry takes, and all that it takes.
    pub const ENTRY_BYTES: usize = size_of::<Slot<BYTES>>();

    /// An empty table of at least so many entries: the number is rounded up to whole sets.
    pub fn new(entries: usize, broken: Broken) -> Result<HistoryTable<BYTES>, TableError> {
        if entries == 0 || entries > TABLE_ENTRIES_MAX {
            return Err(TableError::Entries(entries));
        }
        let ways = entries.min(TABLE_WAYS);
        let slots = vec![Slot::EMPTY; entries.div_ceil(ways) * ways];
        Ok(HistoryTable { slots, ways, used: 0, floor: Sequence(0), evicted: 0, below_floor: 0, broken })
    }

    /// Entries that there is room for.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Bytes that the table has allocated.
    pub fn allocated_bytes(&self) -> usize {
        self.slots.capacity() * Self::ENTRY_BYTES
    }

    /// Entries that there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Entries that were replaced by others for want of room.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Responses that were not entered because a newer one may have been evicted.
    pub fn below_floor(&self) -> u64 {
        self.below_floor
    }

    /// A new entry must be above this.
    pub fn floor(&self) -> Sequence {
        self.floor
    }

    /// Forgets the entries of the requests that are named, and takes no response again that may be older than one of
    /// them. It looks at every entry.
    pub fn forget(&mut self, is_named: impl Fn(&Sketch<BYTES>) -> bool) {
        for set in self.slots.chunks_mut(self.ways) {
            for slot in set.iter_mut().filter(|slot| slot.is_used() && is_named(&Sketch(slot.request))) {
                self.floor = self.floor.max(slot.entry().sequence);
                self.used -= 1;
                *slot = Slot::EMPTY;
            }
            // Unused ones last; the others stay in order, because the sort is stable.
            set.sort_by_key(|slot| !slot.is_used());
        }
    }

    /// The entry of a request, which is its set's most recently used one now.
    pub fn lookup(&mut self, request: &Sketch<BYTES>) -> Option<Entry<BYTES>> {
        let set = self.set(request);
        let place = set.iter().position(|slot| slot.is_of(request))?;
        set[..=place].rotate_right(1);
        Some(set[0].entry())
    }

    /// Enters a response of a replicated read if it is newer than what the table has (Algorithm 1). Says what the
    /// entry held before, if the table took the response.
    pub fn update(
        &mut self,
        request: &Sketch<BYTES>,
        response: Sketch<BYTES>,
        sequence: Sequence,
    ) -> Option<Entry<BYTES>> {
        let before = self.lookup(request).unwrap_or_default();
        let is_newer = match before.response {
            Some(_) => sequence > before.sequence || !self.broken.holds(Rule::KeepNewestSequence),
            None => sequence > self.floor || !self.broken.holds(Rule::RememberEvictedSequences),
        };
        if !is_newer {
            self.below_floor += u64::from(before.response.is_none());
            return None;
        }
        self.put(request, Entry { response: Some(response), sequence, ..before });
        Some(before)
    }

    /// Puts a request on a list, or takes it off.
    pub fn enlist(&mut self, request: &Sketch<BYTES>, list: List) {
        let entry = self.lookup(request).unwrap_or_default();
        self.put(request, Entry { list, ..entry });
    }

    /// Remembers whether the response of a request that has an entry had changed, and lists the request accordingly.
    /// Says whether that put it on the blacklist or took it off.
    pub fn record(&mut self, request: &Sketch<BYTES>, changed: bool) -> Option<List> {
        let mut entry = self.lookup(request)?;
        let before = entry.list;
        entry.outcomes.record(changed);
        if before != List::White && self.broken.holds(Rule::BlacklistChangingRequests) {
            let is_black = entry.outcomes.is_blacklisted(before == List::Black);
            entry.list = if is_black { List::Black } else { List::Neither };
        }
        self.put(request, entry);
        (entry.list != before).then_some(entry.list)
    }

    fn put(&mut self, request: &Sketch<BYTES>, entry: Entry<BYTES>) {
        let set = self.set(request);
        let last = set.len() - 1;
        let found = set.iter().position(|slot| slot.is_of(request));
        let place = found.unwrap_or_else(|| set.iter().position(|slot| !slot.is_used()).unwrap_or(last));
        let replaced = set[place];
        set[..=place].rotate_right(1);
        set[0] = Slot::new(request, &entry);
        if found.is_none() && replaced.is_used() {
            self.evicted += 1;
            self.floor = self.floor.max(replaced.entry().sequence);
        } else if found.is_none() {
            self.used += 1;
        }
    }

    /// The set of a request, most recently used first, unused ones last.
    fn set(&mut self, request: &Sketch<BYTES>) -> &mut [Slot<BYTES>] {
        let mut head = [0; 8];
        head.copy_from_slice(&request.0[..8]);
        let sets = (self.slots.len() / self.ways) as u128;
        let set = ((u128::from(u64::from_le_bytes(head)) * sets) >> 64) as usize;
        &mut self.slots[set * self.ways..(set + 1) * self.ways]
    }
}

impl<const BYTES: usize> Slot<BYTES> {
    const EMPTY: Slot<BYTES> = Slot { request: [0; BYTES], response: [0; BYTES], sequence: [0; 2], state: 0 };

    fn new(request: &Sketch<BYTES>, entry: &Entry<BYTES>) -> Slot<BYTES> {
        let has_response = if entry.response.is_some() { HAS_RESPONSE } else { 0 };
        let list = match entry.list {
            List::Neither => 0,
            List::White => WHITE,
            List::Black => BLACK,
        };
        Slot {
            request: request.0,
            response: entry.response.map_or([0; BYTES], |response| response.0),
            sequence: [entry.sequence.0 as u32, (entry.sequence.0 >> 32) as u32],
            state: USED | has_response | list | entry.outcomes.to_bits(),
        }
    }

    fn entry(&self) -> Entry<BYTES> {
        Entry {
            response: (self.state & HAS_RESPONSE != 0).then_some(Sketch(self.response)),
            sequence: Sequence(u64::from(self.sequence[0]) | (u64::from(self.sequence[1]) << 32)),
            list: match self.state & (WHITE | BLACK) {
                0 => List::Neither,
                WHITE => List::White,
                _ => List::Black,
            },
            outcomes: Outcomes::from_bits(self.state),
        }
    }

    fn is_used(&self) -> bool {
        self.state & USED != 0
    }

    fn is_of(&self, request: &Sketch<BYTES>) -> bool {
        self.is_used() && self.request == request.0
    }
}

impl<const BYTES: usize> std::fmt::Debug for HistoryTable<BYTES> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HistoryTable({} of {} entries)", self.used, self.slots.len())
    }
}

#[cfg(test)]
mod tests;
