//! `orbe-dm`: causal+ by matrices of update counts; a write waits where it arrives, and its origin's writes keep their order.
//!
//! Du, Elnikety, Roy, Zwaenepoel, "Orbe: Scalable Causal Consistency Using Dependency Matrices and Physical Clocks", SoCC 2013,
//! sections 3, 5.1 and 6. The rules:
//!
//! - A session has a sparse matrix, one row a partition, one column a datacenter: how many updates of that replica it
//!   may depend on. A read raises the element of what it read (3.2).
//! - A write carries the matrix; then the matrix is that write alone (3.2). A count of a replica is a position of its stream.
//! - A write from elsewhere shows after the row of its own partition, and then the other partitions' version vectors,
//!   cover its matrix; and after everything before it in its origin's stream (3.2).
//! - A write carries what it replaced at its writer. Where it replaces, or is beaten by, something else, the two are in conflict,
//!   and it is counted; the last writer stays (3.4).
//! - A read returns the newest that shows, and never waits. Reads of several keys are parallel reads.
//! - Dependency cleaning: what every datacenter has applied is not remembered (section 6). The acknowledgements of the
//!   streams already carry what each datacenter has durably applied of every origin, so it costs no message.
//!
//! Where we differ from the paper:
//! - Counts do not arbitrate (trap 20): the newest is the one with the highest stamp, which is above everything that its session
//!   had seen.
//! - The item dependency timestamp is the identity of the write that was replaced, and that write is a dependency, as in COPS-CD
//!   (section 5.3): else a write that overtakes what it replaced would be told from a conflict by nothing.
//! - It finds conflicts but must not resolve them: it is not transitive (trap 21). Nor is it needed to converge.
//! - The matrix is reset by what was sent with the write, since a session's commands are executed in order (trap 19).
//! - An update is cleaned when every datacenter has applied it durably (trap 29).
//! - Counts carry the incarnation of the stream, so none is used twice (trap 27); an incarnation's first entry says what was lost
//!   before it, and waits for nothing.

use crate::{Capabilities, Malformed, Needs, Options, Past, Protocol, SnapshotReads, Verdict, facts};
use ensue_types::{Dependency, Extent, Opaque, OperationId, Position, Rule, Rules, Source};

/// The protocol, with its option.
#[derive(Debug)]
pub struct OrbeDm {
    options: Options,
    rules: Rules,
}

impl OrbeDm {
    pub fn new(options: Options, rules: Rules) -> OrbeDm {
        OrbeDm { options, rules }
    }
}

impl Protocol for OrbeDm {
    fn name(&self) -> &'static str {
        "orbe-dm"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshot_reads: SnapshotReads::None,
            write_transactions: false,
            causality: true,
            available: true,
        }
    }

    fn needs(&self) -> Needs {
        Needs { previous_versions: true, ..Needs::default() }
    }

    fn observe(&self, context: &mut Opaque, sources: &[Source]) {
        raise(context, sources);
    }

    fn remembers_settled(&self) -> bool {
        !self.options.dependency_cleaning
    }

    fn wrote(&self, context: &mut Opaque, write: &Source) {
        *context = reset(write, self.rules);
    }

    fn join(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        join(context, other)
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        facts::decode(context).map(Past::Operations)
    }

    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque {
        let mut dependencies = context.clone();
        raise(&mut dependencies, observed);
        dependencies
    }

    fn verdict(&self, operation: OperationId, dependencies: &Opaque) -> Result<Verdict, Malformed> {
        verdict(operation, dependencies, self.rules)
    }

    fn keeps_old_versions(&self) -> bool {
        false
    }
}

/// Everything that a replica wrote up to and with this: an element of the matrix.
fn element(operation: OperationId) -> Dependency {
    Dependency { operation, extent: Extent::Through }
}

/// Raises the elements of what was read.
pub(crate) fn raise(matrix: &mut Opaque, sources: &[Source]) {
    if sources.is_empty() {
        return;
    }
    let mut elements = facts::decode(matrix).unwrap_or_default();
    facts::add(&mut elements, sources.iter().map(|source| element(source.operation)), usize::MAX);
    *matrix = facts::encode(&elements);
}

/// After a write the matrix is that write alone.
pub(crate) fn reset(write: &Source, rules: Rules) -> Opaque {
    if rules.hold(Rule::ResetKeepsTheWrite) {
        return facts::encode(&[element(write.operation)]);
    }
    // Broken on purpose: the reset forgets the write too.
    Opaque::default()
}

pub(crate) fn join(matrix: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
    let more = facts::decode(other)?;
    if !more.is_empty() {
        let mut elements = facts::decode(matrix).unwrap_or_default();
        facts::add(&mut elements, more, usize::MAX);
        *matrix = facts::encode(&elements);
    }
    Ok(())
}

/// The matrix, and everything before it in its origin's stream.
pub(crate) fn verdict(operation: OperationId, matrix: &Opaque, rules: Rules) -> Result<Verdict, Malformed> {
    let mut elements = facts::decode(matrix)?;
    if operation.position.number() > 1 && rules.hold(Rule::ApplyInTheOriginsOrder) {
        let before = OperationId { position: Position(operation.position.0 - 1), ..operation };
        facts::add(&mut elements, [element(before)], usize::MAX);
    }
    Ok(if elements.is_empty() { Verdict::Now } else { Verdict::After(elements) })
}
