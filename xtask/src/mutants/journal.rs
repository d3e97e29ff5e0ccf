//! What is known of a run, written down as it comes, so that a run that was stopped goes on where it was.
//!
//! One line a thing, its parts apart by tabs. It counts only for the same tree and the same command line; of another
//! tree the verdicts alone count, for `--again`.

use super::judge::Verdict;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Of one test, script or seed without a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    /// Processor time.
    pub(super) cost_ms: u64,
    /// Numbers of the changes whose place it comes to.
    pub(super) reached: BTreeSet<u32>,
}

/// A file, and what it says.
pub(super) struct Journal {
    file: File,
    known: Known,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Of which tree, with which command line.
    pub(super) key: String,
    /// The commits at which there were verdicts.
    pub(super) commits: Vec<String>,
    /// How many changes there were to draw from.
    pub(super) total: usize,
    /// Names of the changes that are compiled, by number from 1 on; none before it is known what compiles.
    pub(super) sample: Vec<String>,
    /// Names of those that do not compile.
    pub(super) left_out: Vec<String>,
    pub(super) units: BTreeMap<String, Measured>,
    /// By name, with the processor time that it took.
    pub(super) verdicts: BTreeMap<String, (Verdict, u64)>,
}

impl Known {
    /// What a file says, nothing if there is none. A last line that was broken off does not count.
    pub(super) fn read(path: &Path) -> Result<Known> {
        let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
        let mut known = Known::default();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            known.take(line).with_context(|| format!("{}: {line}", path.display()))?;
        }
        Ok(known)
    }

    /// Whether the change of this name is of the sample, and nobody noticed it, or nobody was asked yet.
    pub(super) fn is_open(&self, name: &str) -> bool {
        match self.verdicts.get(name) {
            Some((verdict, _)) => matches!(verdict, Verdict::Survived | Verdict::Unreached),
            None => self.sample.iter().any(|other| other == name),
        }
    }

    /// The verdicts on what was noticed, with what they were drawn from.
    pub(super) fn noticed(mut self) -> Known {
        let open: Vec<String> = self.verdicts.keys().filter(|name| self.is_open(name)).cloned().collect();
        self.verdicts.retain(|name, _| !open.contains(name));
        Known { verdicts: self.verdicts, total: self.total, left_out: self.left_out, ..Known::default() }
    }

    fn take(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split('\t').collect();
        match words[..] {
            ["run", key] => self.key = key.to_owned(),
            ["commit", commit] => self.commits.push(commit.to_owned()),
            ["total", total] => self.total = total.parse()?,
            ["sample", name] => self.sample.push(name.to_owned()),
            ["out", name] => self.left_out.push(name.to_owned()),
            ["unit", label, cost_ms, reached] => {
                let numbers = reached.split(' ').filter(|number| !number.is_empty());
                let reached = numbers.map(str::parse).collect::<Result<_, _>>()?;
                self.units.insert(label.to_owned(), Measured { cost_ms: cost_ms.parse()?, reached });
            }
            ["verdict", name, cost_ms, verdict, judge] => {
                let verdict = match verdict {
                    "noticed" => Verdict::Noticed(judge.to_owned()),
                    "endless" => Verdict::Endless(judge.to_owned()),
                    "survived" => Verdict::Survived,
                    "unreached" => Verdict::Unreached,
                    other => anyhow::bail!("no verdict is {other}"),
                };
                self.verdicts.insert(name.to_owned(), (verdict, cost_ms.parse()?));
            }
            _ => anyhow::bail!("not a line of a journal"),
        }
        Ok(())
    }
}

impl Journal {
    /// Goes on with what is known.
    pub(super) fn go_on(path: &Path, known: Known) -> Result<Journal> {
        ensure!(!known.sample.is_empty(), "a journal goes on once it is known what compiles");
        Ok(Journal { file: OpenOptions::new().append(true).open(path)?, known })
    }

    /// Begins anew, with this known of a sample and, of earlier runs, verdicts.
    pub(super) fn begin(path: &Path, known: Known) -> Result<Journal> {
        let mut journal = Journal { file: File::create(path)?, known: Known::default() };
        journal.line(&["run", &known.key])?;
        journal.line(&["total", &known.total.to_string()])?;
        for (what, names) in [("commit", &known.commits), ("out", &known.left_out), ("sample", &known.sample)]
        {
            names.iter().try_for_each(|name| journal.line(&[what, name]))?;
        }
        for (name, (verdict, cost_ms)) in &known.verdicts {
            journal.judged(name, verdict, *cost_ms)?;
        }
        journal.known = known;
        Ok(journal)
    }

    pub(super) fn known(&self) -> &Known {
        &self.known
    }

    pub(super) fn measured(&self, label: &str) -> Option<Measured> {
        self.known.units.get(label).cloned()
    }

    pub(super) fn measure(&mut self, label: &str, measured: &Measured) -> Result<()> {
        let numbers: Vec<String> = measured.reached.iter().map(u32::to_string).collect();
        self.line(&["unit", label, &measured.cost_ms.to_string(), &numbers.join(" ")])?;
        self.known.units.insert(label.to_owned(), measured.clone());
        Ok(())
    }

    pub(super) fn judged(&mut self, name: &str, verdict: &Verdict, cost_ms: u64) -> Result<()> {
        let (word, judge) = match verdict {
            Verdict::Noticed(judge) => ("noticed", judge.as_str()),
            Verdict::Endless(judge) => ("endless", judge.as_str()),
            Verdict::Survived => ("survived", ""),
            Verdict::Unreached => ("unreached", ""),
        };
        self.line(&["verdict", name, &cost_ms.to_string(), word, judge])?;
        self.known.verdicts.insert(name.to_owned(), (verdict.clone(), cost_ms));
        Ok(())
    }

    fn line(&mut self, words: &[&str]) -> Result<()> {
        let line = words.join("\t") + "\n";
        self.file.write_all(line.as_bytes()).context("writing the journal")
    }
}
