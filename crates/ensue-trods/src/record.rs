//! What is saved of an exchange before its response flows: enough to continue it on any server.
//!
//! ```text
//! version 1 | scale 1 | sack 1 | segment size 2 | request seq 4 | response seq 4 | request length 4
//! request | head | CRC 4
//! ```

use crate::seq::Seq;
use thiserror::Error;

const VERSION: u8 = 1;
const FIXED: usize = 17;
const SCALE_NONE: u8 = 0xff;

/// What the client's SYN said of its side of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Largest segment that the client receives, in bytes of payload.
    pub segment_size: u16,
    /// Shift count of the client's window.
    pub window_scale: Option<u8>,
    /// Whether the client understands SACK.
    pub sack: bool,
}

/// One exchange of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The client's side of the path.
    pub path: Path,
    /// Sequence number of the first byte of the request.
    pub request_seq: Seq,
    /// Sequence number of the first byte of the response head, as the client sees it.
    pub response_seq: Seq,
    /// The request's head: the object's identifier, with all that selects a variant of it.
    pub request: Vec<u8>,
    /// The response's head, which gives the sequence number of the object's first byte (objectISN).
    pub head: Vec<u8>,
}

/// Why bytes of the store are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// Too short, or cut off.
    #[error("a record is cut off")]
    Short,
    /// Written by another version.
    #[error("a record of version {0}")]
    Version(u8),
    /// The checksum is wrong.
    #[error("the checksum of a record is wrong")]
    Checksum,
}

impl Record {
    /// Sequence number after the request.
    #[must_use]
    pub fn request_end(&self) -> Seq {
        self.request_seq.plus(self.request.len() as u64)
    }

    /// The bytes to save.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, self.path.window_scale.unwrap_or(SCALE_NONE), u8::from(self.path.sack)];
        bytes.extend_from_slice(&self.path.segment_size.to_be_bytes());
        bytes.extend_from_slice(&self.request_seq.0.to_be_bytes());
        bytes.extend_from_slice(&self.response_seq.0.to_be_bytes());
        let length = u32::try_from(self.request.len()).expect("at most REQUEST_BYTES_MAX");
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&self.request);
        bytes.extend_from_slice(&self.head);
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    /// Reads what [`Record::encode`] wrote.
    ///
    /// # Errors
    /// Bytes that are no record.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or(RecordError::Short)?;
        if body.len() < FIXED {
            return Err(RecordError::Short);
        }
        if body[0] != VERSION {
            return Err(RecordError::Version(body[0]));
        }
        if crc32fast::hash(body) != u32::from_be_bytes(*sum) {
            return Err(RecordError::Checksum);
        }
        let number = |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        let rest = &body[FIXED..];
        let length = usize::try_from(number(13)).map_err(|_| RecordError::Short)?;
        let (request, head) = rest.split_at_checked(length).ok_or(RecordError::Short)?;
        Ok(Self {
            path: Path {
                segment_size: u16::from_be_bytes([body[3], body[4]]),
                window_scale: (body[1] != SCALE_NONE).then_some(body[1]),
                sack: body[2] != 0,
            },
            request_seq: Seq(number(5)),
            response_seq: Seq(number(9)),
            request: request.to_vec(),
            head: head.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            path: Path { segment_size: 1460, window_scale: Some(7), sack: true },
            request_seq: Seq(u32::MAX - 3),
            response_seq: Seq(99),
            request: b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            head: b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let unscaled = Record { path: Path { window_scale: None, ..record().path }, ..record() };
        assert_eq!(Record::decode(&record().encode()), Ok(record()));
        assert_eq!(Record::decode(&unscaled.encode()), Ok(unscaled));
        assert_eq!(record().request_end(), Seq(14));
    }

    #[test]
    fn every_damage_is_an_error() {
        let bytes = record().encode();
        for at in 0..bytes.len() {
            assert!(Record::decode(&bytes[..at]).is_err(), "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Record::decode(&damaged).is_err(), "damaged at {at}");
        }
    }
}
