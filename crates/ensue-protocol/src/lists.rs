//! The family of the lists: contexts and dependencies of a protocol that carries everything, the nearest apart.

use crate::{Family, Malformed, Past, Visibility};
use ensue_types::{Causes, Extent, Lists, OperationId, Rule, Source};

/// The family: a past is all operations, the nearest apart, and a write waits for the nearest where it arrives.
#[derive(Clone, Copy, Debug)]
pub struct ListsFamily {
    /// Operations among the nearest before they fold.
    pub bound: usize,
}

impl ListsFamily {
    fn bounded(&self, mut lists: Box<Lists>) -> Causes {
        lists.fold(self.bound);
        if !Rule::FoldCoversAll.holds() {
            // Broken on purpose: what is too much is left out.
            lists.nearest.retain(|dependency| dependency.extent == Extent::Exact);
        }
        lists.into()
    }
}

/// Adds what was read, with all that it depends on.
fn add(lists: &mut Lists, sources: &[Source]) {
    for carried in sources.iter().filter_map(|source| source.carried().lists().ok()) {
        lists.imply(carried);
    }
    sources.iter().for_each(|source| lists.add_nearest(source.operation));
}

impl Family for ListsFamily {
    fn record_reads(&self, context: &mut Causes, read: &[Source], _settled: &[Source]) {
        if read.is_empty() {
            return;
        }
        let mut lists = context.take_lists();
        add(&mut lists, read);
        *context = self.bounded(lists);
    }

    fn record_write(&self, context: &mut Causes, write: &Source) {
        let mut lists = context.take_lists();
        lists.reset_to(write.operation);
        if !Rule::ResetKeepsTheWrite.holds() {
            lists.retain(|operation| *operation != write.operation);
        }
        *context = self.bounded(lists);
    }

    fn merge(&self, context: &mut Causes, other: &Causes) -> Result<(), Malformed> {
        let joined = other.lists()?;
        let mut lists = match Rule::JoinKeepsBoth.holds() || other.is_empty() {
            true => context.take_lists(),
            false => Box::default(),
        };
        lists.join(joined);
        *context = self.bounded(lists);
        Ok(())
    }

    fn past(&self, context: &Causes) -> Result<Past, Malformed> {
        context.lists().map(|lists| Past::Operations(lists.nearest.clone()))
    }

    fn dependencies(&self, context: &Causes, observed: &[Source]) -> Causes {
        let mut lists = context.clone().take_lists();
        if !Rule::NearestHoldsTheReads.holds() {
            // Broken on purpose: one of them is taken for all that is near.
            lists.nearest.truncate(1);
        }
        if Rule::DependOnWhatWasRead.holds() {
            add(&mut lists, observed);
        }
        if !Rule::AllDependenciesAreCarried.holds() {
            lists.others.clear();
        }
        lists.into()
    }

    fn visibility(&self, _operation: OperationId, dependencies: &Causes) -> Result<Visibility, Malformed> {
        let Lists { nearest, .. } = dependencies.lists()?;
        Ok(if nearest.is_empty() { Visibility::Now } else { Visibility::After(nearest.clone()) })
    }
}
