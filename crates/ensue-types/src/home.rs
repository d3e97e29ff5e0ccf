//! A home of keys that has moved, or is moving, from one datacenter to another (decision 56).

use crate::{DatacenterId, KeyspaceId, Position, TimeVector};
use bytes::Bytes;

/// What one partition knows of the latest move of a home.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HomeMove {
    pub keyspace: KeyspaceId,
    pub pattern: Bytes,
    /// The home that the configuration names for the pattern: a move counts for a line that names the same one.
    pub configured: DatacenterId,
    /// The number of the move; each is higher than the one before it.
    pub version: u64,
    pub from: DatacenterId,
    pub home: DatacenterId,
    pub step: HomeStep,
    /// `from` was declared dead, and has stopped nothing.
    pub is_claimed: bool,
    /// Up to where the former home had applied each stream when it stopped, and the times that were visible there.
    pub applied: Vec<(DatacenterId, Position)>,
    pub times: TimeVector,
}

impl HomeMove {
    /// The highest number of a move: a peer that is wrong shall not end the counting.
    pub const VERSION_MAX: u32 = u32::MAX;
}

/// How far a move is. A partition takes these steps one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HomeStep {
    /// Nothing is known of it.
    #[default]
    Unknown,
    /// The former home executes no more commands.
    Closing,
    /// And nothing of what it had begun is open.
    Closed,
    /// Its stream holds everything that it has executed.
    Stopped,
    /// The new home has all of that.
    Ready,
    /// The new home executes commands.
    Started,
}

impl HomeStep {
    const ALL: [HomeStep; 6] = [
        HomeStep::Unknown,
        HomeStep::Closing,
        HomeStep::Closed,
        HomeStep::Stopped,
        HomeStep::Ready,
        HomeStep::Started,
    ];

    /// The step with this number.
    pub fn of_number(number: u8) -> Option<HomeStep> {
        HomeStep::ALL.get(usize::from(number)).copied()
    }

    pub fn number(self) -> u8 {
        self as u8
    }
}
