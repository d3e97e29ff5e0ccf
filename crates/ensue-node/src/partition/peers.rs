//! The same partition in the other datacenters: who it is, and what of its words is not taken.

pub(in crate::partition) mod admit;
pub(in crate::partition) mod early;
pub(in crate::partition) mod identity;

use early::Early;
use ensue_types::DatacenterId;
use identity::Identity;
use std::collections::BTreeMap;

/// What is known of the same partition in the other datacenters, and what of their words is not taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    /// Which directories this partition and its peers run on, and which peers are refused.
    pub(in crate::partition) identity: Identity,
    /// Messages that came before the log was read.
    pub(in crate::partition) early: Early,
    /// What datacenters said that was refused, by who said it.
    pub(in crate::partition) refused: BTreeMap<DatacenterId, u64>,
}
