//! What a partition is doing, from its start to its stop.

use crate::partition::recovery::closing::{Closing, SHUTTING_DOWN};
use crate::partition::recovery::joining::Joining;
use crate::partition::recovery::recover::Reading;
use crate::partition::recovery::tail_recovery::TailRecovery;
use ensue_types::DatacenterId;
use ensue_wire::{Message, PeerStage};

/// What a partition is doing.
#[derive(Clone, Debug)]
pub enum Stage {
    Reading(Option<Box<Reading>>),
    /// Its directory is new: the other datacenters are asked whether an earlier one was lost.
    Joining(Box<Joining>),
    /// The log may have lost its tail: the other datacenters are asked for it.
    RecoveringTail(Box<TailRecovery>),
    Serving,
    /// It stops in good order.
    Closing(Closing),
    /// It cannot go on, and says why to everybody who asks.
    Stopped(String),
}

impl Stage {
    /// What other datacenters are told of it.
    pub(in crate::partition) fn as_reported(&self) -> PeerStage {
        match self {
            Stage::Joining(_) => PeerStage::Joining,
            Stage::RecoveringTail(_) => PeerStage::Recovering,
            _ => PeerStage::Serving,
        }
    }

    /// Whether a message says that the own datacenter was declared dead, and that changes something. One that reads its
    /// log hears it when it has read it; one that has stopped says it, if it does not with one of these `words`.
    pub(in crate::partition) fn is_notified_of_end(
        &self,
        own: DatacenterId,
        message: &Message,
        words: [&str; 2],
    ) -> bool {
        if !matches!(message, Message::DatacenterFailed { datacenter, .. } if *datacenter == own) {
            return false;
        }
        match self {
            Stage::Serving | Stage::RecoveringTail(_) | Stage::Joining(_) => true,
            Stage::Stopped(reason) => {
                reason != SHUTTING_DOWN && !words.iter().any(|word| reason.starts_with(word))
            }
            Stage::Reading(_) | Stage::Closing(_) => false,
        }
    }
}
