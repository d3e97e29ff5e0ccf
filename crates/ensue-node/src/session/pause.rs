//! `CLIENT PAUSE`: until when the sessions of a core begin no commands, or none that write.
//!
//! It is the clients that pause: whoever looks at the node by another door goes on, or its figures would not be there
//! and it would be taken for dead.

use super::plan::scripts;
use bytes::Bytes;
use ensue_resp::{CommandSpec, Flags, Route};
use ensue_types::Now;

/// What a pause holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Paused {
    Writes,
    All,
}

/// The present pause of a core.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    until: Option<(Paused, u64)>,
}

impl Pause {
    /// A pause for so long. It never ends the present one earlier, nor holds back less.
    pub(super) fn begin(&mut self, now: Now, what: Paused, ms: u64) {
        let end_us = now.monotonic_us.saturating_add(ms.saturating_mul(1_000));
        self.until = Some(match self.until {
            Some((before, until_us)) if until_us > now.monotonic_us => {
                (before.max(what), until_us.max(end_us))
            }
            _ => (what, end_us),
        });
    }

    pub(super) fn end(&mut self) {
        self.until = None;
    }

    /// For how many milliseconds more this is held back, if it is.
    pub(super) fn remaining_ms(&self, now: Now, writes: bool) -> Option<u64> {
        let (what, until_us) = self.until?;
        let remaining_us = until_us.checked_sub(now.monotonic_us).filter(|us| *us > 0)?;
        (what == Paused::All || writes).then(|| remaining_us.div_ceil(1_000))
    }
}

/// Whether who only looks at a node asks this, and who that is. Of a visitor neither a pause nor a script that runs for
/// long holds it back.
pub(super) fn is_of_an_observer(spec: &CommandSpec) -> bool {
    matches!(spec.name, "auth" | "info" | "ping")
}

/// Whether a pause of writes holds a command back: it writes, or others learn of it. A script does not whose text says
/// so; what is named by a digest or by a function's name, only its partition knows.
pub(super) fn counts_as_write(spec: &CommandSpec, args: &[Bytes]) -> bool {
    if scripts::has_text(spec.name) && args.get(1).is_some_and(|text| ensue_script::says_no_writes(text)) {
        return false;
    }
    let may_write = spec.is_write() && !spec.flags.contains(Flags::READONLY);
    may_write && spec.name != "sort"
        || matches!(spec.name, "publish" | "spublish" | "pfcount" | "function")
        || spec.route == Route::Rename
}
