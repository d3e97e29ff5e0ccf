//! Which keys one set of permissions allows to read, and which to write.
//!
//! Rules such as `~p`, `%R~p` and `allkeys` arrive; the answer is whether what a command does with a key is allowed,
//! and the rules again, as Redis 7.2 writes them. It does not know which keys a command has.

use crate::commands::has_spaces;
use crate::limits::PATTERNS_MAX;
use crate::rule_error::RuleError;
use bytes::Bytes;
use ensue_resp::{Access, glob};

/// The keys of one set of permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    allows_all: bool,
    patterns: Vec<KeyPattern>,
}

/// A pattern, and what it allows with the keys that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyPattern {
    pattern: Bytes,
    reads: bool,
    writes: bool,
}

impl Keys {
    /// Whether all keys may be read and written.
    pub fn allows_all(&self) -> bool {
        self.allows_all
    }

    /// Whether all keys may be read.
    pub fn allows_reading_all(&self) -> bool {
        self.allows_all || self.patterns.iter().any(|held| held.reads && held.pattern[..] == *b"*")
    }

    /// Whether this may be done with a key: one pattern must allow all of it. What neither reads nor changes the value,
    /// as `EXISTS`, takes any pattern that matches.
    pub fn allows(&self, key: &[u8], access: Access) -> bool {
        let (reads, writes) = (access.reads(), access.writes());
        self.allows_all
            || self.patterns.iter().any(|held| {
                (held.reads || !reads) && (held.writes || !writes) && glob::matches(&held.pattern, key)
            })
    }

    pub(crate) fn allow_all(&mut self) {
        *self = Keys { allows_all: true, patterns: Vec::new() };
    }

    pub(crate) fn reset(&mut self) {
        *self = Keys::default();
    }

    /// Applies a rule that begins with `~` or `%`.
    pub(crate) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.allows_all {
            return Err(RuleError::KeyAfterAll);
        }
        let (reads, writes, pattern) = match rule {
            [b'~', pattern @ ..] => (true, true, pattern),
            [b'%', rest @ ..] => permissions(rest).ok_or(RuleError::Syntax)?,
            _ => return Err(RuleError::Syntax),
        };
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        let place = self.patterns.iter().position(|held| held.pattern[..] == *pattern);
        let place = match place {
            Some(place) => place,
            None if self.patterns.len() >= PATTERNS_MAX => return Err(RuleError::TooManyPatterns),
            None => {
                let pattern = Bytes::copy_from_slice(pattern);
                self.patterns.push(KeyPattern { pattern, reads: false, writes: false });
                self.patterns.len() - 1
            }
        };
        let held = &mut self.patterns[place];
        held.reads |= reads;
        held.writes |= writes;
        // Written as `~*`, it would be read as all keys: so it is.
        if held.reads && held.writes && held.pattern[..] == *b"*" {
            self.allow_all();
        }
        Ok(())
    }

    /// The rules that lead to this value, each of them.
    pub fn rules(&self) -> Vec<Vec<u8>> {
        if self.allows_all {
            return vec![b"~*".to_vec()];
        }
        let sign = |held: &KeyPattern| match (held.reads, held.writes) {
            (true, false) => "%R~",
            (false, true) => "%W~",
            _ => "~",
        };
        self.patterns.iter().map(|held| [sign(held).as_bytes(), &held.pattern[..]].concat()).collect()
    }
}

/// What stands between `%` and `~`, once each and in any order and case, and the pattern behind.
fn permissions(rest: &[u8]) -> Option<(bool, bool, &[u8])> {
    let end = rest.iter().position(|&byte| byte == b'~')?;
    match rest[..end].to_ascii_uppercase().as_slice() {
        b"R" => Some((true, false, &rest[end + 1..])),
        b"W" => Some((false, true, &rest[end + 1..])),
        b"RW" | b"WR" => Some((true, true, &rest[end + 1..])),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
