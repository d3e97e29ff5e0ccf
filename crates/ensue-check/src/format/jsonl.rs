//! JSON lines: one transaction, or some operations of one, a line. The form is described in `docs/checking.md`.
//!
//! A line that cannot be read is an error that names line and column. A last line that breaks off makes the history
//! truncated, which is no error: what can be said of the rest is said.

mod elements;
mod line;
mod reader;
mod removals;
mod rows;
mod writer;

pub use reader::read;
pub use writer::write;

#[cfg(test)]
mod tests;
