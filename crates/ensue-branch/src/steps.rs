//! How much one comparison of branches may look at: it is made in one turn, in which nothing else happens on its core.

use crate::error::Abort;
use ensue_types::limits;

/// Steps that are left.
#[derive(Clone, Copy, Debug)]
pub struct Steps(u64);

impl Steps {
    pub fn new() -> Steps {
        Steps(limits::BRANCH_STEPS_MAX)
    }

    pub fn take(&mut self, count: usize) -> Result<(), Abort> {
        self.0 = self.0.checked_sub(count as u64).ok_or(Abort::Steps)?;
        Ok(())
    }

    #[cfg(test)]
    pub fn taken(self) -> u64 {
        limits::BRANCH_STEPS_MAX - self.0
    }
}
