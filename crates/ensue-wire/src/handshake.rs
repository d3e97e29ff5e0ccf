//! The first bytes of a connection between cores: who each side is and proves to be, which version both speak, and that
//! they are configured alike.
//!
//! ```text
//!   0        8       10      12     14     16      20       52               116              180      184
//!  +--------+-------+-------+------+------+-------+--------+----------------+----------------+--------+
//!  | magic  |version|version|flags | core | boot  | nonce  | cluster's name | datacenter's   | CRC-32 |
//!  | 8 bytes|min u16|max u16| u16  | u16  | u32   |32 bytes| 64 bytes       | name, 64 bytes |of 0-180|
//!  +--------+-------+-------+------+------+-------+--------+----------------+----------------+--------+
//! ```
//!
//! Each side sends one `Hello` before anything else; its layout is the same in every version, for all time. Then each
//! shows a proof, made of both hellos and the key that the two datacenters share, and then, in the first frame of each
//! direction, its settings. [`Handshake`] takes these steps on bytes, for either side. `negotiate` compares two
//! hellos and
//! is a pure function: both sides come to the same version, or one of them refuses.
//!
//! The accepting side answers every well-formed hello with its own, so that both know why they part; a hello has no
//! secret.
//! The settings, which say how the cluster is built, are shown to nobody who has proved nothing.

mod identity;
mod key;
mod negotiation;
mod settings;
mod steps;

#[cfg(test)]
mod tests;

use bytes::{Buf, BytesMut};
use ensue_types::{CoreId, DatacenterId};
use std::fmt;

pub use identity::cluster_hash;
pub use key::{PROOF_BYTES, SharedKey, Side};
pub use negotiation::{HandshakeError, negotiate, negotiate_dialled};
pub use settings::{
    DATACENTERS, Difference, Differences, OF_A_DATACENTER, SETTINGS_BYTES_MAX, Scope, Setting, Settings,
};
pub use steps::{Handshake, Identity, Joined, Keys};

/// What an Ensue connection begins with. The first byte is no letter and the last two break on a text mode transfer,
/// so that no request of a text protocol gets past byte one.
pub const MAGIC: [u8; 8] = *b"\x89ENSUE\r\n";

/// Bytes of a `Hello`, in every version.
pub const HELLO_BYTES: usize = 184;
/// Bytes of a nonce: two connections never have the same.
pub const NONCE_BYTES: usize = 32;
/// Longest name of a cluster or a datacenter.
pub const NAME_BYTES_MAX: usize = 64;

/// This side has a secret, and so believes nobody without one.
pub const FLAG_SECRET: u16 = 1;

const CLUSTER_AT: usize = 52;
const DATACENTER_AT: usize = 116;
const CHECKED_BYTES: usize = 180;

/// Who speaks, as each side says it first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub wire_version_min: u16,
    pub wire_version_max: u16,
    pub cluster: String,
    /// By its name: two configurations may count differently.
    pub datacenter: String,
    pub core: CoreId,
    /// Differs between two runs of the same process.
    pub boot: u32,
    /// Differs between two connections, and cannot be foreseen.
    pub nonce: [u8; NONCE_BYTES],
    /// `FLAG_SECRET`; those that this release does not know are kept and mean nothing, so that later ones can offer
    /// things.
    pub flags: u16,
}

/// A core of the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreName {
    pub datacenter: DatacenterId,
    pub core: CoreId,
}

/// The versions that one side speaks, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRange {
    pub min: u16,
    pub max: u16,
}

/// What else a connection seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    Http,
    Redis,
    Tls,
    Ssh,
    Unknown,
}

/// What may be a name: letters, digits, `-` and `_`, as the configuration takes it.
pub fn is_name(word: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !word.is_empty() && word.len() <= NAME_BYTES_MAX && word.bytes().all(good)
}

impl Hello {
    /// The bytes to send first.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.wire_version_min.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.wire_version_max.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.flags.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.core.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.boot.to_le_bytes());
        bytes[20..CLUSTER_AT].copy_from_slice(&self.nonce);
        for (at, name) in [(CLUSTER_AT, &self.cluster), (DATACENTER_AT, &self.datacenter)] {
            assert!(is_name(name), "'{name}' is no name");
            bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
        }
        let checksum = crc32fast::hash(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Takes the peer's `Hello` off the front of what a connection has received, once all of it is there. Refuses as
    /// soon as a byte cannot be the beginning of one.
    pub fn next(buffer: &mut BytesMut) -> Result<Option<Hello>, HandshakeError> {
        let known = buffer.len().min(MAGIC.len());
        if buffer[..known] != MAGIC[..known] {
            return Err(stranger(buffer));
        }
        let Some(bytes) = buffer.first_chunk::<HELLO_BYTES>() else { return Ok(None) };
        let hello = Hello::decode(bytes)?;
        buffer.advance(HELLO_BYTES);
        Ok(Some(hello))
    }

    /// What these bytes say; it encodes to the same.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Hello, HandshakeError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(stranger(bytes));
        }
        let computed = crc32fast::hash(&bytes[..CHECKED_BYTES]);
        let announced = u32::from_le_bytes(field(bytes, CHECKED_BYTES));
        if computed != announced {
            return Err(HandshakeError::Checksum { announced, computed });
        }
        Ok(Hello {
            wire_version_min: u16::from_le_bytes(field(bytes, 8)),
            wire_version_max: u16::from_le_bytes(field(bytes, 10)),
            flags: u16::from_le_bytes(field(bytes, 12)),
            core: CoreId(u16::from_le_bytes(field(bytes, 14))),
            boot: u32::from_le_bytes(field(bytes, 16)),
            nonce: field(bytes, 20),
            cluster: name_at(bytes, CLUSTER_AT)?,
            datacenter: name_at(bytes, DATACENTER_AT)?,
        })
    }

    pub fn has_secret(&self) -> bool {
        self.flags & FLAG_SECRET != 0
    }

    /// The versions that it speaks.
    pub fn versions(&self) -> VersionRange {
        VersionRange { min: self.wire_version_min, max: self.wire_version_max }
    }

    /// The core that says this, in words.
    pub fn speaker(&self) -> Speaker {
        Speaker { datacenter: self.datacenter.clone(), core: self.core }
    }
}

/// A core as it names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    pub datacenter: String,
    pub core: CoreId,
}

impl fmt::Display for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core {} of {}", self.core.0, self.datacenter)
    }
}

/// A name, filled up with zeros.
fn name_at(bytes: &[u8; HELLO_BYTES], at: usize) -> Result<String, HandshakeError> {
    let field: [u8; NAME_BYTES_MAX] = field(bytes, at);
    let length = field.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES_MAX);
    let (name, rest) = field.split_at(length);
    match std::str::from_utf8(name) {
        Ok(name) if is_name(name) && rest.iter().all(|&byte| byte == 0) => Ok(name.to_owned()),
        _ => Err(HandshakeError::NoName { shown: field.escape_ascii().to_string() }),
    }
}

/// The bytes of a field. Every caller names an offset that leaves room for it.
fn field<const N: usize>(bytes: &[u8; HELLO_BYTES], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// Enough of a stranger's bytes to recognise it by in a log.
const SHOWN_BYTES: usize = 16;

fn stranger(bytes: &[u8]) -> HandshakeError {
    let shown = bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii().to_string();
    HandshakeError::NotEnsue { speaks: Foreign::recognise(bytes), shown }
}

impl Foreign {
    /// A guess for the log, from whatever has arrived.
    pub fn recognise(bytes: &[u8]) -> Foreign {
        const HTTP: [&[u8]; 9] = [
            b"GET ",
            b"HEAD ",
            b"POST ",
            b"PUT ",
            b"DELETE ",
            b"OPTIONS ",
            b"CONNECT ",
            b"PATCH ",
            b"PRI * HTTP",
        ];
        const INLINE: [&[u8]; 5] = [b"PING", b"AUTH ", b"HELLO", b"INFO", b"QUIT"];
        if HTTP.iter().any(|start| bytes.starts_with(start)) {
            Foreign::Http
        } else if bytes.starts_with(b"SSH-") {
            Foreign::Ssh
        } else if bytes.starts_with(&[0x16, 0x03]) {
            Foreign::Tls
        } else if bytes.starts_with(b"*")
            || INLINE
                .iter()
                .any(|name| bytes.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
        {
            Foreign::Redis
        } else {
            Foreign::Unknown
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Foreign::Http => "an HTTP request",
            Foreign::Redis => "a Redis client, whose port is another one",
            Foreign::Tls => "the beginning of TLS",
            Foreign::Ssh => "SSH",
            Foreign::Unknown => "something unknown",
        })
    }
}

impl fmt::Display for CoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core {} of {}", self.core.0, self.datacenter)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.min, self.max)
    }
}
