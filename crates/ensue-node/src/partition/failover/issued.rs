//! What a token may name and never find: of this datacenter itself what it has not issued, of a dead one what was
//! lost with it.
//!
//! A partition knows of its own datacenter what it has issued: the positions of its own stream, and times up to its
//! clock. Whoever followed a token that names more would be invisible in every other datacenter, since nothing of that
//! comes. Such a token is forged, or from an earlier life of this datacenter, one that was wiped or restored from an
//! old copy. A time is issued if any partition's clock has come to it, so that the session judges when all have spoken;
//! a position is its partition's alone.

use super::discarded::Discarded;
use crate::partition::cx::Cx;
use ensue_protocol::Loss;
use ensue_types::{Dependency, Reply, Rule, TimeVector};

impl Discarded {
    /// Of a past of times what never comes, as far as this partition knows: where it stands in the stream does not
    /// matter.
    pub(crate) fn nowhere(&mut self, cx: &mut Cx, times: &TimeVector) -> Vec<Dependency> {
        let is_issued = times.at(cx.datacenter) <= cx.promise() || !Rule::RefuseWhatWasNeverIssued.holds();
        let unissued = (!is_issued).then_some(cx.datacenter);
        let lost = self.loss_in(times).map(|loss| loss.datacenter);
        unissued.into_iter().chain(lost).map(|datacenter| cx.something_of(datacenter)).collect()
    }

    /// What was lost that a past of these times may hold.
    pub(in crate::partition) fn loss_in(&self, times: &TimeVector) -> Option<Loss> {
        if !Rule::RefuseTheLost.holds() {
            return None;
        }
        self.losses().find(|loss| loss.may_be_in(times))
    }

    /// Why no datacenter is counted to hold a past.
    pub(crate) fn lost_past(&self, cx: &Cx, times: &TimeVector) -> Option<Reply> {
        let loss = self.loss_in(times)?;
        let name = &cx.config.topology.datacenters[usize::from(loss.datacenter.0)].name;
        let words = format!(
            "DISCARDED the session may have seen updates that were lost with {name}, declared dead: no datacenter holds them"
        );
        Some(Reply::Error(words.into()))
    }
}
