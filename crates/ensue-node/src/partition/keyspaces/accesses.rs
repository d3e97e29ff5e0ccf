//! `maxmemory-policy`, and when and how often rows were used, as far as it wants to know.
//!
//! Uses are kept by the hash of the key in a table of fixed size: rows that share a place count as used together, so a
//! row may stay that would have gone, and the table takes half a mebibyte however many rows there are. It is kept only
//! under a policy that asks for it, is not durable, and no two datacenters have the same.

use crate::command::Fingerprint;
use ensue_types::KeyspaceId;

/// Which rows are evicted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Policy {
    /// None: writes are refused.
    #[default]
    None,
    AllRandom,
    AllLeastRecent,
    AllLeastFrequent,
    VolatileRandom,
    VolatileLeastRecent,
    VolatileLeastFrequent,
    VolatileTtl,
}

impl Policy {
    /// By its name in Redis.
    pub(crate) fn named(name: &str) -> Policy {
        match name {
            "allkeys-random" => Policy::AllRandom,
            "allkeys-lru" => Policy::AllLeastRecent,
            "allkeys-lfu" => Policy::AllLeastFrequent,
            "volatile-random" => Policy::VolatileRandom,
            "volatile-lru" => Policy::VolatileLeastRecent,
            "volatile-lfu" => Policy::VolatileLeastFrequent,
            "volatile-ttl" => Policy::VolatileTtl,
            _ => Policy::None,
        }
    }

    pub(crate) fn evicts(self) -> bool {
        self != Policy::None
    }

    /// Whether only rows with a deadline are evicted.
    pub(crate) fn is_of_volatile(self) -> bool {
        matches!(
            self,
            Policy::VolatileRandom
                | Policy::VolatileLeastRecent
                | Policy::VolatileLeastFrequent
                | Policy::VolatileTtl
        )
    }

    /// Whether it goes by how often rows are used.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Policy::AllLeastFrequent | Policy::VolatileLeastFrequent)
    }

    fn keeps_uses(self) -> bool {
        self.counts() || matches!(self, Policy::AllLeastRecent | Policy::VolatileLeastRecent)
    }
}

/// The last use of the rows of a place, and how many there were lately.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// In tenths of a second.
    at: u32,
    /// Grows ever more slowly, and falls by one a minute without a use.
    count: u8,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(in crate::partition) struct Accesses {
    policy: Policy,
    uses: Vec<Use>,
}

const PLACES: usize = 1 << 16;
/// A row that has just come is not the first to go.
const COUNT_AT_FIRST: u8 = 5;
/// How much more seldom a higher count grows.
const COUNT_FACTOR: u64 = 10;
const TENTHS_A_COUNT: u32 = 600;
const EPOCH_TENTHS: u64 = 1_000_000_000;

impl Accesses {
    pub(in crate::partition) fn of_policy(policy: Policy) -> Accesses {
        let mut accesses = Accesses::default();
        accesses.set_policy(policy);
        accesses
    }

    pub(in crate::partition) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        let places = if policy.keeps_uses() { PLACES } else { 0 };
        self.uses.resize(places, Use::default());
    }

    pub(in crate::partition) fn policy(&self) -> Policy {
        self.policy
    }

    /// Whether uses are kept.
    pub(in crate::partition) fn are_kept(&self) -> bool {
        !self.uses.is_empty()
    }

    /// A row is used.
    pub(in crate::partition) fn on_use(&mut self, keyspace: KeyspaceId, key: &[u8], now_us: u64) {
        let place = place(keyspace, key);
        let Some(one) = self.uses.get_mut(place) else { return };
        let now = tenths(now_us);
        let count = if one.at == 0 { COUNT_AT_FIRST } else { decayed(*one, now) };
        let grows_one_in = u64::from(count.saturating_sub(COUNT_AT_FIRST)) * COUNT_FACTOR + 1;
        let chance = Fingerprint::new().word(now_us).word(place as u64).finish();
        let count = count.saturating_add(u8::from(chance % grows_one_in == 0));
        *one = Use { at: now, count };
    }

    /// For how many seconds a row was not used.
    pub(in crate::partition) fn idle_s(&self, keyspace: KeyspaceId, key: &[u8], now_us: u64) -> u64 {
        let used = self.uses.get(place(keyspace, key)).filter(|one| one.at > 0);
        used.map_or(0, |one| u64::from(tenths(now_us).saturating_sub(one.at) / 10))
    }

    /// How often it was used lately, on a scale that grows ever more slowly.
    pub(in crate::partition) fn count(&self, keyspace: KeyspaceId, key: &[u8], now_us: u64) -> u8 {
        self.uses.get(place(keyspace, key)).map_or(0, |one| decayed(*one, tenths(now_us)))
    }

    /// A row is as if it had not been used for so many seconds, or had been used so often.
    pub(in crate::partition) fn set_use(
        &mut self,
        keyspace: KeyspaceId,
        key: &[u8],
        now_us: u64,
        (idle_s, count): (Option<u64>, Option<u64>),
    ) {
        let Some(one) = self.uses.get_mut(place(keyspace, key)) else { return };
        if let Some(seconds) = idle_s {
            let idle = u32::try_from(seconds.saturating_mul(10)).unwrap_or(u32::MAX);
            one.at = tenths(now_us).saturating_sub(idle).max(1);
        }
        if let Some(count) = count {
            one.count = u8::try_from(count).unwrap_or(u8::MAX);
        }
    }

    /// The lowest goes first.
    pub(in crate::partition) fn rank(&self, keyspace: KeyspaceId, key: &[u8], now_us: u64) -> u64 {
        let Some(one) = self.uses.get(place(keyspace, key)) else { return 0 };
        match self.policy.counts() {
            true => u64::from(decayed(*one, tenths(now_us))) << 32 | u64::from(one.at),
            false => u64::from(one.at),
        }
    }
}

fn decayed(one: Use, now: u32) -> u8 {
    let minutes = now.saturating_sub(one.at) / TENTHS_A_COUNT;
    one.count.saturating_sub(u8::try_from(minutes).unwrap_or(u8::MAX))
}

/// Tenths of a second; never zero, which is no use at all, and late enough that three years before is a time, too.
fn tenths(now_us: u64) -> u32 {
    u32::try_from(now_us / 100_000 + EPOCH_TENTHS).unwrap_or(u32::MAX)
}

fn place(keyspace: KeyspaceId, key: &[u8]) -> usize {
    (Fingerprint::new().word(u64::from(keyspace.0)).part(key).finish() % PLACES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: KeyspaceId = KeyspaceId(0);

    #[test]
    fn what_was_used_last_goes_last() {
        let mut accesses = Accesses::default();
        accesses.set_policy(Policy::named("allkeys-lru"));
        for (second, key) in [(1, b"a"), (2, b"b"), (3, b"a")] {
            accesses.on_use(KEYS, key, second * 1_000_000);
        }
        let rank = |key| accesses.rank(KEYS, key, 9_000_000);
        assert!(rank(b"none") < rank(b"b") && rank(b"b") < rank(b"a"));
    }

    #[test]
    fn what_is_used_often_goes_last_until_it_is_forgotten() {
        let mut accesses = Accesses::default();
        accesses.set_policy(Policy::named("volatile-lfu"));
        for use_us in 0..5_000 {
            accesses.on_use(KEYS, b"often", use_us);
        }
        accesses.on_use(KEYS, b"later", 10_000);
        let rank = |key, now_us| accesses.rank(KEYS, key, now_us);
        assert!(rank(b"later", 10_000) < rank(b"often", 10_000));
        let hours_us = 3 * 3_600 * 1_000_000;
        assert_eq!(rank(b"often", hours_us) >> 32, 0, "an hour and more without a use");
    }

    #[test]
    fn what_is_said_of_a_use_counts_as_one() {
        let mut accesses = Accesses::default();
        accesses.set_policy(Policy::named("allkeys-lru"));
        let now_us = 5_000_000;
        accesses.on_use(KEYS, b"a", now_us);
        assert_eq!(accesses.idle_s(KEYS, b"a", now_us + 3_400_000), 3);
        assert_eq!(accesses.idle_s(KEYS, b"never", now_us), 0);
        accesses.set_use(KEYS, b"b", now_us, (Some(1_000), None));
        assert_eq!(accesses.idle_s(KEYS, b"b", now_us + 2_000_000), 1_002, "longer than the clock has run");
        assert!(accesses.rank(KEYS, b"b", now_us) < accesses.rank(KEYS, b"a", now_us));
        accesses.set_policy(Policy::named("allkeys-lfu"));
        accesses.on_use(KEYS, b"c", now_us);
        assert_eq!(accesses.count(KEYS, b"c", now_us), COUNT_AT_FIRST + 1);
        accesses.set_use(KEYS, b"c", now_us, (None, Some(100)));
        assert_eq!(accesses.count(KEYS, b"c", now_us), 100);
    }

    #[test]
    fn uses_are_kept_only_where_they_are_asked_for() {
        for (name, kept) in
            [("noeviction", false), ("allkeys-random", false), ("volatile-ttl", false), ("allkeys-lfu", true)]
        {
            let mut accesses = Accesses::default();
            accesses.set_policy(Policy::named(name));
            assert_eq!(accesses.are_kept(), kept, "{name}");
        }
    }
}
