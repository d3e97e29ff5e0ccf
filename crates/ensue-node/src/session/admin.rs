//! Who is connected, how the datacenter is, and the declaration that another one has failed permanently.
//!
//! A step returns what it comes to, and names no other part of the session.

pub(crate) mod acl;
mod backup;
pub(crate) mod client;
pub(crate) mod cluster_query;
pub(crate) mod config;
pub(crate) mod dead;
pub(crate) mod debug;
pub(crate) mod errand;
pub(crate) mod filter;
mod group;
pub(crate) mod handshake;
pub(crate) mod home;
pub(crate) mod info;
pub(crate) mod latency;
pub(crate) mod login;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod populating;
pub(crate) mod retire;
pub(crate) mod saving;
pub(crate) mod slots;
mod tracking;

use super::cx::Cx;
use super::step::Step;
use ensue_types::Args;

/// What of `CAUSAL` is no matter of a session's past, but of whoever runs the datacenter.
pub(crate) fn on_causal_command(cx: &mut Cx<'_>, args: &Args) -> Option<Step<errand::Outcome>> {
    if backup::is_command(args) {
        return Some(backup::on_command(cx, args));
    }
    group::is_command(args).then(|| group::on_command(cx, args))
}
