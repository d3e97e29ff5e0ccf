//! The family of a matrix and a time: `matrix.rs`, and the highest update time that a session has seen.
//!
//! Dependencies are a matrix alone: the time of a write is its stamp.

use crate::matrix::Matrix;
use crate::{Family, Malformed, Past, StabilityState, Visibility, dependency_set};
use ensue_types::{LogicalTime, Opaque, OperationId, Rule, Source, TimeVector};

/// The first byte of a context; the rest is the time and the matrix.
pub(crate) const VERSION: u8 = 3;
const HEADER_BYTES: usize = 9;

/// The family.
#[derive(Clone, Copy, Debug)]
pub struct TimedMatrix;

impl Family for TimedMatrix {
    fn record_reads(&self, context: &mut Opaque, read: &[Source], settled: &[Source]) {
        let mut session = Session::known(context);
        Matrix.record_reads(&mut session.matrix, read, settled);
        session.see(read);
        session.see(settled);
        *context = session.encode();
    }

    fn record_write(&self, context: &mut Opaque, write: &Source) {
        let mut session = Session::known(context);
        Matrix.record_write(&mut session.matrix, write);
        session.see(std::slice::from_ref(write));
        *context = session.encode();
    }

    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque {
        Matrix.dependencies(&Session::known(context).matrix, observed)
    }

    fn visibility(&self, operation: OperationId, dependencies: &Opaque) -> Result<Visibility, Malformed> {
        Matrix.visibility(operation, dependencies)
    }

    fn merge(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        let other = Session::decode(other)?;
        let mut session = Session::known(context);
        session.time = session.time.max(other.time);
        Matrix.merge(&mut session.matrix, &other.matrix)?;
        *context = session.encode();
        Ok(())
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        Matrix.past(&Session::decode(context)?.matrix)
    }

    fn has_all(&self, vector: &TimeVector, state: &StabilityState<'_>) -> bool {
        !Rule::ReadsWaitForThePast.holds() || state.applied.covers_but(state.datacenter, vector)
    }
}

/// The highest time that a session has seen or written.
pub fn time_of(context: &Opaque) -> LogicalTime {
    Session::known(context).time
}

/// A session with another time.
pub(crate) fn map_time(
    facts: &Opaque,
    each: impl FnOnce(LogicalTime) -> LogicalTime,
) -> Result<Opaque, Malformed> {
    let session = Session::decode(facts)?;
    Ok(Session { time: each(session.time), ..session }.encode())
}

/// A session's past: `version u8 = 3 | time u64 | matrix`, little endian.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Session {
    /// The highest physical update time seen or written: PDT.
    time: LogicalTime,
    matrix: Opaque,
}

impl Session {
    fn decode(bytes: &Opaque) -> Result<Session, Malformed> {
        if bytes.is_empty() {
            return Ok(Session::default());
        }
        let (header, matrix) = bytes.0.split_at_checked(HEADER_BYTES).ok_or(Malformed)?;
        let (version, time) = header.split_first().ok_or(Malformed)?;
        if *version != VERSION {
            return Err(Malformed);
        }
        let time = LogicalTime(u64::from_le_bytes(time.try_into().map_err(|_| Malformed)?));
        let matrix = Opaque(matrix.to_vec());
        dependency_set::decode(&matrix)?;
        Ok(Session { time, matrix })
    }

    fn known(bytes: &Opaque) -> Session {
        Session::decode(bytes).unwrap_or_default()
    }

    fn encode(&self) -> Opaque {
        if *self == Session::default() {
            return Opaque::default();
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.matrix.0.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.time.0.to_le_bytes());
        bytes.extend_from_slice(&self.matrix.0);
        Opaque(bytes)
    }

    fn see(&mut self, sources: &[Source]) {
        let times = sources.iter().map(|source| source.stamp.time);
        self.time = times.fold(self.time, LogicalTime::max);
    }
}
