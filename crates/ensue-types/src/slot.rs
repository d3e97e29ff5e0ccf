//! Key to slot to partition, as Redis Cluster hashes: CRC16 (XMODEM) over the key or its hash tag, 16384 slots.

use crate::PartitionId;

/// Slots of the keyspace, fixed by the Redis Cluster specification.
pub const SLOTS: u16 = 16384;

/// The slot of a key; if it holds a non-empty `{tag}`, only the tag is hashed.
pub fn slot_of(key: &[u8]) -> u16 {
    let hashed = match key.iter().position(|&b| b == b'{') {
        Some(open) => match key[open + 1..].iter().position(|&b| b == b'}') {
            Some(length) if length > 0 => &key[open + 1..open + 1 + length],
            _ => key,
        },
        None => key,
    };
    crc16(hashed) % SLOTS
}

/// The partition that owns a key, of `partitions` in all. Slots are dealt in equal, contiguous ranges.
pub fn partition_of(key: &[u8], partitions: u16) -> PartitionId {
    if partitions <= 1 {
        return PartitionId(0);
    }
    PartitionId((u32::from(slot_of(key)) * u32::from(partitions) / u32::from(SLOTS)) as u16)
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| (crc << 8) ^ CRC16_TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const CRC16_TABLE: [u16; 256] = {
    let mut table = [0u16; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};
