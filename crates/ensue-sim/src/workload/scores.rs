//! What clients ask of sorted sets.
//!
//! In `z0` and `z1` a score is the number of the operation that wrote it, so that each read tells what it read from. In
//! `mz0` and `mz1` everything goes, and only convergence is checked.

use super::command::{Command, Expect};
use super::keys::Keys;
use super::mix::{Draft, Drawer, Kind};
use crate::oracle::history::Written;

impl Drawer<'_> {
    pub(super) fn score(&mut self, draft: &mut Draft, kind: Kind) {
        let key = format!("z{}", self.random.index(2));
        let members = Keys::fields(self.history, &key);
        let (member, location) = members[self.random.index(members.len())].clone();
        let score = self.history.next();
        let (text, expect, written) = match kind {
            Kind::ScoreSet => (format!("ZADD {key} {score} {member}"), Expect::Integer, Some(Written::Value)),
            Kind::ScoreRead => (format!("ZSCORE {key} {member}"), Expect::Score(location), None),
            Kind::ScoreDelete => {
                (format!("ZREM {key} {member}"), Expect::Deleted(location), Some(Written::Nothing))
            }
            _ => (format!("ZRANGE {key} 0 -1 WITHSCORES"), Expect::Scores(members), None),
        };
        draft.commands.push(Command::new(&text, expect));
        draft.writes.extend(written.map(|written| (location, written)));
    }

    /// Scores, additions that no binary fraction is equal to, removals and deadlines by everyone.
    pub(super) fn any_scores(&mut self, draft: &mut Draft) {
        let (key, member) = (format!("mz{}", self.random.index(2)), self.random.below(3));
        let (number, digit) = (self.random.below(100), self.random.below(10));
        let text = match self.random.below(10) {
            0 | 1 => format!("ZADD {key} {number}.{digit} m{member}"),
            2 => format!("ZADD {key} GT {number} m{member}"),
            3 => format!("ZREM {key} m{member}"),
            4 => format!("ZPOPMIN {key}"),
            5 => match digit {
                0 => format!("DEL {key}"),
                1 => format!("PEXPIRE {key} {}", 20 * number),
                2 => format!("ZADD {key} inf m{member}"),
                _ => format!("ZINCRBY {key} 0.0{digit}1 m{member}"),
            },
            6 => format!("ZRANGE {key} 0 -1"),
            _ => format!("ZINCRBY {key} -{number}.{digit} m{member}"),
        };
        draft.commands.push(Command::new(&text, Expect::Anything));
    }
}
