//! What comes back of branching keyspaces from the log and from a checkpoint, and what goes into one.

use super::Branching;
use crate::partition::cx::Cx;
use bytes::Bytes;
use ensue_branch::{Note, Rebuilt};
use ensue_store::checkpoint::Items;
use ensue_store::entry::{Change, Entry};
use ensue_store::image;
use ensue_types::{DatacenterId, Incarnation, KeyspaceId, Position};

impl Branching {
    /// The same, read from the log: what this lets go on has a record of its own behind it, or waits to be taken up.
    pub(in crate::partition) fn replay_lost_branches(&mut self, origin: DatacenterId, life: Incarnation) {
        for branches in self.keyspaces.values_mut() {
            branches.lose_before(origin, life);
        }
    }

    /// An entry read from the log, or one that came back from another datacenter.
    pub(in crate::partition) fn replay_on_branch(
        &mut self,
        origin: DatacenterId,
        keyspace: KeyspaceId,
        position: Position,
        note: &Bytes,
    ) {
        let Some(branches) = self.keyspaces.get_mut(&keyspace) else { return };
        match Note::decode(note.clone()) {
            // What this lets go on has a record of its own behind it, or waits to be taken up.
            Ok(Note::Commit(commit)) => drop(branches.offer((origin, position), commit)),
            Ok(Note::Ceiling(state)) => branches.offer_ceiling(origin, state),
            Err(_) => {}
        }
    }

    pub(in crate::partition) fn replay_rebuilt(&mut self, keyspace: KeyspaceId, rebuilt: Bytes) {
        let Some(branches) = self.keyspaces.get_mut(&keyspace) else { return };
        if let Ok(rebuilt) = Rebuilt::decode(rebuilt) {
            branches.accept(&rebuilt);
        }
    }

    /// This partition lives in this incarnation: states that it makes carry it.
    pub(in crate::partition) fn branches_live_on(&mut self, cx: &Cx) {
        let incarnation = cx.incarnation;
        for branches in self.keyspaces.values_mut() {
            branches.begin_incarnation(incarnation);
        }
    }
}

impl Branching {
    /// The states, as a checkpoint that begins now holds them.
    pub(in crate::partition) fn write_states(&mut self, items: &mut impl Items) {
        for (keyspace, branches) in &mut self.keyspaces {
            items.item(image::BRANCH_STATES, &item(*keyspace, &branches.encode_dag()));
        }
    }

    /// The next keys of a checkpoint: from a place in the walk over all of them, the next place, and nothing at the
    /// end.
    pub(in crate::partition) fn write_keys(
        &self,
        items: &mut impl Items,
        (number, hash): (u8, u32),
        count: usize,
    ) -> Option<(u8, u32)> {
        let (keyspace, branches) = self.keyspaces.range(KeyspaceId(number)..).next()?;
        let from = if keyspace.0 == number { hash } else { 0 };
        let next = branches.encode_keys(from, count, |key| {
            items.item(image::BRANCH_KEY, &item(*keyspace, key));
        });
        Some(next.map_or((keyspace.0.saturating_add(1), 0), |hash| (keyspace.0, hash)))
    }

    /// Takes an item of a checkpoint.
    pub(crate) fn restore(&mut self, kind: u8, bytes: &Bytes) -> Result<(), String> {
        let number = *bytes.first().ok_or("checkpoint: an item without a keyspace")?;
        let Some(branches) = self.keyspaces.get_mut(&KeyspaceId(number)) else {
            return Err(format!("checkpoint: keyspace {number} had branches, and has another protocol now"));
        };
        let body = bytes.slice(1..);
        let restored = match kind {
            image::BRANCH_STATES => branches.restore_dag(body),
            _ => branches.restore_key(body),
        };
        restored.map_err(|error| format!("checkpoint: keyspace {number}: {error}"))
    }
}

fn item(keyspace: KeyspaceId, body: &[u8]) -> Vec<u8> {
    [&[keyspace.0], body].concat()
}

/// The note of an entry of a branching keyspace.
pub(in crate::partition) fn note_of(entry: &Entry) -> Option<(KeyspaceId, &Bytes)> {
    match &entry.change {
        Change::Branch { keyspace, note } => Some((*keyspace, note)),
        _ => None,
    }
}
