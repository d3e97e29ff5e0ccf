//! A frame: how one body is told from the next on a connection, and that it is the peer's next one.
//!
//! ```text
//!  0                4                                20
//!  +----------------+--------------------------------+------------------
//!  | length of body | tag: keyed BLAKE3 of           | body ...
//!  | u32            | sequence number u64, body      |
//!  +----------------+--------------------------------+------------------
//! ```
//!
//! The sequence number is not sent: both sides count the frames of a direction from 0. A frame that was forged,
//! changed,
//! repeated, left out or moved has another tag, and the connection ends. The key comes from the handshake, one a
//! direction
//! and a connection. It knows nothing of what a body holds, and sets no deadline on a frame that never ends: the
//! connection's owner does.

#[cfg(test)]
mod tests;

use crate::codec;
use crate::error::{Damaged, Excess, Malformed, Unsendable, WireError};
use crate::limits::{self, Bound};
use crate::message::Envelope;
use bytes::{Buf, Bytes, BytesMut};
use std::fmt;

/// Bytes before the body.
pub const FRAME_HEADER_BYTES: usize = LENGTH_BYTES + TAG_BYTES;
const LENGTH_BYTES: usize = 4;
/// Whoever has not the key guesses one of 2^128, once a connection.
const TAG_BYTES: usize = 16;

/// What the tags of one direction of one connection are made with. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct FrameKey(pub(crate) [u8; 32]);

impl FrameKey {
    pub fn new(bytes: [u8; 32]) -> FrameKey {
        FrameKey(bytes)
    }
}

impl fmt::Debug for FrameKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrameKey(hidden)")
    }
}

/// One direction of a connection: its key, and how many frames there were.
#[derive(Clone, Debug)]
struct Direction {
    key: FrameKey,
    sequence: u64,
}

impl Direction {
    /// The tag of the next frame, if this is its body.
    fn tag(&self, body: &[u8]) -> [u8; TAG_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key.0);
        hasher.update(&self.sequence.to_le_bytes()).update(body);
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..TAG_BYTES]);
        tag
    }
}

/// Takes frames off the front of what a connection has received.
///
/// It reserves nothing: the buffer grows as bytes arrive, never by what a header announces. A frame that it refuses
/// stays in the buffer, so that it is refused again; where the next one would begin is unknown.
#[derive(Clone, Debug)]
pub struct FrameReader {
    body_bytes: Bound,
    direction: Direction,
}

impl FrameReader {
    pub fn new(key: FrameKey) -> FrameReader {
        FrameReader { body_bytes: limits::FRAME, direction: Direction { key, sequence: 0 } }
    }

    /// From here on it refuses bodies longer than this, or than the limit of the wire if that is less.
    pub fn set_body_bytes_max(&mut self, max: usize) {
        self.body_bytes.max = max.min(limits::FRAME.max);
    }

    /// The body of the next frame, once all of it is there. It shares the buffer's memory.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, WireError> {
        let Some((length, announced)) = read_header(buffer) else { return Ok(None) };
        if length > self.body_bytes.max {
            return Err(Malformed::from(Excess::of(self.body_bytes, length)).into());
        }
        let Some(body) = buffer[FRAME_HEADER_BYTES..].get(..length) else { return Ok(None) };
        if !equal(&self.direction.tag(body), &announced) {
            return Err(Damaged::Tag { sequence: self.direction.sequence }.into());
        }
        self.direction.sequence += 1;
        buffer.advance(FRAME_HEADER_BYTES);
        Ok(Some(buffer.split_to(length).freeze()))
    }
}

/// Puts frames at the end of what a connection sends.
#[derive(Clone, Debug)]
pub struct FrameWriter {
    direction: Direction,
}

impl FrameWriter {
    pub fn new(key: FrameKey) -> FrameWriter {
        FrameWriter { direction: Direction { key, sequence: 0 } }
    }

    /// Appends a frame around a body. If that is too long, nothing is appended.
    pub fn write(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        if body.len() > limits::FRAME.max {
            return Err(Unsendable::from(Excess::of(limits::FRAME, body.len())).into());
        }
        let header = self.next_header(body);
        out.extend_from_slice(&header);
        out.extend_from_slice(body);
        Ok(())
    }

    /// Appends an envelope's frame, encoded where it will stand. If it is beyond a limit, nothing is appended.
    pub fn write_envelope(&mut self, envelope: &Envelope, out: &mut Vec<u8>) -> Result<(), WireError> {
        let start = out.len();
        let body_start = start + FRAME_HEADER_BYTES;
        out.resize(body_start, 0);
        if let Err(error) = codec::encode(envelope, out) {
            out.truncate(start);
            return Err(error);
        }
        let header = self.next_header(&out[body_start..]);
        out[start..body_start].copy_from_slice(&header);
        Ok(())
    }

    /// The header of a body that is within the limit, and so below 2^32 bytes.
    fn next_header(&mut self, body: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
        assert!(body.len() <= limits::FRAME.max, "a body of {} bytes is beyond the limit", body.len());
        let mut header = [0; FRAME_HEADER_BYTES];
        header[..LENGTH_BYTES].copy_from_slice(&(body.len() as u32).to_le_bytes());
        header[LENGTH_BYTES..].copy_from_slice(&self.direction.tag(body));
        self.direction.sequence += 1;
        header
    }
}

/// Compares in a time that does not tell where two differ.
pub(crate) fn equal(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |differing, (a, b)| differing | (a ^ b));
    // Hidden from the optimizer, which could otherwise stop at the first difference.
    one.len() == other.len() && std::hint::black_box(differing) == 0
}

fn read_header(buffer: &[u8]) -> Option<(usize, [u8; TAG_BYTES])> {
    let length = u32::from_le_bytes(*buffer.first_chunk::<LENGTH_BYTES>()?);
    let tag = *buffer[LENGTH_BYTES..].first_chunk::<TAG_BYTES>()?;
    Some((usize::try_from(length).unwrap_or(usize::MAX), tag))
}
