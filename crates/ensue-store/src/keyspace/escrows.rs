//! The rows with bounded counters, for whoever moves rights between datacenters. It does not decide when that is.

use super::Keyspace;
use bytes::Bytes;
use ensue_types::{Column, DatacenterId};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

/// The datacenters of the cluster, as commands that name them need them.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    /// That of this keyspace.
    pub own: DatacenterId,
    /// The names of all, by their numbers.
    pub names: Arc<[String]>,
}

impl Sites {
    /// The name of a datacenter.
    pub fn name(&self, datacenter: DatacenterId) -> String {
        self.names.get(usize::from(datacenter.0)).cloned().unwrap_or_else(|| datacenter.to_string())
    }

    /// The datacenter of this name.
    pub fn named(&self, name: &[u8]) -> Option<DatacenterId> {
        let place = self.names.iter().position(|known| known.as_bytes() == name)?;
        u8::try_from(place).ok().map(DatacenterId)
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Escrows {
    rows: BTreeSet<Bytes>,
    /// Those that have changed.
    changed: BTreeSet<Bytes>,
    sites: Sites,
}

impl Keyspace {
    /// The same, in this datacenter of these.
    pub fn with_sites(mut self, sites: Sites) -> Keyspace {
        self.escrows.sites = sites;
        self
    }

    pub fn sites(&self) -> &Sites {
        &self.escrows.sites
    }

    pub(super) fn note_escrow(&mut self, slot: u32, column: &Column) {
        if !matches!(column, Column::Escrow(_)) {
            return;
        }
        // Of its own, so that it does not keep a client's whole read buffer alive.
        let key = Bytes::copy_from_slice(self.key_at(slot));
        self.escrows.rows.insert(key.clone());
        self.escrows.changed.insert(key);
    }

    /// Panics if a row with a column of a counter is not known.
    pub(super) fn check_escrows(&self) {
        for row in self.whole_rows() {
            let is_known = self.escrows.rows.contains(row.key());
            let mut columns = row.cells().filter(|(column, _)| matches!(column.as_ref(), Column::Escrow(_)));
            assert!(is_known || columns.next().is_none(), "nobody looks at the counter of {:?}", row.key());
        }
    }

    /// Rows with counters of which rights may have to be moved: those that have changed, the first ones if there are
    /// more than so many, and some others, which follow this one, so that each is looked at now and then.
    pub fn take_escrows(&mut self, most: usize, after: &Bytes, others: usize) -> BTreeSet<Bytes> {
        let mut taken = BTreeSet::new();
        while taken.len() < most {
            let Some(key) = self.escrows.changed.pop_first() else { break };
            taken.insert(key);
        }
        let beyond = (Bound::Excluded(after.clone()), Bound::Unbounded);
        taken.extend(self.escrows.rows.range(beyond).take(others).cloned());
        taken
    }

    /// The row after this one at which a walk over so many ends; an empty name at the end of all.
    pub fn escrow_after(&self, after: &Bytes, count: usize) -> Bytes {
        let beyond = (Bound::Excluded(after.clone()), Bound::Unbounded);
        self.escrows.rows.range(beyond).nth(count.saturating_sub(1)).cloned().unwrap_or_default()
    }

    /// A row is looked at again, because nothing could be done.
    pub fn keep_escrow(&mut self, key: Bytes) {
        self.escrows.changed.insert(key);
    }

    /// A row has no counters left.
    pub fn forget_escrow(&mut self, key: &[u8]) {
        self.escrows.rows.remove(key);
    }
}
