//! What a fresh session asks in every datacenter after quiescence, and what the answers must be.

use super::Workload;
use super::client::Relic;
use super::command::{Command, Expect};
use super::fields;
use super::keys::{Keys, Total, sum_text};
use super::model::normal;
use crate::oracle::folded;
use crate::oracle::history::Location;
use crate::oracle::{Final, Violation, property};
use crate::resp::Answer;
use ensue_types::DatacenterId;

/// Every question of the end.
pub struct Questions {
    pub commands: Vec<Command>,
    totals: Vec<(String, Total)>,
    /// Keys that may be gone between two questions.
    are_going: bool,
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
        let are_going = workload.keys.expiring.iter().any(|(_, gone_after_us)| *gone_after_us >= now_us);
        Questions { commands, totals, are_going }
    }

    /// The questions about totals come behind, and those about all keys last.
    pub fn texts(&self) -> Vec<ensue_types::Args> {
        let totals = self.totals.iter().map(|(key, _)| crate::resp::args(&format!("GET {key}")));
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
            let value = answer.text().unwrap_or("0").parse().unwrap_or(i64::MIN);
            if !total.allows(value) {
                let words = format!("{key} is finally {answer} in {datacenter}, expected {total:?}");
                return Err(Violation::new(property::COUNTER, words));
            }
            texts.push((format!("GET {key}"), answer.to_string()));
        }
        if !self.are_going {
            counted(datacenter, answers.as_slice())?;
        }
        Ok(Final { datacenter, values, folded, sequences, answers: texts })
    }
}

/// The keys are those that are counted, and a scan finds each once.
fn counted(datacenter: DatacenterId, answers: &[Answer]) -> Result<(), Violation> {
    let [Answer::Integer(size), Answer::Array(keys), Answer::Array(scanned)] = answers else {
        let words = format!("after quiescence {datacenter} answers {COUNTS:?} with {answers:?}");
        return Err(Violation::new(property::AVAILABILITY, words));
    };
    let names = |keys: &[Answer]| {
        let mut names: Vec<String> = keys.iter().map(Answer::to_string).collect();
        names.sort();
        names
    };
    let keys = names(keys);
    let scanned = match scanned.as_slice() {
        [cursor, Answer::Array(found)] if cursor.text() == Some("0") => Some(names(found)),
        _ => None,
    };
    let is_scanned = scanned.as_ref().is_none_or(|scanned| *scanned == keys);
    if usize::try_from(*size) == Ok(keys.len()) && is_scanned {
        return Ok(());
    }
    let words = format!("{datacenter} counts {size} keys, lists {keys:?} and scans {scanned:?}");
    Err(Violation::new(property::COUNTED, words))
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
