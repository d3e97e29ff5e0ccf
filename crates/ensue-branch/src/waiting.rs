//! Commits of other sites whose parents are not here, and those that came too late for theirs (section 6.4).

use crate::branches::Tag;
use crate::commit::{Commit, write_bytes};
use crate::id::StateId;
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    commits: BTreeMap<StateId, (Tag, Commit)>,
    /// The commits that wait for a state.
    by_parent: BTreeMap<StateId, BTreeSet<StateId>>,
    /// Those that wait for nothing: what they came from was collected here.
    late: BTreeSet<StateId>,
    bytes: usize,
}

/// What a commit that waits takes beside its keys and values, and what each of its writes does, rounded up.
const COMMIT_BYTES: usize = 160;
const WRITE_BYTES: usize = 80;

fn bytes_of(commit: &Commit) -> usize {
    let writes = commit.writes.iter().map(|write| WRITE_BYTES + write_bytes(&write.key, &write.value));
    COMMIT_BYTES + writes.sum::<usize>()
}

impl Waiting {
    pub fn add(&mut self, tag: Tag, commit: Commit, missing: &[StateId]) {
        for parent in missing {
            self.by_parent.entry(*parent).or_default().insert(commit.id);
        }
        self.bytes += bytes_of(&commit);
        self.commits.insert(commit.id, (tag, commit));
    }

    /// One that waits until it comes whole.
    pub fn add_late(&mut self, tag: Tag, commit: Commit) {
        self.late.insert(commit.id);
        self.add(tag, commit, &[]);
    }

    /// The commits that wait for a state, to be looked at again. They still wait until somebody does.
    pub fn take_up(&mut self, parent: StateId) -> BTreeSet<StateId> {
        self.by_parent.remove(&parent).unwrap_or_default()
    }

    pub fn remove(&mut self, id: StateId) -> Option<(Tag, Commit)> {
        let removed = self.commits.remove(&id)?;
        self.late.remove(&id);
        self.bytes -= bytes_of(&removed.1);
        Some(removed)
    }

    pub fn get(&self, id: StateId) -> Option<&(Tag, Commit)> {
        self.commits.get(&id)
    }

    pub fn contains(&self, id: StateId) -> bool {
        self.commits.contains_key(&id)
    }

    pub fn late(&self) -> &BTreeSet<StateId> {
        &self.late
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

    /// What they take in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
