//! The superblock: whose directory this is, how it was last used, and which checkpoint counts.
//!
//! It is one small file, only ever replaced as a whole, atomically and durably. A checkpoint counts from the moment
//! in which the superblock names it; what the superblock calls synced is never cut.
//!
//! ```text
//!          0        1        2        3        4        5        6        7
//!     +--------+--------+--------+--------+--------+--------+--------+--------+
//!   0 | magic "EnsueSup"                                                      |
//!   8 | format          | dc     | flags  | partition       | partitions      |
//!  16 | cluster, 16 bytes                                                     |
//!  32 | boot id, 16 bytes                                                     |
//!  48 | synced: the log is durable up to here, as of this writing             |
//!  56 | checkpoint: number of the one that counts, 0 for none                 |
//!  64 | incarnation     | without         | zero                              |
//!  72 | directory, 16 bytes                                                   |
//!  88 | crc32 of the 88 bytes before      |
//!     +-----------------------------------+
//!  flags: 1 clean stop, 2 fsync always, 4 not admitted yet, 8 there is a witness, 16 being filled again
//!
//! Up to format 5 the checksum stood at 68, and there was nothing behind it.
//! ```

use crate::disk::{DiskOp, FileName};
use crate::layout::batch::Seal;
use crate::layout::{LayoutError, u16_at, u32_at, u64_at};
use crate::log::Lsn;
use bytes::Bytes;
use ensue_types::{DatacenterId, DirectoryId, Incarnation, PartitionId};

pub const SUPERBLOCK_BYTES: usize = 92;
const SUPERBLOCK_BYTES_BEFORE_6: usize = 72;
/// The format of the whole directory: raised when any file in it changes so that an older version could not read it.
///
/// - 1: the first.
/// - 2: checkpoints hold versions, and what writes depend on.
/// - 3: logs and checkpoints say which datacenters were declared dead.
/// - 4: checkpoints say up to which stamp tombstones were collected.
/// - 5: logs and checkpoints say that a dead datacenter's stream is there up to its end.
/// - 6: the superblock has the directory's identity, and logs and checkpoints those of the others; there is a witness.
/// - 7: the entry of a transaction has the name that it was begun as.
/// - 8: entries say what removals had observed.
/// - 9: checkpoints say of which values it need not be known what their writes carried.
/// - 10: entries and checkpoints have deadlines of fields.
/// - 11: entries and checkpoints have bounded counters, and removals of whole rows; logs and checkpoints say that the
///   datacenter is being removed, and where homes of keys have moved.
pub const FORMAT: u16 = 11;
/// The first format with a witness.
pub const WITNESS_FORMAT: u16 = 6;
const MAGIC: &[u8; 8] = b"EnsueSup";
const CLEAN: u8 = 1;
const FSYNC_ALWAYS: u8 = 2;
const NOT_ADMITTED: u8 = 4;
const WITNESSED: u8 = 8;
const FILLING: u8 = 16;

/// What the directory of a partition says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    pub format: u16,
    /// The cluster's id, or a hash of its name.
    pub cluster: u128,
    pub datacenter: DatacenterId,
    pub partition: PartitionId,
    pub partitions: u16,
    pub incarnation: Incarnation,
    /// The machine's boot in which the partition last ran with its whole log.
    pub boot_id: [u8; 16],
    /// The partition stopped after a last sync, and nothing was written since.
    pub clean: bool,
    /// Nothing was ever promised in this run before it was synced.
    pub fsync_always: bool,
    /// The directory has a witness since before this was written: one that is missing has been taken away.
    pub witnessed: bool,
    /// The log is durable up to here at least.
    pub synced: Lsn,
    /// The checkpoint that counts; 0 for none.
    pub checkpoint: u64,
    /// Datacenters, one bit each, that a start with a lost tail does not wait for: the operator gave them up. Its own
    /// bit: it was declared
    /// dead, and serves no more.
    pub without: u16,
    /// The directory's identity; unknown in one of an earlier format.
    pub directory: DirectoryId,
    /// The directory was new, and nobody has said yet that the datacenter has not lost an earlier one: nothing is
    /// served from it.
    pub not_admitted: bool,
    /// It was lost and is being filled again from the others: what had been shown before is known when that is done,
    /// and the log does not say it.
    pub filling: bool,
}

impl Superblock {
    /// Whether the log must still hold everything that was ever promised: the machine did not restart since (so what
    /// was written to the operating system is there), or nothing unsynced was promised.
    pub fn tail_complete(&self, boot_id_now: [u8; 16]) -> bool {
        self.boot_id == boot_id_now || self.clean || self.fsync_always
    }

    /// The start value of the directory's checksums.
    pub fn seal(&self) -> Seal {
        let mut identity = [0; 19];
        identity[..16].copy_from_slice(&self.cluster.to_le_bytes());
        identity[16] = self.datacenter.0;
        identity[17..].copy_from_slice(&self.partition.0.to_le_bytes());
        Seal(crc32fast::hash(&identity))
    }

    /// Writes the superblock.
    pub fn replace(&self) -> DiskOp {
        DiskOp::Replace { file: FileName::Superblock, bytes: Bytes::copy_from_slice(&self.encode()) }
    }

    /// Marks the partition as running, before the first append. Only once the tail is complete or given up as a new
    /// incarnation: from then on a restart in the same boot takes the log for whole. The directory is of this version's
    /// format from now on, and a witness must stand in it already.
    pub fn mark_running(&mut self, boot_id: [u8; 16], fsync_always: bool) -> DiskOp {
        self.format = FORMAT;
        self.witnessed = true;
        self.boot_id = boot_id;
        self.fsync_always = fsync_always;
        self.clean = false;
        self.filling = false;
        self.without = 0;
        self.replace()
    }

    /// Marks the end of the log as lost, whatever the machine's boot: the next start takes back what others have.
    pub fn mark_tail_lost(&mut self, boot_id_now: [u8; 16]) -> DiskOp {
        self.boot_id = boot_id_now.map(|byte| !byte);
        self.fsync_always = false;
        self.clean = false;
        self.replace()
    }

    /// Marks the directory, before anything comes back, as that of an earlier life that was lost: a start that finds it
    /// half filled goes on.
    pub fn mark_filling(&mut self, directory: DirectoryId, boot_id_now: [u8; 16]) -> DiskOp {
        self.directory = directory;
        self.not_admitted = false;
        self.filling = true;
        self.mark_tail_lost(boot_id_now)
    }

    /// Whether a process of this boot has marked the end of the log as lost.
    pub fn is_marked_short(&self, boot_id_now: [u8; 16]) -> bool {
        self.boot_id == boot_id_now.map(|byte| !byte)
    }

    /// Marks the directory as one that may not be served before the other datacenters have been asked.
    pub fn mark_not_admitted(&mut self) -> DiskOp {
        self.not_admitted = true;
        self.replace()
    }

    /// Marks that the others have declared this datacenter dead.
    pub fn mark_dead(&mut self) -> DiskOp {
        self.without |= 1 << (self.datacenter.0 % 16);
        self.replace()
    }

    /// Marks a clean stop: everything written is synced, which is up to `synced`, and nothing will be written.
    pub fn mark_clean(&mut self, synced: Lsn) -> DiskOp {
        self.clean = true;
        self.synced = self.synced.max(synced);
        self.replace()
    }

    pub fn encode(&self) -> [u8; SUPERBLOCK_BYTES] {
        // Whoever writes it knows all of this format, and writes the rest of the directory in it.
        self.encode_in(FORMAT)
    }

    fn encode_in(&self, format: u16) -> [u8; SUPERBLOCK_BYTES] {
        let mut out = [0; SUPERBLOCK_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8..10].copy_from_slice(&format.to_le_bytes());
        out[10] = self.datacenter.0;
        let flags = [
            (self.clean, CLEAN),
            (self.fsync_always, FSYNC_ALWAYS),
            (self.not_admitted, NOT_ADMITTED),
            (self.witnessed, WITNESSED),
            (self.filling, FILLING),
        ];
        out[11] = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum();
        out[12..14].copy_from_slice(&self.partition.0.to_le_bytes());
        out[14..16].copy_from_slice(&self.partitions.to_le_bytes());
        out[16..32].copy_from_slice(&self.cluster.to_le_bytes());
        out[32..48].copy_from_slice(&self.boot_id);
        out[48..56].copy_from_slice(&self.synced.0.to_le_bytes());
        out[56..64].copy_from_slice(&self.checkpoint.to_le_bytes());
        out[64..66].copy_from_slice(&self.incarnation.0.to_le_bytes());
        out[66..68].copy_from_slice(&self.without.to_le_bytes());
        out[72..88].copy_from_slice(&self.directory.0.to_le_bytes());
        let checksum = crc32fast::hash(&out[..SUPERBLOCK_BYTES - 4]);
        out[SUPERBLOCK_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Superblock, LayoutError> {
        let what = "superblock";
        if bytes.len() < 10 || bytes[..8] != *MAGIC {
            return Err(LayoutError::Checksum { what });
        }
        // The place of the checksum may differ in a later format, and the format is the more useful answer.
        let format = u16_at(bytes, 8);
        let length = if format < WITNESS_FORMAT { SUPERBLOCK_BYTES_BEFORE_6 } else { SUPERBLOCK_BYTES };
        if bytes.len() < length {
            return Err(LayoutError::TooShort { what, at: 0, needed: length as u64, left: bytes.len() });
        }
        let whole = crc32fast::hash(&bytes[..length - 4]) == u32_at(bytes, length - 4);
        match (whole, format) {
            (true, 1..=FORMAT) if bytes.len() > length => {
                return Err(LayoutError::Trailing { what, bytes: bytes.len() - length });
            }
            (true, 1..=FORMAT) => {}
            (false, 1..=FORMAT) => return Err(LayoutError::Checksum { what }),
            _ => return Err(LayoutError::UnknownFormat { what, format, known: FORMAT }),
        }
        let mut boot_id = [0; 16];
        boot_id.copy_from_slice(&bytes[32..48]);
        let mut cluster = [0; 16];
        cluster.copy_from_slice(&bytes[16..32]);
        let mut directory = [0; 16];
        if format >= 6 {
            directory.copy_from_slice(&bytes[72..88]);
        }
        if bytes[11] & !(CLEAN | FSYNC_ALWAYS | NOT_ADMITTED | WITNESSED | FILLING) != 0 {
            return Err(LayoutError::Unknown {
                what: "superblock flags",
                at: 11,
                value: u64::from(bytes[11]),
            });
        }
        Ok(Superblock {
            format,
            cluster: u128::from_le_bytes(cluster),
            datacenter: DatacenterId(bytes[10]),
            partition: PartitionId(u16_at(bytes, 12)),
            partitions: u16_at(bytes, 14),
            incarnation: Incarnation(u16_at(bytes, 64)),
            boot_id,
            clean: bytes[11] & CLEAN != 0,
            fsync_always: bytes[11] & FSYNC_ALWAYS != 0,
            witnessed: bytes[11] & WITNESSED != 0,
            synced: Lsn(u64_at(bytes, 48)),
            checkpoint: u64_at(bytes, 56),
            without: u16_at(bytes, 66),
            directory: DirectoryId(u128::from_le_bytes(directory)),
            not_admitted: bytes[11] & NOT_ADMITTED != 0,
            filling: bytes[11] & FILLING != 0,
        })
    }
}

#[cfg(test)]
mod tests;
