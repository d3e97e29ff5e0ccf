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

/// Connections of clients to a sketcher, each of which has a thread.
pub const CLIENTS_MAX: usize = 1024;
/// Connections to a replica that have not proved whose they are; each has a thread.
pub const STRANGERS_MAX: usize = 256;
/// Links of one member to a replica, of which former ones may not have ended yet.
pub const LINKS_A_MEMBER_MAX: usize = 4;
/// How long the first messages of a link may take, and a connection to be made.
pub const GREETING_MAX: Duration = Duration::from_secs(2);
/// How long a peer may take nothing of what it is sent.
pub const WRITE_MAX: Duration = Duration::from_secs(5);
/// How long a member may say nothing to a replica. Replicas say several times a second how far they are.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Pause between two empty frames of a sketcher to each replica, by which its links are known to be alive.
pub const PING_PAUSE: Duration = Duration::from_secs(1);
/// Pause between two attempts to connect to a replica.
pub const CONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Bytes that wait to be written to one peer: four of the longest answers. What finds no room is dropped.
pub const OUTBOX_BYTES_MAX: usize = 64 << 20;
/// Messages that wait for the machine of a process; who has more waits to read the next one.
pub const EVENTS_MAX: usize = 64;
/// Events that are handled before what follows from them is carried out, so that they share one sync.
pub const EVENTS_A_TURN: usize = 64;
/// Threads of a replica that execute fast reads, each with a connection to the application.
pub const FAST_WORKERS: usize = 8;
/// Fast reads that wait for one of them; further ones are dropped, and their sketcher reads replicated.
pub const FAST_JOBS_MAX: usize = 1024;
/// How long the application may take to load its data before its replica starts.
pub const START_MAX: Duration = Duration::from_secs(30);
/// How long the application may take for a request of the order, all of it; meanwhile nothing else is executed. Less
/// than the sketcher waits, so that it hears that there is no response.
pub const EXECUTE_MAX: Duration = Duration::from_secs(5);
/// How long the application may take no connection, before its replica stops.
pub const RECONNECT_MAX: Duration = Duration::from_secs(30);
/// How long the application may take for a fast read, which the sketcher does not wait for so long.
pub const FAST_MAX: Duration = Duration::from_secs(2);
/// Bytes of the header of an HTTP message.
pub const HTTP_HEAD_MAX: usize = 64 << 10;
/// How long a client may be silent between two requests.
pub const CLIENT_IDLE_MAX: Duration = Duration::from_secs(300);
/// Bytes of a client that are read after it was refused, and how long it may be silent then.
pub const REFUSED_BYTES_MAX: usize = 16 << 20;
pub const REFUSED_IDLE_MAX: Duration = Duration::from_secs(1);
/// Bytes of the blocks that a replica keeps, all since the first. A replica that has more stops.
pub const BLOCKS_BYTES_MAX: u64 = 64 << 30;
/// Bytes of a group file or of a secret: some hundred bytes for each member.
pub const MEMBERS_BYTES_MAX: u64 = 1 << 20;
