//! Checkpoints whose checksums are all right, and which are not what their blocks and their footer say.

use super::*;
use crate::log::{LogError, Lsn};
use crate::memory_disk::{MemoryDisk, options};
use crate::superblock::Superblock;

const PLACE: CheckpointPlace = CheckpointPlace { number: 1, log_start: Lsn(0), retain: Lsn(0) };

fn item(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_le_bytes();
    [&length[..], &[kind], bytes].concat()
}

/// What a start finds in a checkpoint of these blocks, each with the number of items that it says to have, or why it
/// refuses it. The footer is what the blocks come to, but for one change.
fn read(
    place: CheckpointPlace,
    blocks: &[(u32, Vec<u8>)],
    change: impl Fn(&mut Footer),
) -> Result<Vec<(u8, Vec<u8>)>, String> {
    let (mut disk, options) = (MemoryDisk::default(), options(1 << 20));
    let seal = options.expected.seal();
    let mut file = place.encode(seal).to_vec();
    let mut footer = Footer { synced: place.log_start, ..Footer::default() };
    for (items, body) in blocks {
        let body_checksum = seal.checksum(body);
        let header = BlockHeader { body_bytes: body.len() as u32, items: *items, body_checksum };
        file.extend_from_slice(&header.encode(seal));
        file.extend_from_slice(body);
        footer.items += u64::from(*items);
        footer.blocks += 1;
        footer.blocks_checksum = chain(footer.blocks_checksum, body_checksum);
    }
    change(&mut footer);
    file.extend_from_slice(&footer.encode(seal));
    disk.run(Superblock { checkpoint: 1, ..options.expected.clone() }.replace());
    disk.run(crate::disk::DiskOp::Replace { file: FileName::Checkpoint(1), bytes: file.into() });
    match disk.recover(&options) {
        Ok((items, _)) => Ok(items
            .into_iter()
            .filter_map(|item| match item {
                Recovered::CheckpointItem { kind, bytes } => Some((kind, bytes.to_vec())),
                _ => None,
            })
            .collect()),
        Err(RecoveryError::Log(LogError::Corrupt { file: FileName::Checkpoint(1), reason, .. })) => {
            Err(reason)
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn items_fill_their_block_exactly() {
    let whole = [item(3, b"ab"), item(4, b"")].concat();
    let of = |items, end: &[u8]| read(PLACE, &[(items, [&whole, end].concat())], |_| {});
    assert_eq!(of(2, b""), Ok(vec![(3, b"ab".to_vec()), (4, Vec::new())]));
    let refused = Err("the block is whole, but its items do not fill it".to_string());
    for length in 1..5 {
        assert_eq!(of(2, &vec![0; length]), refused, "{length} bytes are no item");
        assert_eq!(of(3, &vec![0; length]), refused, "{length} bytes are no item");
    }
    for missing in 1..9 {
        let cut = item(5, b"12345678");
        assert_eq!(of(3, &cut[..cut.len() - missing]), refused, "the last item lacks {missing} bytes");
    }
    assert_eq!(of(1, b""), refused, "more items than it says");
    assert_eq!(of(3, b""), refused, "fewer items than it says");
}

#[test]
fn a_footer_that_knows_of_other_blocks_is_damage() {
    let blocks = [(1, item(1, b"one")), (1, item(2, b"two"))];
    assert_eq!(read(PLACE, &blocks, |_| {}).map(|items| items.len()), Ok(2));
    let changes: [fn(&mut Footer); 3] = [
        |footer| footer.items += 1,
        |footer| footer.blocks += 1,
        |footer| footer.blocks_checksum = chain(footer.blocks_checksum, 7),
    ];
    let refused = Err("the footer does not match what stands before it".to_string());
    for change in changes {
        assert_eq!(read(PLACE, &blocks, change), refused);
    }
    // What a start reads of the log begins beyond what was durable.
    let place = CheckpointPlace { log_start: Lsn(10), ..PLACE };
    assert_eq!(read(place, &blocks, |footer| footer.synced = Lsn(9)), refused);
}
