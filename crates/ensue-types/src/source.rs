//! Where a value that was read comes from: what a session must remember of it.

use crate::{Opaque, OperationId, Stamp};
use std::sync::Arc;

/// The write that made a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub operation: OperationId,
    pub stamp: Stamp,
    /// What the write carries, in the layout of its protocol; nothing in keyspaces that keep no versions.
    pub dependencies: Option<Arc<Opaque>>,
}
