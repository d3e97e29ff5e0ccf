//! Deadlines of rows and fields, until it is this datacenter's turn to delete what they are of.
//!
//! Arrives: each deadline that is set, with its turn. Promises: whatever still has one is given out when its turn has
//! come, and what is kept beside these is bounded by them: a deadline that was set anew, or whose row is gone, is
//! forgotten when there are as many of those as of the others, some a turn. It does not delete anything.

use ensue_store::keyspace::Expiry;
use ensue_types::KeyspaceId;
use std::collections::BTreeMap;

/// Deadlines that are looked at in one turn, whether anything still has them; with the rest of the last list.
const LOOKED_AT_ONCE: usize = 4_096;
/// So many are kept without a look.
const KEPT_MIN: usize = 256;
/// What one takes beside its names: where it stands, and the allocators' shares.
const BESIDE_BYTES: usize = 16;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Deadlines {
    /// By their turns.
    lists: BTreeMap<u64, Vec<(KeyspaceId, Expiry)>>,
    count: usize,
    bytes: u64,
    /// With so many, or when so many rows were evicted, a look at all of them begins.
    look_at: usize,
    look_at_evicted: u64,
    /// The turn, and the place in its list, at which that look goes on.
    place: Option<(u64, usize)>,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        let (lists, count, bytes, place) = (BTreeMap::new(), 0, 0, None);
        Deadlines { lists, count, bytes, look_at: KEPT_MIN, look_at_evicted: KEPT_MIN as u64, place }
    }
}

fn bytes_of((_, expiry): &(KeyspaceId, Expiry)) -> u64 {
    let names = expiry.key.len() + expiry.field.as_ref().map_or(0, |name| name.len());
    (size_of::<(KeyspaceId, Expiry)>() + BESIDE_BYTES + names) as u64
}

impl Deadlines {
    pub(super) fn push(&mut self, turn: u64, keyspace: KeyspaceId, expiry: Expiry) {
        let one = (keyspace, expiry);
        self.count += 1;
        self.bytes += bytes_of(&one);
        self.lists.entry(turn).or_default().push(one);
    }

    /// Those of the earliest turn, if that has come.
    pub(super) fn take_due(&mut self, turn: u64) -> Option<Vec<(KeyspaceId, Expiry)>> {
        let entry = self.lists.first_entry().filter(|entry| *entry.key() <= turn)?;
        let due = entry.remove();
        self.count -= due.len();
        self.bytes -= due.iter().map(bytes_of).sum::<u64>();
        Some(due)
    }

    /// What they take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets some of those that nothing has any more, if there may be many.
    pub(super) fn forget_some(&mut self, evicted: u64, is_kept: impl Fn(&(KeyspaceId, Expiry)) -> bool) {
        if self.place.is_none() && self.count < self.look_at && evicted < self.look_at_evicted {
            return;
        }
        let (from, mut at) = self.place.take().unwrap_or_default();
        let mut left = LOOKED_AT_ONCE;
        for (turn, list) in self.lists.range_mut(from..) {
            at = if *turn == from { at } else { 0 };
            while at < list.len() && left > 0 {
                left -= 1;
                if is_kept(&list[at]) {
                    at += 1;
                    continue;
                }
                self.count -= 1;
                self.bytes -= bytes_of(&list.swap_remove(at));
            }
            if left == 0 {
                self.place = Some((*turn, at));
                return;
            }
            list.shrink_to(2 * list.len());
        }
        self.lists.retain(|_, list| !list.is_empty());
        self.look_at = 2 * self.count + KEPT_MIN;
        self.look_at_evicted = evicted + (self.count / 4 + KEPT_MIN) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ensue_types::Stamp;

    fn expiry(key: &'static str, deadline_ms: u64) -> Expiry {
        Expiry { key: Bytes::from_static(key.as_bytes()), field: None, deadline_ms, stamp: Stamp::ZERO }
    }

    #[test]
    fn a_deadline_that_is_set_again_and_again_is_kept_once() {
        const OTHERS: u64 = 1_000;
        let mut deadlines = Deadlines::default();
        (0..OTHERS).for_each(|turn| deadlines.push(turn, KeyspaceId(0), expiry("other", turn)));
        let mut most = 0;
        for turn in 0..100_000 {
            deadlines.push(1_000_000 + turn, KeyspaceId(0), expiry("k", turn));
            deadlines.forget_some(0, |(_, expiry)| expiry.key == "other" || expiry.deadline_ms == turn);
            most = most.max(deadlines.count);
        }
        let bound = 2 * OTHERS as usize + KEPT_MIN + LOOKED_AT_ONCE;
        assert!(most < bound, "{most} deadlines of {} keys", OTHERS + 1);
        let due = std::iter::from_fn(|| deadlines.take_due(OTHERS)).flatten();
        assert!(due.map(|(_, expiry)| expiry.deadline_ms).eq(0..OTHERS), "all that is there is given out");
        let last = std::iter::from_fn(|| deadlines.take_due(u64::MAX)).flatten().last();
        assert_eq!(last.map(|(_, expiry)| expiry.deadline_ms), Some(99_999));
        assert_eq!((deadlines.count, deadlines.bytes), (0, 0));
    }

    #[test]
    fn those_of_evicted_rows_go_though_no_new_ones_come() {
        let mut deadlines = Deadlines::default();
        (0..10_000).for_each(|turn| deadlines.push(turn / 100, KeyspaceId(0), expiry("k", turn)));
        (0..10).for_each(|_| deadlines.forget_some(0, |_| true));
        assert_eq!(deadlines.count, 10_000);
        (0..10).for_each(|_| deadlines.forget_some(5_000, |(_, expiry)| expiry.deadline_ms < 5_000));
        assert_eq!(deadlines.count, 5_000);
    }
}
