//! What a run found: how many were noticed, by whom, and the table of those that nobody noticed.

use super::build::Sample;
use super::judge::Verdict;
use super::list::Mutant;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Of one run.
pub(super) struct Figures<'m> {
    sample: usize,
    /// How many there are to draw from.
    total: usize,
    seed: u64,
    left_out: usize,
    /// By judge, and those in which a judge did not end.
    noticed: BTreeMap<String, (usize, usize)>,
    pub(super) survivors: Vec<&'m Mutant>,
    took: Duration,
}

impl<'m> Figures<'m> {
    pub(super) fn new(
        sample: &Sample<'m>,
        verdicts: &[Verdict],
        total: usize,
        seed: u64,
        took: Duration,
    ) -> Figures<'m> {
        let mut noticed: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        let mut survivors = Vec::new();
        for (mutant, verdict) in sample.mutants.iter().zip(verdicts) {
            match verdict {
                Verdict::Noticed(judge) => noticed.entry(judge.clone()).or_default().0 += 1,
                Verdict::Endless(judge) => noticed.entry(judge.clone()).or_default().1 += 1,
                Verdict::Survived => survivors.push(*mutant),
            }
        }
        let (sample, left_out) = (sample.mutants.len(), sample.left_out.len());
        Figures { sample, total, seed, left_out, noticed, survivors, took }
    }

    /// A page for `docs/figures`.
    pub(super) fn page(&self, commit: &str) -> String {
        format!(
            "# Small wrong changes\n\n\
             Written by `cargo xtask mutants --sample {} --seed {} --record` at commit `{commit}`.\n\n{self}",
            self.sample, self.seed
        )
    }
}

impl fmt::Display for Figures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let killed = self.sample - self.survivors.len();
        let share = 100.0 * killed as f64 / self.sample.max(1) as f64;
        let seconds = self.took.as_secs_f64();
        writeln!(f, "{killed} of {} changes noticed ({share:.1} %), {seconds:.0} s.", self.sample)?;
        writeln!(
            f,
            "Drawn from {}; {} were left out because they do not compile, or not as a switch.",
            self.total, self.left_out
        )?;
        writeln!(f, "\n| noticed by | objected | did not end |\n|---|--:|--:|")?;
        for (judge, (objected, endless)) in &self.noticed {
            writeln!(f, "| {judge} | {objected} | {endless} |")?;
        }
        if !self.survivors.is_empty() {
            writeln!(f, "\n| place | change that nobody noticed |\n|---|---|")?;
        }
        for mutant in &self.survivors {
            writeln!(f, "| {} | {} |", mutant.place(), mutant.change().replace('|', "\\|"))?;
        }
        Ok(())
    }
}
