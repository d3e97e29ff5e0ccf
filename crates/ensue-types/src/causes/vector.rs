//! A past in times, one a datacenter.
//!
//! ```text
//! mode u8 | vector | vector | vector, unless it is empty          vector: count u8 | time u64 * count, little endian
//! ```
//!
//! The second vector is what a session has lost by falling back, the third what it took over of the dead behind their
//! loss; both are empty for all others. A vector's entry for datacenter i says: everything that i wrote up to that time
//! may be in this past (POCC, section 5.3).

use super::Malformed;
use crate::{DatacenterId, LogicalTime, TimeVector};

/// How a session reads, or how the session read that wrote a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Whatever its protocol's first choice is.
    #[default]
    Plain,
    /// Only what is stable, after it fell back (POCC, section 7.2).
    Stable,
}

/// A past in times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector {
    pub mode: Mode,
    pub times: TimeVector,
    /// What the session had seen and written before it fell back, to be joined when it is promoted.
    pub abandoned: TimeVector,
    /// Times of dead datacenters in pasts that were joined to one which had passed the loss (`FINAL`): it covers them,
    /// and does not say whether they hold something that was lost. Whoever knows the loss does.
    pub doubted: TimeVector,
}

/// The time of a dead datacenter in a past that holds what is left of it, and nothing that was discarded.
const FINAL: LogicalTime = LogicalTime::MAX;

impl Vector {
    pub const FINAL: LogicalTime = FINAL;

    pub(super) const NOTHING: Vector = Vector {
        mode: Mode::Plain,
        times: TimeVector::ZERO,
        abandoned: TimeVector::ZERO,
        doubted: TimeVector::ZERO,
    };

    pub(super) fn decode(bytes: &[u8]) -> Result<Vector, Malformed> {
        let (mode, rest) = bytes.split_first().ok_or(Malformed)?;
        let mode = match *mode {
            0 => Mode::Plain,
            1 => Mode::Stable,
            _ => return Err(Malformed),
        };
        let (times, rest) = decode_times(rest)?;
        let (abandoned, rest) = decode_times(rest)?;
        let has_third = !rest.is_empty();
        let (doubted, rest) = if has_third { decode_times(rest)? } else { Default::default() };
        // One text a vector: what is empty is left out.
        let is_only = has_third != doubted.is_empty();
        if rest.is_empty() && is_only {
            Ok(Vector { mode, times, abandoned, doubted })
        } else {
            Err(Malformed)
        }
    }

    pub(super) fn encode_into(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.mode == Mode::Stable));
        for times in self.vectors() {
            out.push(times.len() as u8);
            for (_, time) in times.entries() {
                out.extend_from_slice(&time.0.to_le_bytes());
            }
        }
    }

    pub(super) fn encoded_bytes(&self) -> usize {
        1 + self.vectors().map(|times| 1 + 8 * times.len()).sum::<usize>()
    }

    /// Those that are written down.
    fn vectors(&self) -> impl Iterator<Item = &TimeVector> {
        [&self.times, &self.abandoned].into_iter().chain((!self.doubted.is_empty()).then_some(&self.doubted))
    }

    /// Joins the times of another past; the mode, and what was given up, stay. Says whether anything rose.
    pub fn take_over(&mut self, other: &Vector) -> bool {
        let rose = self.doubted.join(&other.doubted);
        self.join_times(other.times.entries()) || rose
    }

    /// The same of a write: its own time, and the past that it carries.
    pub fn take_over_write(&mut self, carried: &Vector, origin: DatacenterId, time: LogicalTime) -> bool {
        let own = (origin, carried.times.at(origin).max(time));
        let others = carried.times.entries().filter(|(datacenter, _)| *datacenter != origin);
        let rose = self.doubted.join(&carried.doubted);
        self.join_times(others.chain([own])) || rose
    }

    fn join_times(&mut self, times: impl Iterator<Item = (DatacenterId, LogicalTime)>) -> bool {
        let mut rose = false;
        for (datacenter, theirs) in times {
            let ours = self.times.at(datacenter);
            if ours.max(theirs) == FINAL && ours != theirs {
                rose |= self.doubted.raise(datacenter, ours.min(theirs));
            }
            rose |= self.times.raise(datacenter, theirs);
        }
        rose
    }

    /// What it took over of this datacenter holds nothing that was lost; says whether that was in doubt.
    pub fn forget_doubt(&mut self, datacenter: DatacenterId) -> bool {
        let is_doubted = self.doubted.at(datacenter) > LogicalTime::ZERO;
        if is_doubted {
            let others = self.doubted.entries();
            self.doubted =
                others.map(|(d, time)| if d == datacenter { LogicalTime::ZERO } else { time }).collect();
        }
        is_doubted
    }
}

fn decode_times(bytes: &[u8]) -> Result<(TimeVector, &[u8]), Malformed> {
    let (count, rest) = bytes.split_first().ok_or(Malformed)?;
    let (times, rest) = rest.split_at_checked(8 * usize::from(*count)).ok_or(Malformed)?;
    let time = |bytes: &[u8]| LogicalTime(u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
    let vector: TimeVector = times.chunks_exact(8).map(time).collect();
    // One text a vector: no trailing zeros.
    if vector.len() == usize::from(*count) { Ok((vector, rest)) } else { Err(Malformed) }
}
