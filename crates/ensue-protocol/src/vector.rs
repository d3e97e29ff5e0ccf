//! A vector of times as bytes: the context and the dependencies of the vector half of the family.
//!
//! ```text
//! version u8 = 2 | mode u8 | vector | vector | vector, unless it is empty          vector: count u8 | time u64 * count, little endian
//! ```
//!
//! The second vector is what a session has lost by falling back, the third what it took over of the dead behind their loss; both are empty
//! for all others. A vector's entry for datacenter i says: everything that i wrote up to that time may be in this past (POCC, section 5.3).

use crate::{Family, Malformed, Needs, Options, Past, StabilityState, Visibility};
use ensue_types::{DatacenterId, LogicalTime, Opaque, OperationId, Rule, Source, TimeVector};

pub(crate) const VERSION: u8 = 2;

/// How a session reads, or how the session read that wrote a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Whatever its protocol's first choice is.
    #[default]
    Plain,
    /// Only what is stable, after it fell back (POCC, section 7.2).
    Stable,
}

/// The family of the vectors: a past is times, a write is merged where it arrives, and a read chooses.
#[derive(Clone, Copy, Debug)]
pub struct Times;

impl Family for Times {
    fn record_reads(&self, context: &mut Opaque, read: &[Source], _settled: &[Source]) {
        record_reads(context, read);
    }

    fn record_write(&self, context: &mut Opaque, write: &Source) {
        record_reads(context, std::slice::from_ref(write));
    }

    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque {
        let mut dependencies = context.clone();
        record_reads(&mut dependencies, observed);
        dependencies
    }

    fn visibility(&self, _operation: OperationId, dependencies: &Opaque) -> Result<Visibility, Malformed> {
        Vector::decode(dependencies)?;
        Ok(Visibility::Now)
    }

    fn merge(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        merge(context, other)
    }

    /// What the session gave up by falling back does not come back under its name.
    fn merge_shared(&self, context: &mut Opaque, shared: &Opaque) -> Result<(), Malformed> {
        let shared = Vector::decode(shared)?;
        let mut vector = known(context);
        let is_given_up = |datacenter, time| time <= vector.abandoned.at(datacenter);
        let times = shared.times.entries();
        let times =
            times.map(|(d, time)| if is_given_up(d, time) { LogicalTime::ZERO } else { time }).collect();
        if vector.take_over(&Vector { times, ..shared }) {
            *context = vector.encode();
        }
        Ok(())
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        Ok(Past::Times(Vector::decode(context)?.times))
    }

    fn has_all(&self, vector: &TimeVector, state: &StabilityState<'_>) -> bool {
        is_received(vector, state)
    }

    fn goes_by_times(&self) -> bool {
        true
    }
}

/// What the protocols of this family need of a node.
pub fn needs(stabilization_ms: u64, patience_ms: u64) -> Needs {
    Needs {
        versions: true,
        cuts: true,
        heartbeats: true,
        stabilization_ms: Some(stabilization_ms),
        remembers_settled: true,
        patience_ms,
        ..Needs::default()
    }
}

/// A past in times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector {
    pub mode: Mode,
    pub times: TimeVector,
    /// What the session had seen and written before it fell back, to be joined when it is promoted.
    pub abandoned: TimeVector,
    /// Times of dead datacenters in pasts that were joined to one which had passed the loss (`FINAL`): it covers them, and does not
    /// say whether they hold something that was lost. Whoever knows the loss does.
    pub doubted: TimeVector,
}

impl Vector {
    pub fn decode(bytes: &Opaque) -> Result<Vector, Malformed> {
        let Some((version, rest)) = bytes.0.split_first() else { return Ok(Vector::default()) };
        let (mode, rest) = rest.split_first().ok_or(Malformed)?;
        let mode = match (*version, *mode) {
            (VERSION, 0) => Mode::Plain,
            (VERSION, 1) => Mode::Stable,
            _ => return Err(Malformed),
        };
        let (times, rest) = decode_times(rest)?;
        let (abandoned, rest) = decode_times(rest)?;
        let has_third = !rest.is_empty();
        let (doubted, rest) = if has_third { decode_times(rest)? } else { Default::default() };
        let vector = Vector { mode, times, abandoned, doubted };
        // One text a vector: what is empty is left out.
        let is_only = has_third != vector.doubted.is_empty() && vector != Vector::default();
        if rest.is_empty() && is_only { Ok(vector) } else { Err(Malformed) }
    }

    pub fn encode(&self) -> Opaque {
        if *self == Vector::default() {
            return Opaque::default();
        }
        let mut bytes = Vec::with_capacity(4 + 8 * (self.times.len() + self.abandoned.len()));
        bytes.extend_from_slice(&[VERSION, u8::from(self.mode == Mode::Stable)]);
        let doubted = (!self.doubted.is_empty()).then_some(&self.doubted);
        for times in [&self.times, &self.abandoned].into_iter().chain(doubted) {
            bytes.push(times.len() as u8);
            for (_, time) in times.entries() {
                bytes.extend_from_slice(&time.0.to_le_bytes());
            }
        }
        Opaque(bytes)
    }

    /// Joins the times of another past; the mode, and what was given up, stay. Says whether anything rose.
    pub fn take_over(&mut self, other: &Vector) -> bool {
        let mut rose = self.doubted.join(&other.doubted);
        for (datacenter, theirs) in other.times.entries() {
            let ours = self.times.at(datacenter);
            if ours.max(theirs) == FINAL && ours != theirs {
                rose |= self.doubted.raise(datacenter, ours.min(theirs));
            }
        }
        self.times.join(&other.times) || rose
    }

    /// What it took over of this datacenter holds nothing that was lost; says whether that was in doubt.
    pub(crate) fn forget_doubt(&mut self, datacenter: DatacenterId) -> bool {
        let is_doubted = self.doubted.at(datacenter) > LogicalTime::ZERO;
        if is_doubted {
            let others = self.doubted.entries();
            self.doubted =
                others.map(|(d, time)| if d == datacenter { LogicalTime::ZERO } else { time }).collect();
        }
        is_doubted
    }
}

/// The time of a dead datacenter in a past that holds what is left of it, and nothing that was discarded.
pub(crate) const FINAL: LogicalTime = LogicalTime::MAX;

/// A context or dependencies that this protocol made, or that were decoded when they came in.
pub fn known(bytes: &Opaque) -> Vector {
    Vector::decode(bytes).unwrap_or_default()
}

/// A version's own time and its whole past.
fn commit(source: &Source) -> TimeVector {
    committed(source).times
}

fn committed(source: &Source) -> Vector {
    let mut vector = source.dependencies.as_deref().map(known).unwrap_or_default();
    vector.times.raise(source.stamp.datacenter, source.stamp.time);
    vector
}

/// The session has read these: their pasts become its own (POCC, algorithm 1, lines 4 and 5).
fn record_reads(context: &mut Opaque, sources: &[Source]) {
    let mut vector = known(context);
    let mut rose = false;
    for source in sources {
        rose |= vector.take_over(&committed(source));
    }
    if rose {
        *context = vector.encode();
    }
}

/// Joins the times of two pasts; the mode stays the session's.
pub(crate) fn merge(context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
    let other = Vector::decode(other)?;
    let mut vector = known(context);
    if vector.take_over(&other) {
        *context = vector.encode();
    }
    Ok(())
}

/// Whether a version and its whole past lie at or below these times.
pub fn is_within(source: &Source, times: &TimeVector) -> bool {
    if !Rule::CutsHoldWholePasts.holds() {
        // Broken on purpose: by its own time alone.
        return source.stamp.time <= times.at(source.stamp.datacenter);
    }
    times.covers(&commit(source))
}

/// Whether a partition has received all that the other datacenters wrote in it up to these times. What the own datacenter
/// wrote is there (POCC, algorithm 2, line 2).
pub fn is_received(times: &TimeVector, state: &StabilityState<'_>) -> bool {
    !Rule::ReadsWaitForThePast.holds() || state.received.covers_but(state.datacenter, times)
}

/// How long a read waits that has nothing to fall back on: a little less than its client does, to say what was missing.
pub fn patience_ms(options: &Options) -> u64 {
    options.request_timeout_ms - options.request_timeout_ms / 5
}

fn decode_times(bytes: &[u8]) -> Result<(TimeVector, &[u8]), Malformed> {
    let (count, rest) = bytes.split_first().ok_or(Malformed)?;
    let (times, rest) = rest.split_at_checked(8 * usize::from(*count)).ok_or(Malformed)?;
    let time = |bytes: &[u8]| LogicalTime(u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
    let vector: TimeVector = times.chunks_exact(8).map(time).collect();
    // One text a vector: no trailing zeros.
    if vector.len() == usize::from(*count) { Ok((vector, rest)) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::DatacenterId;

    #[test]
    fn a_vector_survives_its_bytes_and_garbage_is_refused() {
        let mut vector = Vector { mode: Mode::Stable, ..Vector::default() };
        vector.times.raise(DatacenterId(2), LogicalTime(77));
        vector.abandoned.raise(DatacenterId(0), LogicalTime(5));
        let bytes = vector.encode();
        assert_eq!(Vector::decode(&bytes), Ok(vector.clone()));
        vector.doubted.raise(DatacenterId(1), LogicalTime(6));
        let more = vector.encode();
        assert_eq!(Vector::decode(&more), Ok(vector));
        for end in (1..more.0.len()).filter(|end| *end != bytes.0.len()) {
            assert_eq!(Vector::decode(&Opaque(more.0[..end].to_vec())), Err(Malformed), "{end} bytes");
        }
        for garbage in [
            &[1, 0, 0, 0][..],
            &[2, 2, 0, 0],
            &[2, 0, 0, 0],
            &[2, 1, 0, 0, 0],
            &[2, 0, 0, 0, 9],
            &[2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(Vector::decode(&Opaque(garbage.to_vec())), Err(Malformed));
        }
    }
}
