//! Values that name the operation that wrote them, so that each read tells what it read from.

use super::history::OperationIndex;

/// The value that an operation writes.
pub fn value_of(index: OperationIndex) -> String {
    format!("v{index}")
}

/// The operation that wrote a value.
pub fn writer_of(text: &str) -> Option<OperationIndex> {
    text.strip_prefix('v')?.parse().ok()
}
