//! The family of the matrices: a past is a count of updates for each replica, and a write waits where it arrives,
//! behind all that its origin wrote before.
//!
//! An element of a matrix is `Through` a position of a replica's stream.

use crate::{Family, Malformed, Past, Visibility};
use ensue_types::causes::dependency_set;
use ensue_types::{Causes, Dependency, Extent, OperationId, Position, Rule, Source};

/// The family. A matrix has one element a replica, so nothing folds.
#[derive(Clone, Copy, Debug)]
pub struct Matrix;

impl Family for Matrix {
    fn record_reads(&self, context: &mut Causes, read: &[Source], _settled: &[Source]) {
        if !read.is_empty() {
            let mut elements = context.take_operations();
            raise(&mut elements, read);
            *context = elements.into();
        }
    }

    /// After a write the matrix is that write alone.
    fn record_write(&self, context: &mut Causes, write: &Source) {
        *context = after(write).into();
    }

    fn dependencies(&self, context: &Causes, observed: &[Source]) -> Causes {
        let mut elements = context.clone().take_operations();
        raise(&mut elements, observed);
        elements.into()
    }

    /// After the matrix, and everything before it in its origin's stream.
    fn visibility(&self, operation: OperationId, dependencies: &Causes) -> Result<Visibility, Malformed> {
        let carried = dependencies.operations()?;
        // The waits for these end one by one: that one of them covers another one does not matter.
        let mut elements = Vec::with_capacity(carried.len() + 1);
        if operation.position.number() > 1 && Rule::ApplyInTheOriginsOrder.holds() {
            let before = OperationId { position: Position(operation.position.0 - 1), ..operation };
            elements.push(element(before));
        }
        elements.extend_from_slice(carried);
        Ok(if elements.is_empty() { Visibility::Now } else { Visibility::After(elements) })
    }

    fn merge(&self, context: &mut Causes, other: &Causes) -> Result<(), Malformed> {
        let more = other.operations()?;
        let mut elements = context.take_operations();
        join(&mut elements, more);
        *context = elements.into();
        Ok(())
    }

    fn past(&self, context: &Causes) -> Result<Past, Malformed> {
        context.operations().map(|elements| Past::Operations(elements.to_vec()))
    }
}

/// Everything that a replica wrote up to and with this: an element of the matrix.
fn element(operation: OperationId) -> Dependency {
    Dependency { operation, extent: Extent::Through }
}

/// The matrix of a session that has just written.
pub(crate) fn after(write: &Source) -> Vec<Dependency> {
    match Rule::ResetKeepsTheWrite.holds() {
        true => vec![element(write.operation)],
        false => Vec::new(),
    }
}

/// Raises the elements of what was read.
pub(crate) fn raise(elements: &mut Vec<Dependency>, sources: &[Source]) {
    if !sources.is_empty() {
        dependency_set::add(elements, sources.iter().map(|source| element(source.operation)), usize::MAX);
    }
}

/// Raises the elements to those of another matrix.
pub(crate) fn join(elements: &mut Vec<Dependency>, more: &[Dependency]) {
    if !more.is_empty() {
        dependency_set::add(elements, more.iter().copied(), usize::MAX);
    }
}
