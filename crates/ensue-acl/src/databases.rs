//! Which databases one set of permissions allows; Redis 7.2 has no such rule.
//!
//! `db=0,3` allows these beside those that were allowed, and only these if it was all; `alldbs`, with which every user
//! and selector begins, allows all, `resetdbs` none. A command that touches data is checked against the selected
//! database, `SELECT` against the one it selects, `FLUSHALL`, `MOVE` and `SWAPDB` against all. What touches no data,
//! such as `PING` and `PUBLISH`, is not checked.

use crate::rule_error::RuleError;
use ensue_types::KeyspaceId;

/// The databases of one set of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Databases {
    allowed: [u64; 4],
}

impl Default for Databases {
    fn default() -> Databases {
        Databases::ALL
    }
}

impl Databases {
    /// All of them.
    pub const ALL: Databases = Databases { allowed: [u64::MAX; 4] };
    /// None of them.
    pub const NONE: Databases = Databases { allowed: [0; 4] };

    /// Whether all databases are allowed.
    pub fn allows_all(&self) -> bool {
        *self == Databases::ALL
    }

    /// Whether a database is allowed.
    pub fn allows(&self, database: KeyspaceId) -> bool {
        let KeyspaceId(number) = database;
        self.allowed[usize::from(number / 64)] >> (number % 64) & 1 == 1
    }

    /// The first database that is not allowed.
    pub fn first_denied(&self) -> Option<KeyspaceId> {
        (0..=u8::MAX).map(KeyspaceId).find(|&database| !self.allows(database))
    }

    /// Applies a rule `db=…`, of which the numbers are given: from 0 to 255, separated by commas.
    pub(crate) fn add(&mut self, numbers: &[u8]) -> Result<(), RuleError> {
        let text = std::str::from_utf8(numbers).map_err(|_| RuleError::Syntax)?;
        let mut all = if self.allows_all() { Databases::NONE } else { *self };
        for number in text.split(',') {
            let is_canonical = number.bytes().all(|byte| byte.is_ascii_digit());
            let number: u8 = number.parse().ok().filter(|_| is_canonical).ok_or(RuleError::Syntax)?;
            all.allowed[usize::from(number / 64)] |= 1 << (number % 64);
        }
        *self = all;
        Ok(())
    }

    /// The rule that leads from all databases to this value; nothing if it is all.
    pub fn describe(&self) -> Option<String> {
        if self.allows_all() {
            return None;
        }
        let allowed = (0..=u8::MAX).filter(|&number| self.allows(KeyspaceId(number)));
        let numbers: Vec<String> = allowed.map(|number| number.to_string()).collect();
        Some(if numbers.is_empty() { "resetdbs".into() } else { format!("db={}", numbers.join(",")) })
    }
}

#[cfg(test)]
mod tests;
