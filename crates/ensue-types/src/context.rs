//! What a session remembers of its causal past.

use crate::{Causes, LogicalTime};
use std::fmt;

/// Bytes of a layout that only the protocol knows which made them.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Opaque(pub Vec<u8>);

/// All of the bytes: two contexts that differ must not look the same to whoever compares states by their text.
impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opaque(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// A session's past within one keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context {
    /// At or above every logical time the session has seen; the next server it meets moves its clock past this.
    pub time: LogicalTime,
    /// What the protocol remembers.
    pub causes: Causes,
}
