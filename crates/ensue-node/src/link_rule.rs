//! What a peer may say: whether a message that came over a link is its sender's to send, and ours to take.
//!
//! A link is between two cores, and the handshake has shown which. A message that came over it is refused unless it
//! speaks for the core at its other end and to the core at this one. Between datacenters only what belongs to
//! replication is taken, from a partition to its counterpart: requests of clients and the steps of transactions stay
//! within
//! a datacenter. So a peer speaks for its own datacenter's streams. Of others' it passes on only what was asked of
//! it: a
//! lost end of our own (`Regained`), the end of a dead datacenter's (`PassedOn`). Whether it was asked is the
//! partition's
//! question, and so is what the message says.

use crate::config::Topology;
use ensue_types::{CoreId, DatacenterId};
use ensue_wire::{Address, CoreName, Envelope, Message};
use thiserror::Error;

/// Why a message was not taken. Whoever sends such a thing is broken, or an enemy: its link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotTheirs {
    #[error("it speaks for {0}, which is not of the core at the other end")]
    From(Place),
    #[error("it speaks to {0}, which is not of the core at this end")]
    To(Place),
    #[error("it says to another datacenter what is only said within one")]
    OnlyWithin,
    #[error("it says within a datacenter what is only said between two")]
    OnlyBetween,
    #[error("it speaks of a stream that is not one for it to speak of")]
    OtherStream,
}

/// An address in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(Address);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Address::Partition { datacenter, partition } => {
                write!(f, "partition {partition} of datacenter {}", datacenter.0)
            }
            Address::Core { datacenter, core } => write!(f, "core {} of datacenter {}", core.0, datacenter.0),
        }
    }
}

/// Judges a message that came to core `own` over its link with `peer`.
pub fn admit(topology: &Topology, own: CoreId, peer: CoreName, envelope: &Envelope) -> Result<(), NotTheirs> {
    let here = CoreName { datacenter: topology.datacenter, core: own };
    if !is_on(topology, envelope.from, peer) {
        return Err(NotTheirs::From(Place(envelope.from)));
    }
    if !is_on(topology, envelope.to, here) {
        return Err(NotTheirs::To(Place(envelope.to)));
    }
    let counterparts = match (envelope.from, envelope.to) {
        (Address::Partition { partition: one, .. }, Address::Partition { partition: other, .. }) => {
            one == other
        }
        _ => false,
    };
    // The partitions of a datacenter tell each other that it was declared dead.
    let own = topology.datacenter;
    let is_own_death = matches!(envelope.message, Message::Dead { datacenter, .. } if datacenter == own);
    match (peer.datacenter == own, is_replication(&envelope.message)) {
        (true, true) if is_own_death => Ok(()),
        (true, true) => Err(NotTheirs::OnlyBetween),
        (true, false) => Ok(()),
        (false, false) => Err(NotTheirs::OnlyWithin),
        (false, true) if !counterparts => Err(NotTheirs::From(Place(envelope.from))),
        (false, true) => judge_streams(topology, peer.datacenter, &envelope.message),
    }
}

/// Whether an address is a core's sessions, or a partition that lives on it.
fn is_on(topology: &Topology, address: Address, core: CoreName) -> bool {
    if address.datacenter() != core.datacenter {
        return false;
    }
    let Some(there) = topology.datacenters.get(usize::from(core.datacenter.0)) else { return false };
    match address {
        Address::Core { core: named, .. } => named == core.core && named.0 < there.cores,
        Address::Partition { partition, .. } => {
            there.placement.get(usize::from(partition.0)).is_some_and(|&owner| owner == core.core)
        }
    }
}

/// What the same partitions of two datacenters say to each other.
fn is_replication(message: &Message) -> bool {
    matches!(
        message,
        Message::StreamResume { .. }
            | Message::StreamEntries { .. }
            | Message::StreamAcknowledge(_)
            | Message::Heartbeat { .. }
            | Message::AskTime
            | Message::ClockAhead { .. }
            | Message::Introduce(_)
            | Message::Regain { .. }
            | Message::Regained { .. }
            | Message::Dead { .. }
            | Message::PassOn { .. }
            | Message::PassedOn { .. }
            | Message::BranchFetch { .. }
            | Message::BranchFetched { .. }
            | Message::BranchLacking { .. }
    )
}

/// Of whose streams these messages may speak: what is passed on is a third's, who is dead, and nobody living declares
/// itself dead.
fn judge_streams(topology: &Topology, peer: DatacenterId, message: &Message) -> Result<(), NotTheirs> {
    let exists = |id: DatacenterId| usize::from(id.0) < topology.datacenters.len();
    let is_third = |id: DatacenterId| exists(id) && id != peer && id != topology.datacenter;
    let is_theirs_to_say = match message {
        Message::PassOn { origin, .. } | Message::PassedOn { origin, .. } => is_third(*origin),
        Message::Dead { datacenter, .. } => exists(*datacenter) && *datacenter != peer,
        Message::BranchLacking { dead, .. } => dead.iter().all(|&id| exists(id)),
        Message::StreamAcknowledge(acknowledge) => acknowledge.applied.iter().all(|&(id, ..)| exists(id)),
        _ => true,
    };
    is_theirs_to_say.then_some(()).ok_or(NotTheirs::OtherStream)
}

#[cfg(test)]
mod tests;
