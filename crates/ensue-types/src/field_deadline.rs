//! The deadline of a field: a time, and the value that ends then.
//!
//! It stands in a column of its own, beside the field's, and names the operation that put the value. So a deadline ends
//! what its writer had seen, and nothing else: whatever is put into the field later, or elsewhere at the same time, has
//! no deadline by it. Additions to a counter leave its value, and its deadline, what they are.
//!
//! ```text
//! milliseconds since 1970 u64 | position u64 | partition u16 | incarnation u16 | datacenter u8
//! ```

use crate::{DatacenterId, Incarnation, OperationId, PartitionId, Position};
use bytes::Bytes;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldDeadline {
    /// Milliseconds since 1970.
    pub ms: u64,
    /// What put the value; the default where there is none, but additions alone.
    pub of: OperationId,
}

const BYTES: usize = 21;

impl FieldDeadline {
    pub fn to_bytes(self) -> Bytes {
        let OperationId { datacenter, incarnation, partition, position } = self.of;
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.ms.to_le_bytes());
        bytes[8..16].copy_from_slice(&position.0.to_le_bytes());
        bytes[16..18].copy_from_slice(&partition.0.to_le_bytes());
        bytes[18..20].copy_from_slice(&incarnation.0.to_le_bytes());
        bytes[20] = datacenter.0;
        Bytes::copy_from_slice(&bytes)
    }

    /// What these bytes say; nothing if they are none of it.
    pub fn of_bytes(bytes: &[u8]) -> Option<FieldDeadline> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let (ms, rest) = bytes.split_first_chunk()?;
        let (position, rest) = rest.split_first_chunk()?;
        let (partition, rest) = rest.split_first_chunk()?;
        let (incarnation, datacenter) = rest.split_first_chunk()?;
        let of = OperationId {
            datacenter: DatacenterId(*datacenter.first()?),
            incarnation: Incarnation(u16::from_le_bytes(*incarnation)),
            partition: PartitionId(u16::from_le_bytes(*partition)),
            position: Position(u64::from_le_bytes(*position)),
        };
        Some(FieldDeadline { ms: u64::from_le_bytes(*ms), of })
    }
}

#[cfg(test)]
mod tests;
