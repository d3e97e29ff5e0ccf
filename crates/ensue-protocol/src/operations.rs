//! The family of the nearest dependencies: a past is a set of operations, and a write waits for them where it arrives.
//!
//! - On a read: add the operations that wrote what was read to the context.
//! - On a write: attach the context; then the context is that write alone.
//! - On a write from elsewhere: show it after each of its dependencies was applied.
//! - A context above its bound folds into one watermark a stream.

use crate::{Family, Malformed, Past, Visibility};
use ensue_types::causes::dependency_set;
use ensue_types::{Causes, Dependency, Extent, OperationId, Rule, Source};

/// Room for so many operations is kept when a context becomes one write.
const SMALL: usize = 4;

/// The family, with its bound on contexts.
#[derive(Clone, Copy, Debug)]
pub struct Operations {
    /// Operations in a context before it folds.
    pub bound: usize,
}

impl Family for Operations {
    fn record_reads(&self, context: &mut Causes, read: &[Source], _settled: &[Source]) {
        if !read.is_empty() {
            self.add(context, read.iter().map(exactly));
        }
    }

    fn record_write(&self, context: &mut Causes, write: &Source) {
        // Mostly it was one write before, too, and needs no other memory.
        let mut set = context.take_operations();
        set.clear();
        set.shrink_to(SMALL);
        if Rule::ResetKeepsTheWrite.holds() {
            set.push(exactly(write));
        }
        *context = set.into();
    }

    /// The context, and what the write itself read, which is never folded.
    fn dependencies(&self, context: &Causes, observed: &[Source]) -> Causes {
        if !Rule::NearestHoldsTheReads.holds() {
            // Broken on purpose: one of them is taken for all that is near.
            let mut nearest = context.clone().take_operations();
            nearest.truncate(1);
            return carried(&nearest.into(), observed);
        }
        carried(context, observed)
    }

    /// After each of these.
    fn visibility(&self, _operation: OperationId, dependencies: &Causes) -> Result<Visibility, Malformed> {
        let dependencies = dependencies.operations()?;
        Ok(if dependencies.is_empty() { Visibility::Now } else { Visibility::After(dependencies.to_vec()) })
    }

    fn merge(&self, context: &mut Causes, other: &Causes) -> Result<(), Malformed> {
        let more = other.operations()?;
        if more.is_empty() {
            return Ok(());
        }
        if !Rule::JoinKeepsBoth.holds() {
            *context = Causes::Nothing;
        }
        self.add(context, more.iter().copied());
        Ok(())
    }

    fn past(&self, context: &Causes) -> Result<Past, Malformed> {
        context.operations().map(|set| Past::Operations(set.to_vec()))
    }
}

impl Operations {
    /// Adds to a context, which folds above its bound.
    fn add(&self, context: &mut Causes, more: impl IntoIterator<Item = Dependency>) {
        // A context is made by its protocol alone: what came from outside was looked at when it came in.
        let mut set = context.take_operations();
        dependency_set::add(&mut set, more, self.bound);
        if !Rule::FoldCoversAll.holds() {
            // Broken on purpose: what is too much is left out.
            set.retain(|dependency| dependency.extent == Extent::Exact);
        }
        *context = set.into();
    }
}

/// What of a past is not in every datacenter yet.
pub fn forget(context: &mut Causes, is_globally_stable: &dyn Fn(&OperationId) -> bool) {
    context.retain_operations(|dependency| !is_globally_stable(&dependency.operation));
}

fn carried(context: &Causes, observed: &[Source]) -> Causes {
    if observed.is_empty() || !Rule::DependOnWhatWasRead.holds() {
        return context.clone();
    }
    let mut set = context.clone().take_operations();
    dependency_set::add(&mut set, observed.iter().map(exactly), usize::MAX);
    set.into()
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
        let mut context = Causes::Operations(set.to_vec());
        forget(&mut context, &|one| *one == operation(0));
        assert_eq!(context, Causes::Operations(set[1..].to_vec()));
    }
}
