//! Who may say what: whether a message is its sender's to send, and ours to take.
//!
//! A message speaks for the core that it came from, and to a core that is ours. Between datacenters only what belongs
//! to replication is said, from a partition to its counterpart, and what belongs to channels and to homes of keys,
//! from core to core: other requests of clients and the steps of transactions stay within a datacenter. So a peer
//! speaks for its own datacenter's streams. Of others' it passes on only what was asked of it: a lost end of our own
//! (`TailFetched`), the end of a dead datacenter's (`PassedOn`).
//!
//! Asked twice: of what came over a link, with the core that the handshake has shown at its other end; and by the door
//! (`admission`), which also hears the other cores of the node, with the core that the message names. Whether what it
//! says is possible is the door's question, and whether it was asked for is the partition's.

use crate::config::Topology;
use ensue_types::{CoreId, DatacenterId, LogicalTime};
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

impl NotTheirs {
    /// Without the place.
    pub(crate) fn in_short(self) -> &'static str {
        match self {
            NotTheirs::From(_) => "a message in another's name",
            NotTheirs::To(_) => "a message for another core",
            NotTheirs::OnlyWithin => "a message that no datacenter sends another",
            NotTheirs::OnlyBetween => "a message that is only said between datacenters",
            NotTheirs::OtherStream => "a stream that is not one for its sender to speak of",
        }
    }
}

/// Judges a message of core `peer` to core `own`.
pub fn admit(topology: &Topology, own: CoreId, peer: CoreName, envelope: &Envelope) -> Result<(), NotTheirs> {
    let Envelope { from, to, message, .. } = envelope;
    let here = CoreName { datacenter: topology.datacenter, core: own };
    if !is_of(topology, *from, peer) {
        return Err(NotTheirs::From(Place(*from)));
    }
    if !is_of(topology, *to, here) {
        return Err(NotTheirs::To(Place(*to)));
    }
    let own = topology.datacenter;
    // The partitions of a datacenter tell each other that it was declared dead, and how far it is with its removal.
    let is_own_end = matches!(message, Message::Retiring { .. })
        || matches!(message, Message::DatacenterFailed { datacenter, .. } if *datacenter == own);
    if matches!(message, Message::Interest { .. } | Message::Publish { .. }) {
        let are_cores = matches!((from, to), (Address::Core { .. }, Address::Core { .. }));
        return if are_cores { Ok(()) } else { Err(NotTheirs::From(Place(*from))) };
    }
    if let Message::Replica { partition, .. } | Message::Leads { partition, .. } = message {
        // Which cores have a replica is what the group agrees on.
        let is_theirs = topology.is_replicated(peer.datacenter, *partition);
        let are_cores = matches!((from, to), (Address::Core { .. }, Address::Core { .. }));
        let is_within = peer.datacenter == own || matches!(message, Message::Leads { .. });
        return match (is_theirs && are_cores, is_within) {
            (true, true) => Ok(()),
            (true, false) => Err(NotTheirs::OnlyWithin),
            (false, _) => Err(NotTheirs::From(Place(*from))),
        };
    }
    if let Message::HomeMoves { .. } = message {
        // Partitions of two datacenters, and within one partitions and cores.
        let is_from_core = matches!(from, Address::Core { .. });
        let is_to_partition = matches!(to, Address::Partition { .. });
        return match peer.datacenter == own {
            true if is_from_core && is_to_partition => Err(NotTheirs::From(Place(*from))),
            false if !are_counterparts(*from, *to) => Err(NotTheirs::From(Place(*from))),
            _ => Ok(()),
        };
    }
    if is_about_homes(message) {
        return match (from, to) {
            (Address::Core { .. }, Address::Core { .. }) if peer.datacenter != own => Ok(()),
            (Address::Core { .. }, Address::Core { .. }) => Err(NotTheirs::OnlyBetween),
            _ => Err(NotTheirs::From(Place(*from))),
        };
    }
    match (peer.datacenter == own, is_replication(message)) {
        (true, true) if is_own_end => Ok(()),
        (true, true) => Err(NotTheirs::OnlyBetween),
        (true, false) => Ok(()),
        (false, false) => Err(NotTheirs::OnlyWithin),
        (false, true) if !are_counterparts(*from, *to) => Err(NotTheirs::From(Place(*from))),
        (false, true) => check_streams(own, peer.datacenter, message),
    }
}

/// Whether the core may be the one of an address: it has these sessions, or the partition may live there.
pub(crate) fn is_of(topology: &Topology, address: Address, core: CoreName) -> bool {
    let datacenter = address.datacenter();
    let Some(there) = topology.datacenters.get(usize::from(datacenter.0)) else { return false };
    let has_it = match address {
        Address::Core { core: named, .. } => named == core.core && named.0 < there.cores,
        Address::Partition { partition, .. } if topology.is_replicated(datacenter, partition) => {
            core.core.0 < there.cores
        }
        Address::Partition { partition, .. } => {
            there.placement.get(usize::from(partition.0)) == Some(&core.core)
        }
    };
    datacenter == core.datacenter && has_it
}

/// A core of an address, if the cluster has it: one that has sessions, or one on which a partition may live.
pub(crate) fn core_of(topology: &Topology, address: Address) -> Option<CoreName> {
    let datacenter = address.datacenter();
    let there = topology.datacenters.get(usize::from(datacenter.0))?;
    let core = match address {
        Address::Core { core, .. } => (core.0 < there.cores).then_some(core),
        Address::Partition { partition, .. } => there.placement.get(usize::from(partition.0)).copied(),
    };
    core.map(|core| CoreName { datacenter, core })
}

/// Whether both are partitions, of one number.
fn are_counterparts(from: Address, to: Address) -> bool {
    match (from, to) {
        (Address::Partition { partition: one, .. }, Address::Partition { partition: other, .. }) => {
            one == other
        }
        _ => false,
    }
}

/// What cores of two datacenters say about commands at the home of their keys.
fn is_about_homes(message: &Message) -> bool {
    matches!(message, Message::HomeReady { .. } | Message::HomeRequest(_) | Message::HomeAnswer { .. })
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
            | Message::TailFetch { .. }
            | Message::TailFetched { .. }
            | Message::CopyFetch { .. }
            | Message::Copied { .. }
            | Message::CopyRefused { .. }
            | Message::DatacenterFailed { .. }
            | Message::Retiring { .. }
            | Message::PassOn { .. }
            | Message::PassedOn { .. }
            | Message::BranchFetch { .. }
            | Message::BranchFetched { .. }
            | Message::BranchLacking { .. }
    )
}

/// Of whose streams these messages may speak: what is passed on is a third's, who is dead, and who says that it has
/// ended itself has lost nothing.
fn check_streams(own: DatacenterId, peer: DatacenterId, message: &Message) -> Result<(), NotTheirs> {
    let may_speak = match message {
        Message::PassOn { origin, .. } | Message::PassedOn { origin, .. } => {
            *origin != peer && *origin != own
        }
        Message::DatacenterFailed { datacenter, time, .. } => {
            *datacenter != peer || *time == LogicalTime::MAX
        }
        _ => true,
    };
    may_speak.then_some(()).ok_or(NotTheirs::OtherStream)
}

#[cfg(test)]
mod tests;
