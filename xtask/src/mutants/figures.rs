//! What a run found: how many were noticed, by whom, and the table of those that nobody noticed.

use super::Options;
use super::journal::Known;
use super::judge::Verdict;
use std::collections::BTreeMap;
use std::fmt;

/// Of one run, with those before it that it judged again.
pub(super) struct Figures {
    judged: usize,
    /// How many there are to draw from.
    total: usize,
    left_out: usize,
    commits: Vec<String>,
    /// By judge, and those in which a judge did not end.
    noticed: BTreeMap<String, (usize, usize)>,
    /// By folder or file of the sources: noticed, of how many.
    places: BTreeMap<String, (usize, usize)>,
    /// Names, with whether anything comes to their place.
    pub(super) survivors: Vec<(String, bool)>,
    cost_ms: u64,
}

impl Figures {
    pub(super) fn new(known: &Known) -> Figures {
        let mut noticed: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        let mut places: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        let mut survivors = Vec::new();
        for (name, (verdict, _)) in &known.verdicts {
            match verdict {
                Verdict::Noticed(judge) => noticed.entry(judge.clone()).or_default().0 += 1,
                Verdict::Endless(judge) => noticed.entry(judge.clone()).or_default().1 += 1,
                Verdict::Survived => survivors.push((name.clone(), true)),
                Verdict::Unreached => survivors.push((name.clone(), false)),
            }
            let place = places.entry(place_of(name)).or_default();
            place.0 += usize::from(matches!(verdict, Verdict::Noticed(_) | Verdict::Endless(_)));
            place.1 += 1;
        }
        Figures {
            judged: known.verdicts.len(),
            total: known.total,
            left_out: known.left_out.len(),
            commits: known.commits.clone(),
            noticed,
            places,
            survivors,
            cost_ms: known.verdicts.values().map(|(_, cost_ms)| cost_ms).sum(),
        }
    }

    /// A page for `docs/figures`.
    pub(super) fn page(&self, options: &Options) -> String {
        let only: String = options.only.iter().map(|part| format!(" --only {part}")).collect();
        let commits: Vec<String> = self.commits.iter().map(|commit| format!("`{commit}`")).collect();
        let again = if commits.len() > 1 {
            "\nWhat nobody had noticed was judged again, with further tests, at each later commit (`--again`).\n"
        } else {
            ""
        };
        let limit = match options.limit_seconds {
            u64::MAX => String::new(),
            seconds => format!(" --limit-seconds {seconds}"),
        };
        format!(
            "# Small wrong changes\n\nWritten by\n\n    cargo xtask mutants --sample {} --seed {}{limit}{only} --record\n\n\
             at commit {}.\n{again}\n{self}",
            options.sample,
            options.seed,
            commits.join(", then ")
        )
    }
}

/// The first two folders or files below the sources of a crate.
fn place_of(name: &str) -> String {
    let file = name.split(':').next().unwrap_or_default();
    let within = file.strip_prefix("crates/").unwrap_or(file).replacen("/src/", "/", 1);
    let parts: Vec<&str> = within.split('/').take(3).collect();
    parts.join("/").trim_end_matches(".rs").to_owned()
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let killed = self.judged - self.survivors.len();
        let share = 100.0 * killed as f64 / self.judged.max(1) as f64;
        let seconds = self.cost_ms / 1_000;
        writeln!(
            f,
            "{killed} of {} changes noticed ({share:.1} %), in {seconds} s of processor time.",
            self.judged
        )?;
        writeln!(
            f,
            "Drawn from {}; {} were left out because they do not compile, or not as a switch.",
            self.total, self.left_out
        )?;
        writeln!(f, "\n| noticed by | objected | did not end |\n|---|--:|--:|")?;
        for (judge, (objected, endless)) in &self.noticed {
            writeln!(f, "| {judge} | {objected} | {endless} |")?;
        }
        writeln!(f, "\n| where | noticed | of |\n|---|--:|--:|")?;
        for (place, (noticed, of)) in &self.places {
            writeln!(f, "| `{place}` | {noticed} | {of} |")?;
        }
        if !self.survivors.is_empty() {
            writeln!(f, "\n| file | change that nobody noticed |\n|---|---|")?;
        }
        for (name, reached) in &self.survivors {
            let (place, change) = name.split_once(": ").unwrap_or((name, ""));
            let reached = if *reached { "" } else { " (nothing comes there)" };
            writeln!(f, "| {place} | {}{reached} |", change.replace('|', "\\|"))?;
        }
        Ok(())
    }
}
