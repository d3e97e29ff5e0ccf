//! The family of the nearest dependencies: a past is a set of operations, and a write waits for them where it arrives.
//!
//! - On a read: add the operations that wrote what was read to the context.
//! - On a write: attach the context; then the context is that write alone.
//! - On a write from elsewhere: show it after each of its dependencies was applied.
//! - A context above its bound folds into one watermark a stream.

use crate::{Family, Malformed, Past, Visibility, dependency_set};
use ensue_types::{Dependency, Extent, Opaque, OperationId, Rule, Source};

/// The family, with its bound on contexts.
#[derive(Clone, Copy, Debug)]
pub struct Operations {
    /// Operations in a context before it folds.
    pub bound: usize,
}

impl Family for Operations {
    fn record_reads(&self, context: &mut Opaque, read: &[Source], _settled: &[Source]) {
        if !read.is_empty() {
            self.add(context, read.iter().map(exactly));
        }
    }

    fn record_write(&self, context: &mut Opaque, write: &Source) {
        *context = match Rule::ResetKeepsTheWrite.holds() {
            true => dependency_set::encode(&[exactly(write)]),
            false => Opaque::default(),
        };
    }

    /// The context, and what the write itself read, which is never folded.
    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque {
        if !Rule::NearestHoldsTheReads.holds() {
            // Broken on purpose: one of them is taken for all that is near.
            let mut nearest = dependency_set::decode(context).unwrap_or_default();
            nearest.truncate(1);
            return carried(&dependency_set::encode(&nearest), observed);
        }
        carried(context, observed)
    }

    /// After each of these.
    fn visibility(&self, _operation: OperationId, dependencies: &Opaque) -> Result<Visibility, Malformed> {
        let dependencies = dependency_set::decode(dependencies)?;
        Ok(if dependencies.is_empty() { Visibility::Now } else { Visibility::After(dependencies) })
    }

    fn merge(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        if other.is_empty() {
            return Ok(());
        }
        let more = dependency_set::decode(other)?;
        if !Rule::JoinKeepsBoth.holds() {
            *context = Opaque::default();
        }
        self.add(context, more);
        Ok(())
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        dependency_set::decode(context).map(Past::Operations)
    }
}

impl Operations {
    /// Adds to a context, which folds above its bound.
    fn add(&self, context: &mut Opaque, more: impl IntoIterator<Item = Dependency>) {
        // A context is made by its protocol alone: what came from outside was decoded when it came in.
        let mut set = dependency_set::decode(context).unwrap_or_default();
        dependency_set::add(&mut set, more, self.bound);
        if !Rule::FoldCoversAll.holds() {
            // Broken on purpose: what is too much is left out.
            set.retain(|dependency| dependency.extent == Extent::Exact);
        }
        *context = dependency_set::encode(&set);
    }
}

/// What of a past is not in every datacenter yet.
pub fn forget(context: &mut Opaque, is_everywhere: &dyn Fn(&OperationId) -> bool) {
    let mut nearest = dependency_set::decode(context).unwrap_or_default();
    let before = nearest.len();
    nearest.retain(|dependency| !is_everywhere(&dependency.operation));
    if nearest.len() < before {
        *context = dependency_set::encode(&nearest);
    }
}

fn carried(context: &Opaque, observed: &[Source]) -> Opaque {
    if observed.is_empty() || !Rule::DependOnWhatWasRead.holds() {
        return context.clone();
    }
    let mut set = dependency_set::decode(context).unwrap_or_default();
    dependency_set::add(&mut set, observed.iter().map(exactly), usize::MAX);
    dependency_set::encode(&set)
}

fn exactly(source: &Source) -> Dependency {
    Dependency { operation: source.operation, extent: Extent::Exact }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::{DatacenterId, Incarnation, PartitionId, Position};

    #[test]
    fn what_is_everywhere_is_forgotten_and_the_rest_is_not() {
        let operation = |partition| OperationId {
            datacenter: DatacenterId(0),
            incarnation: Incarnation(1),
            partition: PartitionId(partition),
            position: Position(4),
        };
        let set =
            [0, 1].map(|partition| Dependency { operation: operation(partition), extent: Extent::Exact });
        let mut context = dependency_set::encode(&set);
        forget(&mut context, &|one| *one == operation(0));
        assert_eq!(context, dependency_set::encode(&set[1..]));
    }
}
