//! The part of a write transaction that one participant executes.

use crate::{Args, PartitionId};

/// Commands for one participant, each with its place in the client's `MULTI` or multi-key command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    pub partition: PartitionId,
    pub commands: Vec<(u32, Args)>,
}
