//! Fields in little-endian bytes, as journals and messages have them; what is read is checked against what is there.

use bytes::{Buf, BufMut, Bytes};
use ensue_store::disk::FileName;

/// Bytes that say something else than they should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes of a replica that cannot be read")]
pub struct Malformed;

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32_le(bytes.len() as u32);
    out.put_slice(bytes);
}

pub(crate) fn put_file(out: &mut Vec<u8>, file: FileName) {
    let (kind, number) = match file {
        FileName::Superblock => (0, 0),
        FileName::Segment(first) => (1, first),
        FileName::Checkpoint(number) => (2, number),
        FileName::Witness => (3, 0),
        FileName::Reserve => (4, 0),
        FileName::Journal(number) => (5, number),
    };
    out.put_u8(kind);
    out.put_u64_le(number);
}

/// Reads fields one after the other.
pub(crate) struct Fields(pub(crate) Bytes);

impl Fields {
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.0.try_get_u8().map_err(|_| Malformed)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.0.try_get_u16_le().map_err(|_| Malformed)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.0.try_get_u32_le().map_err(|_| Malformed)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.0.try_get_u64_le().map_err(|_| Malformed)
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        self.0.try_copy_to_slice(&mut array).map_err(|_| Malformed)?;
        Ok(array)
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes, Malformed> {
        let length = self.u32()? as usize;
        if length > self.0.len() {
            return Err(Malformed);
        }
        Ok(self.0.split_to(length))
    }

    pub(crate) fn file(&mut self) -> Result<FileName, Malformed> {
        let (kind, number) = (self.u8()?, self.u64()?);
        match (kind, number) {
            (0, 0) => Ok(FileName::Superblock),
            (1, first) => Ok(FileName::Segment(first)),
            (2, number) => Ok(FileName::Checkpoint(number)),
            (3, 0) => Ok(FileName::Witness),
            (4, 0) => Ok(FileName::Reserve),
            (5, number) => Ok(FileName::Journal(number)),
            _ => Err(Malformed),
        }
    }

    /// So many of something, none of which is shorter than `least` bytes.
    pub(crate) fn many<T>(
        &mut self,
        least: usize,
        mut one: impl FnMut(&mut Fields) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()? as usize;
        if count.saturating_mul(least) > self.0.len() {
            return Err(Malformed);
        }
        (0..count).map(|_| one(self)).collect()
    }

    /// Nothing follows.
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}
