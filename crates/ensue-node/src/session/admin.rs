//! Who is connected, how the datacenter is, and the declaration that another one has failed permanently.
//!
//! A step returns what it comes to, and names no other part of the session.

pub(crate) mod acl;
pub(crate) mod backup;
pub(crate) mod client;
pub(crate) mod cluster_query;
pub(crate) mod config;
pub(crate) mod dead;
pub(crate) mod debug;
pub(crate) mod errand;
pub(crate) mod filter;
pub(crate) mod handshake;
pub(crate) mod info;
pub(crate) mod latency;
pub(crate) mod login;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod slots;
mod tracking;
