//! The fast checker: a million operations in seconds.
//!
//! Every read is joined with its write by key and value (`reads`), which gives tables (`index`). The causal past of a
//! transaction is a number a session (`clocks`), so an axiom demands at most one edge a read and session (`inferred`),
//! and holds if the edges have no cycle (`graph`): time grows with operations times sessions. That is the idea of AWDIT
//! (Møldrup and Pavlogiannis, 2025), extended by the initial transaction, merges, counters and the session guarantees.
//!
//! Causal consistency with convergence implies all other axioms, so they are looked at only where it is violated.

mod clocks;
mod convergence;
mod counters;
mod delay_once;
mod evidence;
mod graph;
mod index;
mod inferred;
mod linearizable;
mod path;
mod queues;
mod reads;
mod shrink;

use crate::history::{History, Operation, TransactionIndex};
use crate::property::Property;
use crate::report::{Options, Pattern, Reason, Report, Verdict, Violation};
use clocks::{Clocks, Latest, Past};
use counters::{BrokenCount, Counters};
use delay_once::Staleness;
use evidence::Evidence;
use graph::{Graph, StepKind};
use index::Index;
use inferred::{Edge, Inferred};
use queues::Queues;
use reads::{AmbiguousRead, BrokenRead, INITIAL, Read, Reads};

/// Most ways to say who read from whom that are tried.
const RESOLUTIONS_MAX: usize = 256;
/// Most operations that are gone through for all resolutions together.
const RESOLVED_OPERATIONS_MAX: usize = 20_000_000;

/// What was found out about one property.
#[derive(Clone, Debug)]
enum Finding {
    Holds,
    Violated(Evidence),
    Undecided(Reason),
    NotApplicable(String),
}

/// Judges a history by the properties of the options.
pub fn check(history: &History, options: &Options) -> Report {
    let wanted: Vec<Property> =
        Property::ALL.into_iter().filter(|property| options.properties.contains(property)).collect();
    let case = Case::new(history);
    let mut findings = case.judge(&wanted, &case.reads.certain);
    if !case.reads.ambiguous.is_empty() {
        case.resolve(&wanted, &mut findings);
    }
    let mut report = Report::default();
    let mut shown: Vec<Vec<u32>> = Vec::new();
    for (&property, finding) in wanted.iter().zip(findings) {
        let verdict = match finding {
            Finding::Holds => incomplete(history).map_or(Verdict::Holds, Verdict::Undecided),
            Finding::Violated(evidence) => {
                Verdict::Violated(Box::new(case.explain(property, evidence, options, &mut shown)))
            }
            Finding::Undecided(reason) => Verdict::Undecided(reason),
            Finding::NotApplicable(why) => Verdict::NotApplicable(why),
        };
        report.verdicts.push((property, verdict));
    }
    if case.counts_by_bounds.get() && wanted.contains(&Property::Counters) {
        report.notes.push(
            "some counts were only compared with the least and the greatest possible sum: for an exact answer, \
             add distinct powers of two"
                .into(),
        );
    }
    if let Staleness { reads: reads @ 1.., stale, run_max } = case.staleness.get() {
        report.notes.push(format!(
            "{stale} of {reads} reads did not show the latest write that had ended before them, at most {run_max} of \
             one register in a row"
        ));
    }
    if let (Some(doubt), true) = (&case.reads.doubtful, wanted.contains(&Property::ReadIntegrity)) {
        report.notes.push(doubt.to_string());
    }
    report
}

/// Why what holds for a history need not hold for what clients did.
fn incomplete(history: &History) -> Option<Reason> {
    if let Some(line) = history.truncated_at_line {
        let text = "it holds as far as the history goes, but the recording broke off".into();
        return Some(Reason { text, line });
    }
    if let Some(reason) = all_left_out(history) {
        return Some(reason);
    }
    let first = history.left_out.first()?;
    let key = first.key.as_ref().expect("not all keys are left out");
    let others = match history.left_out.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let text = format!("it holds for the rest, but `{key}` is left out ({}){others}", first.reason);
    Some(Reason { text, line: first.line })
}

/// Why there is nothing to judge, if that is since all keys are left out.
fn all_left_out(history: &History) -> Option<Reason> {
    let all = history.left_out.iter().find(|known| known.key.is_none())?;
    Some(Reason { text: format!("all keys are left out ({})", all.reason), line: all.line })
}

/// Whether one property is violated, without an explanation.
fn is_violated(history: &History, property: Property) -> Option<Evidence> {
    let case = Case::new(history);
    match case.judge(&[property], &case.reads.certain).pop() {
        Some(Finding::Violated(evidence)) => Some(evidence),
        _ => None,
    }
}

/// A history and what is known of it before any property is looked at.
struct Case<'a> {
    history: &'a History,
    reads: Reads,
    counters: Counters<'a>,
    counts_by_bounds: std::cell::Cell<bool>,
    staleness: std::cell::Cell<Staleness>,
}

impl<'a> Case<'a> {
    fn new(history: &'a History) -> Case<'a> {
        let reads = Reads::find(history);
        let counters = Counters::find(history);
        Case {
            history,
            reads,
            counters,
            counts_by_bounds: false.into(),
            staleness: Staleness::default().into(),
        }
    }

    /// One finding a property, in their order.
    fn judge(&self, wanted: &[Property], reads: &[Read]) -> Vec<Finding> {
        let index = Index::new(self.history, reads.to_vec(), &self.counters.seen);
        let order = clocks::order(&index);
        let mut axioms = Axioms::new(&index, order.as_deref());
        let judge = |&property: &Property| match property {
            Property::ReadIntegrity => self.integrity(),
            Property::Counters => self.counters(&index, order.as_deref()),
            Property::Convergence => convergence::judge(&index, order.as_deref()),
            Property::Linearizable | Property::DelayOnce if !self.reads.any => {
                self.no_reads("the history has no reads of registers")
            }
            Property::Linearizable => linearizable::judge(self.history, &self.reads),
            Property::DelayOnce => self.delay_once(),
            Property::PoppedOnce | Property::PoppedAtLeastOnce => match Queues::find(self.history) {
                None => self.no_reads("the history has no queues"),
                Some(queues) if property == Property::PoppedOnce => queues.popped_once(),
                Some(queues) => queues.popped_at_least_once(),
            },
            _ if !self.reads.any && !self.counters.any() => self.no_reads("the history has no reads"),
            _ => axioms.judge(property),
        };
        wanted.iter().map(judge).collect()
    }

    fn integrity(&self) -> Finding {
        if let Some(broken) = self.reads.broken {
            return Finding::Violated(broken_read(self.history, broken));
        }
        match &self.reads.unsure {
            Some(reason) => Finding::Undecided(reason.clone()),
            None if self.reads.any => Finding::Holds,
            None => self.no_reads("the history has no reads of registers"),
        }
    }

    /// What clients read is not in the history where it is left out.
    fn no_reads(&self, why: &str) -> Finding {
        all_left_out(self.history).map_or_else(|| Finding::NotApplicable(why.into()), Finding::Undecided)
    }

    fn delay_once(&self) -> Finding {
        let (finding, staleness) = delay_once::judge(self.history, &self.reads);
        self.staleness.set(staleness);
        finding
    }

    fn counters(&self, index: &Index<'_>, order: Option<&[u32]>) -> Finding {
        if !self.counters.any() {
            return self.no_reads("no counter was read");
        }
        let Some(judged) = self.counters.judge(index, order) else {
            let text = "the causal past is cyclic, and too long to say what a count must show".into();
            return Finding::Undecided(Reason { text, line: 0 });
        };
        self.counts_by_bounds.set(self.counts_by_bounds.get() || judged.by_bounds);
        match (judged.broken, self.history.truncated_at_line) {
            (Some(_), Some(line)) => {
                let text = "a count is not explained, but the recording broke off".into();
                Finding::Undecided(Reason { text, line })
            }
            (Some(broken), None) => Finding::Violated(broken_count(index, &broken)),
            (None, _) => Finding::Holds,
        }
    }

    /// Tries every resolution of the ambiguous reads for what is not violated without them.
    fn resolve(&self, wanted: &[Property], findings: &mut [Finding]) {
        let ambiguous = &self.reads.ambiguous;
        let count = ambiguous
            .iter()
            .try_fold(1_usize, |all, read| all.checked_mul(read.candidates.count()))
            .filter(|&count| {
                count <= RESOLUTIONS_MAX
                    && count.saturating_mul(self.history.operation_count()) <= RESOLVED_OPERATIONS_MAX
            });
        let reason = self.ambiguity(&ambiguous[0]);
        let is_open = |at: &usize| !resolves_itself(wanted[*at]) && matches!(findings[*at], Finding::Holds);
        let mut open: Vec<usize> = (0..wanted.len()).filter(is_open).collect();
        let Some(count) = count else {
            open.iter().for_each(|&at| findings[at] = Finding::Undecided(reason.clone()));
            return;
        };
        // More edges only ever add cycles, but a past that becomes cyclic may ask for a later addition.
        let counters = wanted.iter().position(|&property| property == Property::Counters);
        open.extend(counters.filter(|&at| matches!(findings[at], Finding::Violated(_))));
        let properties: Vec<Property> = open.iter().map(|&at| wanted[at]).collect();
        let mut agreed: Vec<Option<Finding>> = vec![None; open.len()];
        for number in 0..count {
            let found = self.judge(&properties, &self.resolution(number));
            for (agreed, found) in agreed.iter_mut().zip(found) {
                let is_same = agreed
                    .as_ref()
                    .is_none_or(|agreed| std::mem::discriminant(agreed) == std::mem::discriminant(&found));
                *agreed = Some(if is_same { found } else { Finding::Undecided(reason.clone()) });
            }
        }
        for (&at, agreed) in open.iter().zip(agreed) {
            findings[at] = agreed.expect("there is at least one resolution");
        }
    }

    /// The reads when each ambiguous one has the candidate that the number says.
    fn resolution(&self, mut number: usize) -> Vec<Read> {
        let mut reads = self.reads.certain.clone();
        for AmbiguousRead { reader, key, candidates, .. } in &self.reads.ambiguous {
            let writer = candidates.at(number % candidates.count());
            number /= candidates.count();
            reads.push(Read { reader: *reader, key: *key, writer });
        }
        reads
    }

    fn ambiguity(&self, read: &AmbiguousRead) -> Reason {
        let key = &self.history.keys[read.key as usize];
        let line = self.history.transactions[read.reader as usize].line;
        let what = match read.candidates.has_initial() {
            true => "its absence, which is the initial state and was also written by a delete",
            false => "a value that was written more than once",
        };
        Reason { text: format!("a read of `{key}` returned {what}"), line }
    }

    fn explain(
        &self,
        property: Property,
        evidence: Evidence,
        options: &Options,
        shown: &mut Vec<Vec<u32>>,
    ) -> Violation {
        let mut evidence = evidence;
        evidence.transactions.sort_unstable();
        evidence.transactions.dedup();
        if options.explain {
            shown.sort_by_key(Vec::len);
            evidence = shrink::shrink(self.history, &self.reads.certain, property, evidence, shown);
            evidence.transactions.sort_unstable();
            evidence.transactions.dedup();
            shown.push(evidence.transactions.clone());
        }
        let mut violation = Violation::new(evidence.pattern, evidence.detail);
        violation.transactions = evidence.transactions.into_iter().map(TransactionIndex).collect();
        violation.relations = evidence.relations;
        if violation.summary.is_empty() {
            violation.summary = crate::explain::summary(self.history, &violation);
        }
        violation
    }
}

/// Whether a property is judged with the ambiguous reads at once.
fn resolves_itself(property: Property) -> bool {
    matches!(
        property,
        Property::ReadIntegrity
            | Property::Linearizable
            | Property::DelayOnce
            | Property::PoppedOnce
            | Property::PoppedAtLeastOnce
    )
}

/// The properties that are axioms over one index.
struct Axioms<'a> {
    index: &'a Index<'a>,
    /// Nothing if session order and reads-from are cyclic.
    order: Option<&'a [u32]>,
    /// What CCv demands, if that has a cycle; found out when it is first asked for.
    convergent: Option<Option<Inferred>>,
    /// What shows that CC is violated, and CCv with it; looked for once.
    overwritten: Option<Option<Evidence>>,
    latest: Latest,
}

impl<'a> Axioms<'a> {
    fn new(index: &'a Index<'a>, order: Option<&'a [u32]>) -> Axioms<'a> {
        Axioms { index, order, convergent: None, overwritten: None, latest: Latest::default() }
    }

    fn judge(&mut self, property: Property) -> Finding {
        let Some(order) = self.order else {
            let none = Inferred::default();
            let cycle = Graph::new(self.index, &none).cycle().expect("the past has no order");
            return Finding::Violated(Evidence::of_cycle(self.index, property, Pattern::CyclicCO, &cycle));
        };
        let (index, latest) = (self.index, &mut self.latest);
        let convergent = self.convergent.get_or_insert_with(|| {
            let demanded = Inferred::find(index, order, Property::CausalConvergent, latest);
            Graph::new(index, &demanded).is_cyclic().then_some(demanded)
        });
        let Some(convergent) = convergent else { return Finding::Holds };
        if matches!(property, Property::Causal | Property::CausalConvergent) {
            let overwritten =
                self.overwritten.get_or_insert_with(|| overwritten(index, order, convergent, latest));
            return match (overwritten, property) {
                (Some(evidence), _) => Finding::Violated(evidence.clone()),
                (None, Property::Causal) => Finding::Holds,
                (None, _) => acyclic(index, property, convergent),
            };
        }
        acyclic(index, property, &Inferred::find(index, order, property, latest))
    }
}

/// Whether what an axiom demands has no cycle.
fn acyclic(index: &Index<'_>, property: Property, demanded: &Inferred) -> Finding {
    match Graph::new(index, demanded).cycle() {
        Some(cycle) => {
            Finding::Violated(Evidence::of_cycle(index, property, pattern(property, &cycle), &cycle))
        }
        None => Finding::Holds,
    }
}

/// A read of what was overwritten in the reader's past, for which no order of concurrent writes is needed.
fn overwritten(
    index: &Index<'_>,
    order: &[u32],
    demanded: &Inferred,
    latest: &mut Latest,
) -> Option<Evidence> {
    if let Some(edge) = demanded.before_initial {
        let step = graph::Step { from: edge.from, to: INITIAL, kind: StepKind::Older(edge.read) };
        return Some(Evidence::of_cycle(index, Property::Causal, Pattern::WriteCOInitRead, &[step]));
    }
    for block in Clocks::blocks(index) {
        let clocks = latest.table(index, order, Past::Causal, block);
        let follows = |edge: &&Edge| {
            let (session, position) = (index.session[edge.to as usize], index.position[edge.to as usize]);
            clocks.entry(edge.from, session).is_some_and(|known| known > position)
        };
        if let Some(edge) = demanded.edges.iter().find(follows) {
            let step = graph::Step { from: edge.from, to: edge.to, kind: StepKind::Older(edge.read) };
            let mut cycle = vec![step];
            cycle.extend(path::find(index, Property::Causal, edge.to, edge.from).unwrap_or_default());
            return Some(Evidence::of_cycle(index, Property::Causal, Pattern::WriteCORead, &cycle));
        }
    }
    None
}

/// What a cycle of an axiom is called.
fn pattern(property: Property, cycle: &[graph::Step]) -> Pattern {
    let is_initial = cycle.iter().any(|step| step.to == INITIAL);
    match property {
        _ if is_initial => Pattern::WriteCOInitRead,
        Property::CausalConvergent => Pattern::CyclicCF,
        Property::ReadAtomic | Property::SnapshotReads => Pattern::FracturedRead,
        _ => Pattern::CyclicOrder,
    }
}

fn broken_read(history: &History, broken: BrokenRead) -> Evidence {
    let operation = history.transactions[broken.reader as usize].operations[broken.place as usize];
    let Operation::Read { key, value } = operation else { unreachable!("a broken read is a read") };
    let (key, value) = (history.key_name(key), crate::explain::value_text(history, value));
    let detail = match broken.pattern {
        Pattern::ThinAirRead => format!("`{key}` was read as {value}, which nobody wrote"),
        Pattern::AbortedRead => format!("`{key}` was read as {value}, which only a failed transaction wrote"),
        Pattern::IntermediateRead => {
            format!("`{key}` was read as {value}, which its own transaction had overwritten")
        }
        Pattern::FutureRead => {
            format!("`{key}` was read as {value}, which the same transaction wrote only later")
        }
        _ => format!("`{key}` was read as {value} by a transaction that had just written another value"),
    };
    let mut evidence = Evidence::new(broken.pattern, detail);
    evidence.transactions.extend(broken.writer);
    evidence.transactions.push(broken.reader);
    evidence
}

fn broken_count(index: &Index<'_>, broken: &BrokenCount) -> Evidence {
    let key = &index.history.keys[broken.key as usize];
    let detail = format!("`{key}` was counted as {}: {}", broken.value, broken.why);
    let mut evidence = Evidence::new(broken.pattern, detail);
    evidence.transactions.push(broken.reader);
    if let Some(adder) = broken.adder {
        evidence.transactions.push(adder);
        evidence.add_path(index, Property::Counters, adder, broken.reader, true);
    }
    evidence
}

#[cfg(test)]
mod tests;
