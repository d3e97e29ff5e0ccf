//! What clients ask of streams.
//!
//! In `st0` and `st1` each entry is added once, with an id that its datacenter draws, so that each read tells what it
//! read from, and in which order. In `mst0` and `mst1` everything goes, and only convergence is checked.

use super::command::{Command, Expect};
use super::mix::{Draft, Drawer, Kind};
use crate::oracle::history::Written;
use crate::oracle::values::value_of;

/// Errors that say that a group is there, or is not.
pub(super) fn is_answer(error: &str) -> bool {
    ["NOGROUP ", "BUSYGROUP ", "ERR The XGROUP subcommand requires"]
        .iter()
        .any(|words| error.starts_with(words))
}

impl Drawer<'_> {
    pub(super) fn entry(&mut self, draft: &mut Draft, kind: Kind) {
        let key = format!("st{}", self.random.index(2));
        if kind == Kind::EntryAdd {
            let value = value_of(self.history.next());
            let location = self.history.location(&format!("{key}/{value}"));
            let known = self.keys.members.entry(key.clone()).or_default();
            known.push((value.clone(), location, self.history.next()));
            draft.commands.push(Command::new(&format!("XADD {key} * v {value}"), Expect::Anything));
            draft.writes.push((location, Written::Value));
            return;
        }
        // Which entries there can be is known when the answer comes.
        let text = format!("XRANGE {key} - +");
        draft.commands.push(Command::new(&text, Expect::Entries(key, Vec::new())));
    }

    /// Entries, groups and consumers of everyone.
    pub(super) fn any_entries(&mut self, draft: &mut Draft) {
        let key = format!("mst{}", self.random.index(2));
        let (number, digit) = (self.random.below(100), self.random.below(10));
        let (group, consumer) = (self.random.below(2), self.random.below(3));
        let text = match self.random.below(16) {
            0..4 => format!("XADD {key} * v {number}"),
            4 => format!("XADD {key} MAXLEN {digit} * v {number}"),
            5 => format!("XTRIM {key} MAXLEN {number}"),
            6 => format!("XGROUP CREATE {key} g{group} 0 MKSTREAM"),
            7..10 => format!("XREADGROUP GROUP g{group} c{consumer} COUNT 3 STREAMS {key} >"),
            10 => format!("XREADGROUP GROUP g{group} c{consumer} COUNT 2 STREAMS {key} 0"),
            11 => format!("XAUTOCLAIM {key} g{group} c{consumer} {digit} 0 COUNT 2"),
            12 => match digit {
                0 => format!("DEL {key}"),
                1 => format!("XGROUP DESTROY {key} g{group}"),
                2 => format!("PEXPIRE {key} {}", 20 * number),
                3 => format!("XGROUP DELCONSUMER {key} g{group} c{consumer}"),
                _ => format!("XGROUP SETID {key} g{group} $"),
            },
            13 => format!("XREAD COUNT 2 BLOCK {} STREAMS {key} $", 1 + number / 4),
            14 => format!("XPENDING {key} g{group}"),
            _ => format!("XRANGE {key} - + COUNT 5"),
        };
        draft.commands.push(Command::new(&text, Expect::Anything));
    }
}
