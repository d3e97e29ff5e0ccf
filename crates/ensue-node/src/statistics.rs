//! How often each command was executed, how that ended, and how long it took: for `INFO`.
//!
//! Commands are counted where they are executed: those of one partition by it, all others by their session. Nothing
//! here reads a clock. Whoever gives inputs reads one for each, so the time from the first input of a turn to its end
//! is what the turn took; it is shared evenly by the commands that were executed in it.

use bytes::Bytes;
use ensue_resp::{CommandSpec, TABLE};
use ensue_types::Reply;
use std::collections::BTreeMap;
use std::fmt;

/// What is counted of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    calls: u64,
    /// Not executed.
    rejected: u64,
    /// Executed, and answered with an error.
    failed: u64,
    time_ns: u64,
}

/// Calls by the least power of two that has as many microseconds as they took.
type Histogram = [u64; POWERS];
const POWERS: usize = 32;

/// A row of the table, and the subcommand if it has some.
type Name = (usize, Option<&'static str>);

/// The commands of a partition, or of the sessions of a core.
#[derive(Clone)]
pub(crate) struct Statistics {
    /// One a row of the table.
    commands: Vec<Counts>,
    subcommands: BTreeMap<(usize, &'static str), Counts>,
    /// How many calls of each row took how long; nothing of those that were never called.
    histograms: Vec<Option<Box<Histogram>>>,
    subcommand_histograms: BTreeMap<(usize, &'static str), Histogram>,
    /// Executed in the present turn.
    recent: Vec<(Name, u32)>,
    /// Errors that commands of scripts were answered with, by their first words.
    errors: BTreeMap<String, u64>,
    /// Keys that reads have found, and have not.
    hits: u64,
    misses: u64,
}

impl Default for Statistics {
    fn default() -> Statistics {
        let commands = vec![Counts::default(); TABLE.len()];
        let histograms = vec![None; TABLE.len()];
        let (subcommands, subcommand_histograms) = Default::default();
        let (recent, errors, hits, misses) = Default::default();
        Statistics { commands, subcommands, histograms, subcommand_histograms, recent, errors, hits, misses }
    }
}

/// Nothing that happens later depends on it, so two nodes that differ in it alone are in the same state.
impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Statistics")
    }
}

impl Statistics {
    /// A command was executed.
    pub(crate) fn count(
        &mut self,
        spec: &'static CommandSpec,
        subcommand: Option<&'static str>,
        failed: bool,
    ) {
        let name = (spec.index(), subcommand);
        let counts = self.counts(name);
        counts.calls += 1;
        counts.failed += u64::from(failed);
        match self.recent.last_mut() {
            Some((last, count)) if last.0 == name.0 && last.1.is_none() && name.1.is_none() => *count += 1,
            _ => self.recent.push((name, 1)),
        }
    }

    /// What a script has called. The time that it took is its script's.
    pub(crate) fn add_calls(&mut self, calls: ScriptCounts) {
        for (name, calls) in calls.commands {
            let counts = self.counts(name);
            counts.calls += calls.calls;
            counts.failed += calls.failed;
            counts.rejected += calls.rejected;
        }
        for (word, count) in calls.errors {
            if self.errors.len() < ERRORS_MAX || self.errors.contains_key(&word) {
                *self.errors.entry(word).or_default() += count;
            }
        }
    }

    /// A command was not executed.
    pub(crate) fn count_rejected(&mut self, spec: &'static CommandSpec, subcommand: Option<&'static str>) {
        self.counts((spec.index(), subcommand)).rejected += 1;
    }

    /// Keys that reads looked for.
    /// How often a command has found nothing under a name.
    pub(crate) fn misses(&self) -> u64 {
        self.misses
    }

    pub(crate) fn count_lookups(&mut self, hits: u64, misses: u64) {
        self.hits += hits;
        self.misses += misses;
    }

    /// How many commands were executed in the present turn.
    pub(crate) fn recent(&self) -> u64 {
        self.recent.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    /// The present turn took so long, for so many commands; those of others are among them.
    pub(crate) fn charge(&mut self, took_us: u64, commands: u64) {
        let mut recent = std::mem::take(&mut self.recent);
        for (name, count) in recent.drain(..) {
            self.counts(name).time_ns += took_us * 1_000 * u64::from(count) / commands.max(1);
            self.histogram(name)[power_of(took_us / commands.max(1))] += u64::from(count);
        }
        self.recent = recent;
    }

    pub(crate) fn reset(&mut self) {
        *self = Statistics::default();
    }

    /// The metrics, by name; all can be added up over partitions and cores.
    pub(crate) fn metrics(&self) -> Vec<(String, i64)> {
        let rows = self.commands.iter().enumerate().map(|(row, counts)| (TABLE[row].name.to_owned(), counts));
        let named =
            |(&(row, name), counts): (&(usize, &str), _)| (format!("{}|{name}", TABLE[row].name), counts);
        let all = rows.chain(self.subcommands.iter().map(named));
        let mut metrics = Vec::new();
        for (name, counts) in all.filter(|(_, counts)| **counts != Counts::default()) {
            let Counts { calls, rejected, failed, time_ns } = *counts;
            for (what, value) in
                [("calls", calls), ("rejected", rejected), ("failed", failed), ("ns", time_ns)]
            {
                metrics.push((format!("{COMMAND}{name}:{what}"), value as i64));
            }
        }
        self.add_histograms(&mut metrics);
        if !self.errors.is_empty() {
            metrics.push(("total_error_replies".to_owned(), self.errors.values().sum::<u64>() as i64));
            let errors = self.errors.iter().map(|(word, count)| (format!("{ERROR}{word}"), *count as i64));
            metrics.extend(errors);
        }
        metrics.push(("keyspace_hits".to_owned(), self.hits as i64));
        metrics.push(("keyspace_misses".to_owned(), self.misses as i64));
        metrics
    }

    fn add_histograms(&self, metrics: &mut Vec<(String, i64)>) {
        let rows = self.histograms.iter().enumerate();
        let rows = rows.filter_map(|(row, counts)| Some((TABLE[row].name.to_owned(), counts.as_deref()?)));
        let named =
            |(&(row, name), counts): (&(usize, &str), _)| (format!("{}|{name}", TABLE[row].name), counts);
        for (name, counts) in rows.chain(self.subcommand_histograms.iter().map(named)) {
            for (power, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                metrics.push((format!("{HISTOGRAM}{name}:{power}"), *count as i64));
            }
        }
    }

    fn histogram(&mut self, (row, subcommand): Name) -> &mut Histogram {
        match subcommand {
            None => self.histograms[row].get_or_insert_default(),
            Some(name) => self.subcommand_histograms.entry((row, name)).or_default(),
        }
    }

    fn counts(&mut self, (row, subcommand): Name) -> &mut Counts {
        match subcommand {
            None => &mut self.commands[row],
            Some(name) => self.counts_of_subcommand(row, name),
        }
    }

    /// Apart, so that the other ones take few instructions.
    #[cold]
    fn counts_of_subcommand(&mut self, row: usize, name: &'static str) -> &mut Counts {
        self.subcommands.entry((row, name)).or_default()
    }
}

/// What scripts have called, and what that was answered with.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScriptCounts {
    commands: BTreeMap<Name, Counts>,
    errors: BTreeMap<String, u64>,
}

impl ScriptCounts {
    /// A command was called, and answered so; or not executed, which the answer says.
    pub(crate) fn count(
        &mut self,
        name: &'static CommandSpec,
        args: &[Bytes],
        reply: &Reply,
        executed: bool,
    ) {
        let counts = self.commands.entry((name.index(), name.subcommand(args))).or_default();
        match executed {
            true => {
                counts.calls += 1;
                counts.failed += u64::from(reply.is_error());
            }
            false => counts.rejected += 1,
        }
        self.count_error(reply, 1);
    }

    /// An error that no command was executed with.
    pub(crate) fn count_unknown(&mut self, reply: &Reply) {
        self.count_error(reply, 1);
    }

    /// A script is answered with the error of its last command, which its session counts.
    pub(crate) fn take_back(&mut self, reply: &Reply) {
        self.count_error(reply, -1);
    }

    fn count_error(&mut self, reply: &Reply, by: i64) {
        let Reply::Error(words) = reply else { return };
        let word = error_word(words);
        if let Some(count) = self.errors.get_mut(word) {
            *count = count.saturating_add_signed(by);
        } else if by > 0 && self.errors.len() < ERRORS_MAX {
            self.errors.insert(word.to_owned(), by.unsigned_abs());
        }
    }
}

/// The word by which an error is counted. A script chooses the words of its errors, and names of metrics have bounds.
pub(crate) fn error_word(words: &str) -> &str {
    let word = words.split(' ').next().unwrap_or_default();
    let is_good =
        (1..=ERROR_WORD_BYTES_MAX).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_graphic());
    if is_good { word } else { "ERR" }
}

const ERROR_WORD_BYTES_MAX: usize = 64;

/// First words of errors that are counted each by itself; there are fewer.
const ERRORS_MAX: usize = 128;

/// What the names of the metrics of a command begin with.
pub(crate) const COMMAND: &str = "cmdstat_";
/// What the names of the metrics of how long commands took begin with.
pub(crate) const HISTOGRAM: &str = "histogram_";
/// What the names of the metrics of how long entries of other datacenters took until they were visible begin with.
pub(crate) const VISIBLE_AFTER: &str = "visible_after_";
/// What the names of metrics end with of which the largest one counts, where all others are added up.
pub(crate) const LARGEST: &str = "_max";
/// The same of the smallest one.
pub(crate) const SMALLEST: &str = "_min";
/// What the names of the metrics of errors begin with.
pub(crate) const ERROR: &str = "errorstat_";

/// The least power of two that is so many microseconds or more.
fn power_of(took_us: u64) -> usize {
    let power = u64::BITS - took_us.saturating_sub(1).leading_zeros();
    (power as usize).min(POWERS - 1)
}

/// How many commands are executed in a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    since_us: u64,
    /// How many there had been then.
    commands: u64,
    per_second: u64,
}

impl Rate {
    /// There have been so many commands now. The rate is that of the last second and more.
    pub(crate) fn observe(&mut self, now_us: u64, commands: u64) -> u64 {
        let elapsed_us = now_us.saturating_sub(self.since_us);
        if elapsed_us >= RATE_US {
            self.per_second = commands.saturating_sub(self.commands) * 1_000_000 / elapsed_us;
            (self.since_us, self.commands) = (now_us, commands);
        }
        self.per_second
    }
}

const RATE_US: u64 = 1_000_000;

/// A script chooses the words of its errors: a name of 300 bytes had the metrics of its core reach no other node.
#[test]
fn what_a_script_says_is_counted_by_a_word_of_bounded_length_and_number() {
    let long = "A".repeat(300);
    assert_eq!([long.as_str(), "", "\u{1}x y"].map(error_word), ["ERR"; 3]);
    assert_eq!(error_word("WRONGTYPE it is"), "WRONGTYPE");
    let mut counts = ScriptCounts::default();
    (0..1_000).for_each(|number| counts.count_error(&Reply::Error(format!("E{number} no").into()), 1));
    assert_eq!(counts.errors.len(), ERRORS_MAX);
    counts.take_back(&Reply::error("E0 no"));
    assert_eq!(counts.errors["E0"], 0);
}
