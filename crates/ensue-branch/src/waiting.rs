//! Commits of other sites whose parents are not here (section 6.4).

use crate::branches::Tag;
use crate::commit::Commit;
use crate::id::StateId;
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    commits: BTreeMap<StateId, (Tag, Commit)>,
    /// The commits that wait for a state.
    by_parent: BTreeMap<StateId, BTreeSet<StateId>>,
}

impl Waiting {
    pub fn add(&mut self, tag: Tag, commit: Commit, missing: &[StateId]) {
        for parent in missing {
            self.by_parent.entry(*parent).or_default().insert(commit.id);
        }
        self.commits.insert(commit.id, (tag, commit));
    }

    /// The commits that wait for a state, to be looked at again. They still wait until somebody does.
    pub fn take_up(&mut self, parent: StateId) -> BTreeSet<StateId> {
        self.by_parent.remove(&parent).unwrap_or_default()
    }

    pub fn remove(&mut self, id: StateId) -> Option<(Tag, Commit)> {
        self.commits.remove(&id)
    }

    pub fn get(&self, id: StateId) -> Option<&(Tag, Commit)> {
        self.commits.get(&id)
    }

    pub fn contains(&self, id: StateId) -> bool {
        self.commits.contains_key(&id)
    }

    pub fn parents(&self) -> impl Iterator<Item = StateId> + '_ {
        self.commits.values().flat_map(|(_, commit)| commit.parents.iter().copied())
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &(Tag, Commit)> {
        self.commits.values()
    }

    pub fn len(&self) -> usize {
        self.commits.len()
    }
}
