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

#[test]
fn a_value_comes_back_with_the_time_since_which_it_had_been_visible() {
    let operation = ensue_types::OperationId {
        datacenter: DatacenterId(1),
        incarnation: Incarnation(1),
        partition: PartitionId(2),
        position: Position(3),
    };
    // Shown later than it was written: it waited for what it depends on.
    let write = Write { stamp: stamp(40), at: LogicalTime(55), operation, dependencies: None };
    let mut cell = Cell::new(LogicalTime(1));
    let effect = Effect::Put { value: Bytes::from_static(b"v"), seen: Default::default(), over: None };
    cell.apply(&effect, &write, crate::cell::Keep::default());
    let key = Bytes::from_static(b"k");
    let items = column_items(KeyspaceId(0), &key, &Column::Text, &cell);
    let [(kind, bytes)] = &items[..] else { panic!("one write, one item") };
    let back = decode_write(*kind, &Bytes::from(bytes.clone())).expect("just written");
    assert_eq!((back.since, back.stamp), (LogicalTime(55), stamp(40)));
}
