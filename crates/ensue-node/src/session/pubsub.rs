//! Messages between clients, over channels: subscriptions, publishing, and delivery.
//!
//! A message is neither stored nor logged: it is delivered at most once, to the clients that subscribe at that moment
//! and can be reached. In the publisher's datacenter it is delivered at once. In another one it waits until the
//! publisher's past is visible there (`deliveries`).

pub(crate) mod command;
pub(crate) mod deliveries;
