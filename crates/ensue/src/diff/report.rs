//! What a comparison has found: a table, the first differences in words, and the same as JSON.

use super::explanation::cut;
use super::fingerprint::Verdict;
use crate::paint::Paint;
use bytes::Bytes;
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// Keys that are named of those that went on changing.
const CHANGING_SHOWN: usize = 3;

pub(crate) struct Difference {
    pub(crate) key: Bytes,
    pub(crate) verdict: Verdict,
    pub(crate) words: String,
}

/// The keys of one keyspace.
#[derive(Default)]
pub(crate) struct Tally {
    /// Its numbers on the left and on the right side.
    pub(crate) keyspaces: (u64, u64),
    pub(crate) left: u64,
    pub(crate) right: u64,
    pub(crate) equal: u64,
    only_left: u64,
    only_right: u64,
    other_type: u64,
    other_value: u64,
    other_deadline: u64,
    changing: u64,
    changing_keys: Vec<Bytes>,
    unreadable: u64,
    /// They differed when they were read, and there was no room to read them again.
    pub(crate) left_out: u64,
    /// Deadlines of fields were not compared, because a side does not know them.
    pub(crate) skips_field_deadlines: bool,
    /// Somebody wanted an end.
    pub(crate) is_cut_short: bool,
    pub(crate) differences: Vec<Difference>,
}

impl Tally {
    pub(crate) fn of(keyspaces: (u64, u64)) -> Tally {
        Tally { keyspaces, ..Tally::default() }
    }

    pub(crate) fn count(&mut self, verdict: Verdict) {
        let number = match verdict {
            Verdict::Equal => &mut self.equal,
            Verdict::OnlyLeft => &mut self.only_left,
            Verdict::OnlyRight => &mut self.only_right,
            Verdict::OtherType => &mut self.other_type,
            Verdict::OtherValue => &mut self.other_value,
            Verdict::OtherDeadline | Verdict::OtherFieldDeadlines => &mut self.other_deadline,
            Verdict::Unreadable => &mut self.unreadable,
        };
        *number += 1;
    }

    pub(crate) fn count_changing(&mut self, key: &Bytes) {
        self.changing += 1;
        if self.changing_keys.len() < CHANGING_SHOWN {
            self.changing_keys.push(key.clone());
        }
    }

    /// One number, or two where they differ.
    pub(crate) fn name(&self) -> String {
        match self.keyspaces {
            (left, right) if left == right => left.to_string(),
            (left, right) => format!("{left}:{right}"),
        }
    }

    fn different(&self) -> u64 {
        self.only_left + self.only_right + self.other_type + self.other_value + self.other_deadline
    }

    fn columns(&self) -> [u64; 9] {
        let [one, other] = [self.only_left, self.only_right];
        let [kind, value, deadline] = [self.other_type, self.other_value, self.other_deadline];
        [self.left, self.right, self.equal, one, other, kind, value, deadline, self.changing]
    }
}

const COLUMNS: [&str; 9] = [
    "keys left",
    "keys right",
    "equal",
    "only left",
    "only right",
    "other type",
    "other value",
    "other deadline",
    "changing",
];

/// What is said in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Equal,
    Different,
    Undecided,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Outcome::Equal => "equal",
            Outcome::Different => "different",
            Outcome::Undecided => "undecided",
        }
    }
}

pub(crate) struct Report {
    pub(crate) left: String,
    pub(crate) right: String,
    pub(crate) tallies: Vec<Tally>,
    /// So many keys may go on changing.
    pub(crate) changing_max: u64,
}

impl Report {
    pub(crate) fn outcome(&self) -> Outcome {
        let sum = |number: fn(&Tally) -> u64| self.tallies.iter().map(number).sum::<u64>();
        let undecided = sum(|tally| tally.unreadable + tally.left_out);
        let is_cut_short = self.tallies.iter().any(|tally| tally.is_cut_short);
        if sum(Tally::different) > 0 {
            Outcome::Different
        } else if undecided > 0 || is_cut_short || sum(|tally| tally.changing) > self.changing_max {
            Outcome::Undecided
        } else {
            Outcome::Equal
        }
    }

    /// As people read it.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let mut text = format!("left  {}\nright {}\n", self.left, self.right);
        self.table(&mut text, paint);
        for tally in &self.tallies {
            remarks(tally, &mut text, paint);
        }
        let shown =
            self.tallies.iter().flat_map(|tally| tally.differences.iter().map(move |one| (tally, one)));
        for (tally, Difference { key, words, .. }) in shown {
            let _ = writeln!(text, "keyspace {}: {}: {words}", tally.name(), paint.bold(&cut(key)));
        }
        let total = |number: fn(&Tally) -> u64| self.tallies.iter().map(number).sum::<u64>();
        let (different, named) = (total(Tally::different), total(|tally| tally.differences.len() as u64));
        let unreadable = total(|tally| tally.unreadable);
        if different + unreadable > named {
            let _ = writeln!(text, "and {} more; --show N shows more", different + unreadable - named);
        }
        let last = match self.outcome() {
            Outcome::Equal if self.tallies.is_empty() => paint.good("equal: neither has keys"),
            Outcome::Equal => paint.good(&format!("equal: {} keys", total(|tally| tally.equal))),
            Outcome::Different => {
                let least = if total(|tally| tally.left_out) > 0 { "at least " } else { "" };
                paint.bad(&format!("different: {least}{different} keys"))
            }
            Outcome::Undecided => paint.notable("undecided: no difference is certain, and not all is equal"),
        };
        text + &last + "\n"
    }

    fn table(&self, text: &mut String, paint: Paint) {
        if self.tallies.is_empty() {
            return;
        }
        let mut head = format!("{:<8}", "keyspace");
        COLUMNS.iter().for_each(|name| head += &format!("  {name:>9}"));
        let _ = writeln!(text, "{}", paint.dim(&head));
        for tally in &self.tallies {
            let _ = write!(text, "{:<8}", tally.name());
            for (name, number) in COLUMNS.iter().zip(tally.columns()) {
                let cell = format!("{number:>width$}", width = name.len().max(9));
                let is_bad = number > 0 && (name.starts_with("only") || name.starts_with("other"));
                let cell = match *name {
                    _ if is_bad => paint.bad(&cell),
                    "changing" if number > 0 => paint.notable(&cell),
                    _ => cell,
                };
                let _ = write!(text, "  {cell}");
            }
            text.push('\n');
        }
    }

    pub(crate) fn json(&self) -> Json {
        let tallies: Vec<Json> = self.tallies.iter().map(tally_json).collect();
        json!({
            "left": self.left,
            "right": self.right,
            "outcome": self.outcome().word(),
            "keyspaces": tallies,
        })
    }
}

/// What the table has no column for.
fn remarks(tally: &Tally, text: &mut String, paint: Paint) {
    let mut remark = |number: u64, words: String| {
        if number > 0 {
            let _ =
                writeln!(text, "{}", paint.notable(&format!("keyspace {}: {number} {words}", tally.name())));
        }
    };
    let names: Vec<String> = tally.changing_keys.iter().map(|key| cut(key)).collect();
    remark(tally.changing, format!("keys went on changing, and may be equal or not: {}", names.join(", ")));
    remark(tally.unreadable, "keys could not be compared".into());
    remark(tally.left_out, "keys differed at first and were not read again: there were too many".into());
    if tally.skips_field_deadlines {
        let words = "deadlines of fields were not compared: a side does not know HPEXPIRETIME";
        let _ = writeln!(text, "{}", paint.dim(&format!("keyspace {}: {words}", tally.name())));
    }
    if tally.is_cut_short {
        let _ = writeln!(text, "{}", paint.bad(&format!("keyspace {}: interrupted", tally.name())));
    }
}

fn tally_json(tally: &Tally) -> Json {
    let text = |key: &Bytes| key.escape_ascii().to_string();
    let differences: Vec<Json> = tally
        .differences
        .iter()
        .map(|one| json!({ "key": text(&one.key), "difference": word(one.verdict), "words": one.words }))
        .collect();
    json!({
        "left_keyspace": tally.keyspaces.0,
        "right_keyspace": tally.keyspaces.1,
        "keys_left": tally.left,
        "keys_right": tally.right,
        "equal": tally.equal,
        "only_left": tally.only_left,
        "only_right": tally.only_right,
        "other_type": tally.other_type,
        "other_value": tally.other_value,
        "other_deadline": tally.other_deadline,
        "changing": tally.changing,
        "changing_keys": tally.changing_keys.iter().map(text).collect::<Vec<_>>(),
        "unreadable": tally.unreadable,
        "not_read_again": tally.left_out,
        "field_deadlines_compared": !tally.skips_field_deadlines,
        "interrupted": tally.is_cut_short,
        "differences": differences,
    })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "equal",
        Verdict::OnlyLeft => "only_left",
        Verdict::OnlyRight => "only_right",
        Verdict::OtherType => "other_type",
        Verdict::OtherValue => "other_value",
        Verdict::OtherDeadline | Verdict::OtherFieldDeadlines => "other_deadline",
        Verdict::Unreadable => "unreadable",
    }
}

#[cfg(test)]
mod tests;
