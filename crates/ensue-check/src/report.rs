//! What a checker says: one verdict a property, and what a violation consists of.

use crate::history::{History, Key, TransactionIndex};
use crate::property::Property;
use std::fmt;

/// Which properties to judge, and how far to go.
#[derive(Clone, Debug)]
pub struct Options {
    pub properties: Vec<Property>,
    /// Look for the smallest set of operations that shows a violation. Costs time only where there is one.
    pub explain: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { properties: Property::DEFAULT.to_vec(), explain: true }
    }
}

/// The verdicts, one a property that was asked for, in the order of [`Property::ALL`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub verdicts: Vec<(Property, Verdict)>,
    /// What a reader must know to weigh a verdict, such as "counters were checked by bounds".
    pub notes: Vec<String>,
}

/// The answer for one property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    Violated(Box<Violation>),
    /// The history does not say enough. Never counted as holding.
    Undecided(Reason),
    /// The history has no operation that the property speaks of.
    NotApplicable(String),
}

/// Why something could not be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub text: String,
    /// Where in the file; 0 if it is not about one line.
    pub line: u32,
}

/// How a property is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub pattern: Pattern,
    /// One sentence.
    pub summary: String,
    /// The transactions that show it, by themselves, in the order of the history.
    pub transactions: Vec<TransactionIndex>,
    /// What orders them: where the pattern is a cycle, the cycle, closing at the first; then what its inferred edges
    /// rest on.
    pub relations: Vec<Relation>,
}

impl Violation {
    pub fn new(pattern: Pattern, summary: impl Into<String>) -> Violation {
        Violation { pattern, summary: summary.into(), transactions: Vec::new(), relations: Vec::new() }
    }
}

/// The shape of a violation. The names of causal consistency are those of Bouajjani, Enea, Guerraoui and Hamza (2017).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// A read of a value that nobody wrote.
    ThinAirRead,
    /// A read of a failed transaction's value.
    AbortedRead,
    /// A read of a value that its own transaction overwrote.
    IntermediateRead,
    /// A transaction does not read what it has just written itself.
    OwnWriteUnread,
    /// A transaction reads what it writes only later.
    FutureRead,
    /// Session order and reads-from form a cycle.
    CyclicCO,
    /// A read of the initial value, although a write of the key was in the reader's past.
    WriteCOInitRead,
    /// A read of a value that had been overwritten in the reader's past.
    WriteCORead,
    /// Reads that no single order of concurrent writes explains.
    CyclicCF,
    /// A transaction's writes were seen in part.
    FracturedRead,
    /// Any other cycle of an axiom with session order and reads-from.
    CyclicOrder,
    /// A counter's value that no set of additions explains.
    CounterOutOfBounds,
    /// An addition in the reader's past is not in the counter's value.
    CounterLostAddition,
    /// Final reads of one key differ.
    Diverged,
    /// A final read of a value that is overwritten.
    FinalStale,
    /// A read that ended before the write of its value began.
    ReadBeforeWrite,
    /// Two transactions read one value and replaced it, each in one step.
    ReplacedTwice,
    /// Values of one key each of which would have to come before the other.
    NoOrder,
    /// An element was popped more often than it was pushed.
    PoppedTwice,
    /// An element was popped, or seen in a queue, that nobody pushed.
    NeverPushed,
    /// An element was popped, or seen in a queue, before it was pushed.
    PoppedBeforePush,
    /// An element was popped and is still there in the end.
    PoppedAndKept,
    /// An element was pushed, and in the end neither popped nor there.
    ElementLost,
}

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    pub from: TransactionIndex,
    pub to: TransactionIndex,
    pub kind: RelationKind,
    /// Part of the cycle, or only what an edge of the cycle rests on.
    pub on_cycle: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// Earlier in the same session.
    Session,
    /// Its token was shown.
    Merge,
    /// What the first wrote, the second read.
    ReadsFrom(Key),
    /// `by` read the second's value although the first's was in its past, so the first must be the older of the two.
    OlderThan { key: Key, by: TransactionIndex },
    /// The first ended before the second began.
    RealTime,
}

impl RelationKind {
    /// Puts other places for those of transactions and keys in it.
    pub(crate) fn map(
        &mut self,
        transaction: impl Fn(TransactionIndex) -> TransactionIndex,
        place: impl Fn(Key) -> Key,
    ) {
        match self {
            RelationKind::OlderThan { key, by } => (*key, *by) = (place(*key), transaction(*by)),
            RelationKind::ReadsFrom(key) => *key = place(*key),
            RelationKind::Session | RelationKind::Merge | RelationKind::RealTime => {}
        }
    }
}

impl Report {
    pub fn verdict(&self, property: Property) -> Option<&Verdict> {
        self.verdicts.iter().find(|(of, _)| *of == property).map(|(_, verdict)| verdict)
    }

    pub fn violations(&self) -> impl Iterator<Item = (Property, &Violation)> {
        self.verdicts.iter().filter_map(|(property, verdict)| match verdict {
            Verdict::Violated(violation) => Some((*property, &**violation)),
            _ => None,
        })
    }

    /// The report in one word: violated if anything is; undecided if anything is, or if there was nothing to judge.
    pub fn overall(&self) -> Overall {
        let any = |wanted: fn(&Verdict) -> bool| self.verdicts.iter().any(|(_, verdict)| wanted(verdict));
        if any(|verdict| matches!(verdict, Verdict::Violated(_))) {
            Overall::Violated
        } else if any(|verdict| matches!(verdict, Verdict::Undecided(_)))
            || !any(|verdict| matches!(verdict, Verdict::Holds))
        {
            Overall::Undecided
        } else {
            Overall::Holds
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overall {
    Holds,
    Violated,
    Undecided,
}

/// The report as one JSON object, for programs.
pub fn json(history: &History, report: &Report) -> String {
    let verdicts: Vec<serde_json::Value> = report
        .verdicts
        .iter()
        .map(|(property, verdict)| {
            let mut object = serde_json::json!({ "property": property.name(), "verdict": verdict.word() });
            match verdict {
                Verdict::Holds => {}
                Verdict::Violated(violation) => {
                    object["pattern"] = violation.pattern.to_string().into();
                    object["summary"] = violation.summary.as_str().into();
                    let lines = violation.transactions.iter().map(|&of| history.transaction(of).line);
                    object["lines"] = lines.collect();
                    object["explanation"] = crate::explain::lines(history, violation).into();
                }
                Verdict::Undecided(reason) => {
                    object["reason"] = reason.text.as_str().into();
                    object["line"] = reason.line.into();
                }
                Verdict::NotApplicable(why) => object["reason"] = why.as_str().into(),
            }
            object
        })
        .collect();
    let overall = match report.overall() {
        Overall::Holds => "holds",
        Overall::Violated => "violated",
        Overall::Undecided => "undecided",
    };
    serde_json::json!({
        "overall": overall,
        "operations": history.operation_count(),
        "transactions": history.transactions.len(),
        "sessions": history.sessions.len(),
        "verdicts": verdicts,
        "notes": report.notes,
    })
    .to_string()
}

impl Verdict {
    /// One word, as files and the command line write it.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Violated(_) => "violated",
            Verdict::Undecided(_) => "undecided",
            Verdict::NotApplicable(_) => "not applicable",
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.text),
            line => write!(f, "line {line}: {}", self.text),
        }
    }
}
