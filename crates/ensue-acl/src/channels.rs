//! Which channels of publish and subscribe one set of permissions allows.
//!
//! Rules `&p`, `allchannels` and `resetchannels` arrive; the answer is whether a channel, or a pattern that a client
//! subscribes to, is allowed, and the rules again, as Redis 7.2 writes them.

use crate::commands::has_spaces;
use crate::limits::PATTERNS_MAX;
use crate::rule_error::RuleError;
use bytes::Bytes;
use ensue_resp::glob;

/// The channels of one set of permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    allows_all: bool,
    patterns: Vec<Bytes>,
}

/// What a client names: a channel, or with `PSUBSCRIBE` a pattern of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel<'a> {
    /// One channel.
    Literal(&'a [u8]),
    /// All channels that match.
    Pattern(&'a [u8]),
}

impl Channels {
    /// Whether all channels are allowed.
    pub fn allows_all(&self) -> bool {
        self.allows_all
    }

    /// Whether a channel is allowed. A pattern must be one of those of the rules to the letter, for whether one pattern
    /// is within another cannot be told.
    pub fn allows(&self, channel: Channel<'_>) -> bool {
        self.allows_all
            || self.patterns.iter().any(|held| match channel {
                Channel::Literal(name) => glob::matches(held, name),
                Channel::Pattern(pattern) => held[..] == *pattern,
            })
    }

    pub(crate) fn allow_all(&mut self) {
        *self = Channels { allows_all: true, patterns: Vec::new() };
    }

    pub(crate) fn reset(&mut self) {
        *self = Channels::default();
    }

    /// Applies a rule `&p`, of which the pattern is given.
    pub(crate) fn add(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.allows_all {
            return Err(RuleError::ChannelAfterAll);
        }
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        if self.patterns.iter().any(|held| held[..] == *pattern) {
            return Ok(());
        }
        if self.patterns.len() >= PATTERNS_MAX {
            return Err(RuleError::TooManyPatterns);
        }
        self.patterns.push(Bytes::copy_from_slice(pattern));
        Ok(())
    }

    /// The patterns with their sign.
    pub fn rules(&self) -> Vec<Vec<u8>> {
        if self.allows_all {
            return vec![b"&*".to_vec()];
        }
        self.patterns.iter().map(|held| [b"&", &held[..]].concat()).collect()
    }
}

#[cfg(test)]
mod tests;
