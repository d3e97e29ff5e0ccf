//! The objects of the simulated service: the same bytes on every server, made of an object's number and an offset.

use crate::balance::mix;

/// How a server sends an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length,
    Chunked,
    UntilClose,
}

/// An object of the service.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    pub number: u64,
    pub bytes: u64,
    pub framing: Framing,
}

const CHUNK_BYTES: usize = 3000;

impl Object {
    /// The whole object.
    pub fn body(&self) -> Vec<u8> {
        let byte = |at: u64| mix(self.number << 40 ^ at).to_le_bytes()[0];
        (0..self.bytes).map(byte).collect()
    }

    /// The object in chunked encoding, alike on every server.
    pub fn chunked(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for chunk in self.body().chunks(CHUNK_BYTES) {
            out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
        out
    }

    /// The name of the object in requests.
    pub fn path(&self) -> String {
        format!("/object-{}", self.number)
    }
}
