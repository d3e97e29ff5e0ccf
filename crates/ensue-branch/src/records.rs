//! What states wrote, key by key: every version that some state may still see.
//!
//! A version carries the id of the state that wrote it, which orders it for ever, and the place from which it is seen:
//! that of the state, or of the one that took it over. The versions of a key stand in the order of ids, and ids grow
//! along every branch: the highest that a reader sees is the newest on its branch (section 6.1.3).

use crate::chain::{Chains, Place};
use crate::commit::detached;
use crate::id::StateId;
use crate::{Key, Value};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub id: StateId,
    pub place: Place,
    pub value: Value,
}

/// The versions of one key.
#[derive(Clone, Debug, Default)]
struct Row {
    versions: Vec<Version>,
    /// Their places were given in the order of their ids, as those of one site's commits are.
    in_order: bool,
}

impl Row {
    fn insert(&mut self, version: Version) {
        let order = version.place.order;
        let at = self.versions.partition_point(|other| other.id < version.id);
        let follows = at.checked_sub(1).is_none_or(|before| self.versions[before].place.order <= order);
        let precedes = self.versions.get(at).is_none_or(|after| order <= after.place.order);
        self.in_order = (self.in_order || self.versions.is_empty()) && follows && precedes;
        self.versions.insert(at, version);
    }

    fn put_in_order(&mut self) {
        self.versions.sort_by_key(|version| version.id);
        self.in_order = self.versions.is_sorted_by_key(|version| version.place.order);
    }

    /// Those at places after one of this number, and, where that is not known of some, more.
    fn after(&self, order: u64) -> &[Version] {
        let seen = if self.in_order { self.versions.partition_point(|v| v.place.order <= order) } else { 0 };
        &self.versions[seen..]
    }
}

/// The keys in the order of a hash, so that a walk over them can go on from a number.
#[derive(Clone, Debug, Default)]
pub struct Records {
    keys: BTreeMap<(u32, Key), Row>,
    /// Of all keys whose hashes end alike, the number of the last place at which a version of one stood; as many as
    /// there are keys, or twice.
    written: Vec<u64>,
    versions: usize,
    bytes: usize,
}

/// Memory of a version beside its value, and of a key beside its bytes: what the structures take, rounded up.
const VERSION_BYTES: usize = 72;
const KEY_BYTES: usize = 96;

impl Records {
    /// A key in bytes of its own: those that are here already, if it is.
    pub fn own(&self, key: &Key) -> Key {
        let here = self.keys.get_key_value(&(hash(key), key.clone()));
        here.map_or_else(|| detached(key), |((_, key), _)| key.clone())
    }

    /// A version of a key, which are both kept as they are: the caller has made sure that they keep nothing else alive.
    pub fn insert(&mut self, key: &Key, version: Version) {
        self.versions += 1;
        self.bytes += VERSION_BYTES + version.value.as_ref().map_or(0, |value| value.len());
        let hash = hash(key);
        self.note_written(hash, version.place.order);
        let row = self.keys.entry((hash, key.clone())).or_insert_with(|| {
            self.bytes += KEY_BYTES + key.len();
            Row::default()
        });
        row.insert(version);
    }

    fn note_written(&mut self, hash: u32, order: u64) {
        if self.keys.len() >= self.written.len() {
            // Each half of what was one has what both had.
            self.written.extend_from_within(..);
            self.written.resize(self.written.len().max(1), 0);
        }
        let last = self.written.len() - 1;
        let written = &mut self.written[hash as usize & last];
        *written = order.max(*written);
    }

    /// Whether a version of a key may stand at a place after one of this number. Of most none does, and that is known
    /// without looking for them.
    pub fn may_be_written_since(&self, key: &Key, order: u64) -> bool {
        let last = self.written.len().saturating_sub(1);
        self.written.get(hash(key) as usize & last).is_some_and(|written| *written > order)
    }

    /// The newest version that is seen from one of these places.
    pub fn newest(&self, key: &Key, chains: &Chains, from: &[Place]) -> Option<&Version> {
        let row = self.row(key)?;
        row.versions.iter().rev().find(|version| from.iter().any(|place| chains.sees(*place, version.place)))
    }

    pub fn versions(&self, key: &Key) -> &[Version] {
        self.row(key).map_or(&[], |row| &row.versions)
    }

    /// At least those versions of a key that stand at places after one of this number. A key that is written much and
    /// is not collected has thousands.
    pub fn versions_after(&self, key: &Key, order: u64) -> &[Version] {
        self.row(key).map_or(&[], |row| row.after(order))
    }

    fn row(&self, key: &Key) -> Option<&Row> {
        self.keys.get(&(hash(key), key.clone()))
    }

    /// Changes the versions of a key; the order of their ids is put right, and a key without versions goes.
    pub fn change(&mut self, key: &Key, change: impl FnOnce(&mut Vec<Version>)) {
        let name = (hash(key), key.clone());
        let Some(row) = self.keys.get_mut(&name) else { return };
        let weigh = |versions: &Vec<Version>| -> usize {
            versions.iter().map(|v| VERSION_BYTES + v.value.as_ref().map_or(0, |value| value.len())).sum()
        };
        self.versions -= row.versions.len();
        self.bytes -= weigh(&row.versions);
        change(&mut row.versions);
        row.put_in_order();
        self.versions += row.versions.len();
        self.bytes += weigh(&row.versions);
        match row.versions.iter().map(|version| version.place.order).max() {
            // What was taken over stands at a later place than the one at which it was written.
            Some(order) => self.note_written(name.0, order),
            None => {
                self.keys.remove(&name);
                self.bytes -= KEY_BYTES + key.len();
            }
        }
    }

    /// All keys with their versions from a hash on, in the order of hashes.
    pub fn walk(&self, from: u32) -> impl Iterator<Item = (u32, &Key, &[Version])> {
        let from = (from, Key::new());
        self.keys.range(from..).map(|((hash, key), row)| (*hash, key, &row.versions[..]))
    }

    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    pub fn len(&self) -> usize {
        self.versions
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// FNV-1a of 32 bits: only an order to walk keys in, the same in every run.
fn hash(key: &[u8]) -> u32 {
    key.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::{DatacenterId, Incarnation};

    fn id(number: u64) -> StateId {
        StateId::new(number, DatacenterId(0), Incarnation(1))
    }

    /// Versions of a key with these ids, written at places of these numbers.
    fn written(versions: &[(u64, u64)]) -> Records {
        let mut records = Records::default();
        for &(number, order) in versions {
            let place = Place { order, ..Place::BASE };
            records.insert(&Key::new(), Version { id: id(number), place, value: None });
        }
        records
    }

    fn after(records: &Records, order: u64) -> Vec<StateId> {
        records.versions_after(&Key::new(), order).iter().map(|version| version.id).collect()
    }

    #[test]
    fn of_versions_in_order_only_those_after_a_place_are_looked_at() {
        let records = written(&[(1, 10), (2, 20), (3, 30)]);
        assert_eq!(after(&records, 20), [id(3)]);
        assert_eq!(after(&records, 30), []);
    }

    #[test]
    fn none_is_left_out_where_one_came_late_and_none_is_needlessly_looked_at_when_that_is_gone() {
        let mut records = written(&[(1, 10), (3, 20), (2, 30)]);
        assert_eq!(after(&records, 20), [id(1), id(2), id(3)], "the second has a place after the third's");
        records.change(&Key::new(), |versions| versions.retain(|version| version.id != id(2)));
        assert_eq!(after(&records, 10), [id(3)]);
    }

    #[test]
    fn what_was_written_since_is_never_missed() {
        let mut records = Records::default();
        let key = |number: u64| Key::from(number.to_string().into_bytes());
        for number in 0..1_000 {
            let place = Place { order: number, ..Place::BASE };
            records.insert(&key(number), Version { id: id(number), place, value: None });
        }
        assert!((1..1_000).all(|number| records.may_be_written_since(&key(number), number - 1)));
        let needless = (0..1_000).filter(|number| records.may_be_written_since(&key(*number), *number));
        assert!(needless.count() < 500, "most keys are known not to have been written");
    }
}
