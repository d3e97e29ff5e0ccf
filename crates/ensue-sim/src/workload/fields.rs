//! Fields of hashes with deadlines: of one client, which knows until when each is there, and of everyone.

use super::client::Expiring;
use super::command::{Command, Expect};
use super::mix::{Draft, Drawer};
use crate::resp::Answer;

/// How the keys begin that have one field, which expires.
pub(super) const PREFIX: &str = "eh";

/// How a key is read that expires, or whose field does.
pub(super) fn read_of(key: &str) -> String {
    if key.starts_with(PREFIX) { format!("HGET {key} f") } else { format!("GET {key}") }
}

impl Drawer<'_> {
    /// A field with a deadline, set in one of several ways.
    pub(super) fn expire_field(&mut self, draft: &mut Draft, key: String, value: String, ms: u64) {
        let exactly = |number| Expect::Exactly(Answer::Integer(number));
        let each = |number| Expect::Exactly(Answer::Array(vec![Answer::Integer(number)]));
        let mut add = |text: &str, expect| draft.commands.push(Command::new(text, expect));
        match self.random.below(3) {
            0 => add(&format!("HSETEX {key} PX {ms} FIELDS 1 f {value}"), exactly(1)),
            1 => {
                add(&format!("HSET {key} f {value}"), exactly(1));
                add(&format!("HPEXPIRE {key} {ms} FIELDS 1 f"), each(1));
            }
            // A deadline goes with its value, and the later one counts.
            _ => {
                add(&format!("HSETEX {key} PX 1 FIELDS 1 f gone"), exactly(1));
                add(&format!("HSET {key} f {value}"), exactly(0));
                add(&format!("HPTTL {key} FIELDS 1 f"), each(-1));
                add(&format!("HPEXPIRE {key} {} FIELDS 1 f", ms + 9_000), each(1));
                add(&format!("HPEXPIRE {key} {ms} LT FIELDS 1 f"), each(1));
            }
        }
        draft.multi = draft.commands.len() > 1;
        let (invoked_us, gone_after_us) = (self.now_us, u64::MAX);
        draft.expiring = Some(Expiring { key, value, ms, invoked_us, gone_after_us });
    }

    /// Values, additions, deadlines and removals by everyone: only convergence is checked.
    pub(super) fn any_fields(&mut self, draft: &mut Draft) {
        let key = format!("mh{}", self.random.index(2));
        let field = format!("f{}", self.random.index(3));
        let (number, ms) = (self.random.below(100), self.random.skewed(10, 2_000));
        let text = match self.random.below(16) {
            0..3 => format!("HSET {key} {field} {number}"),
            3 | 4 => format!("HSETEX {key} PX {ms} FIELDS 1 {field} {number}"),
            5 => format!("HSETEX {key} KEEPTTL FIELDS 1 {field} {number}"),
            6 | 7 => format!("HPEXPIRE {key} {ms} FIELDS 2 {field} f0"),
            8 => format!("HPEXPIRE {key} {ms} GT FIELDS 1 {field}"),
            9 => format!("HGETEX {key} PX {ms} FIELDS 1 {field}"),
            10 => format!("HPERSIST {key} FIELDS 1 {field}"),
            11 | 12 => format!("HINCRBY {key} {field} {number}"),
            13 => format!("HDEL {key} {field}"),
            14 => match number {
                0..10 => format!("DEL {key}"),
                10..30 => format!("PEXPIRE {key} {ms}"),
                30..50 => format!("HGETDEL {key} FIELDS 1 {field}"),
                _ => format!("HPTTL {key} FIELDS 1 {field}"),
            },
            _ => format!("HGETALL {key}"),
        };
        draft.commands.push(Command::new(&text, Expect::Anything));
    }

    /// Members by everyone, and sets removed or replaced as a whole: only convergence is checked.
    pub(super) fn any_members(&mut self, draft: &mut Draft) {
        let key = format!("ms{}", self.random.index(2));
        let [member, other, another] = [(); 3].map(|()| format!("m{}", self.random.index(12)));
        let text = match self.random.below(16) {
            0..8 => format!("SADD {key} {member} {other} {another}"),
            8 | 9 => format!("SREM {key} {member}"),
            10..13 => format!("DEL {key}"),
            13 | 14 => format!("SINTERSTORE {key} {key}"),
            _ => format!("SMEMBERS {key}"),
        };
        draft.commands.push(Command::new(&text, Expect::Anything));
    }
}
