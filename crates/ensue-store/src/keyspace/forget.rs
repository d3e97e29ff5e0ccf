//! A walk over all rows that forgets what settled values depend on, a few at a time.

use super::Keyspace;
use crate::forgetting::{Forgets, Forgotten};

impl Keyspace {
    /// Forgets what settled values depend on, and goes on where it was: about `budget` slots and columns are looked at.
    /// Says whether all of them have been since it began anew.
    pub fn forget_dependencies(&mut self, forgets: &Forgets<'_>, budget: usize) -> bool {
        let (mut slot, mut column) = self.forgotten_to;
        let mut left = budget;
        while self.dependencies > 0 && slot < self.slots.len() {
            if left == 0 {
                self.forgotten_to = (slot, column);
                return false;
            }
            left -= 1;
            if let Some(row) = self.slots[slot].whole_mut() {
                let Forgotten { dependencies, saved, looked_at, next } =
                    row.forget_dependencies(forgets, column, left.max(1));
                left = left.saturating_sub(looked_at);
                self.bytes -= dependencies + saved;
                self.dependencies -= dependencies;
                if dependencies > 0 {
                    self.compact(slot as u32);
                    self.pack(slot as u32);
                }
                if let Some(next) = next {
                    column = next;
                    continue;
                }
            }
            (slot, column) = (slot + 1, 0);
        }
        self.forgotten_to = (0, 0);
        true
    }
}
