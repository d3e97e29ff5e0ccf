//! The keys of a run, few and shared, and what has to be remembered about them.

use super::command::Command;
use crate::oracle::history::{History, Location, OperationIndex};
use crate::oracle::may_be_lost;
use ensue_types::{Args, DatacenterId, partition_of};
use std::collections::{BTreeMap, BTreeSet};

/// Additions of distinct powers of two that fit one counter, and one score.
const BITS: u32 = 60;
const SCORE_BITS: u32 = 52;

/// The keys whose fields, or members, are counters.
pub const HASH_OF_COUNTERS: &str = "hc";
pub const SORTED_SET_OF_COUNTERS: &str = "zc";

/// A counter to which distinct powers of two are added, replaced by the next when they are used up.
#[derive(Clone, Debug)]
struct BitCounter {
    generation: u32,
    used: u32,
}

/// A counter to which anything is added; its final value must be the sum of what was acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Total {
    pub acknowledged: i64,
    pub unknown: Vec<i64>,
}

/// Keys shared by all clients.
pub struct Keys {
    pub count: usize,
    counters: BTreeMap<String, BitCounter>,
    /// Every bit counter that was used: key, field, location.
    pub sums: BTreeMap<(String, Option<String>), Location>,
    /// Members ever added to each set, in the order of invocation.
    pub members: BTreeMap<String, Vec<(String, Location, OperationIndex)>>,
    pub totals: BTreeMap<String, Total>,
    /// How many bounded counters were made, or may have been.
    pub escrows: usize,
    /// Bounded counters that were made, each by this operation.
    pub made: BTreeMap<String, OperationIndex>,
    /// Keys that somebody saw gone after their deadline, and where: no time comes back in which they were there.
    pub gone: Vec<(DatacenterId, String)>,
    /// Every acknowledged addition to them.
    pub added: Vec<(String, i64, OperationIndex)>,
    /// Keys whose deadline was acknowledged, and when it has surely come everywhere.
    pub expiring: Vec<(String, u64)>,
    /// Every key that was given a deadline, by whatever command: it may be gone between two questions of the end.
    pub dated: BTreeSet<String>,
}

/// A power of two nobody else adds, and where.
pub struct Addition {
    pub key: String,
    pub field: Option<String>,
    pub bit: u32,
    pub location: Location,
}

impl Keys {
    pub fn new(count: usize) -> Keys {
        Keys {
            count,
            counters: BTreeMap::new(),
            sums: BTreeMap::new(),
            members: BTreeMap::new(),
            totals: BTreeMap::new(),
            escrows: 0,
            made: BTreeMap::new(),
            gone: Vec::new(),
            added: Vec::new(),
            expiring: Vec::new(),
            dated: BTreeSet::new(),
        }
    }

    /// Remembers the keys that these commands give a deadline.
    pub fn note_deadlines(&mut self, commands: &[Command]) {
        let dates = |args: &Args| {
            let name = args[0].to_ascii_uppercase();
            name.ends_with(b"EXPIRE") || args.iter().any(|word| word.eq_ignore_ascii_case(b"PX"))
        };
        let dated = commands.iter().map(|command| &command.args).filter(|args| dates(args));
        self.dated.extend(dated.map(|args| String::from_utf8_lossy(&args[1]).into_owned()));
    }

    /// What was acknowledged and may be lost is unknown.
    pub fn doubt(&mut self, history: &History) {
        self.doubt_those(|key, operation| {
            may_be_lost(history, operation, partition_of(key.as_bytes(), history.partitions))
        });
    }

    /// What was acknowledged by a datacenter that is lost for good is unknown, and so is what may have been discarded
    /// with it.
    pub fn doubt_lost(&mut self, history: &History, discarded: &BTreeSet<String>) {
        self.doubt_those(|key, operation| {
            discarded.contains(key) || history.dead.contains(&history.operations[operation].datacenter)
        });
    }

    fn doubt_those(&mut self, is_doubtful: impl Fn(&str, OperationIndex) -> bool) {
        for (key, amount, operation) in std::mem::take(&mut self.added) {
            if is_doubtful(&key, operation) {
                let total = self.totals.entry(key).or_default();
                total.acknowledged -= amount;
                total.unknown.push(amount);
            } else {
                self.added.push((key, amount, operation));
            }
        }
    }

    /// The fields that shared hashes have.
    pub fn fields(history: &mut History, key: &str) -> Vec<(String, Location)> {
        (0..4).map(|f| (format!("f{f}"), history.location(&format!("{key}/f{f}")))).collect()
    }

    /// Draws the next power of two of a counter.
    pub fn addition(&mut self, history: &mut History, slot: &str) -> Addition {
        let counter = self.counters.entry(slot.to_owned()).or_insert(BitCounter { generation: 0, used: 0 });
        if counter.used == if slot == SORTED_SET_OF_COUNTERS { SCORE_BITS } else { BITS } {
            *counter = BitCounter { generation: counter.generation + 1, used: 0 };
        }
        let bit = counter.used;
        counter.used += 1;
        let (key, field, location) = self.sum(history, slot);
        Addition { key, field, bit, location }
    }

    /// The counter in use.
    pub fn sum(&mut self, history: &mut History, slot: &str) -> (String, Option<String>, Location) {
        let generation = self.counters.get(slot).map_or(0, |counter| counter.generation);
        let (key, field) = match slot {
            HASH_OF_COUNTERS | SORTED_SET_OF_COUNTERS => (slot.to_owned(), Some(format!("g{generation}"))),
            _ => (format!("{slot}g{generation}"), None),
        };
        let name = field.as_ref().map_or(key.clone(), |field| format!("{key}/{field}"));
        let location = history.location(&name);
        self.sums.insert((key.clone(), field.clone()), location);
        (key, field, location)
    }
}

/// The command that reads a counter.
pub fn sum_text(key: &str, field: Option<&str>) -> String {
    match field {
        Some(member) if key == SORTED_SET_OF_COUNTERS => format!("ZSCORE {key} {member}"),
        Some(field) => format!("HGET {key} {field}"),
        None => format!("GET {key}"),
    }
}

impl Total {
    /// Whether a final value is the acknowledged sum and some of what is unknown.
    pub fn allows(&self, value: i64) -> bool {
        let mut sums = BTreeSet::from([self.acknowledged]);
        for amount in &self.unknown {
            let with_it: Vec<i64> = sums.iter().map(|sum| sum + amount).collect();
            sums.extend(with_it);
        }
        sums.contains(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::Total;

    #[test]
    fn a_total_is_what_is_acknowledged_and_some_of_what_is_unknown_however_much_that_is() {
        let total = Total { acknowledged: 10, unknown: vec![40, -3, 5] };
        assert!([10, 7, 15, 12, 50, 52].into_iter().all(|value| total.allows(value)));
        assert!(![9, 11, 16, 53, 1_000].into_iter().any(|value| total.allows(value)));
        let much = Total { acknowledged: 0, unknown: vec![2; 200] };
        assert!(much.allows(0) && much.allows(400));
        assert!(!much.allows(3) && !much.allows(402) && !much.allows(-2));
    }
}
