//! Every bound of the shell in one place, with the reason for each figure. Those of the core are in `ensue-types`.

use std::time::Duration;

/// Bytes taken from a socket in one system call.
pub const READ_BYTES: usize = 64 << 10;
/// Bytes taken from one socket before the others have their turn.
pub const READ_BYTES_PER_TURN: usize = 256 << 10;
/// Commands that a core takes in one turn from those who have many: about a millisecond of work. Everybody who sent
/// one command meanwhile waits for the turn's end, and then for the end of the turn that has it. A turn has costs of
/// its own, mostly an append to each log, of some dozen commands (decision 14 has the figures).
pub const COMMANDS_PER_TURN: usize = 1_024;
/// One connection's share of them is at least this, and more connections have their shares in later turns: each share
/// is a message to a partition and back, of about two commands' work.
pub const COMMANDS_PER_SHARE_MIN: usize = 128;
/// When they are up, who has not left any in the turn before still has so many: those may be all.
pub const COMMANDS_OF_A_NEWCOMER: usize = 16;
/// A connection whose commands wait for a disk or for another core may have as many turns ahead as this is commands.
pub const COMMANDS_AHEAD_MIN: usize = 256;
/// Answers of a connection that has more to do in its next turn are written when they are so many bytes, or with its
/// last one.
pub const WRITE_BYTES_MIN: usize = 16 << 10;
/// Before authentication: bytes taken from a socket in one system call, and in one turn.
pub const READ_BYTES_BEFORE_AUTH: usize = 4 << 10;
pub const BYTES_PER_TURN_BEFORE_AUTH: usize = 16 << 10;
/// Commands that wait for their answers, and bytes of answers that wait for their reader, before authentication.
pub const COMMANDS_BEFORE_AUTH_MAX: usize = 8;
pub const OUTPUT_BYTES_BEFORE_AUTH_MAX: usize = 4 << 10;
/// How long a connection may take to authenticate where a password is set.
pub const AUTHENTICATION_US: u64 = 10_000_000;
/// Errands of sessions that wait for their thread: about as many passwords as it compares within a request's time.
pub const ERRANDS_WAITING_MAX: usize = 128;
/// Connections accepted before the connected ones have their turn.
pub const ACCEPTS_PER_TURN: usize = 128;
/// How long the listener rests when the process has no file descriptors left.
pub const ACCEPT_PAUSE_US: u64 = 100_000;
/// Rounds of outputs and disk work within a turn before the sockets have their turn.
pub const ROUNDS_PER_TURN: usize = 64;
/// How long finished disk work is taken up before the sockets have their turn: a partition that reads its log may
/// have work for seconds.
pub const TURN_US_MAX: u64 = 5_000;
/// How often idle clients, lingering connections and unfinished handshakes are looked at.
pub const HOUSEKEEPING_US: u64 = 500_000;
/// How long a connection that was told why it is closed may take to read it.
pub const LINGER_US: u64 = 1_000_000;
/// How long answers may take to leave on a connection that is over, however little its client reads of them.
pub const CLOSING_US: u64 = 30_000_000;
/// More refused clients of a core than this are not given time to read why: each holds a file descriptor and has no
/// seat.
pub const LINGERING_MAX: usize = 64;

/// A buffer that grew beyond this for one big request or answer is given back when it is empty.
pub const BUFFER_KEPT_BYTES: usize = 64 << 10;

/// Bytes that may wait for one peer. The streams are windowed by the node: all partitions together stay below half.
pub const PEER_OUTPUT_BYTES_MAX: usize = 512 << 20;
/// When so many wait, what clients publish is dropped: a link is there for replication first.
pub const PEER_MESSAGES_BYTES_MAX: usize = 64 << 20;
/// Connections that have not proved yet which peer they are; each holds a file descriptor.
pub const STRANGERS_MAX: usize = 64;
/// So many strangers of one network are a crowd, of which one makes room for whoever comes.
pub const CROWD_MIN: usize = 8;
/// One of a crowd makes room at most so often: a peer among 64 of the same network stays for the time that it needs.
pub const CROWD_PACE_US: u64 = 2_000;
/// How long one of them may take to prove it: two delays of the longest link, and a turn of a busy core. With TLS,
/// which takes more of them, as long as a connection that we dialled.
pub const STRANGER_US: u64 = 1_000_000;
/// One that came longer ago than this and is silent gives way when there are too many. A peer says its hello as soon as
/// its core runs again after the connection was made, which on a machine with more work than processors takes a while.
pub const STRANGER_SILENT_US: u64 = 150_000;
/// The same where it has said who it is, and we wait for its proof: a delay of the longest link, twice.
pub const STRANGER_CLAIMED_US: u64 = 500_000;
/// Connections of peers accepted before the connected ones have their turn.
pub const PEER_ACCEPTS_PER_TURN: usize = 64;
/// How long a handshake may take on a connection that we dialled.
pub const HANDSHAKE_US: u64 = 3_000_000;
/// Longest file of keys: a line for each of the most datacenters, and comments.
pub const SECRET_BYTES_MAX: u64 = 64 << 10;
/// First pause before a peer is dialled again; it doubles up to the longest one.
pub const REDIAL_US_MIN: u64 = 50_000;
pub const REDIAL_US_MAX: u64 = 1_000_000;
/// How long a peer may leave unacknowledged what was sent to it, or its window shut, before the link counts as broken:
/// the machine lost its power, or something between drops the flow. The system's own bound is a quarter of an hour.
pub const PEER_ANSWERS_MS_MAX: u32 = 10_000;
/// A link on which nothing arrives for so long is probed, so that a broken one is noticed where nothing is sent, too.
pub const PEER_PROBE_AFTER_S: u64 = 5;
pub const PEER_PROBE_INTERVAL_S: u64 = 2;
/// Unanswered probes after which it counts as broken; Linux goes by the time above.
pub const PEER_PROBES_MAX: u32 = 3;

/// Open files of a partition.
pub const OPEN_FILES_MAX: usize = 4;
/// Files that a partition holds at the most: a file of its log and one of a checkpoint may be synced when they are
/// closed already.
pub const PARTITION_FILES_MAX: usize = OPEN_FILES_MAX + 2;
/// What a core has open besides: its poll and waker, its socket for peers, a file that is replaced or rewritten and its
/// folder, and the folder that its other thread syncs.
pub const CORE_DESCRIPTORS: usize = 8;
/// What the process has open besides: standard streams, signals, sockets for clients, locks, names being looked up.
pub const PROCESS_DESCRIPTORS_RESERVE: usize = 64;

/// How long clients are still served when the process is to end: those that wait for an answer, and those whose
/// command has arrived in part.
pub const DRAIN_MS_MAX: u64 = 2_000;
/// How long the cores may take to stop cleanly.
pub const STOP_MS_MAX: u64 = 20_000;

/// Files that may include each other in a row.
pub const INCLUDE_DEPTH_MAX: usize = 8;
/// Longest configuration file.
pub const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// Cores of a node.
pub const CORES_MAX: u16 = 256;

/// How long the cores of a node may take to come to a stop for a backup; those that came wait as long.
pub const BACKUP_GATE_MS: u64 = 500;
/// How long a disk may take to write what waited for a sync at the moment of a backup.
pub const BACKUP_WRITTEN_MS: u64 = 3_000;
/// A backup that nobody has read of for so long is let go.
pub const BACKUP_KEPT_S: u64 = 900;
/// Bytes at the end of a file whose checksum says whether a copy of it is the same.
pub const BACKUP_CHECKED_BYTES: u64 = 16 << 10;
/// Reads of a backup that wait, of all clients of a node.
pub const BACKUP_READS_WAITING_MAX: usize = 64;
/// How long nothing is read in the background before everything is read anew.
pub const SCRUB_PAUSE: Duration = Duration::from_secs(10);
/// How long a file that looks damaged is left alone before it is looked at again.
pub const SCRUB_SECOND_LOOK: Duration = Duration::from_secs(1);
/// Bytes that are read in the background at once.
pub const SCRUB_READ_BYTES: u64 = 64 << 10;
/// The lowest rate: a piece a second.
pub const SCRUB_BYTES_PER_SECOND_MIN: u64 = SCRUB_READ_BYTES;
/// Connections of the metrics port, each of which has a thread as long as it lasts.
pub const METRICS_CONNECTIONS_MAX: usize = 16;
/// So many of them are left to this machine.
pub const METRICS_LOCAL_CONNECTIONS: usize = 4;
/// How long one may take from its first byte to its last one, in each direction, and longest head of a request.
pub const METRICS_TRANSFER_MS: u64 = 5_000;
pub const METRICS_HEAD_BYTES_MAX: usize = 8 << 10;
/// Keys of which the page shows more than the name at once, and conflicts.
pub const BROWSED_KEYS_MAX: usize = 100;
pub const BROWSED_CONFLICTS_MAX: usize = 100;
/// Steps of a scan that look for them: each is of at least 50 keys, or of what is left of a partition.
pub const BROWSED_STEPS_MAX: usize = 32;
/// Bytes that a value may take in memory for its first elements to be read: one of them may be as long as all.
pub const BROWSED_BYTES_MAX: i64 = 64 << 10;
/// How long it may then take to close its side.
pub const METRICS_DRAIN_MS: u64 = 500;
/// How old an observation may be that is shown again, and how much longer than a request a core may take for one.
pub const OBSERVATION_FRESH_MS: u64 = 100;
pub const OBSERVATION_WAIT_MS: u64 = 1_000;

/// Longest line on the admin port and between the processes of a dev cluster.
pub const ADMIN_LINE_BYTES_MAX: u64 = 4 << 10;

/// Records of operators' commands that may wait for the thread that writes them, a node.
pub const AUDITS_WAITING_MAX: usize = 4_096;
