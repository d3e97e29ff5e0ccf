//! What clients ask of bounded counters.
//!
//! `bc0` and on are made once each, with 40 and no less than nothing, and then changed and read by everyone: no answer
//! may be below nothing, and at the end the value is what was acknowledged, as that of other counters of which the
//! total is known. With `me0` everything is done, and with `med0` deadlines are set, too: only convergence is
//! checked.

use super::command::{Command, Expect};
use super::keys::Total;
use super::mix::{Draft, Drawer, Kind};

/// What a counter begins with, above its bound of zero.
const INITIAL: i64 = 40;
const COUNTERS: usize = 3;

/// Errors that say that nothing was changed, because there are no rights to, or no counter.
pub(super) fn is_answer(error: &str) -> bool {
    error.starts_with("SPENT ") || error.starts_with("ERR no such key")
}

/// Whether a key is a bounded counter whose total is checked.
pub(super) fn is_bounded(key: &str) -> bool {
    key.starts_with("bc")
}

/// Whether its bound was kept: all that is sure was taken from what there was at the most.
pub(super) fn keeps_bound(total: &Total, value: i64) -> bool {
    let added: i64 = total.unknown.iter().filter(|amount| **amount > 0).sum();
    value >= 0 && total.acknowledged + added >= 0
}

impl Drawer<'_> {
    pub(super) fn escrow(&mut self, draft: &mut Draft, kind: Kind) {
        let made = self.keys.escrows;
        if made == 0 || (made < COUNTERS && self.random.chance(50)) {
            let key = format!("bc{made}");
            self.keys.escrows += 1;
            draft.commands.push(Command::new(&format!("BCREATE {key} {INITIAL} MIN 0"), Expect::Bounded));
            draft.total = Some((key, INITIAL));
            return;
        }
        let key = format!("bc{}", self.random.index(made));
        if kind == Kind::EscrowRead {
            draft.commands.push(Command::new(&format!("BGET {key}"), Expect::Bounded));
            return;
        }
        let amount = self.random.between(1, 9) as i64;
        let (name, amount) = if self.random.chance(700) { ("BDECRBY", -amount) } else { ("BINCRBY", amount) };
        draft.commands.push(Command::new(&format!("{name} {key} {}", amount.abs()), Expect::Bounded));
        draft.total = Some((key, amount));
    }

    /// Counters that are made, ended and changed by everyone.
    pub(super) fn any_escrows(&mut self, draft: &mut Draft) {
        let (number, ms) = (self.random.below(9), self.random.skewed(10, 2_000));
        let key = if self.random.chance(600) { "me0" } else { "med0" };
        let text = match self.random.below(10) {
            0 | 1 => format!("BCREATE {key} 20 MIN 0 MAX 50"),
            2 => format!("DEL {key}"),
            3 => format!("PEXPIRE med0 {ms}"),
            4 => format!("BGET {key} RIGHTS"),
            5 | 6 => format!("BINCRBY {key} {number}"),
            _ => format!("BDECRBY {key} {number}"),
        };
        draft.commands.push(Command::new(&text, Expect::Anything));
    }
}
