//! What a partition's item says is read as it was written, by this version and of earlier ones.

use super::*;

fn stamp(time: u64) -> Stamp {
    Stamp { time: LogicalTime(time), datacenter: DatacenterId(1), partition: PartitionId(2) }
}

#[test]
fn an_item_of_an_earlier_format_says_less() {
    let bounds = Bounds { flushed: stamp(3), collected: stamp(4), forgotten: stamp(5) };
    let lost = vec![(Position(1), Position(6))];
    let stream = StreamImage { datacenter: DatacenterId(1), lost, ..StreamImage::default() };
    let whole = PartitionImage {
        clock: LogicalTime(9),
        position: Position(7),
        begun: 8,
        streams: vec![stream],
        bounds: vec![bounds, Bounds::default()],
    };
    let bytes = Bytes::from(whole.encode());
    assert_eq!(PartitionImage::decode(&bytes), Ok(whole.clone()));

    let mut third = whole;
    third.bounds[0].forgotten = Stamp::ZERO;
    let end = bytes.len() - 2 * 11;
    assert_eq!(PartitionImage::decode(&bytes.slice(..end)), Ok(third.clone()), "formats 2 and 3");

    let mut first = third;
    first.streams[0].lost.clear();
    let end = end - 2 - 16;
    assert_eq!(PartitionImage::decode(&bytes.slice(..end)), Ok(first), "format 1");

    for cut in (0..bytes.len()).filter(|&cut| cut != end && cut != bytes.len() - 2 * 11) {
        assert!(PartitionImage::decode(&bytes.slice(..cut)).is_err(), "{cut} bytes");
    }
}
