//! `orbe-clock`: `orbe-dm` with snapshots of several keys in one round, by physical clocks.
//!
//! Du, Elnikety, Roy, Zwaenepoel, "Orbe: Scalable Causal Consistency Using Dependency Matrices and Physical Clocks", SoCC 2013,
//! sections 4, 5.2 and 6. Beside the rules of `orbe-dm`:
//!
//! - A version has a physical update time, above those of all it depends on; a session keeps the highest that it has
//!   seen or written (4.3).
//! - A partition that is silent tells its replicas its time (4.3).
//! - A snapshot is read at a time a little before the first partition's clock. Every partition waits until its replicas
//!   have told it that time, and returns the newest version at or below it (4.3).
//! - A snapshot that waits too long is read again at an older time, or in two rounds by logical time as in Eiger (5.2).
//! - Versions below the oldest snapshot that is or may be read are folded away (4.4).
//!
//! Where we differ from the paper:
//! - A snapshot's time is never below the highest that its session has seen (trap 22), the older one of 5.2 neither (trap 28):
//!   if that is too new for what has been received, two rounds follow.
//! - For collection an idle partition reports the time that a new snapshot would get, not its clock (trap 23).
//! - A heartbeat counts after the updates that went before it were applied (trap 24).
//! - Versions are ordered by physical time and replica everywhere (traps 25, 26).
//! - The "wait until the clock is past the dependencies" costs nothing: the clock is a hybrid one.
//! - The rest as in `orbe-dm`.

use crate::{
    Capabilities, Judgement, Late, Malformed, Needs, Options, Past, Protocol, Share, Sight, SnapshotReads,
    Standing, Verdict, eiger, facts, orbe_dm, pocc,
};
use ensue_types::{LogicalTime, Opaque, OperationId, Rule, Rules, Source, TimeVector};

/// The first byte of a context; the rest is the time and the matrix.
pub(crate) const VERSION: u8 = 3;
const HEADER_BYTES: usize = 9;

/// The protocol, with its intervals.
#[derive(Debug)]
pub struct OrbeClock {
    options: Options,
    rules: Rules,
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
        facts::decode(&matrix)?;
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

impl OrbeClock {
    pub fn new(options: Options, rules: Rules) -> OrbeClock {
        OrbeClock { options, rules }
    }

    /// A session's time, if its snapshots have to hold it.
    fn time_of(&self, context: &Opaque) -> LogicalTime {
        match self.rules.hold(Rule::SnapshotsHoldTheSession) {
            true => Session::known(context).time,
            false => LogicalTime::ZERO,
        }
    }

    /// The lowest time that any replica has told, and not after now: nothing more is expected of a dead one, at any time.
    fn told_by_all(standing: &Standing<'_>) -> LogicalTime {
        let told = standing.others().map(|datacenter| standing.applied.at(datacenter));
        told.fold(standing.now, LogicalTime::min)
    }
}

/// A session with another time.
pub(crate) fn map_time(
    facts: &Opaque,
    each: impl FnOnce(LogicalTime) -> LogicalTime,
) -> Result<Opaque, Malformed> {
    let session = Session::decode(facts)?;
    Ok(Session { time: each(session.time), ..session }.encode())
}

/// So many milliseconds earlier.
fn before(time: LogicalTime, ms: u64) -> LogicalTime {
    LogicalTime::from_ms(time.ms().saturating_sub(ms))
}

impl Protocol for OrbeClock {
    fn name(&self) -> &'static str {
        "orbe-clock"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshot_reads: SnapshotReads::OneRound,
            write_transactions: false,
            causality: true,
            available: true,
        }
    }

    fn needs(&self) -> Needs {
        let stabilization_ms = Some(pocc::FLOOR_INTERVALS * self.options.stabilization_ms);
        Needs {
            versions: true,
            cuts: true,
            heartbeats: true,
            previous_versions: true,
            stabilization_ms,
            ..Needs::default()
        }
    }

    fn observe(&self, context: &mut Opaque, sources: &[Source]) {
        let mut session = Session::known(context);
        orbe_dm::raise(&mut session.matrix, sources);
        session.see(sources);
        *context = session.encode();
    }

    fn remembers_settled(&self) -> bool {
        !self.options.dependency_cleaning
    }

    fn pass_over(&self, context: &mut Opaque, settled: &[Source]) {
        let mut session = Session::known(context);
        session.see(settled);
        *context = session.encode();
    }

    fn wrote(&self, context: &mut Opaque, write: &Source) {
        let mut session = Session::known(context);
        session.matrix = orbe_dm::reset(write, self.rules);
        session.see(std::slice::from_ref(write));
        *context = session.encode();
    }

    fn join(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        let other = Session::decode(other)?;
        let mut session = Session::known(context);
        session.time = session.time.max(other.time);
        orbe_dm::join(&mut session.matrix, &other.matrix)?;
        *context = session.encode();
        Ok(())
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        facts::decode(&Session::decode(context)?.matrix).map(Past::Operations)
    }

    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque {
        let mut matrix = Session::known(context).matrix;
        orbe_dm::raise(&mut matrix, observed);
        matrix
    }

    fn verdict(&self, operation: OperationId, dependencies: &Opaque) -> Result<Verdict, Malformed> {
        orbe_dm::verdict(operation, dependencies, self.rules)
    }

    fn shows(&self, sight: &Sight, source: &Source) -> bool {
        source.stamp.time <= sight.times.at(source.stamp.datacenter)
    }

    /// A read that is late waits once more, at an older cut: both must be over before its client gives up.
    fn patience_ms(&self) -> u64 {
        self.options.block_ms.min(self.options.request_timeout_ms * 2 / 5)
    }

    fn judge(&self, shares: &[Share<'_>]) -> Judgement {
        eiger::judge(shares, self.rules)
    }

    fn cut(&self, context: &Opaque, standing: &Standing<'_>) -> TimeVector {
        let time = before(standing.now, self.options.heartbeat_ms);
        TimeVector::uniform(standing.datacenters, time.max(self.time_of(context)))
    }

    fn serves(&self, cut: &TimeVector, standing: &Standing<'_>) -> bool {
        !self.rules.hold(Rule::ReadsWaitForThePast) || standing.applied.covers_but(standing.datacenter, cut)
    }

    fn late(&self, context: &Opaque, standing: &Standing<'_>) -> Late {
        let time = Self::told_by_all(standing);
        let oldest = before(standing.now, self.options.snapshot_age_ms);
        if time < self.time_of(context) || time < oldest {
            return Late::TwoRounds;
        }
        Late::OlderCut(TimeVector::uniform(standing.datacenters, time))
    }

    fn keeps_old_versions(&self) -> bool {
        true
    }

    fn floor(&self, standing: &Standing<'_>) -> TimeVector {
        let newest = match self.rules.hold(Rule::FloorLeavesRoomForNewCuts) {
            true => before(standing.now, self.options.heartbeat_ms).min(Self::told_by_all(standing)),
            false => standing.now,
        };
        let oldest = before(standing.now, self.options.snapshot_age_ms);
        TimeVector::uniform(standing.datacenters, newest.max(oldest))
    }
}
