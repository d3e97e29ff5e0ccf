//! What a step of a part may use: the time, what all sessions of the core share, the session's past, and its requests.

use super::contexts::Contexts;
use super::core_state::CoreState;
use super::failure::{Failure, Reason};
use super::requests::Requests;
use super::step::Step;
use crate::Trace;
use ensue_protocol::Protocol;
use ensue_types::{KeyspaceId, Now, PartitionId, RequestId};
use ensue_wire::Message;

/// A step's surroundings.
pub(super) struct Cx<'a> {
    pub(super) now: Now,
    pub(super) core: &'a mut CoreState,
    pub(super) contexts: &'a mut Contexts,
    pub(super) requests: &'a mut Requests,
}

impl Cx<'_> {
    /// The selected keyspace.
    pub(super) fn keyspace(&self) -> KeyspaceId {
        self.contexts.selected()
    }

    /// The protocol of the selected keyspace.
    pub(super) fn protocol(&self) -> &dyn Protocol {
        self.core.protocol(self.keyspace())
    }

    /// Over how many partitions, from the first on, the keys of the selected keyspace are spread.
    pub(super) fn spread(&self) -> u16 {
        self.core.spread(self.keyspace())
    }

    /// Begins an exchange of so many shares that times out after this time.
    pub(super) fn begin(&mut self, shares: usize, timeout_ms: u64) {
        let deadline_us = self.now.monotonic_us.saturating_add(timeout_ms.saturating_mul(1_000));
        self.requests.begin(&mut self.core.timers, shares, deadline_us);
    }

    /// As `begin`, of what waits for as long as its client says.
    pub(super) fn begin_waiting(&mut self, shares: usize, timeout_ms: u64) {
        self.begin(shares, self.requests.wait_ms(Some(timeout_ms)).unwrap_or(timeout_ms));
    }

    /// The client says nothing more, and shall not keep its place for as long as it wanted to wait: neither with what
    /// it waits for now, nor with what it has asked for after that.
    pub(super) fn end_waiting_soon(&mut self, waits: bool) {
        let patience_ms = self.core.config.tuning.request_timeout_ms;
        self.requests.wait_at_most(patience_ms);
        if waits {
            let deadline_us = self.now.monotonic_us.saturating_add(patience_ms.saturating_mul(1_000));
            self.requests.end_by(&mut self.core.timers, deadline_us);
        }
    }

    /// As `begin`, with the time that every request has.
    pub(super) fn begin_request(&mut self, shares: usize) {
        self.begin(shares, self.core.config.tuning.request_timeout_ms);
    }

    /// The present exchange goes on, and times out as every request does.
    pub(super) fn go_on_until_timeout(&mut self) {
        let timeout_us = self.core.config.tuning.request_timeout_ms.saturating_mul(1_000);
        let deadline_us = self.now.monotonic_us.saturating_add(timeout_us);
        self.requests.go_on(&mut self.core.timers, deadline_us);
    }

    /// The name of the share's request.
    pub(super) fn request(&self, share: usize) -> RequestId {
        self.core.request(self.requests.session(), self.requests.sequence(share))
    }

    /// Why nothing is sent, if one of the partitions that an exchange needs cannot be asked.
    pub(super) fn refusal(&self, needed: impl IntoIterator<Item = PartitionId>) -> Option<Failure> {
        let away = needed.into_iter().find(|partition| !self.core.reaches(*partition))?;
        Some(self.no_answer(away, Reason::Away))
    }

    pub(super) fn no_answer(&self, partition: PartitionId, reason: Reason) -> Failure {
        let topology = &self.core.config.topology;
        Failure::NoAnswer { datacenter: topology.name_of(topology.datacenter), partition, reason }
    }

    /// Sends to a partition of this datacenter, at the time of the session's past in the selected keyspace.
    pub(super) fn send(&mut self, partition: PartitionId, message: Message) {
        self.send_in(self.keyspace(), partition, message);
    }

    pub(super) fn send_in(&mut self, keyspace: KeyspaceId, partition: PartitionId, message: Message) {
        let time = self.contexts.of(keyspace).time;
        let to = self.core.partition_address(partition);
        self.core.send(to, time, message);
    }

    /// An answer of another kind than was requested: dropped, and traced.
    pub(super) fn unexpected<E>(&mut self, exchange: E) -> Step<E> {
        self.core.trace(Trace::Refused { what: "an answer of another kind than was asked for" });
        Step::Waits(exchange)
    }
}
