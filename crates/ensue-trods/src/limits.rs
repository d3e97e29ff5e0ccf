//! Every bound of this crate in one place, with the reason for each figure.

/// Connections of one gateway; when so many are known, a further SYN takes the place of the oldest one that is not open
/// yet. If all are open, it is dropped, and its client tries again.
pub const CONNECTIONS_MAX: usize = 65_536;
/// Bytes of a request head that is followed.
pub const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Bytes of a response head that is followed: what an initial congestion window of ten segments carries.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 8 << 10;
/// Packets of a response that may be held until its record is saved; the server sends further ones again.
pub const HELD_PACKETS_MAX: usize = 64;
/// How often a save that failed is repeated.
pub const SAVES_AGAIN_MAX: u32 = 3;
/// Longest body that a recovery can find its place in: a difference of sequence numbers is unambiguous below 2 GiB.
pub const BODY_BYTES_MAX: u64 = 1 << 30;
/// How long a record stays in the store when nobody deletes it, in seconds: far longer than a client's TCP repeats a
/// request, since nobody renews it.
pub const RECORD_EXPIRY_SECONDS: u64 = 60 * 60;
/// How long a silent connection stays in the table, in microseconds: past the 13 minutes after which TCP resets it.
pub const IDLE_US_MAX: u64 = 15 * 60 * 1_000_000;
/// How long a connection may take to open, in microseconds since its last SYN: a client waits 7 s between its third SYN
/// and its fourth.
pub const OPENING_US_MAX: u64 = 10_000_000;
/// Recoveries under way, and recovered connections whose client has acknowledged nothing new. Anybody can begin one.
pub const RECOVERIES_MAX: usize = 4096;
/// How long such a connection stays in the table after a packet of its client, in microseconds.
pub const UNCONFIRMED_US_MAX: u64 = 10_000_000;
/// How far before and after what it sent a client's packet is believed to be its own.
pub const SEQ_BEHIND_MAX: i32 = 64 << 10;
/// The same after it: requests that were cut off and are not passed yet.
pub const SEQ_AHEAD_MAX: i32 = 1 << 20;
/// How long a closed connection is remembered, in microseconds, so that a repeated FIN is still acknowledged.
pub const LINGER_US: u64 = 4_000_000;
/// How long a connection whose application failed is silenced, in microseconds, before it may be recovered here.
pub const BROKEN_US: u64 = 1_000_000;
/// How long a recovery may take until the next packet of the client starts it anew, in microseconds.
pub const RECOVERY_US_MAX: u64 = 1_000_000;
/// Ports of the local address from which connections are recovered.
pub const LOCAL_PORTS: std::ops::RangeInclusive<u16> = 1024..=65_535;
/// Segment size of a client whose SYN was seen by another server and whose record does not tell it, in bytes: what fits
/// into the smallest packet of IPv6, which tunnels have room for.
pub const SEGMENT_SIZE_ASSUMED: u16 = 1220;
/// First window of a client whose SYN was seen by another server and whose scale is not known, in bytes: what Linux,
/// Windows and macOS have at least. A client with a smaller one discards what is too much, and gets it again.
pub const WINDOW_ASSUMED: u32 = 65_535;
/// Smallest window that a client of a recovered connection is shown, before scaling: a request fits whatever it is.
pub const WINDOW_SHOWN_MIN: u16 = 8 << 10;
/// Largest shift count of a window (RFC 7323).
pub const SCALE_MAX: u8 = 14;
/// Segment size of a client that names none (RFC 9293), in bytes.
pub const SEGMENT_SIZE_DEFAULT: u16 = 536;
/// How far a recovered connection's timestamps start after the last one that the client echoed, in clock ticks: more
/// than the dead server's clock can have advanced in packets that are still under way.
pub const STAMP_MARGIN: u32 = 1 << 16;
/// Steps that the index of a timestamp may be ahead of the last echo: below half of its 128 values, so that a client
/// never takes the newest timestamp for an old one.
pub const STAMP_STEPS_MAX: u32 = 60;
/// For how many ticks of the server's clock, which are milliseconds, packets that share an index count as the first of
/// them.
pub const STAMP_SHARED_MAX: u32 = 1000;
/// Object identifiers that fit into a timestamp.
pub const OBJECTS_MAX: usize = 1 << 16;
/// A SYN that lies no further than so many bytes before what a client sent is an old copy of the connection's own.
pub const OLD_SYN_BYTES_MAX: i32 = 1 << 20;
/// Clients whose last packet a balancer remembers.
pub const REMINDERS_MAX: usize = 65_536;
/// How long a silent client is remembered by a balancer, in microseconds: the longest wait of Linux between two
/// repetitions.
pub const REMINDER_US_MAX: u64 = 120 * 1_000_000;
