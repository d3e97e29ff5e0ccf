//! What settled values depend on, when nobody need know it any more.

use ensue_types::{Causes, OperationId, Stamp};

/// Whether it need not be known what a write of this name and stamp carries. Nothing is asked of what is not settled.
pub type Forgets<'a> = dyn Fn(&OperationId, Stamp, &Causes) -> bool + 'a;

/// What was forgotten of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Forgotten {
    /// Bytes of what was carried.
    pub(crate) dependencies: u64,
    /// Bytes less that are counted beside.
    pub(crate) saved: u64,
    pub(crate) looked_at: usize,
    /// Where a large row goes on.
    pub(crate) next: Option<usize>,
}

impl Forgotten {
    pub(crate) fn and(self, of_columns: Forgotten) -> Forgotten {
        Forgotten {
            dependencies: self.dependencies + of_columns.dependencies,
            saved: self.saved + of_columns.saved,
            looked_at: self.looked_at + of_columns.looked_at,
            next: of_columns.next,
        }
    }
}
