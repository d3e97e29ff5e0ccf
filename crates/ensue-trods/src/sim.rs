//! A deterministic world around gateways: unmodified clients and servers, a load balancer, a store, and faults.
//!
//! The world of a seed is always the same. Its oracle is the client application ([`client`]): every byte of every
//! response is right, and no connection was reset or ended early. The TCP endpoints add what no ordinary peer does:
//! an acknowledgment of what was never sent, an echo of a timestamp from the future.

mod application;
mod client;
mod content;
mod host;
mod plan;
mod random;
mod tcp;
#[cfg(test)]
mod tests;
mod world;

pub use plan::{Fault, Plan};
pub use world::{Report, run, run_traced};
