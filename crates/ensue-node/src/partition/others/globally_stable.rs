//! What every datacenter has: told by its partitions to each other.

use super::Others;
use crate::partition::cx::Cx;
use ensue_types::{Carried, DatacenterId, LogicalTime, Position, Rule, Source, Vector};
use std::sync::Arc;

impl Others {
    /// Notes what is everywhere now, to be sure of it when a read transaction that began without it is over. Twice its
    /// time, for clocks that differ.
    pub(in crate::partition) fn note_globally_stable(&mut self, cx: &Cx) {
        let now_us = cx.now.monotonic_us;
        let mut age_us = 2_000 * cx.config.tuning.read_transaction_timeout_ms;
        if !Rule::ForgetAfterTheReads.holds() {
            age_us = 0;
        }
        let positions = self.applied_by_all();
        self.stable_time.globally_stable.note(cx.id, positions, now_us, age_us);
    }

    /// Up to which stamp every datacenter, this one too, shows everything to every reader, also after a restart.
    pub(in crate::partition) fn shown_by_all(&self) -> LogicalTime {
        let here = self.replication.acknowledgements.shown_durably();
        self.living_senders().map(|sender| sender.shown()).fold(here, LogicalTime::min)
    }

    /// What was read, each write with what it carries. Of one that carries nothing any more, whatever it carried has at
    /// most its stamp as each datacenter's time. Nothing is left to wait for of a datacenter that has failed, and of
    /// one that this partition has never met nothing was read by anybody.
    pub(in crate::partition) fn with_bounds(&self, cx: &Cx, sources: &mut [Source]) {
        let datacenters = cx.config.topology.datacenters.len();
        let forgotten = sources.iter_mut().filter(|source| source.dependencies.is_none());
        for source in forgotten.filter(|_| Rule::WhatIsForgottenWasShown.holds()) {
            let time =
                |datacenter| match self.failover.failed.contains(datacenter) || self.is_unmet(datacenter) {
                    true => LogicalTime::ZERO,
                    false => source.stamp.time,
                };
            let times = (0..datacenters as u8).map(|number| time(DatacenterId(number))).collect();
            let bound = Vector { times, ..Vector::default() };
            source.dependencies = Some(Arc::new(Carried::new(bound.into())));
        }
    }

    /// Whether nothing has ever been heard of a datacenter: it is configured, and has not begun to serve.
    pub(in crate::partition) fn is_unmet(&self, datacenter: DatacenterId) -> bool {
        self.replication.knows(datacenter)
            && !self.met.contains(&datacenter)
            && self.replication.received(datacenter) == Position(0)
            && self.stable_time.times.received().at(datacenter) == LogicalTime::ZERO
    }

    /// Up to where every datacenter, this one too, has durably applied each datacenter's stream of this partition.
    pub(in crate::partition) fn applied_by_all(&self) -> Vec<(DatacenterId, Position)> {
        let here = self.replication.acknowledgements.applied_durably();
        let least = |(datacenter, _, here): (DatacenterId, _, Position)| {
            let elsewhere = self.living_senders().map(|sender| sender.applied(datacenter).1);
            let position = match Rule::DropWhatAllHave.holds() {
                true => elsewhere.fold(here, Position::min),
                false => elsewhere.fold(here, Position::max),
            };
            (datacenter, position)
        };
        here.map(least).collect()
    }
}
