//! Judges a history against causal+ consistency, with true causality computed from what clients did and saw.
//!
//! On a run's end: each operation gets its causal past, a vector with one entry a session (`past`). Then every read is
//! checked against the past it has, the values of its own snapshot included (`registers`, `counters`), the order in
//! which values replace each other must be one order for all observers (`order`), and the final state of every
//! datacenter must be the same, and hold every acknowledged write that nothing replaced (`finals`).

pub mod agreement;
mod counters;
mod discarded;
mod finals;
pub mod folded;
mod folds;
pub mod history;
pub mod homes;
mod local;
mod lost;
mod order;
mod origins;
mod past;
mod recency;
pub mod recording;
mod registers;
pub mod said;
mod sequences;
pub mod staleness;
pub mod values;
mod watched;
mod writes;

pub use discarded::judge as judge_discarded;
pub use finals::Final;

use crate::oracle::history::History;
use ensue_types::PartitionId;
use lost::Parted;
use past::Pasts;
use std::borrow::Cow;
use std::fmt;
use writes::Writes;

/// What was promised and not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Short and stable: tables and scripts name violations by it.
    pub property: &'static str,
    /// The whole story.
    pub words: String,
}

impl Violation {
    pub fn new(property: &'static str, words: impl Into<String>) -> Violation {
        Violation { property, words: words.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.property, self.words)
    }
}

/// Names of the properties; `docs/oracle.md` says how each is checked.
pub mod property {
    pub const THIN_AIR: &str = "P13 a value is returned that nobody wrote";
    pub const CYCLE: &str = "P5 a value is returned before its own causal past";
    pub const STALE: &str = "P1/P2/P5 a read returns what its causal past had replaced";
    pub const SNAPSHOT: &str = "P9/P10 the reads of a transaction do not fit together";
    pub const WENT_BACK: &str = "P1/P2 a key goes back within its datacenter";
    pub const ORIGINS: &str = "a write shows before what its datacenter had written before it";
    pub const HIDDEN: &str = "P1b a datacenter hides what it has acknowledged";
    pub const STALE_READ: &str = "P22 a read hides a newer version that had been received";
    pub const ORDER: &str = "P7/P13 no single order of the writes explains the reads";
    pub const WATCHED: &str = "P23 a transaction is executed though a watched key has changed";
    pub const ABORTED: &str = "P23 a transaction is not executed though no watched key has changed";
    pub const FOLD: &str = "P21 conflicting values are not folded";
    pub const SEQUENCE: &str = "two elements of a list change places";
    pub const COUNTER: &str = "P11 a counter is wrong";
    pub const CONVERGENCE: &str = "P8 datacenters differ after quiescence";
    pub const LOST: &str = "P12 an acknowledged write is lost";
    pub const PRIVATE: &str = "P1 a session alone with its keys sees something else than it did";
    pub const AVAILABILITY: &str = "P14 a healthy datacenter does not serve";
    pub const PROGRESS: &str = "P15 no progress after everything healed";
    pub const CLOCK: &str = "P19 a clock follows a time from too far ahead";
    pub const TAKEN_BACK: &str = "P19 what was said to be durable, received or over is taken back";
    pub const TOMBSTONES: &str = "P18 tombstones stay for ever";
    pub const DISCARDED: &str = "survivors do not discard the same updates of a dead datacenter";
    pub const UNFOUNDED: &str = "a write is discarded that needs nothing of a dead datacenter";
    pub const COUNTED: &str = "keys are counted, listed or scanned wrong";
    pub const FORGOTTEN: &str = "the past that a name stood for is gone, and nobody is told";
    pub const CACHES: &str = "a cache keeps an old value and was told of no change";
    pub const AT_HOME: &str = "a command on a key with a home happened twice, or in two places";
    pub const PROTOCOL: &str = "the server breaks the Redis protocol";
    pub const STOPPED: &str = "a partition stopped without a disk fault";
    pub const WENT_ON: &str = "a partition went on after a disk error";
    pub const SERVES_THE_REST: &str = "a partition serves a log that lost its end";
    pub const DISAGREEMENT: &str = "the oracle and the checker disagree";
    pub const REPEATS: &str = "the same seed runs differently the second time";
    pub const PANIC: &str = "an invariant of the server is broken";
}

/// Judges everything. The first violation found, in a fixed order of the checks.
pub fn judge(history: &History, finals: &[Final]) -> Result<(), Violation> {
    writes::thin_air(history)?;
    let lost = lost::lost(history, finals);
    let parted = parted(history, &lost);
    let severed = parted.as_ref().map(|parted| parted.severed.clone());
    let history = parted.as_ref().map_or(history, |parted| &parted.history);
    let writes = Writes::collect(history, lost, severed.unwrap_or_default());
    sequences::check(history, finals)?;
    let pasts = Pasts::compute(history, &writes)?;
    if history.promises.causality {
        registers::check(history, &pasts, &writes)?;
        counters::check(history, &pasts, &writes)?;
    } else {
        local::check(history, &pasts, &writes)?;
    }
    let at_end = writes_at_end(history, &pasts, &writes, finals);
    if history.promises.folds {
        folds::check(history, &pasts, &writes, &at_end, finals)?;
    }
    if history.promises.one_stream {
        origins::check(history, &pasts, &writes)?;
    }
    recency::check(history, &pasts, &writes)?;
    watched::check(history)?;
    finals::check(history, &pasts, &at_end, finals)?;
    order::check(history, &pasts, &writes, &at_end, finals)
}

/// Which writes the end must hold: what datacenters took with them that are lost for good is none of them.
fn writes_at_end<'a>(
    history: &History,
    pasts: &Pasts,
    writes: &'a Writes,
    finals: &[Final],
) -> Cow<'a, Writes> {
    let left = lost::left_with_the_dead(history, pasts, finals);
    if left.is_empty() { Cow::Borrowed(writes) } else { Cow::Owned(writes.without(history, left)) }
}

/// The history without what was known only by lost writes, if it is another one.
fn parted(history: &History, lost: &lost::Lost) -> Option<Parted> {
    let gone = lost::gone(history, lost);
    (history.promises.causality && !gone.is_empty()).then(|| lost::parted(history, &gone))
}

/// Whether power failures took acknowledged writes, or may have, within what was promised.
pub fn power_took(history: &History, finals: &[Final]) -> bool {
    !lost::gone(history, &lost::lost(history, finals)).is_empty()
}

/// Whether a power failure may have taken what an operation wrote in a partition, within what was promised.
pub fn may_be_lost(
    history: &History,
    index: crate::oracle::history::OperationIndex,
    partition: PartitionId,
) -> bool {
    !lost::failures_of(history, &history.operations[index], partition).is_empty()
}

/// Whether the end is as it must be once everything is shown everywhere.
pub fn judge_end(history: &History, finals: &[Final]) -> Result<(), Violation> {
    let lost = lost::lost(history, finals);
    let parted = parted(history, &lost);
    let severed = parted.as_ref().map(|parted| parted.severed.clone());
    let history = parted.as_ref().map_or(history, |parted| &parted.history);
    let writes = Writes::collect(history, lost, severed.unwrap_or_default());
    sequences::check(history, finals)?;
    let pasts = Pasts::compute(history, &writes)?;
    finals::check(history, &pasts, &writes_at_end(history, &pasts, &writes, finals), finals)
}

#[cfg(test)]
mod tests;
