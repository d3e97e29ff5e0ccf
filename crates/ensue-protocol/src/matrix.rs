//! The family of the matrices: a past is a count of updates for each replica, and a write waits where it arrives,
//! behind all that its origin wrote before.
//!
//! An element of a matrix is `Through` a position of a replica's stream. The bytes are those of `dependency_set.rs`.

use crate::{Family, Malformed, Past, Visibility, dependency_set};
use ensue_types::{Dependency, Extent, Opaque, OperationId, Position, Rule, Source};

/// The family. A matrix has one element a replica, so nothing folds.
#[derive(Clone, Copy, Debug)]
pub struct Matrix;

impl Family for Matrix {
    fn record_reads(&self, context: &mut Opaque, read: &[Source], _settled: &[Source]) {
        raise(context, read);
    }

    /// After a write the matrix is that write alone.
    fn record_write(&self, context: &mut Opaque, write: &Source) {
        *context = match Rule::ResetKeepsTheWrite.holds() {
            true => dependency_set::encode(&[element(write.operation)]),
            false => Opaque::default(),
        };
    }

    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque {
        let mut dependencies = context.clone();
        raise(&mut dependencies, observed);
        dependencies
    }

    /// After the matrix, and everything before it in its origin's stream.
    fn visibility(&self, operation: OperationId, dependencies: &Opaque) -> Result<Visibility, Malformed> {
        let mut elements = dependency_set::decode(dependencies)?;
        if operation.position.number() > 1 && Rule::ApplyInTheOriginsOrder.holds() {
            let before = OperationId { position: Position(operation.position.0 - 1), ..operation };
            dependency_set::add(&mut elements, [element(before)], usize::MAX);
        }
        Ok(if elements.is_empty() { Visibility::Now } else { Visibility::After(elements) })
    }

    fn merge(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        let more = dependency_set::decode(other)?;
        if !more.is_empty() {
            let mut elements = dependency_set::decode(context).unwrap_or_default();
            dependency_set::add(&mut elements, more, usize::MAX);
            *context = dependency_set::encode(&elements);
        }
        Ok(())
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        dependency_set::decode(context).map(Past::Operations)
    }
}

/// Everything that a replica wrote up to and with this: an element of the matrix.
fn element(operation: OperationId) -> Dependency {
    Dependency { operation, extent: Extent::Through }
}

/// Raises the elements of what was read.
fn raise(matrix: &mut Opaque, sources: &[Source]) {
    if sources.is_empty() {
        return;
    }
    let mut elements = dependency_set::decode(matrix).unwrap_or_default();
    dependency_set::add(&mut elements, sources.iter().map(|source| element(source.operation)), usize::MAX);
    *matrix = dependency_set::encode(&elements);
}
