//! What a fresh session asks in every datacenter after quiescence, and what the answers must be.

use super::Workload;
use super::client::Relic;
use super::command::{Command, Expect};
use super::escrows;
use super::fields;
use super::keys::{Keys, Total, sum_text};
use super::model::normal;
use crate::oracle::folded;
use crate::oracle::history::Location;
use crate::oracle::{Final, Violation, property};
use crate::resp::Answer;
use ensue_types::DatacenterId;
use std::collections::BTreeSet;

/// Every question of the end.
pub struct Questions {
    pub commands: Vec<Command>,
    totals: Vec<(String, Total)>,
    /// Keys that may be gone between two questions.
    dated: BTreeSet<String>,
}

/// Which keys there are, in three ways.
const COUNTS: [&str; 3] = ["DBSIZE", "KEYS *", "SCAN 0 COUNT 1000000"];

impl Questions {
    pub fn new(workload: &mut Workload, datacenters: u8, now_us: u64) -> Questions {
        workload.keys.doubt(&workload.history);
        let mut commands = Vec::new();
        let count = workload.keys.count;
        let names: Vec<String> =
            ["r", "d"].iter().flat_map(|class| (0..count).map(move |k| format!("{class}{k}"))).collect();
        let watched = |datacenter: u8| [format!("w{datacenter}-0"), format!("w{datacenter}-1")];
        for name in names.into_iter().chain((0..datacenters).flat_map(watched)) {
            let location = workload.history.location(&name);
            commands.push(Command::new(&format!("GET {name}"), Expect::Value(location)));
        }
        for name in ["a0", "a1"] {
            let location = workload.history.location(name);
            commands.push(Command::new(&format!("GET {name}"), Expect::Pieces(location)));
        }
        for name in ["h0", "h1"] {
            let fields = Keys::fields(&mut workload.history, name);
            commands.push(Command::new(&format!("HGETALL {name}"), Expect::Fields(fields)));
        }
        for name in ["z0", "z1"] {
            let members = Keys::fields(&mut workload.history, name);
            commands.push(Command::new(&format!("ZRANGE {name} 0 -1 WITHSCORES"), Expect::Scores(members)));
        }
        for name in ["mz0", "mz1"] {
            commands.push(Command::new(&format!("ZRANGE {name} 0 -1 WITHSCORES"), Expect::Anything));
        }
        for name in ["s0", "s1"] {
            let members = workload.keys.members.get(name).cloned().unwrap_or_default();
            commands.push(Command::new(&format!("SMEMBERS {name}"), Expect::Members(members)));
        }
        for name in ["q0", "q1"] {
            let elements = workload.keys.members.get(name).cloned().unwrap_or_default();
            let expect = Expect::Elements(name.to_owned(), elements);
            commands.push(Command::new(&format!("LRANGE {name} 0 -1"), expect));
        }
        for name in ["mq0", "mq1"] {
            commands.push(Command::new(&format!("LRANGE {name} 0 -1"), Expect::Anything));
        }
        for name in ["st0", "st1"] {
            let entries = workload.keys.members.get(name).cloned().unwrap_or_default();
            commands
                .push(Command::new(&format!("XRANGE {name} - +"), Expect::Entries(name.to_owned(), entries)));
        }
        for name in ["mst0", "mst1"] {
            commands.push(Command::new(&format!("XRANGE {name} - +"), Expect::Anything));
        }
        commands.extend(workload.keys.sums.iter().map(sum));
        commands.push(Command::new("BGET me0", Expect::Anything));
        for name in ["m0", "m1"] {
            commands.push(Command::new(&format!("GET {name}"), Expect::Anything));
        }
        if workload.history.promises.folds {
            for key in folded::KEYS {
                commands.push(Command::new(&format!("GET {key}"), Expect::Folded(key)));
                commands.push(Command::new(&format!("CAUSAL CONFLICTS {key}"), Expect::Beside));
            }
        }
        // Keys whose deadline may not have come yet everywhere are left to the digest.
        let gone = workload.keys.expiring.iter().filter(|(_, gone_after_us)| *gone_after_us < now_us);
        commands.extend(gone.flat_map(|(key, _)| expired(key)));
        for relic in workload.relics() {
            commands.extend(private(&relic));
        }
        let totals = workload.keys.totals.iter().map(|(key, total)| (key.clone(), total.clone())).collect();
        Questions { commands, totals, dated: workload.keys.dated.clone() }
    }

    /// The questions about totals come behind, and those about all keys last.
    pub fn texts(&self) -> Vec<ensue_types::Args> {
        let totals = self.totals.iter().map(|(key, _)| crate::resp::args(&total_text(key)));
        let counts = COUNTS.map(crate::resp::args);
        self.commands.iter().map(|command| command.args.clone()).chain(totals).chain(counts).collect()
    }

    /// What the answers of a datacenter say.
    pub fn read(&self, datacenter: DatacenterId, answers: &[Answer]) -> Result<Final, Violation> {
        let mut values: Vec<(Location, crate::oracle::history::Seen)> = Vec::new();
        let mut texts = Vec::new();
        let (mut folded, mut sequences) = (Vec::new(), Vec::new());
        let mut answers = answers.iter();
        for (command, answer) in self.commands.iter().zip(&mut answers) {
            if answer.error().is_some() {
                let words = format!("after quiescence {datacenter} answers {answer} to {}", command.text());
                return Err(Violation::new(property::AVAILABILITY, words));
            }
            let found = command.interpret(answer, u64::MAX, u64::MAX).map_err(|mut violation| {
                violation.words += &format!(" (in {datacenter} after quiescence)");
                violation
            })?;
            values.extend(found.reads);
            folded.extend(found.folded);
            sequences.extend(found.sequence);
            let shown = match command.expect {
                Expect::Beside => folded::beside(answer).join(" "),
                _ => normal(&command.args, answer.clone()).to_string(),
            };
            texts.push((command.text(), shown));
        }
        for ((key, total), answer) in self.totals.iter().zip(answers.by_ref()) {
            let value = match answer {
                Answer::Integer(value) => *value,
                _ => answer.text().unwrap_or("0").parse().unwrap_or(i64::MIN),
            };
            let is_kept = !escrows::is_bounded(key) || escrows::keeps_bound(total, value);
            if !total.allows(value) || !is_kept {
                let words = format!("{key} is finally {answer} in {datacenter}, expected {total:?}");
                return Err(Violation::new(property::COUNTER, words));
            }
            texts.push((total_text(key), answer.to_string()));
        }
        counted(datacenter, answers.as_slice(), &self.dated)?;
        Ok(Final { datacenter, values, folded, sequences, answers: texts })
    }
}

/// The keys are those that are counted, and a scan finds each once. The three are asked one after the other, and what
/// has a deadline may go meanwhile.
fn counted(datacenter: DatacenterId, answers: &[Answer], dated: &BTreeSet<String>) -> Result<(), Violation> {
    let [Answer::Integer(size), Answer::Array(keys), Answer::Array(scanned)] = answers else {
        let words = format!("after quiescence {datacenter} answers {COUNTS:?} with {answers:?}");
        return Err(Violation::new(property::AVAILABILITY, words));
    };
    let names = |keys: &[Answer]| {
        let name = |key: &Answer| String::from_utf8_lossy(key.bytes().unwrap_or_default()).into_owned();
        let mut names: Vec<String> = keys.iter().map(name).collect();
        names.sort();
        names
    };
    let keys = names(keys);
    let scanned = match scanned.as_slice() {
        [cursor, Answer::Array(found)] if cursor.text() == Some("0") => Some(names(found)),
        _ => None,
    };
    let is_scanned = scanned.as_ref().is_none_or(|scanned| went(&keys, scanned, dated));
    let may_have_gone = dated.iter().filter(|key| keys.binary_search(key).is_err()).count();
    let is_counted =
        usize::try_from(*size).is_ok_and(|size| (keys.len()..=keys.len() + may_have_gone).contains(&size));
    if is_counted && is_scanned {
        return Ok(());
    }
    let words = format!("{datacenter} counts {size} keys, lists {keys:?} and scans {scanned:?}");
    Err(Violation::new(property::COUNTED, words))
}

/// Whether a later list is the earlier one, but for keys that had a deadline. Both are sorted.
fn went(earlier: &[String], later: &[String], dated: &BTreeSet<String>) -> bool {
    let mut later = later.iter().peekable();
    let stayed = |key: &String| later.next_if_eq(&key).is_some() || dated.contains(key);
    earlier.iter().all(stayed) && later.next().is_none()
}

/// How a counter is read of which the total is checked.
fn total_text(key: &str) -> String {
    if escrows::is_bounded(key) { format!("BGET {key}") } else { format!("GET {key}") }
}

fn sum(((key, field), &location): (&(String, Option<String>), &Location)) -> Command {
    Command::new(&sum_text(key, field.as_deref()), Expect::Sum(location))
}

fn private(relic: &Relic) -> Vec<Command> {
    relic
        .model
        .whole()
        .into_iter()
        .map(|(words, answer)| {
            let args = crate::resp::args(&words.join(" "));
            let answer = normal(&args, answer);
            Command { args, expect: if relic.certain { Expect::Exactly(answer) } else { Expect::Anything } }
        })
        .collect()
}

/// A key that is gone, or a hash whose only field is.
fn expired(key: &str) -> [Command; 2] {
    [
        Command::new(&fields::read_of(key), Expect::Exactly(Answer::Nil)),
        Command::new(&format!("EXISTS {key}"), Expect::Exactly(Answer::Integer(0))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(size: i64, keys: &[&str], scanned: &[&str]) -> bool {
        let names = |names: &[&str]| {
            Answer::Array(names.iter().map(|name| Answer::Bulk(name.as_bytes().to_vec())).collect())
        };
        let scanned = Answer::Array(vec![Answer::Bulk(b"0".to_vec()), names(scanned)]);
        let dated = BTreeSet::from(["t1".to_owned(), "t2".to_owned()]);
        counted(DatacenterId(0), &[Answer::Integer(size), names(keys), scanned], &dated).is_ok()
    }

    #[test]
    fn only_what_had_a_deadline_may_go_between_two_questions() {
        assert!(judged(2, &["a", "t1"], &["a", "t1"]));
        assert!(judged(3, &["a", "t1"], &["a"]), "t2 went after the first question, t1 after the second");
        assert!(!judged(2, &["a"], &["t1"]), "what has no deadline went");
        assert!(!judged(4, &["a", "t1"], &["a"]), "one too many, and only t2 may have gone");
        assert!(!judged(1, &["a", "t1"], &["a", "t1"]), "one too few");
        assert!(!judged(1, &["a"], &["a", "a"]), "found twice");
        assert!(!judged(1, &["a"], &["a", "t1"]), "nothing comes back");
    }
}
