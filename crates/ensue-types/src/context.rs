//! What a session remembers of its causal past, as wire and store see it: bytes that only a protocol understands.

use crate::LogicalTime;
use std::fmt;

/// Bytes of a protocol's own layout, versioned by the protocol: a context or the dependencies of a write.
///
/// Empty means "nothing to remember" in every protocol, and costs no allocation.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Opaque(pub Vec<u8>);

impl Opaque {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

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
    pub facts: Opaque,
}
