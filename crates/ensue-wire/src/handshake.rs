//! The first bytes of a connection between cores: who each side is, and which version both speak.
//!
//! ```text
//!   0        8       10      12              28    29    30    32      36      38     40              72       76
//!  +--------+-------+-------+---------------+-----+-----+-----+-------+-------+------+---------------+--------+
//!  | magic  |version|version|cluster's hash | dc  | dcs |core | boot  |parti- |flags | proof of the  | CRC-32 |
//!  | 8 bytes|min u16|max u16|16 bytes       | u8  | u8  | u16 | u32   |tions  | u16  | secret, or 0  | of 0-72|
//!  +--------+-------+-------+---------------+-----+-----+-----+-------+-------+------+---------------+--------+
//! ```
//!
//! Each side sends one `Hello` before any frame; its layout is the same in every version, for all time. `Hello::next`
//! takes it off a connection and knows from the first bytes when something else is talking. `negotiate` compares the
//! two and is a pure function: both sides come to the same version, or one of them refuses.
//!
//! The proof keeps out who does not know the secret and cannot listen. It is the same bytes in each connection, so it
//! does not keep out who can: that is for encryption around the connection. So that nobody learns a proof by dialling,
//! the side that accepts sends its `Hello` after it has accepted the other's.

mod identity;
mod negotiation;

#[cfg(test)]
mod tests;

use bytes::{Buf, BytesMut};
use ensue_types::{CoreId, DatacenterId};
use std::fmt;

pub use identity::{SecretProof, cluster_hash};
pub use negotiation::{HandshakeError, negotiate, negotiate_dialled};

/// What an Ensue connection begins with. The first byte is no letter and the last two break on a text mode transfer,
/// so that no request of a text protocol gets past byte one.
pub const MAGIC: [u8; 8] = *b"\x89ENSUE\r\n";

/// Bytes of a `Hello`, in every version.
pub const HELLO_BYTES: usize = 76;

const FLAG_PROOF: u16 = 1;
const CHECKED_BYTES: usize = 72;

/// Who speaks, as each side says it first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub wire_version_min: u16,
    pub wire_version_max: u16,
    /// `cluster_hash` of the cluster's name.
    pub cluster: [u8; 16],
    pub datacenter: DatacenterId,
    pub core: CoreId,
    /// Differs between two runs of the same process.
    pub boot: u32,
    /// Partitions of the cluster.
    pub partitions: u16,
    /// Datacenters of the cluster.
    pub datacenters: u8,
    /// Present where the cluster has a secret.
    pub secret_proof: Option<SecretProof>,
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

impl Hello {
    /// The bytes to send first.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let (flags, proof) = match &self.secret_proof {
            Some(SecretProof(proof)) => (FLAG_PROOF, *proof),
            None => (0, [0; 32]),
        };
        let mut bytes = [0; HELLO_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.wire_version_min.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.wire_version_max.to_le_bytes());
        bytes[12..28].copy_from_slice(&self.cluster);
        bytes[28] = self.datacenter.0;
        bytes[29] = self.datacenters;
        bytes[30..32].copy_from_slice(&self.core.0.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.boot.to_le_bytes());
        bytes[36..38].copy_from_slice(&self.partitions.to_le_bytes());
        bytes[38..40].copy_from_slice(&flags.to_le_bytes());
        bytes[40..72].copy_from_slice(&proof);
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

    /// What these bytes say. Flags that this release does not know are ignored, so that later ones can offer things.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Hello, HandshakeError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(stranger(bytes));
        }
        let computed = crc32fast::hash(&bytes[..CHECKED_BYTES]);
        let announced = u32::from_le_bytes(field(bytes, CHECKED_BYTES));
        if computed != announced {
            return Err(HandshakeError::Checksum { announced, computed });
        }
        let has_proof = u16::from_le_bytes(field(bytes, 38)) & FLAG_PROOF != 0;
        Ok(Hello {
            wire_version_min: u16::from_le_bytes(field(bytes, 8)),
            wire_version_max: u16::from_le_bytes(field(bytes, 10)),
            cluster: field(bytes, 12),
            datacenter: DatacenterId(bytes[28]),
            datacenters: bytes[29],
            core: CoreId(u16::from_le_bytes(field(bytes, 30))),
            boot: u32::from_le_bytes(field(bytes, 32)),
            partitions: u16::from_le_bytes(field(bytes, 36)),
            secret_proof: has_proof.then(|| SecretProof(field(bytes, 40))),
        })
    }

    /// The core that says this.
    pub fn name(&self) -> CoreName {
        CoreName { datacenter: self.datacenter, core: self.core }
    }

    /// The versions that it speaks.
    pub fn versions(&self) -> VersionRange {
        VersionRange { min: self.wire_version_min, max: self.wire_version_max }
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
