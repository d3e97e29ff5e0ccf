//! Lines for the operator, on standard error: time, level, text; as text, or as JSON objects.
//!
//! One level a process. A line that could repeat without end goes through a [`Throttle`]. It does not write files,
//! rotate, or buffer: what runs the process does that.

use crate::clock;
use serde_json::Value;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU8, Ordering};

/// How much an operator wants to read, in Redis's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    Verbose,
    #[default]
    Notice,
    Warning,
}

impl Level {
    pub const ALL: [Level; 4] = [Level::Debug, Level::Verbose, Level::Notice, Level::Warning];

    /// The word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Verbose => "verbose",
            Level::Notice => "notice",
            Level::Warning => "warning",
        }
    }

    pub fn parse(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Time, level and text, with blanks between.
    #[default]
    Text,
    /// An object with `time`, `level` and `message`.
    Json,
}

impl Format {
    pub const ALL: [Format; 2] = [Format::Text, Format::Json];

    /// The word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Json => "json",
        }
    }

    pub fn parse(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

static FORMAT: AtomicU8 = AtomicU8::new(Format::Text as u8);

/// Sets how lines are written, for the whole process.
pub fn set_format(format: Format) {
    FORMAT.store(format as u8, Ordering::Relaxed);
}

/// How lines are written.
pub(crate) fn format() -> Format {
    if FORMAT.load(Ordering::Relaxed) == Format::Json as u8 { Format::Json } else { Format::Text }
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Notice as u8);

/// Sets the lowest level that is written, for the whole process.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether lines of this level are written.
pub fn is_on(level: Level) -> bool {
    level as u8 >= LEVEL.load(Ordering::Relaxed)
}

pub fn warning(text: impl fmt::Display) {
    write(Level::Warning, text);
}

pub fn notice(text: impl fmt::Display) {
    write(Level::Notice, text);
}

pub fn verbose(text: impl fmt::Display) {
    write(Level::Verbose, text);
}

pub fn debug(text: impl fmt::Display) {
    write(Level::Debug, text);
}

/// Writes a line of this level.
pub fn at(level: Level, text: impl fmt::Display) {
    write(level, text);
}

fn write(level: Level, text: impl fmt::Display) {
    if is_on(level) {
        let line = line(format(), Timestamp(clock::wall_ms()), level, text);
        // A log that cannot be written is no reason to stop serving.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

/// A line with its end.
fn line(format: Format, time: Timestamp, level: Level, text: impl fmt::Display) -> String {
    match format {
        Format::Text => format!("{time} {:7} {text}\n", level.name()),
        Format::Json => record(format, time, level.name(), [&("message", Value::from(text.to_string()))]),
    }
}

/// A line of named values: `name=value` with blanks between, or an object. In both, values are written as JSON, so that
/// none ends the line.
pub(crate) fn record<'a>(
    format: Format,
    time: Timestamp,
    level: &str,
    fields: impl IntoIterator<Item = &'a (&'static str, Value)>,
) -> String {
    let (begin, assign, part, end) = match format {
        Format::Text => (format!("{time} {level:7}"), "=", " ", ""),
        Format::Json => (format!("{{\"time\":\"{time}\",\"level\":\"{level}\""), "\":", ",\"", "}"),
    };
    let mut line = begin;
    for (name, value) in fields {
        // Writing to a string cannot fail.
        let _ = write!(line, "{part}{name}{assign}{value}");
    }
    line.push_str(end);
    line.push('\n');
    line
}

/// Milliseconds since 1970, shown as a date and time of day in UTC.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp(pub u64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0 / DAY_MS, self.0 % DAY_MS);
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
    }
}

const DAY_MS: u64 = 86_400_000;

/// Year, month and day in the Gregorian calendar of a day counted from 1970-01-01.
fn date_of(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last day of a year and months need no table.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Lets one line a second through and counts the others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Throttle {
    next_us: u64,
    held_back: u64,
}

impl Throttle {
    /// Writes a warning, unless there was one within the last second.
    pub fn warning(&mut self, monotonic_us: u64, text: impl fmt::Display) {
        if monotonic_us < self.next_us {
            self.held_back += 1;
            return;
        }
        match std::mem::take(&mut self.held_back) {
            0 => warning(text),
            held_back => warning(format_args!("{text} ({held_back} more like this were not written)")),
        }
        self.next_us = monotonic_us + 1_000_000;
    }
}

#[cfg(test)]
mod tests;
