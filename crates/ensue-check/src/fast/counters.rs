//! Counters: which additions a count shows, which it must show, and between which bounds it must lie.

mod sums;

use super::clocks::{self, Clocks};
use super::index::{Index, Keyed, KeyedEntry};
use crate::history::{History, Operation, Outcome, Transaction};
use crate::report::Pattern;
use crate::tables::Map;
use sums::Sums;

/// Most distinct sums that are tried for one count.
const SUMS_MAX: usize = 4_096;
/// Most pairs of a count and an addition to one key for which single sums are tried.
const PAIRS_MAX: usize = 1 << 20;

/// A count that shows an addition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub reader: u32,
    pub adder: u32,
}

/// A count that no set of additions explains.
#[derive(Clone, Debug)]
pub(super) struct BrokenCount {
    pub pattern: Pattern,
    pub reader: u32,
    pub key: u32,
    pub value: i64,
    /// The addition that is missing, or that should not be there.
    pub adder: Option<u32>,
    pub why: String,
}

/// A count of a committed transaction.
#[derive(Clone, Copy, Debug)]
struct Count {
    reader: u32,
    key: u32,
    value: i64,
    /// What the transaction itself had added before.
    own: i128,
    /// The bits that it shows, where the key is exact and the count is explained.
    shown: Option<u64>,
    /// Those of them that came too late, unless they turn out to be in the past.
    late: u64,
}

/// All counters of a history, as far as they do not depend on who read from whom.
pub(super) struct Counters<'a> {
    history: &'a History,
    /// Who added, and did not fail.
    adders: Keyed,
    /// Beside each adder: what it added to the key in all.
    units: Vec<i128>,
    counts: Vec<Count>,
    /// By key: every addition is a power of two of its own, and no other is missing.
    is_exact: Vec<bool>,
    pub seen: Vec<Seen>,
    /// The first count that is wrong whatever the past is.
    pub broken: Option<BrokenCount>,
}

/// What the causal past says of the counts.
pub(super) struct CountsJudged {
    pub broken: Option<BrokenCount>,
    /// At least one count was compared with bounds that may be too wide.
    pub by_bounds: bool,
}

impl<'a> Counters<'a> {
    pub fn find(history: &'a History) -> Counters<'a> {
        let counts = counts(history);
        let (adders, units) = if counts.is_empty() { Default::default() } else { adders(history) };
        let owners = Owners::find(history);
        let mut counters = Counters {
            history,
            adders,
            units,
            counts,
            is_exact: owners.is_exact,
            seen: Vec::new(),
            broken: None,
        };
        let places = places(history);
        for at in 0..counters.counts.len() {
            let count = counters.counts[at];
            if counters.is_exact[count.key as usize] {
                match counters.read_bits(&owners.by_bit, &places, count) {
                    Ok((shown, late)) => {
                        (counters.counts[at].shown, counters.counts[at].late) = (Some(shown), late);
                    }
                    Err(broken) => {
                        counters.broken.get_or_insert(broken);
                    }
                }
            }
        }
        counters
    }

    pub fn any(&self) -> bool {
        !self.counts.is_empty()
    }

    /// The bits of a count, and those of them that came too late. If none did, their owners become edges.
    fn read_bits(
        &mut self,
        by_bit: &Map<(u32, u32), (u32, u64)>,
        places: &[(u32, u32)],
        count: Count,
    ) -> Result<(u64, u64), BrokenCount> {
        let reader = &self.history.transactions[count.reader as usize];
        let wrong = |adder, why: &str| BrokenCount {
            pattern: Pattern::CounterOutOfBounds,
            reader: count.reader,
            key: count.key,
            value: count.value,
            adder,
            why: why.into(),
        };
        let rest = i128::from(count.value) - count.own;
        let Ok(bits) = u64::try_from(rest) else {
            return Err(wrong(None, "it is less than what its own transaction had added"));
        };
        let mut left = bits;
        let mut late = 0;
        let mut adders = Vec::new();
        while left != 0 {
            let bit = left.trailing_zeros();
            let Some(&(adder, unit)) = by_bit.get(&(count.key, bit)) else {
                return Err(wrong(None, &format!("nobody who did not fail added {}", 1_u64 << bit)));
            };
            if left & unit != unit {
                return Err(wrong(Some(adder), "it shows a part of what one transaction added"));
            }
            let (session, position) = places[adder as usize];
            let own = places[count.reader as usize];
            if adder == count.reader {
                return Err(wrong(Some(adder), "it shows what its own transaction added only later"));
            }
            if session == own.0 && position > own.1
                || self.history.transactions[adder as usize].start_us > end_of(reader)
            {
                late |= unit;
            }
            adders.push(adder);
            left &= !unit;
        }
        if late == 0 {
            self.seen.extend(adders.into_iter().map(|adder| Seen { reader: count.reader, adder }));
        }
        Ok((bits, late))
    }

    /// What must be in every count, now that the past is known; nothing if the past is cyclic and too long.
    pub fn judge(&self, index: &Index<'_>, order: Option<&[u32]>) -> Option<CountsJudged> {
        let mut judged = CountsJudged { broken: self.broken.clone(), by_bounds: false };
        if self.counts.is_empty() || judged.broken.is_some() {
            return Some(judged);
        }
        let sums = Sums::new(self, index);
        let mut known: Vec<Known> = self.counts.iter().map(|count| self.begin(count)).collect();
        for block in Clocks::blocks(index) {
            let clocks = clocks::causal(index, order, block)?;
            for (count, known) in self.counts.iter().zip(&mut known) {
                sums.add_block(self, index, &clocks, count, known);
            }
        }
        for (count, known) in self.counts.iter().zip(&known) {
            match self.decide(count, known) {
                Decision::Fits => {}
                Decision::FitsBounds => judged.by_bounds = true,
                Decision::Broken(broken) => {
                    judged.broken.get_or_insert(*broken);
                }
            }
        }
        Some(judged)
    }

    fn begin(&self, count: &Count) -> Known {
        let adders: usize =
            self.adders.groups(count.key).iter().map(|group| (group.end - group.start) as usize).sum();
        let tries_sums = adders.saturating_mul(self.counts.len()) <= PAIRS_MAX;
        Known { possible: tries_sums.then(Vec::new), ..Known::default() }
    }

    fn decide(&self, count: &Count, known: &Known) -> Decision {
        let broken = |pattern, adder, why| {
            let &Count { reader, key, value, .. } = count;
            Decision::Broken(Box::new(BrokenCount { pattern, reader, key, value, adder, why }))
        };
        if let Some(shown) = count.shown {
            let missing = known.required_bits & !shown;
            let late = count.late & !known.required_bits;
            if late != 0 {
                let why =
                    format!("it shows an addition of {}, which began later", late & late.wrapping_neg());
                return broken(Pattern::CounterOutOfBounds, None, why);
            }
            if missing == 0 {
                return Decision::Fits;
            }
            let adder = known.last_required_with(missing);
            let why = format!("an addition of {} in its past is missing", missing & missing.wrapping_neg());
            return broken(Pattern::CounterLostAddition, adder, why);
        }
        let rest = i128::from(count.value) - count.own - known.required;
        if rest < known.least || rest > known.most {
            let (least, most) = (known.least, known.most);
            let sure = count.own + known.required;
            let why = format!(
                "its past adds up to {sure}, and other additions can make it {} to {}",
                sure + least,
                sure + most
            );
            let pattern =
                if rest < known.least { Pattern::CounterLostAddition } else { Pattern::CounterOutOfBounds };
            return broken(pattern, None, why);
        }
        if known.all_ones || known.least == known.most {
            return Decision::Fits;
        }
        match known.possible.as_deref().and_then(|possible| adds_up(possible, rest)) {
            Some(true) => Decision::Fits,
            Some(false) => {
                let why = "no set of additions adds up to it".into();
                broken(Pattern::CounterOutOfBounds, None, why)
            }
            None => Decision::FitsBounds,
        }
    }
}

enum Decision {
    Fits,
    FitsBounds,
    Broken(Box<BrokenCount>),
}

/// What has been found out about one count, block by block.
#[derive(Debug)]
struct Known {
    required: i128,
    required_bits: u64,
    /// Adders that are required, with their bits; only of exact keys.
    required_adders: Vec<(u32, u64)>,
    /// What the possible additions can do at least and at most.
    least: i128,
    most: i128,
    /// All possible additions are by one, so every number between the bounds can be reached.
    all_ones: bool,
    /// The possible additions themselves, where there are few.
    possible: Option<Vec<i128>>,
}

impl Default for Known {
    fn default() -> Known {
        Known {
            required: 0,
            required_bits: 0,
            required_adders: Vec::new(),
            least: 0,
            most: 0,
            all_ones: true,
            possible: None,
        }
    }
}

impl Known {
    fn last_required_with(&self, bits: u64) -> Option<u32> {
        self.required_adders.iter().rev().find(|(_, unit)| unit & bits != 0).map(|(adder, _)| *adder)
    }
}

/// Whether some of these add up; nothing if there are too many sums to try.
fn adds_up(possible: &[i128], wanted: i128) -> Option<bool> {
    let mut sums = vec![0_i128];
    for delta in possible {
        let with: Vec<i128> = sums.iter().map(|sum| sum + delta).collect();
        sums.extend(with);
        sums.sort_unstable();
        sums.dedup();
        if sums.len() > SUMS_MAX {
            return None;
        }
    }
    Some(sums.binary_search(&wanted).is_ok())
}

/// When it was answered; never, where the history does not say.
fn end_of(transaction: &Transaction) -> u64 {
    match transaction.end_us {
        0 => u64::MAX,
        end => end,
    }
}

fn places(history: &History) -> Vec<(u32, u32)> {
    let mut places = vec![(0, 0); history.transactions.len()];
    for (session, of) in history.sessions.iter().enumerate() {
        for (position, transaction) in of.transactions.iter().enumerate() {
            places[transaction.0 as usize] = (session as u32, position as u32);
        }
    }
    places
}

fn counts(history: &History) -> Vec<Count> {
    let mut counts = Vec::new();
    for (reader, transaction) in history.transactions.iter().enumerate() {
        if transaction.outcome != Outcome::Committed {
            continue;
        }
        let mut added: Map<u32, i128> = Map::default();
        for operation in &transaction.operations {
            match *operation {
                Operation::Add { key, delta } => *added.entry(key.0).or_default() += i128::from(delta),
                Operation::Count { key, value } => {
                    let (reader, own) = (reader as u32, added.get(&key.0).copied().unwrap_or_default());
                    counts.push(Count { reader, key: key.0, value, own, shown: None, late: 0 });
                }
                _ => {}
            }
        }
    }
    counts
}

fn adders(history: &History) -> (Keyed, Vec<i128>) {
    let mut entries: Vec<KeyedEntry> = Vec::new();
    // Beside each entry: its key, and what was added to it.
    let mut units: Vec<(u32, i128)> = Vec::new();
    for (session, of) in history.sessions.iter().enumerate() {
        for (position, &transaction) in of.transactions.iter().enumerate() {
            let of_it = history.transaction(transaction);
            if of_it.outcome == Outcome::Failed {
                continue;
            }
            let mut places: Map<u32, usize> = Map::default();
            for operation in &of_it.operations {
                let Operation::Add { key, delta } = *operation else { continue };
                let place = *places.entry(key.0).or_insert(entries.len());
                if place == entries.len() {
                    let (session, position) = (session as u32, position as u32);
                    entries.push(KeyedEntry { key: key.0, session, position, transaction: transaction.0 });
                    units.push((key.0, 0));
                }
                units[place].1 += i128::from(delta);
            }
        }
    }
    // As the entries are sorted in: by key, and those of one key as they come.
    units.sort_by_key(|(key, _)| *key);
    (Keyed::new(history.keys.len(), &entries), units.into_iter().map(|(_, unit)| unit).collect())
}

/// Which transaction added which power of two.
struct Owners {
    is_exact: Vec<bool>,
    /// By key and bit: the transaction, and all bits that it added to the key.
    by_bit: Map<(u32, u32), (u32, u64)>,
}

impl Owners {
    fn find(history: &History) -> Owners {
        // In the missing part of a recording that broke off anything may have been added once more.
        let mut is_exact = vec![history.truncated_at_line.is_none(); history.keys.len()];
        let mut by_bit: Map<(u32, u32), (u32, u64)> = Map::default();
        // By key and transaction: all bits that it added.
        let mut units: Map<(u32, u32), u64> = Map::default();
        for (adder, transaction) in history.transactions.iter().enumerate() {
            if transaction.outcome == Outcome::Failed {
                continue;
            }
            for operation in &transaction.operations {
                let Operation::Add { key, delta } = *operation else { continue };
                if !is_exact[key.0 as usize] {
                    continue;
                }
                let is_power = delta > 0 && delta & (delta - 1) == 0;
                let bit = delta.trailing_zeros();
                is_exact[key.0 as usize] =
                    is_power && by_bit.insert((key.0, bit), (adder as u32, 0)).is_none();
                *units.entry((key.0, adder as u32)).or_default() |= delta.unsigned_abs();
            }
        }
        for ((key, _), (adder, unit)) in &mut by_bit {
            *unit = units[&(*key, *adder)];
        }
        Owners { is_exact, by_bit }
    }
}
