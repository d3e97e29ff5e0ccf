//! A datacenter that is lost for good, in a past of times: what may depend on what it took with it.
//!
//! It is the same for every protocol whose past is times, so no protocol answers it.

use crate::vector::known;
use crate::{Protocol, VisibilityPredicate};
use ensue_types::{
    Carried, Causes, DatacenterId, DatacenterSet, LogicalTime, OperationId, Reply, Rule, Source, Stamp,
    TimeVector, Vector,
};
use std::sync::Arc;

const FINAL: LogicalTime = Vector::FINAL;

/// What a datacenter that is lost for good took with it, as far as times tell. The same in every survivor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    pub datacenter: DatacenterId,
    /// What it wrote up to then is everywhere.
    pub whole: LogicalTime,
    /// The first of its times from which on the past of another datacenter's write may hold something lost: through a
    /// write of its own, or of one that had failed before its streams had their end, that is left and depends on that.
    pub doubtful: LogicalTime,
    /// Those that had been declared dead before its streams had their ends, itself among them. They may have received
    /// more of it than there is anywhere.
    pub failed: DatacenterSet,
}

impl Loss {
    /// Whether a past of these times may hold something that was lost. What holds all that is left, and nothing more,
    /// counts the dead one's time as here for ever, which no write has.
    pub fn may_be_in(&self, past: &TimeVector) -> bool {
        let time = past.at(self.datacenter);
        time > self.whole && time < LogicalTime::MAX
    }
}

/// What a node asks of a protocol whose past is times; the others know nothing of it.
impl dyn Protocol + '_ {
    /// Whether a past is times, so that a loss is met as a loss of times.
    pub fn goes_by_times(&self) -> bool {
        self.family().goes_by_times()
    }

    /// Times of dead datacenters that this past took over and that its own times cover: who knows what was lost says
    /// whether they hold something of it.
    pub fn doubted(&self, context: &Causes) -> TimeVector {
        if self.goes_by_times() { known(context).doubted.clone() } else { TimeVector::default() }
    }

    /// Whether a write of this origin that carries this may depend on what was lost.
    pub fn depends_on_lost(&self, origin: DatacenterId, dependencies: &Causes, loss: &Loss) -> bool {
        self.goes_by_times() && depends_on_lost(origin, dependencies, loss)
    }

    /// From which of the dead one's times on a past may hold this write, if it was made by one that had failed and may
    /// depend on what was lost.
    pub fn doubtful_from(&self, stamp: Stamp, dependencies: &Causes, loss: &Loss) -> Option<LogicalTime> {
        let may_have_more = self.goes_by_times() && has_failed(stamp.datacenter, loss);
        if !may_have_more || !depends_on_lost(stamp.datacenter, dependencies, loss) {
            return None;
        }
        let is_its_own = stamp.datacenter == loss.datacenter;
        Some(if is_its_own { stamp.time } else { known(dependencies).times.at(loss.datacenter) })
    }

    /// A session meets a loss. If it may have seen what is discarded with it, what its client is told, once: it is a
    /// new session from here.
    pub fn reset_if_lost(&self, context: &mut Causes, loss: &Loss) -> Result<(), Reply> {
        if self.goes_by_times() { reset_if_lost(context, loss) } else { Ok(()) }
    }

    /// The past that leaves a partition which has discarded what was lost holds nothing more that may be missing.
    pub fn strip_lost(&self, context: &mut Causes, loss: &Loss) {
        if self.goes_by_times() {
            strip_lost(context, loss);
        }
    }

    /// Whether a snapshot at this vector may show what is discarded with a loss.
    pub fn shows_lost(&self, vector: &TimeVector, loss: &Loss) -> bool {
        self.goes_by_times() && shows_lost(vector, loss)
    }

    /// Up to when a write of this datacenter proves everything stable: if it was shown to all at once, it depends on
    /// nothing else, and so it must be again after a restart.
    pub fn proves_stable(&self, operation: OperationId, stamp: Stamp, dependencies: &Causes) -> TimeVector {
        if !self.goes_by_times() {
            return TimeVector::default();
        }
        let source =
            Source { operation, stamp, dependencies: Some(Arc::new(Carried::new(dependencies.clone()))) };
        let nothing_else = VisibilityPredicate { datacenter: stamp.datacenter, ..Default::default() };
        let at_once = self.is_visible(&nothing_else, &source);
        if at_once { known(dependencies).times.clone() } else { TimeVector::default() }
    }
}

/// Whether a write may depend on what was lost. The dead datacenter's own name its later writes, and so do those of
/// another one that failed before this one's streams had their ends: it may have received what no survivor has. Who
/// lives has no more than is left, and names one of the writes of these that depend on what was lost. What was written
/// after the loss was known names no time of it (`FINAL`); nobody knew it who failed before.
fn depends_on_lost(origin: DatacenterId, dependencies: &Causes, loss: &Loss) -> bool {
    let Vector { times, doubted, .. } = known(dependencies);
    let time = times.at(loss.datacenter);
    let is_behind = is_doubtful(doubted.at(loss.datacenter), loss);
    if has_failed(origin, loss) { time > loss.whole } else { is_doubtful(time, loss) || is_behind }
}

/// Whether this datacenter may have received more of the lost one than is left.
fn has_failed(origin: DatacenterId, loss: &Loss) -> bool {
    origin == loss.datacenter || loss.failed.contains(origin) && Rule::DoubtWhoFailedBeforeTheEnd.holds()
}

fn is_doubtful(time: LogicalTime, loss: &Loss) -> bool {
    time >= loss.doubtful && time < FINAL
}

fn shows_lost(cut: &TimeVector, loss: &Loss) -> bool {
    is_doubtful(cut.at(loss.datacenter), loss)
}

/// A session that may have seen what is discarded, or what is nowhere, begins anew: one that comes from the dead
/// datacenter itself had seen what no write here tells of. What one has given up before does not come back.
fn reset_if_lost(context: &mut Causes, loss: &Loss) -> Result<(), Reply> {
    let mut vector = context.take_times();
    if !loss.may_be_in(&vector.times) && !loss.may_be_in(&vector.doubted) {
        if loss.may_be_in(&vector.abandoned) {
            vector.abandoned = TimeVector::ZERO;
        }
        vector.forget_doubt(loss.datacenter);
        *context = vector.into();
        return Ok(());
    }
    let words = format!(
        "DISCARDED the session may have seen updates that were discarded because {} is dead; it is a new one from \
         here, and this command was not executed",
        loss.datacenter
    );
    Err(Reply::Error(words.into()))
}

/// What leaves a partition that knows the loss holds only what is left: it is never taken for lost again.
fn strip_lost(context: &mut Causes, loss: &Loss) {
    let mut vector = context.take_times();
    if vector.times.at(loss.datacenter) > LogicalTime::ZERO {
        vector.times.raise(loss.datacenter, FINAL);
    }
    vector.forget_doubt(loss.datacenter);
    *context = vector.into();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::merge;

    fn past(time: LogicalTime) -> Causes {
        let mut vector = Vector::default();
        vector.times.raise(DatacenterId(0), time);
        vector.into()
    }

    #[test]
    fn a_past_from_before_a_loss_is_not_hidden_behind_one_from_after_it() {
        let datacenter = DatacenterId(0);
        let failed = [datacenter].into_iter().collect();
        let loss = Loss { datacenter, whole: LogicalTime(50), doubtful: LogicalTime(60), failed };
        for (time, is_lost) in [(40, false), (70, true)] {
            for (mut one, other) in
                [(past(FINAL), past(LogicalTime(time))), (past(LogicalTime(time)), past(FINAL))]
            {
                merge(&mut one, &other).unwrap();
                assert_eq!(known(&one).times.at(DatacenterId(0)), FINAL, "it must be known here first");
                assert_eq!(depends_on_lost(DatacenterId(1), &one, &loss), is_lost);
                let mut again = one.clone();
                assert_eq!(reset_if_lost(&mut one, &loss).is_err(), is_lost);
                assert_eq!(one, if is_lost { Causes::Nothing } else { past(FINAL) });
                // The same from there on: read, and then known.
                let mut reader = past(LogicalTime(1));
                merge(&mut again, &past(FINAL)).unwrap();
                merge(&mut reader, &again).unwrap();
                assert_eq!(reset_if_lost(&mut reader, &loss).is_err(), is_lost);
            }
        }
    }
    #[test]
    fn who_failed_before_the_end_is_believed_up_to_what_is_whole_only() {
        let [lost, failed, living] = [0, 1, 2].map(DatacenterId);
        let (whole, doubtful) = (LogicalTime(50), LogicalTime(60));
        let loss = Loss { datacenter: lost, whole, doubtful, failed: [lost, failed].into_iter().collect() };
        for (time, depends) in
            [(50, [false, false, false]), (55, [true, true, false]), (60, [true, true, true])]
        {
            let dependencies = past(LogicalTime(time));
            let of = [lost, failed, living].map(|origin| depends_on_lost(origin, &dependencies, &loss));
            assert_eq!(of, depends, "{time}");
        }
    }
}
