//! Who notices a change: of the tests, scripts and seeds that come to its place one after the other, until one objects.
//! Tests come first, the cheapest first. Scripts and seeds come by what they cost for each change that they have
//! objected to, most of all in the same file: neighbours break the same things.
//!
//! What needs many times the processor time that it needs without any change, or far more memory than any test, has
//! noticed the change too.

use super::journal::{Journal, Measured};
use super::list::Mutant;
use super::unit::{End, Unit};
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// So many times as long as without a change is endless.
const PATIENCE: u64 = 8;
const PATIENCE_SECONDS_MIN: u64 = 6;
/// Tests of one program are run together as long as they cost no more than this without a change.
const BATCH_MS: u64 = 1_000;
/// An objection in the same file says as much about a unit as so many elsewhere.
const SAME_FILE: u64 = 10;

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Noticed by this judge.
    Noticed(String),
    /// This judge did not end.
    Endless(String),
    /// Nothing that was run objected.
    Survived,
    /// Nothing that was run comes to its place.
    Unreached,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Noticed(judge) => write!(f, "noticed by {judge}"),
            Verdict::Endless(judge) => write!(f, "endless in {judge}"),
            Verdict::Survived => write!(f, "SURVIVED"),
            Verdict::Unreached => write!(f, "UNREACHED"),
        }
    }
}

/// All units with what is known of them.
pub(super) struct Bench {
    units: Vec<(Unit, Measured)>,
    objections: Mutex<Objections>,
    /// Scripts, and each kind of seeds, have so much processor time for a change.
    limit_ms: u64,
}

/// How often scripts and seeds have objected, by label.
#[derive(Default)]
struct Objections {
    anywhere: BTreeMap<String, u64>,
    /// By file and label.
    in_file: BTreeMap<(String, String), u64>,
}

impl Bench {
    /// Sees to it that every unit is content when no change is on, and learns what each costs and reaches.
    pub(super) fn sit(
        units: Vec<Unit>,
        journal: &Mutex<Journal>,
        scratch: &Path,
        workers: usize,
        limit_seconds: u64,
    ) -> Result<Bench> {
        let line = Mutex::new(units.into_iter());
        let known = Mutex::new(Vec::new());
        let work = |worker: usize| {
            let list = scratch.join(format!("reached-{worker}"));
            // The guard is gone before the unit runs.
            let next = || locked(&line).next();
            while let Some(unit) = next() {
                let label = unit.label();
                let before = locked(journal).measured(&label);
                let measured = match before {
                    Some(measured) => measured,
                    None => {
                        let (cost_ms, reached) = unit.try_unchanged(&list)?;
                        let measured = Measured { cost_ms, reached };
                        locked(journal).measure(&label, &measured)?;
                        measured
                    }
                };
                locked(&known).push((unit, measured));
            }
            anyhow::Ok(())
        };
        std::thread::scope(|scope| {
            let work = &work;
            let hands: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
            hands.into_iter().try_for_each(|hand| hand.join().expect("a worker does not panic"))
        })?;
        let mut units = known.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        units.sort_by_key(|(unit, measured)| (measured.cost_ms, unit.label()));
        let limit_ms = limit_seconds.saturating_mul(1_000);
        Ok(Bench { units, objections: Mutex::default(), limit_ms })
    }

    /// Asks about this change, which has this number. What it cost is in milliseconds of processor time.
    pub(super) fn judge(&self, number: u32, mutant: &Mutant) -> Result<(Verdict, u64)> {
        let reach = || self.units.iter().filter(|(_, measured)| measured.reached.contains(&number));
        if reach().next().is_none() {
            return Ok((Verdict::Unreached, 0));
        }
        let mut spent_ms = 0;
        let mut spent_ms_by: BTreeMap<&str, u64> = BTreeMap::new();
        let turns = turns(reach(), &mutant.package, |label| locked(&self.objections).of(&mutant.file, label));
        for turn in turns {
            let first = &turn[0].0;
            let spent_ms_here = spent_ms_by.entry(&first.judge).or_default();
            if first.tests.is_none() && *spent_ms_here >= self.limit_ms {
                continue;
            }
            let cost_ms: u64 = turn.iter().map(|(_, measured)| measured.cost_ms).sum();
            let patience_seconds = (cost_ms * PATIENCE / 1_000).max(PATIENCE_SECONDS_MIN);
            let units: Vec<&Unit> = turn.iter().map(|(unit, _)| unit).collect();
            let run = first.try_change(&units, number, patience_seconds)?;
            spent_ms += run.cost_ms;
            *spent_ms_here += run.cost_ms;
            let verdict = match run.end {
                End::Passed => continue,
                End::Failed => Verdict::Noticed(first.judge.clone()),
                End::TooLong => Verdict::Endless(first.judge.clone()),
            };
            locked(&self.objections).add(&mutant.file, first.label());
            return Ok((verdict, spent_ms));
        }
        Ok((Verdict::Survived, spent_ms))
    }
}

impl Objections {
    fn add(&mut self, file: &str, label: String) {
        *self.anywhere.entry(label.clone()).or_default() += 1;
        *self.in_file.entry((file.to_owned(), label)).or_default() += 1;
    }

    /// How much speaks for a unit that is asked about a change of this file.
    fn of(&self, file: &str, label: String) -> u64 {
        let anywhere = self.anywhere.get(&label).copied().unwrap_or(0);
        anywhere + SAME_FILE * self.in_file.get(&(file.to_owned(), label)).copied().unwrap_or(0)
    }
}

/// What is run together, in this order: tests of the changed package, other tests, and one by one the rest, by cost for
/// each objection. What comes in is ordered by cost.
pub(super) fn turns<'u>(
    units: impl Iterator<Item = &'u (Unit, Measured)>,
    package: &str,
    objections: impl Fn(String) -> u64,
) -> Vec<Vec<&'u (Unit, Measured)>> {
    let mut programs: BTreeMap<(bool, &PathBuf), Vec<&(Unit, Measured)>> = BTreeMap::new();
    let mut alone = Vec::new();
    for known in units {
        match &known.0.tests {
            Some(tests) => programs.entry((tests != package, &known.0.program)).or_default().push(known),
            None => alone.push(vec![known]),
        }
    }
    let mut turns = Vec::new();
    for tests in programs.into_values() {
        let mut cost_ms = 0;
        let mut together: Vec<&(Unit, Measured)> = Vec::new();
        for test in tests {
            if cost_ms + test.1.cost_ms > BATCH_MS && !together.is_empty() {
                turns.push(std::mem::take(&mut together));
                cost_ms = 0;
            }
            cost_ms += test.1.cost_ms;
            together.push(test);
        }
        turns.push(together);
    }
    alone.sort_by_cached_key(|one| one[0].1.cost_ms * 1_000 / (1 + objections(one[0].0.label())));
    turns.extend(alone);
    turns
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
