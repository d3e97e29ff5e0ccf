//! Every bound of this crate in one place, with the reason for each figure.

use std::time::Duration;

/// Packets that the kernel holds for one queue: what a few connections with full windows send at once.
pub const QUEUED_PACKETS_MAX: u32 = 16 << 10;
/// Bytes of packets between kernel and gateway: a burst of some thousand segments. What finds no room is dropped.
pub const QUEUED_BYTES_MAX: usize = 16 << 20;
/// Operations that wait for the store; further ones fail, and their responses flow unprotected.
pub const STORE_QUEUE_MAX: usize = 4096;
/// Lookups among them; further ones fail. Anybody can cause one, so they leave room for records to be saved.
pub const STORE_LOOKUPS_MAX: usize = 1024;
/// Operations in one round trip to the store.
pub const STORE_BATCH_MAX: usize = 128;
/// How long the store may take to accept a connection.
pub const STORE_CONNECT_MAX: Duration = Duration::from_secs(1);
/// How long the store may take to answer: a response that waits is late, and one that does not is unprotected.
pub const STORE_ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long operations fail at once after the store could not be reached.
pub const STORE_PAUSE: Duration = Duration::from_millis(100);
/// Connections that the store in memory remembers; of more, the smallest key is forgotten.
pub const MEMORY_CONNECTIONS_MAX: usize = 65_536;
/// How often forgotten connections are looked for.
pub const TICK: Duration = Duration::from_millis(250);
/// How often the gateway asks whether its application accepts connections.
pub const PROBE_EVERY: Duration = Duration::from_millis(100);
/// How long the application may take to accept one.
pub const PROBE_MAX: Duration = Duration::from_millis(500);
/// Bytes of a datagram between monitor and gateway.
pub const HEARTBEAT_BYTES_MAX: usize = 64;
/// Servers of one balancer, each of which has a routing table and a mark.
pub const SERVERS_MAX: usize = 64;
