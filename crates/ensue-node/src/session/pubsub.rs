//! Messages between clients, over channels: subscriptions, publishing, and delivery.
//!
//! A message is neither stored nor logged: it is delivered at most once, to the clients that subscribe at that moment
//! and can be reached. It waits in each datacenter until the publisher's past is visible to new sessions there
//! (`deliveries`); in the publisher's own one that is at once, but where protocols go by times.

pub(crate) mod command;
pub(crate) mod deliveries;
