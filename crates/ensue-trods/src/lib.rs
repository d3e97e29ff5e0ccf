//! TRODS (Lloyd and Freedman, "Coercing Clients into Facilitating Failover for Object Delivery", DSN 2011): a download
//! survives the death of its server, for unmodified clients and servers.
//!
//! A [`Trods`] stands below the TCP stack of one server. Packets of both sides, outcomes of the store and ticks go in;
//! verdicts on packets, packets of its own and operations on the store come out. It reads no clock and no socket.
//!
//! - On SYN: remember the connection. Show the client the initial sequence number that every server derives.
//! - On a request: read what names the object; pass it on. Acknowledge nothing of it until its response was.
//! - On the first packets of a response: hold them until the head is complete and its record is saved, or its place
//!   stands in the timestamps. If another server saved a record of this exchange before, adopt that one.
//! - On the acknowledgment of the whole response, and of FIN if the connection closes with it: acknowledge the request.
//! - On a packet of an unknown connection: look for its record, in its timestamp or in the store. Without one, and if
//!   the client acknowledged exactly the number that every server derives, hand the request to the application through
//!   a new connection; anywhere else the record was lost, and the download with it. With one, ask the application for
//!   the rest of the object, discard the head of its answer, and splice the rest into the client's connection. If the
//!   client has everything, answer its packet.
//! - On an acknowledgment of what this server never sent: the connection went on elsewhere; reset the application's end
//!   and recover the connection anew.
//! - On a reset, a SYN or an acknowledgment of a client that does not stand where its own would: change nothing.
//! - On a reset or an early FIN of the application: hide it, and report that the application failed.
//! - On what is not understood: pass it through untouched and count it.
//!
//! `docs/gateway-trods.md` lists where this differs from the paper, and what is missing.

pub mod balance;
mod config;
mod connection;
mod gateway;
mod http;
mod isn;
mod limits;
mod mapping;
mod output;
pub mod packet;
mod record;
pub mod seq;
pub mod sim;
mod stamp;
mod store;

pub use config::{Config, Mode, Objects, ObjectsError, Rules};
pub use gateway::Trods;
pub use output::{Counters, Now, Output, Side, Verdict};
pub use store::{Key, StoreOp, StoreOutcome, Ticket};
