//! A place in bytes that are being decoded. Every step is checked; slices share the memory of the input.

use super::LayoutError;
use bytes::Bytes;
use ensue_types::{
    Causes, DatacenterId, Decimal, EpochSum, Incarnation, KeyspaceId, LogicalTime, OperationId, PartitionId,
    Position, Stamp, limits,
};

pub(crate) struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a Bytes) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, what: &'static str, length: usize) -> Result<usize, LayoutError> {
        if length > self.left() {
            return Err(LayoutError::TooShort {
                what,
                at: self.at,
                needed: length as u64,
                left: self.left(),
            });
        }
        let start = self.at;
        self.at += length;
        Ok(start)
    }

    pub(crate) fn fixed<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], LayoutError> {
        let start = self.take(what, N)?;
        let mut out = [0; N];
        out.copy_from_slice(&self.bytes[start..start + N]);
        Ok(out)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, LayoutError> {
        self.fixed::<1>(what).map(|[byte]| byte)
    }

    /// So many bytes of what something depends on.
    pub(crate) fn causes(&mut self, what: &'static str, length: u32) -> Result<Causes, LayoutError> {
        let at = self.at;
        let bytes = self.slice(what, length)?;
        let family = bytes.first().copied().map_or(0, u64::from);
        Causes::decode(&bytes).map_err(|_| LayoutError::Unknown { what, at, value: family })
    }

    /// A keyspace that exists: whoever holds the entry looks it up in a table.
    pub(crate) fn keyspace(&mut self) -> Result<KeyspaceId, LayoutError> {
        let at = self.at;
        match self.u8("keyspace")? {
            number if number < limits::KEYSPACES => Ok(KeyspaceId(number)),
            number => Err(LayoutError::Unknown { what: "keyspace", at, value: u64::from(number) }),
        }
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, LayoutError> {
        self.fixed(what).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, LayoutError> {
        self.fixed(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, LayoutError> {
        self.fixed(what).map(u64::from_le_bytes)
    }

    /// Bytes that a later version may give a meaning: anything but zero is refused today.
    pub(crate) fn zeros<const N: usize>(&mut self, what: &'static str) -> Result<(), LayoutError> {
        let at = self.at;
        match self.fixed::<N>(what)?.iter().find(|&&byte| byte != 0) {
            Some(&byte) => Err(LayoutError::Unknown { what, at, value: u64::from(byte) }),
            None => Ok(()),
        }
    }

    /// A slice of the input, without a copy.
    pub(crate) fn slice(&mut self, what: &'static str, length: u32) -> Result<Bytes, LayoutError> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let length = length as usize;
        let start = self.take(what, length)?;
        Ok(self.bytes.slice(start..start + length))
    }

    /// A count of things of at least `each` bytes, refused before anything is allocated for them if they cannot fit.
    pub(crate) fn count(&self, what: &'static str, count: u32, each: u32) -> Result<usize, LayoutError> {
        let needed = u64::from(count) * u64::from(each);
        if needed > self.left() as u64 {
            return Err(LayoutError::TooShort { what, at: self.at, needed, left: self.left() });
        }
        Ok(count as usize)
    }

    pub(crate) fn stamp(&mut self) -> Result<Stamp, LayoutError> {
        let time = LogicalTime(self.u64("stamp time")?);
        let datacenter = DatacenterId(self.u8("stamp datacenter")?);
        self.zeros::<1>("stamp")?;
        Ok(Stamp { time, datacenter, partition: PartitionId(self.u16("stamp partition")?) })
    }

    pub(crate) fn epoch_sum(&mut self) -> Result<EpochSum, LayoutError> {
        let epoch = self.stamp()?;
        let sum = Decimal(i128::from_le_bytes(self.fixed("tally sum")?));
        Ok(EpochSum { epoch, sum })
    }

    pub(crate) fn operation(&mut self) -> Result<OperationId, LayoutError> {
        let datacenter = DatacenterId(self.u8("operation datacenter")?);
        self.zeros::<1>("operation")?;
        let incarnation = Incarnation(self.u16("operation incarnation")?);
        let partition = PartitionId(self.u16("operation partition")?);
        self.zeros::<2>("operation")?;
        Ok(OperationId {
            datacenter,
            incarnation,
            partition,
            position: Position(self.u64("operation position")?),
        })
    }

    pub(crate) fn finish(&self, what: &'static str) -> Result<(), LayoutError> {
        match self.left() {
            0 => Ok(()),
            bytes => Err(LayoutError::Trailing { what, bytes }),
        }
    }
}

/// The number at a place of a buffer whose length the caller has checked.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// See [`u16_at`].
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut out = [0; 4];
    out.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(out)
}

/// See [`u16_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(out)
}
