//! Which values that clients read were stale: a newer version was in the datacenter when they asked, and was not
//! returned.
//!
//! A version is there from the moment when its partition received it, or, if it was written there, when it was
//! acknowledged. Nodes are not asked: this is seen from outside.

use ensue_sim::world::traffic::{Key, Traffic, WriteNumber};
use ensue_types::{DatacenterId, Stamp};
use std::collections::BTreeMap;

/// One value that a client read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    pub datacenter: DatacenterId,
    pub key: Key,
    pub asked_us: u64,
    /// The write that was read; nothing if the key was not there.
    pub returned: Option<WriteNumber>,
    /// Whether it was read together with others.
    pub among_others: bool,
}

/// A write that a datacenter has acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    pub datacenter: DatacenterId,
    pub key: Key,
    pub at_us: u64,
    pub number: WriteNumber,
}

/// Values that were read, and how many of them were stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub of: u64,
    pub stale: u64,
    /// Newer versions that were there, over all stale values.
    pub fresher: u64,
}

impl Share {
    fn add(&mut self, fresher: u64) {
        self.of += 1;
        self.stale += u64::from(fresher > 0);
        self.fresher += fresher;
    }

    /// Of a stale value, in the mean.
    pub fn fresher_versions(&self) -> f64 {
        self.fresher as f64 / self.stale.max(1) as f64
    }

    /// Of a hundred.
    pub fn percent(&self) -> f64 {
        100.0 * self.stale as f64 / self.of.max(1) as f64
    }
}

/// So many versions are looked through for those that are newer than a stale value.
const RECENT: usize = 256;

/// Of each version, in the order in which they came, the newest up to it.
fn newest_of(versions: &[(u64, Stamp)]) -> Vec<Stamp> {
    let mut newest = Stamp::ZERO;
    let up_to = |(_, stamp): &(u64, Stamp)| {
        newest = newest.max(*stamp);
        newest
    };
    versions.iter().map(up_to).collect()
}

/// Reads of one key, and of several.
pub fn judge(reads: &[Read], acknowledged: &[Acknowledged], traffic: &Traffic) -> (Share, Share) {
    let mut versions: BTreeMap<(DatacenterId, Key), Vec<(u64, Stamp)>> = traffic.received.clone();
    for write in acknowledged {
        if let Some(stamp) = traffic.stamps.get(&write.number) {
            versions.entry((write.datacenter, write.key)).or_default().push((write.at_us, *stamp));
        }
    }
    versions.values_mut().for_each(|versions| versions.sort_unstable());
    let newest: BTreeMap<(DatacenterId, Key), Vec<Stamp>> =
        versions.iter().map(|(place, versions)| (*place, newest_of(versions))).collect();
    let (mut alone, mut among_others) = (Share::default(), Share::default());
    for read in reads {
        let returned = match read.returned {
            None => Stamp::ZERO,
            Some(number) => match traffic.stamps.get(&number) {
                Some(stamp) => *stamp,
                // Written here and not sent yet: nothing else is known to be newer.
                None => continue,
            },
        };
        let there = versions.get(&(read.datacenter, read.key)).map(Vec::as_slice).unwrap_or_default();
        let before = there.partition_point(|(at_us, _)| *at_us < read.asked_us);
        let newest =
            before.checked_sub(1).map_or(Stamp::ZERO, |last| newest[&(read.datacenter, read.key)][last]);
        let share = if read.among_others { &mut among_others } else { &mut alone };
        if newest <= returned {
            share.add(0);
            continue;
        }
        let recent = &there[before.saturating_sub(RECENT)..before];
        let fresher = recent.iter().filter(|(_, stamp)| *stamp > returned).count();
        share.add(fresher.max(1) as u64);
    }
    (alone, among_others)
}
