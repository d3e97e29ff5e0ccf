//! An IPv4 packet that carries TCP: parsed from bytes, built to bytes.
//!
//! Options that are not known here are kept as bytes and built again as they were. IPv4 options and fragments are
//! rejected with a typed error: the caller passes such packets untouched.

mod checksum;
mod options;
mod patch;
#[cfg(test)]
mod tests;

pub use options::{Options, SACK_BLOCKS_MAX, Timestamps};
pub use patch::patched;

use crate::seq::Seq;
use checksum::Checksum;
use core::net::Ipv4Addr;
use std::fmt;
use thiserror::Error;

/// Bytes of an IPv4 header without options.
pub const IP_HEADER: usize = 20;
/// Bytes of a TCP header without options.
pub const TCP_HEADER: usize = 20;

const PROTOCOL_TCP: u8 = 6;
const FLAG_DO_NOT_FRAGMENT: u16 = 0x4000;

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The IPv4 address.
    pub address: Ipv4Addr,
    /// The TCP port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.address, self.port)
    }
}

/// The flags of a TCP header, with the bits as they stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push the data to the application.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(0x10);

    /// Whether all flags of `other` are set.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and those of `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These flags without those of `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// A TCP segment in an IPv4 packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Who sent it.
    pub source: Endpoint,
    /// Who is to receive it.
    pub destination: Endpoint,
    /// Sequence number of the first byte of the payload, or of SYN or FIN.
    pub seq: Seq,
    /// The next sequence number that the sender expects, valid with the flag ACK.
    pub ack: Seq,
    /// Flags of the TCP header.
    pub flags: Flags,
    /// Receive window, before scaling.
    pub window: u16,
    /// TCP options.
    pub options: Options,
    /// Bytes of the stream.
    pub payload: Vec<u8>,
    /// Identification of the IPv4 header.
    pub identification: u16,
    /// Time to live of the IPv4 header.
    pub time_to_live: u8,
}

/// Why bytes are no packet that this crate handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// Fewer bytes than the headers say.
    #[error("{have} bytes, and the headers need {need}")]
    Short {
        /// Bytes that are there.
        have: usize,
        /// Bytes that are needed.
        need: usize,
    },
    /// Not version 4.
    #[error("IP version {0}")]
    Version(u8),
    /// Not TCP.
    #[error("IP protocol {0}")]
    Protocol(u8),
    /// A fragment, or an IPv4 header with options.
    #[error("an IPv4 fragment or IPv4 options")]
    Unsupported,
    /// A length field that contradicts another.
    #[error("a length in the headers contradicts another")]
    Length,
    /// An option that does not end where it says.
    #[error("a TCP option is cut off")]
    Option,
    /// The sum over the header or the segment is wrong.
    #[error("a checksum is wrong")]
    Checksum,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn double_word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::from(double_word(bytes, at))
}

/// The source and the destination of a packet, read without validating the rest. `None` if it is no TCP over IPv4.
#[must_use]
pub fn ends(bytes: &[u8]) -> Option<(Endpoint, Endpoint)> {
    let is_tcp = bytes.len() >= IP_HEADER + 4 && bytes[0] == 0x45 && bytes[9] == PROTOCOL_TCP;
    is_tcp.then(|| {
        let source = Endpoint { address: address(bytes, 12), port: word(bytes, IP_HEADER) };
        let destination = Endpoint { address: address(bytes, 16), port: word(bytes, IP_HEADER + 2) };
        (source, destination)
    })
}

/// The flags of a packet, read without validating the rest. `None` if it is no TCP over IPv4.
#[must_use]
pub fn flags(bytes: &[u8]) -> Option<Flags> {
    ends(bytes)?;
    bytes.get(IP_HEADER + 13).copied().map(Flags)
}

impl Packet {
    /// A packet without options, payload and flags but ACK.
    #[must_use]
    pub fn acknowledgment(source: Endpoint, destination: Endpoint, seq: Seq, ack: Seq) -> Self {
        Self {
            source,
            destination,
            seq,
            ack,
            flags: Flags::ACK,
            window: u16::MAX,
            options: Options::default(),
            payload: Vec::new(),
            identification: 0,
            time_to_live: 64,
        }
    }

    /// Parses an IPv4 packet.
    ///
    /// # Errors
    /// [`PacketError`] says what is wrong or unsupported; nothing of such a packet may be used.
    pub fn parse(bytes: &[u8]) -> Result<Self, PacketError> {
        let short = |need| PacketError::Short { have: bytes.len(), need };
        if bytes.len() < IP_HEADER + TCP_HEADER {
            return Err(short(IP_HEADER + TCP_HEADER));
        }
        if bytes[0] >> 4 != 4 {
            return Err(PacketError::Version(bytes[0] >> 4));
        }
        if bytes[9] != PROTOCOL_TCP {
            return Err(PacketError::Protocol(bytes[9]));
        }
        if bytes[0] & 0x0f != 5 || word(bytes, 6) & !FLAG_DO_NOT_FRAGMENT != 0 {
            return Err(PacketError::Unsupported);
        }
        let total = usize::from(word(bytes, 2));
        if total > bytes.len() {
            return Err(short(total));
        }
        if total < IP_HEADER + TCP_HEADER {
            return Err(PacketError::Length);
        }
        let tcp = &bytes[IP_HEADER..total];
        let header = usize::from(tcp[12] >> 4) * 4;
        if header < TCP_HEADER || header > tcp.len() {
            return Err(PacketError::Length);
        }
        if Checksum::of(&bytes[..IP_HEADER]).value() != 0 || Checksum::of_segment(bytes, tcp).value() != 0 {
            return Err(PacketError::Checksum);
        }
        Ok(Self {
            source: Endpoint { address: address(bytes, 12), port: word(tcp, 0) },
            destination: Endpoint { address: address(bytes, 16), port: word(tcp, 2) },
            seq: Seq(double_word(tcp, 4)),
            ack: Seq(double_word(tcp, 8)),
            flags: Flags(tcp[13]),
            window: word(tcp, 14),
            options: Options::parse(&tcp[TCP_HEADER..header])?,
            payload: tcp[header..].to_vec(),
            identification: word(bytes, 4),
            time_to_live: bytes[8],
        })
    }

    /// The bytes of the packet, with both checksums.
    ///
    /// # Panics
    /// If options and payload do not fit into one IPv4 packet; whoever makes longer streams cuts them into segments.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut options = Vec::new();
        self.options.build(&mut options);
        let header = TCP_HEADER + options.len();
        let total = IP_HEADER + header + self.payload.len();
        let total_field = u16::try_from(total).expect("a segment fits into one IPv4 packet");
        let words = u8::try_from(header / 4).expect("options are at most 40 bytes");
        assert!(words <= 15, "options are at most 40 bytes");
        let mut bytes = Vec::with_capacity(total);
        bytes.extend_from_slice(&[0x45, 0]);
        bytes.extend_from_slice(&total_field.to_be_bytes());
        bytes.extend_from_slice(&self.identification.to_be_bytes());
        bytes.extend_from_slice(&FLAG_DO_NOT_FRAGMENT.to_be_bytes());
        bytes.extend_from_slice(&[self.time_to_live, PROTOCOL_TCP, 0, 0]);
        bytes.extend_from_slice(&self.source.address.octets());
        bytes.extend_from_slice(&self.destination.address.octets());
        bytes.extend_from_slice(&self.source.port.to_be_bytes());
        bytes.extend_from_slice(&self.destination.port.to_be_bytes());
        bytes.extend_from_slice(&self.seq.0.to_be_bytes());
        bytes.extend_from_slice(&self.ack.0.to_be_bytes());
        bytes.extend_from_slice(&[words << 4, self.flags.0]);
        bytes.extend_from_slice(&self.window.to_be_bytes());
        bytes.extend_from_slice(&[0, 0, 0, 0]);
        bytes.extend_from_slice(&options);
        bytes.extend_from_slice(&self.payload);
        let ip = Checksum::of(&bytes[..IP_HEADER]).value();
        bytes[10..12].copy_from_slice(&ip.to_be_bytes());
        let tcp = Checksum::of_segment(&bytes, &bytes[IP_HEADER..]).value();
        bytes[IP_HEADER + 16..IP_HEADER + 18].copy_from_slice(&tcp.to_be_bytes());
        bytes
    }

    /// The sequence number after the payload, without SYN and FIN.
    #[must_use]
    pub fn payload_end(&self) -> Seq {
        self.seq.plus(self.payload.len() as u64)
    }

    /// Whether the flag is set.
    #[must_use]
    pub fn has(&self, flag: Flags) -> bool {
        self.flags.has(flag)
    }
}
