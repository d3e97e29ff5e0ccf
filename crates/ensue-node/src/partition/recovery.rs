//! From files and from other datacenters back to a partition that serves, and from there to an orderly stop.

pub(in crate::partition) mod closing;
pub(in crate::partition) mod copying;
pub(in crate::partition) mod joining;
pub(in crate::partition) mod recover;
pub(in crate::partition) mod replay;
pub(in crate::partition) mod tail_recovery;
