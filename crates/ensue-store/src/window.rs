//! A moving view of a file that is read from front to back in chunks, however the things in it lie across them.
//!
//! It says which read comes next and takes the answer. What is taken out shares the memory of the chunk.

use crate::disk::{DiskOp, FileName};
use bytes::{Bytes, BytesMut};
use ensue_types::limits;

/// Bytes asked for at once.
pub(crate) const CHUNK_BYTES: u32 = limits::LOG_READ_BYTES as u32;

#[derive(Clone, Debug)]
pub(crate) struct Window {
    file: FileName,
    /// The place in the file of the first byte held.
    offset: u64,
    /// The file is read up to here at most.
    end: u64,
    held: BytesMut,
}

impl Window {
    pub(crate) fn new(file: FileName, offset: u64, end: u64) -> Window {
        Window { file, offset, end, held: BytesMut::new() }
    }

    pub(crate) fn file(&self) -> FileName {
        self.file
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes from the offset to the end, held or not.
    pub(crate) fn left(&self) -> u64 {
        self.end - self.offset
    }

    pub(crate) fn held(&self) -> &[u8] {
        &self.held
    }

    /// The next read; nothing at the end. Never more than what was listed, so a file that grows is not followed.
    pub(crate) fn read(&self) -> Option<DiskOp> {
        let at = self.offset + self.held.len() as u64;
        let length = (self.end - at).min(u64::from(CHUNK_BYTES)) as u32;
        (length > 0).then_some(DiskOp::Read { file: self.file, offset: at, length })
    }

    /// Takes the answer of the read; fewer bytes than asked mean that the file ends there.
    pub(crate) fn feed(&mut self, offset: u64, bytes: Bytes) {
        let at = self.offset + self.held.len() as u64;
        assert_eq!(offset, at, "one read of a window is in flight at a time");
        let asked = (self.end - at).min(u64::from(CHUNK_BYTES));
        if (bytes.len() as u64) < asked {
            self.end = at + bytes.len() as u64;
        }
        if self.held.is_empty() {
            self.held = BytesMut::from(bytes);
        } else {
            self.held.extend_from_slice(&bytes);
        }
    }

    /// The next bytes, which the caller has seen to be held.
    pub(crate) fn take(&mut self, length: usize) -> Bytes {
        self.offset += length as u64;
        self.held.split_to(length).freeze()
    }

    pub(crate) fn skip(&mut self, length: usize) {
        self.take(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(window: &Window, offset: u64, length: u32) -> bool {
        let asked = window.read();
        matches!(asked, Some(DiskOp::Read { offset: o, length: l, .. }) if (o, l) == (offset, length))
    }

    #[test]
    fn a_file_ends_where_a_read_came_back_short_and_only_there() {
        let size = u64::from(CHUNK_BYTES) + 10;
        let mut window = Window::new(FileName::Segment(0), 0, size);
        assert!(is_read(&window, 0, CHUNK_BYTES));
        window.feed(0, Bytes::from(vec![1; CHUNK_BYTES as usize]));
        assert!(is_read(&window, u64::from(CHUNK_BYTES), 10), "a whole chunk is no end");
        window.feed(u64::from(CHUNK_BYTES), Bytes::from(vec![2; 7]));
        assert_eq!((window.read().is_none(), window.left()), (true, size - 3));
        window.skip(CHUNK_BYTES as usize);
        assert_eq!((window.held(), window.left()), (&[2; 7][..], 7));
    }
}
