//! A frame: how one body is told from the next on a connection, and a damaged one from a sound one.
//!
//! ```text
//!  0                4                8
//!  +----------------+----------------+------------------
//!  | length of body | CRC-32 of body | body ...
//!  | u32            | u32            |
//!  +----------------+----------------+------------------
//! ```
//!
//! It knows nothing of what a body holds, and sets no deadline on a frame that never ends: the connection's owner does.

#[cfg(test)]
mod tests;

use crate::codec;
use crate::error::{Damaged, Excess, Malformed, Unsendable, WireError};
use crate::limits::{self, Bound};
use crate::message::Envelope;
use bytes::{Buf, Bytes, BytesMut};

/// Bytes before the body.
pub const FRAME_HEADER_BYTES: usize = 8;

/// Takes frames off the front of what a connection has received.
///
/// It reserves nothing: the buffer grows as bytes arrive, never by what a header announces. A frame that it refuses
/// stays in the buffer, so that it is refused again; where the next one would begin is unknown.
#[derive(Clone, Copy, Debug)]
pub struct FrameReader {
    body_bytes: Bound,
}

impl Default for FrameReader {
    fn default() -> FrameReader {
        FrameReader { body_bytes: limits::FRAME }
    }
}

impl FrameReader {
    /// A reader that refuses bodies longer than this, or than the limit of the wire if that is less.
    pub fn with_body_bytes_max(max: usize) -> FrameReader {
        FrameReader { body_bytes: Bound { max: max.min(limits::FRAME.max), ..limits::FRAME } }
    }

    /// The body of the next frame, once all of it is there. It shares the buffer's memory.
    pub fn next(&self, buffer: &mut BytesMut) -> Result<Option<Bytes>, WireError> {
        let Some((length, announced)) = read_header(buffer) else { return Ok(None) };
        if length > self.body_bytes.max {
            return Err(Malformed::from(Excess::of(self.body_bytes, length)).into());
        }
        let Some(body) = buffer[FRAME_HEADER_BYTES..].get(..length) else { return Ok(None) };
        let computed = crc32fast::hash(body);
        if computed != announced {
            return Err(Damaged::Checksum { announced, computed }.into());
        }
        buffer.advance(FRAME_HEADER_BYTES);
        Ok(Some(buffer.split_to(length).freeze()))
    }
}

/// Appends a frame around a body. If that is too long, nothing is appended.
pub fn write_frame(body: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    if body.len() > limits::FRAME.max {
        return Err(Unsendable::from(Excess::of(limits::FRAME, body.len())).into());
    }
    out.extend_from_slice(&header_of(body));
    out.extend_from_slice(body);
    Ok(())
}

/// Appends an envelope's frame, encoded where it will stand. If it is beyond a limit, nothing is appended.
pub fn write_envelope(envelope: &Envelope, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    let body_start = start + FRAME_HEADER_BYTES;
    out.resize(body_start, 0);
    if let Err(error) = codec::encode(envelope, out) {
        out.truncate(start);
        return Err(error);
    }
    let header = header_of(&out[body_start..]);
    out[start..body_start].copy_from_slice(&header);
    Ok(())
}

fn read_header(buffer: &[u8]) -> Option<(usize, u32)> {
    let length = u32::from_le_bytes(*buffer.first_chunk::<4>()?);
    let checksum = u32::from_le_bytes(*buffer[4..].first_chunk::<4>()?);
    Some((usize::try_from(length).unwrap_or(usize::MAX), checksum))
}

/// The header of a body that is within the limit, and so below 2^32 bytes.
fn header_of(body: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
    assert!(body.len() <= limits::FRAME.max, "a body of {} bytes is beyond the limit", body.len());
    let length = (body.len() as u32).to_le_bytes();
    let checksum = crc32fast::hash(body).to_le_bytes();
    let mut header = [0; FRAME_HEADER_BYTES];
    header[..4].copy_from_slice(&length);
    header[4..].copy_from_slice(&checksum);
    header
}
