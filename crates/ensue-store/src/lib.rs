//! Versions and their durability: rows in memory, the update log, checkpoints and recovery of one partition.
//!
//! It never calls a file system: it emits `DiskOp` and is told `DiskDone`.

pub mod cell;
pub mod checkpoint;
mod columns;
pub mod compact;
mod counted;
pub mod disk;
pub mod entry;
pub mod fold;
pub mod forgetting;
pub mod fsck;
mod hint;
pub mod image;
pub mod keyspace;
pub mod layout;
pub mod log;
pub mod order;
pub mod packed;
pub mod record;
pub mod recovery;
pub mod restamp;
pub mod row;
mod scan;
pub mod scrub;
pub mod settled;
pub mod siblings;
pub mod superblock;
pub mod tail;
#[cfg(feature = "testing")]
pub mod testing;
pub mod undominated;
pub mod versions;
pub mod view;
mod window;
pub mod witness;

#[cfg(test)]
mod arrivals;
#[cfg(test)]
mod memory_disk;
