//! A deterministic world around the replicas of one partition: nodes, their disks and links, a partition that checks
//! what it reads, and faults.
//!
//! The world of a seed is always the same. Its oracle is the partition ([`partition`]): whatever was acknowledged is
//! there wherever it starts next, unless the replicas say that it may be lost, which they may only after power
//! failures; and whoever is told that nobody else led has everything that was acknowledged before it asked.

mod disk;
mod partition;
mod random;
#[cfg(test)]
mod tests;
mod world;

pub use world::{Plan, Report, run};
