//! The place that was found last: what is asked for is mostly what was asked for before.

use std::cell::Cell;
use std::fmt;

/// See the module. Two tables that differ in it alone hold the same, so it tells nothing of itself.
#[derive(Clone, Default)]
pub(crate) struct Hint(Cell<u32>);

impl Hint {
    pub(crate) fn get(&self) -> u32 {
        self.0.get()
    }

    pub(crate) fn set(&self, place: u32) {
        self.0.set(place);
    }
}

impl fmt::Debug for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hint")
    }
}
