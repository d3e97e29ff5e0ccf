//! A command of a client, and what its answer says about the history.

use super::model::normal;
use crate::oracle::folded;
use crate::oracle::history::{Folded, History, Location, OperationIndex, Seen, Sequence, Written};
use crate::oracle::values::writer_of;
use crate::oracle::{Violation, property};
use crate::resp::{Answer, args};
use ensue_types::Args;
use std::collections::{BTreeMap, BTreeSet};

/// What an answer means.
#[derive(Clone, Debug)]
pub enum Expect {
    /// `OK`.
    Ok,
    /// Any answer but an error of the protocol.
    Anything,
    Integer,
    /// 1: the member that was added is one that nobody else adds.
    Added,
    /// The value of a location, or nil.
    Value(Location),
    /// The values of several, in order.
    Values(Vec<Location>),
    /// As `Value`, for a value made of pieces of all its writers.
    Pieces(Location),
    /// 1 if there was something to delete; 0 if there was nothing.
    Deleted(Location),
    /// 1 if nothing was there and the value was written; 0 if something was there.
    WrittenIfMissing(Location),
    /// The value of a location, which is deleted if there was one.
    Taken(Location),
    /// `OK` if the value was written; nil if what was watched had changed.
    WrittenIfUnchanged(Location),
    /// The error of a script that was stopped, and has changed nothing.
    Stopped,
    /// A sum of powers of two.
    Sum(Location),
    /// The fields of a hash, by name.
    Fields(Vec<(String, Location)>),
    /// The score of a member, which is the number of the operation that wrote it, or nil.
    Score(Location),
    /// The members of a sorted set with such scores, the lowest first.
    Scores(Vec<(String, Location)>),
    /// The members of a set, by name, each with the operation that adds it.
    Members(Vec<(String, Location, OperationIndex)>),
    /// The elements of this list that were pushed, as members of a set are added.
    Elements(String, Vec<(String, Location, OperationIndex)>),
    /// The entries of this stream, as elements of a list.
    Entries(String, Vec<(String, Location, OperationIndex)>),
    /// How many elements a list has since one was put beside another one; -1 or 0 if that is not there, and the element
    /// was not put.
    Inserted(Location),
    /// What the handler of this key made of its values.
    Folded(&'static str),
    /// The values of a key that stand beside each other.
    Beside,
    /// A number that is not below zero, or nothing, or a refusal.
    Bounded,
    /// Exactly this.
    Exactly(Answer),
    /// This value as long as the deadline has surely not come; nil once it surely has.
    Expiring {
        value: String,
        sure_until_us: u64,
        gone_after_us: u64,
    },
    /// An error that begins so.
    Refused(&'static str),
}

/// A command and the meaning of its answer.
#[derive(Clone, Debug)]
pub struct Command {
    pub args: Args,
    pub expect: Expect,
}

/// What an answer says.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    pub reads: Vec<(Location, Seen)>,
    /// Writes of the command that did not take place.
    pub not_written: Vec<Location>,
    /// Values that were built on others: writer, and the one before it.
    pub chain: Vec<(OperationIndex, OperationIndex)>,
    /// What handlers made.
    pub folded: Vec<Folded>,
    /// The elements of a list, in their order.
    pub sequence: Option<Sequence>,
}

impl Command {
    pub fn new(text: &str, expect: Expect) -> Command {
        Command { args: args(text), expect }
    }

    /// What an answer means that is no error.
    pub fn interpret(
        &self,
        answer: &Answer,
        invoked_us: u64,
        answered_us: u64,
    ) -> Result<Finding, Violation> {
        let mut finding = Finding::default();
        let wrong = || Violation::new(property::PROTOCOL, format!("{} answered {answer}", self.text()));
        match &self.expect {
            Expect::Anything | Expect::Beside => {}
            Expect::Folded(key) => finding.folded.push(folded::read(key, answer).ok_or_else(wrong)?),
            Expect::Ok if *answer == Answer::Status("OK".to_owned()) => {}
            Expect::Integer if matches!(answer, Answer::Integer(_)) => {}
            Expect::Added => self.is_added(answer)?,
            Expect::Bounded => self.is_within_bounds(answer)?,
            Expect::Value(location) | Expect::Taken(location) => {
                finding.reads.push((*location, value(answer).ok_or_else(wrong)?));
                let takes_nothing = matches!(self.expect, Expect::Taken(_)) && *answer == Answer::Nil;
                finding.not_written.extend(takes_nothing.then_some(*location));
            }
            Expect::Values(locations) => read_values(answer, locations, &mut finding).ok_or_else(wrong)?,
            Expect::Pieces(location) => pieces(answer, *location, &mut finding).ok_or_else(wrong)?,
            Expect::Deleted(location) | Expect::WrittenIfMissing(location) => {
                let deletes = matches!(self.expect, Expect::Deleted(_));
                let something = match answer {
                    Answer::Integer(number @ (0 | 1)) => (*number == 1) == deletes,
                    _ => return Err(wrong()),
                };
                finding.reads.push((*location, if something { Seen::Something } else { Seen::Nothing }));
                if something != deletes {
                    finding.not_written.push(*location);
                }
            }
            Expect::WrittenIfUnchanged(location) => {
                let is_written = is_executed(answer).ok_or_else(wrong)?;
                finding.not_written.extend((!is_written).then_some(*location));
            }
            Expect::Sum(location) => finding.reads.push((*location, sum(answer).ok_or_else(wrong)?)),
            Expect::Fields(fields) => read_fields(answer, fields, &mut finding).ok_or_else(wrong)?,
            Expect::Score(location) => finding.reads.push((*location, score(answer).ok_or_else(wrong)?)),
            Expect::Scores(members) => read_scores(answer, members, &mut finding).ok_or_else(wrong)?,
            Expect::Members(members) => read_members(answer, members, &mut finding).ok_or_else(wrong)?,
            Expect::Inserted(location) => inserted(answer, *location, &mut finding).ok_or_else(wrong)?,
            Expect::Elements(key, known) => {
                read_elements(answer, key, known, &mut finding).ok_or_else(wrong)?;
            }
            Expect::Entries(key, known) => {
                let values = values_of(answer).ok_or_else(wrong)?;
                read_elements(&values, key, known, &mut finding).ok_or_else(wrong)?;
            }
            Expect::Exactly(exact) => self.is_exactly(exact, answer)?,
            Expect::Expiring { value, sure_until_us, gone_after_us } => {
                self.is_there_in_its_time(
                    value,
                    answer,
                    [invoked_us, answered_us],
                    [*sure_until_us, *gone_after_us],
                )?;
            }
            Expect::Refused(_) => {
                let words = format!(
                    "a token was taken that is from too far ahead, or names what was never issued: {answer}"
                );
                return Err(Violation::new(property::CLOCK, words));
            }
            Expect::Ok | Expect::Integer | Expect::Stopped => return Err(wrong()),
        }
        Ok(finding)
    }

    /// What nobody else adds was not there.
    fn is_added(&self, answer: &Answer) -> Result<(), Violation> {
        if *answer == Answer::Integer(1) {
            return Ok(());
        }
        let words = format!("{} answered {answer}: nobody else adds this member", self.text());
        Err(Violation::new(property::THIN_AIR, words))
    }

    /// A bounded counter is not below zero.
    fn is_within_bounds(&self, answer: &Answer) -> Result<(), Violation> {
        if matches!(answer, Answer::Integer(0..) | Answer::Nil | Answer::Error(_)) {
            return Ok(());
        }
        let words = format!("a bound is passed: {} answered {answer}", self.text());
        Err(Violation::new(property::COUNTER, words))
    }

    /// A value with a deadline is there until one time, and gone after the other.
    fn is_there_in_its_time(
        &self,
        value: &str,
        answer: &Answer,
        [invoked_us, answered_us]: [u64; 2],
        [sure_until_us, gone_after_us]: [u64; 2],
    ) -> Result<(), Violation> {
        let present = answer.text() == Some(value);
        let early = !present && answered_us < sure_until_us;
        let late = *answer != Answer::Nil && invoked_us > gone_after_us;
        if !early && !late && (present || *answer == Answer::Nil) {
            return Ok(());
        }
        let words = format!(
            "{} answered {answer} between {invoked_us} and {answered_us} us; the value {value} lasts at least until \
             {sure_until_us} and at most until {gone_after_us}",
            self.text()
        );
        Err(Violation::new(property::PRIVATE, words))
    }

    fn is_exactly(&self, exact: &Answer, answer: &Answer) -> Result<(), Violation> {
        let found = normal(&self.args, answer.clone());
        if found == *exact {
            return Ok(());
        }
        let words = format!("{} answered {found} instead of {exact}", self.text());
        Err(Violation::new(property::PRIVATE, words))
    }

    pub fn text(&self) -> String {
        self.args.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Whether a transaction was executed, or found that what it watches has changed.
fn is_executed(answer: &Answer) -> Option<bool> {
    match answer {
        Answer::Nil => Some(false),
        Answer::Status(text) if text == "OK" => Some(true),
        _ => None,
    }
}

/// What each of several locations holds, in their order.
fn read_values(answer: &Answer, locations: &[Location], finding: &mut Finding) -> Option<()> {
    let Answer::Array(items) = answer else { return None };
    if items.len() != locations.len() {
        return None;
    }
    for (item, location) in items.iter().zip(locations) {
        finding.reads.push((*location, value(item)?));
    }
    Some(())
}

impl Finding {
    /// Adds what was found to an operation of the history.
    pub fn record(self, history: &mut History, index: OperationIndex) {
        for (writer, before) in self.chain {
            history.built_on.insert(writer, before);
        }
        for folded in self.folded {
            let seen = folded.seen(history);
            history.operations[index].reads.extend(seen);
            history.folded.push((index, folded));
        }
        history.sequences.extend(self.sequence);
        let operation = &mut history.operations[index];
        operation.reads.extend(self.reads);
        let not_written = self.not_written;
        operation
            .writes
            .retain(|(location, w)| matches!(w, Written::Bit(_)) || !not_written.contains(location));
    }
}

fn value(answer: &Answer) -> Option<Seen> {
    match answer {
        Answer::Nil => Some(Seen::Nothing),
        // What is no value of ours was written by nobody; the oracle says so.
        _ => Some(Seen::Value(writer_of(answer.text()?).unwrap_or(OperationIndex::MAX))),
    }
}

/// A score is the number of an operation; what is no such number was written by nobody, and the oracle says so.
fn score(answer: &Answer) -> Option<Seen> {
    match answer {
        Answer::Nil => Some(Seen::Nothing),
        _ => Some(Seen::Value(answer.text()?.parse().unwrap_or(OperationIndex::MAX))),
    }
}

fn pieces(answer: &Answer, location: Location, finding: &mut Finding) -> Option<()> {
    if *answer == Answer::Nil {
        finding.reads.push((location, Seen::Nothing));
        return Some(());
    }
    let writers: Vec<OperationIndex> = answer
        .text()?
        .split_terminator(',')
        .map(|piece| writer_of(piece).unwrap_or(OperationIndex::MAX))
        .collect();
    for pair in writers.windows(2) {
        finding.chain.push((pair[1], pair[0]));
    }
    finding.reads.push((location, Seen::Value(*writers.last()?)));
    Some(())
}

fn sum(answer: &Answer) -> Option<Seen> {
    match answer {
        Answer::Nil => Some(Seen::Bits(0)),
        Answer::Integer(number) => u64::try_from(*number).ok().map(Seen::Bits),
        _ => answer.text()?.parse().ok().map(Seen::Bits),
    }
}

fn read_fields(answer: &Answer, fields: &[(String, Location)], finding: &mut Finding) -> Option<()> {
    let Answer::Array(items) = answer else { return None };
    for pair in items.chunks(2) {
        fields.iter().find(|(name, _)| pair[0].text() == Some(name))?;
    }
    for (name, location) in fields {
        let found = items.chunks(2).find(|pair| pair[0].text() == Some(name));
        let seen = match found {
            Some(pair) => value(pair.get(1)?)?,
            None => Seen::Nothing,
        };
        finding.reads.push((*location, seen));
    }
    Some(())
}

fn read_scores(answer: &Answer, members: &[(String, Location)], finding: &mut Finding) -> Option<()> {
    let Answer::Array(items) = answer else { return None };
    let mut seen = BTreeMap::new();
    let mut before = None;
    for pair in items.chunks(2) {
        let [name, number] = pair else { return None };
        let name = name.text()?;
        members.iter().find(|(known, _)| known == name)?;
        let number: f64 = number.text()?.parse().ok()?;
        // In the order of scores, and of names among the same.
        if before.is_some_and(|before| before >= (number, name)) {
            return None;
        }
        before = Some((number, name));
        seen.insert(name, score(&pair[1])?);
    }
    for (name, location) in members {
        finding.reads.push((*location, seen.get(name.as_str()).copied().unwrap_or(Seen::Nothing)));
    }
    Some(())
}

fn read_members(
    answer: &Answer,
    members: &[(String, Location, OperationIndex)],
    finding: &mut Finding,
) -> Option<()> {
    let Answer::Array(items) = answer else { return None };
    for item in items {
        members.iter().find(|(name, ..)| item.text() == Some(name))?;
    }
    for (name, location, adder) in members {
        let present = items.iter().any(|item| item.text() == Some(name));
        finding.reads.push((*location, if present { Seen::Value(*adder) } else { Seen::Nothing }));
    }
    Some(())
}

fn inserted(answer: &Answer, location: Location, finding: &mut Finding) -> Option<()> {
    match answer {
        Answer::Integer(-1 | 0) => finding.not_written.push(location),
        Answer::Integer(1..) => {}
        _ => return None,
    }
    Some(())
}

/// The value of each entry. Their ids ascend, and no two have the same.
fn values_of(answer: &Answer) -> Option<Answer> {
    let Answer::Array(entries) = answer else { return None };
    let (mut last, mut values) = ((0, 0), Vec::new());
    for entry in entries {
        let Answer::Array(entry) = entry else { return None };
        let [id, Answer::Array(fields)] = &entry[..] else { return None };
        let (ms, sequence) = id.text()?.split_once('-')?;
        let id: (u64, u64) = (ms.parse().ok()?, sequence.parse().ok()?);
        if id <= last {
            return None;
        }
        last = id;
        values.push(fields.get(1)?.clone());
    }
    Some(Answer::Array(values))
}

/// None of them stands there twice.
fn read_elements(
    answer: &Answer,
    key: &str,
    known: &[(String, Location, OperationIndex)],
    finding: &mut Finding,
) -> Option<()> {
    read_members(answer, known, finding)?;
    let Answer::Array(items) = answer else { return None };
    let elements: Vec<String> =
        items.iter().map(|item| item.text().map(str::to_owned)).collect::<Option<_>>()?;
    let different: BTreeSet<&String> = elements.iter().collect();
    if different.len() < elements.len() {
        return None;
    }
    finding.sequence = Some(Sequence { key: key.to_owned(), elements });
    Some(())
}
