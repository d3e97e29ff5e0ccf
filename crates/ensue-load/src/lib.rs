//! A load generator for every server that speaks the Redis protocol.
//!
//! A [`Plan`](run::Plan) goes in, a [`Report`](report::Report) comes out. Clients are connections; a thread drives many
//! of them in a closed loop, or in an open one in which latency begins at the intended start. Two stores can take turns
//! in one run, which gives ratios that a noisy machine disturbs least. Every operation is counted: as ended, or as
//! failed with its kind. It knows nothing of what is inside a server.

pub mod answer;
pub mod costs;
pub mod cpu;
pub mod error;
pub mod keys;
mod link;
pub mod pace;
pub mod picture;
mod popper;
pub mod random;
pub mod report;
mod request;
pub mod run;
mod session;
mod side;
pub mod sizes;
pub mod tally;
pub mod target;
pub mod weighted;
mod wire;
mod worker;
pub mod workload;

#[cfg(test)]
mod tests;
