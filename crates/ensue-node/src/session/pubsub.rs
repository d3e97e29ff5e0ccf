//! Messages between clients, over channels: subscribing, publishing, and handing out what was published elsewhere.
//!
//! A message is nowhere kept and never logged: it reaches who subscribes at that moment and can be reached, or nobody.
//! Within the publisher's datacenter it is handed out at once. In another one it waits until its publisher's past is
//! visible there (`deliveries`).

pub(crate) mod command;
pub(crate) mod deliveries;
