//! Every encoding comes back as it was, has not changed, and garbage is refused without a panic.

use super::*;
use crate::entry::{Change, Entry};
use crate::log::Lsn;
use crate::memory_disk::Random;
use crate::record::Record;
use bytes::Bytes;
use ensue_types::escrow::{counter_name, share_name};
use ensue_types::*;

fn stamp(n: u64) -> Stamp {
    Stamp { time: LogicalTime(n << 16 | 5), datacenter: DatacenterId(2), partition: PartitionId(0x0102) }
}

fn operation() -> OperationId {
    let (datacenter, incarnation) = (DatacenterId(1), Incarnation(2));
    OperationId { datacenter, incarnation, partition: PartitionId(3), position: Position(4) }
}

fn effects() -> Vec<RowEffect> {
    let epoch_sum = EpochSum { epoch: stamp(9), sum: Decimal::from_integer(-12) };
    let seen = vec![SeenSum { datacenter: DatacenterId(4), epoch_sum, stamp: stamp(10) }];
    let row = |column, effect| RowEffect { key: Bytes::from_static(b"key"), column, effect };
    vec![
        row(Column::Text, Effect::Put { value: Bytes::from_static(b"value"), seen: vec![], over: None }),
        row(Column::Deadline, Effect::Delete { seen: vec![] }),
        row(
            Column::Field(Bytes::from_static(b"f")),
            Effect::Put { value: Bytes::new(), seen: seen.clone(), over: None },
        ),
        row(Column::Member(Bytes::from_static(b"mm")), Effect::Delete { seen }),
        row(Column::Field(Bytes::new()), Effect::Add { epoch_sum }),
    ]
}

fn transaction(keyspace: KeyspaceId, begun_as: Option<OperationId>) -> Change {
    Change::Transaction { keyspace, begun_as, participants: vec![PartitionId(1), PartitionId(515)] }
}

pub(crate) fn entries() -> Vec<Entry> {
    let keyspace = KeyspaceId(3);
    let entry = |change, dependencies: &[u8]| Entry {
        position: Position(77),
        stamp: stamp(1_700_000_000_000),
        dependencies: Causes::decode(dependencies).expect("bytes of an extension"),
        change,
        previous: Vec::new(),
    };
    let one = effects()[..1].to_vec();
    vec![
        entry(Change::Effects { keyspace, transaction: None, effects: one }, b""),
        entry(Change::Effects { keyspace, transaction: Some(operation()), effects: effects() }, b"deps"),
        entry(transaction(keyspace, None), b"d"),
        entry(transaction(keyspace, Some(operation())), b"d"),
        entry(Change::Flush { keyspace, effects: effects()[3..4].to_vec() }, b""),
        entry(Change::Lost { after: Position(70) }, b""),
    ]
}

/// An entry of a keyspace that asks what its writes replaced.
/// An entry that replaced what stood beside each other.
pub(crate) fn entry_over_several() -> Entry {
    let mut entry = entry_with_previous();
    entry.previous[0] = Previous::Several { operations: vec![operation(); 3], forgotten: stamp(8) };
    entry
}

pub(crate) fn entry_with_previous() -> Entry {
    let nothing = |forgotten| Previous::Nothing { forgotten };
    let previous =
        vec![Previous::Operation(operation()), nothing(Stamp::ZERO), nothing(stamp(8)), nothing(Stamp::ZERO)];
    Entry { previous, ..entries().swap_remove(1) }
}

#[test]
fn a_put_over_others_comes_back_and_has_one_encoding() {
    let (seen, mut over) = (Vec::new(), Observed::default());
    for datacenter in [1, 4] {
        over.see(Stamp { datacenter: DatacenterId(datacenter), ..stamp(8) });
    }
    let (value, over) = (Bytes::from_static(b"value"), Some(Box::new(over)));
    let effect = Effect::Put { value, seen, over };
    let effects = vec![RowEffect { key: Bytes::from_static(b"key"), column: Column::Text, effect }];
    let change = Change::Effects { keyspace: KeyspaceId(3), transaction: None, effects };
    let entry = Entry { change, ..entries().swap_remove(0) };
    let bytes = encode_entry(&entry);
    let names = 32 + 16 + 3 + 5;
    assert_eq!([bytes.len(), encoded_entry_bytes(&entry)], [names + 4 + 24; 2]);
    assert_eq!(decode_entry(&bytes), Ok(entry));
    for length in 0..bytes.len() {
        assert!(decode_entry(&bytes.slice(..length)).is_err(), "{length} bytes");
    }
    // Out of order, and no name at all.
    let (before, first, second) = (&bytes[..names + 4], &bytes[names + 4..names + 16], &bytes[names + 16..]);
    let swapped = [before, second, first].concat();
    let none = [&bytes[..names], &[0; 4][..]].concat();
    for wrong in [swapped, none] {
        assert!(decode_entry(&Bytes::from(wrong)).is_err());
    }
}

/// What removals say, each in an entry of its own.
fn removals() -> Vec<Entry> {
    let through = |time, datacenter| Stamp { datacenter: DatacenterId(datacenter), ..stamp(time) };
    let mut observed = Observed::all_through(stamp(7));
    observed.see(through(9, 1));
    observed.see(through(8, 4));
    let epoch_sum = EpochSum { epoch: stamp(9), sum: Decimal::from_integer(-12) };
    let seen = vec![SeenSum { datacenter: DatacenterId(4), epoch_sum, stamp: stamp(10) }];
    let all = [(Observed::default(), vec![]), (observed.clone(), vec![]), (observed, seen)];
    let removal = |(observed, seen)| {
        let (key, column) = (Bytes::from_static(b"key"), Column::Field(Bytes::from_static(b"f")));
        let effects = vec![RowEffect { key, column, effect: Effect::Remove { observed, seen } }];
        let change = Change::Effects { keyspace: KeyspaceId(3), transaction: None, effects };
        Entry { change, ..entries().swap_remove(0) }
    };
    all.into_iter().map(removal).collect()
}

#[test]
fn a_removal_comes_back_and_has_one_encoding() {
    let sizes: Vec<usize> = removals().iter().map(encoded_entry_bytes).collect();
    assert_eq!(sizes, [32 + 16 + 4 + 12, 32 + 16 + 4 + 36, 32 + 16 + 4 + 36 + 44]);
    for entry in removals() {
        let bytes = encode_entry(&entry);
        assert_eq!(bytes.len(), encoded_entry_bytes(&entry));
        assert_eq!(decode_entry(&bytes), Ok(entry));
        for length in 0..bytes.len() {
            assert!(decode_entry(&bytes.slice(..length)).is_err(), "{length} bytes");
        }
    }
    // The datacenters out of order, twice the same, and no stamp at all.
    let bytes = encode_entry(&removals()[1]);
    let stamps = 32 + 16 + 4 + 12;
    let swapped = [&bytes[..stamps], &bytes[stamps + 12..], &bytes[stamps..stamps + 12]].concat();
    let twice = [&bytes[..stamps + 12], &bytes[stamps..stamps + 12]].concat();
    let mut none = bytes[..stamps - 12].to_vec();
    none[32 + 12..32 + 16].copy_from_slice(&0_u32.to_le_bytes());
    for wrong in [swapped, twice, none] {
        assert!(decode_entry(&Bytes::from(wrong)).is_err());
    }
}

pub(crate) fn records() -> Vec<Record> {
    let entry = encode_entry(&entries()[0]);
    let commands =
        vec![(0, vec![Bytes::from_static(b"SET"), Bytes::from_static(b"a"), Bytes::new()]), (2, vec![])];
    let part = Part { partition: PartitionId(9), commands };
    let (at, transaction, keyspace) = (LogicalTime(99), operation(), KeyspaceId(1));
    let (origin, incarnation) = (DatacenterId(2), Incarnation(3));
    let context = Causes::Extension(Opaque(vec![b'c', 2, 3]));
    vec![
        Record::Own { entry: entry.clone() },
        Record::Begun { number: 8, keyspace, context, parts: vec![part.clone(), part.clone()] },
        Record::Prepared { transaction, keyspace, at, part },
        Record::Decided { transaction, at, entry: None },
        Record::Decided { transaction, at, entry: Some(entry.clone()) },
        Record::Completed { transaction },
        Record::Received { origin, incarnation, entry: entry.clone() },
        Record::Applied { origin, incarnation, position: Position(5), at },
        Record::ClockBound { bound: at },
        Record::Dead { datacenter: origin, time: at },
        Record::Ended { datacenter: origin, whole: at, failed: DatacenterSet(0b100), everywhere: true },
        Record::Lost {
            datacenter: origin,
            whole: at,
            doubtful: LogicalTime::MAX,
            failed: DatacenterSet(0b101),
        },
        Record::Discarded { datacenter: origin, entry },
        Record::Times { received: [at, at].into_iter().collect(), stable: TimeVector::default() },
        Record::Peer { datacenter: origin, directory: DirectoryId(0x0102_0304), last: at },
        Record::Retiring { datacenter: origin },
        Record::HomeMoved {
            moved: HomeMove {
                keyspace,
                pattern: Bytes::from_static(b"lock:*"),
                configured: DatacenterId(0),
                version: 3,
                from: DatacenterId(1),
                home: origin,
                step: HomeStep::Stopped,
                is_claimed: true,
                applied: vec![(DatacenterId(0), Position(4)), (origin, Position(7))],
                times: [at, LogicalTime::ZERO, at].into_iter().collect(),
            },
        },
    ]
}

fn record_bytes(record: &Record) -> Bytes {
    let mut out = Vec::new();
    encode_record(record, &mut out);
    Bytes::from(out)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn entries_come_back() {
    for entry in entries().into_iter().chain([entry_with_previous(), entry_over_several()]) {
        let bytes = encode_entry(&entry);
        assert_eq!(bytes.len(), encoded_entry_bytes(&entry));
        assert_eq!(decode_entry(&bytes).unwrap(), entry);
        assert_eq!(entry_position(&bytes).unwrap(), entry.position);
    }
}

#[test]
fn records_come_back() {
    for record in records() {
        assert_eq!(decode_record(&record_bytes(&record)).unwrap(), record);
    }
}

#[test]
fn what_was_replaced_has_its_own_bytes_and_others_pay_nothing() {
    let (with, without) = (entry_with_previous(), entries().swap_remove(1));
    assert_eq!(previous_bytes(&with), 17 + 1 + 13 + 1);
    assert_eq!(previous_bytes(&entry_over_several()), 2 + 3 * 16 + 12 + 1 + 13 + 1);
    assert_eq!(encoded_entry_bytes(&with), encoded_entry_bytes(&without) + previous_bytes(&with));
    // Only effects replace anything, and there are no other flags.
    let flagged = |entry: &Entry, flags: u8| {
        let mut bytes = encode_entry(entry).to_vec();
        bytes[6] = flags;
        decode_entry(&Bytes::from(bytes))
    };
    assert!(flagged(&entries()[2], 1).is_err() && flagged(&with, 2).is_err() && flagged(&with, 0).is_err());
}

#[test]
fn values_are_slices_of_the_input() {
    let bytes = encode_entry(&entries()[0]);
    let Change::Effects { effects, .. } = decode_entry(&bytes).unwrap().change else { panic!("effects") };
    let range = bytes.as_ptr_range();
    assert!(range.contains(&effects[0].key.as_ptr()));
}

#[test]
fn encodings_have_not_changed() {
    let golden = concat!(
        "01000302020100004d000000000000000500006890c58b01",
        "0000000001000000",
        "00000000030000000000000005000000",
        "6b657976616c7565",
    );
    let mut expected = golden.to_string();
    expected.replace_range(32..48, &hex(&(1_700_000_000_000u64 << 16 | 5).to_le_bytes()));
    assert_eq!(hex(&encode_entry(&entries()[0])), expected);
    let all: Vec<u8> = entries().iter().flat_map(|entry| encode_entry(entry).to_vec()).collect();
    let with_previous = format!("{:08x}", crc32fast::hash(&encode_entry(&entry_with_previous())));
    assert_eq!(with_previous, "813a3bba");
    let records: Vec<u8> = records().iter().flat_map(|record| record_bytes(record).to_vec()).collect();
    let header = batch::BatchHeader {
        incarnation: Incarnation(1),
        lsn: Lsn(640),
        synced: Lsn(512),
        body_bytes: 100,
        records: 2,
        body_checksum: 0xdead_beef,
    };
    let place = checkpoint::CheckpointPlace { number: 3, log_start: Lsn(500), retain: Lsn(100) };
    let block = checkpoint::BlockHeader { body_bytes: 10, items: 2, body_checksum: 7 };
    let footer = checkpoint::Footer { items: 2, blocks: 1, synced: Lsn(600), blocks_checksum: 9 };
    let seal = batch::Seal(0x55);
    let hashes = [
        crc32fast::hash(&all),
        crc32fast::hash(&records),
        // Without their checksum: the hash of bytes with their own hash behind them says nothing.
        crc32fast::hash(&header.encode(seal)[..36]),
        crc32fast::hash(&place.encode(seal)[..36]),
        crc32fast::hash(&block.encode(seal)[..16]),
        crc32fast::hash(&footer.encode(seal)[..36]),
    ];
    let checksum = u32_at(&header.encode(seal), 36);
    assert_eq!(format!("{checksum:08x}"), "3321bfc3");
    assert_eq!(hashes.map(|hash| format!("{hash:08x}")), GOLDEN_HASHES);
}

/// Since format 10 of a directory.
#[test]
fn deadlines_of_fields_come_back() {
    let value = FieldDeadline { ms: 1_700_000_000_000, of: operation() }.to_bytes();
    let column = Column::FieldDeadline(Bytes::from_static(b"f"));
    let effect = Effect::Put { value, seen: vec![], over: None };
    let effects = vec![RowEffect { key: Bytes::from_static(b"key"), column, effect }];
    let change = Change::Effects { keyspace: KeyspaceId(3), transaction: None, effects };
    let entry = Entry { change, ..entries()[0].clone() };
    let bytes = encode_entry(&entry);
    assert_eq!(decode_entry(&bytes), Ok(entry));
    assert_eq!(format!("{:08x}", crc32fast::hash(&bytes)), "52360681");
}

/// Since format 11 of a directory.
#[test]
fn bounded_counters_come_back() {
    let mut counter =
        Escrow::new(Terms { maker: DatacenterId(1), initial: -7, lower: Some(-9), upper: None });
    counter.change(DatacenterId(1), 300).expect("no bound above");
    let name = counter_name(entries()[0].stamp);
    let share = Column::Escrow(share_name(&name, DatacenterId(1)));
    let columns = [(Column::Escrow(name), counter.terms.to_bytes()), (share, counter.share())];
    let put = |(column, value)| RowEffect {
        key: Bytes::from_static(b"key"),
        column,
        effect: Effect::Put { value, seen: vec![], over: None },
    };
    let effects = columns.map(put).into();
    let change = Change::Effects { keyspace: KeyspaceId(3), transaction: None, effects };
    let entry = Entry { change, ..entries()[0].clone() };
    let bytes = encode_entry(&entry);
    assert_eq!(decode_entry(&bytes), Ok(entry));
    assert_eq!(format!("{:08x}", crc32fast::hash(&bytes)), "b3be45a7");
}

/// Since format 11 of a directory. Nothing but removals is of all columns.
#[test]
fn removals_of_rows_come_back() {
    let mut observed = Observed::all_through(entries()[0].stamp);
    observed.see(entries()[0].stamp);
    let entry_of = |effect| {
        let effects = vec![RowEffect { key: Bytes::from_static(b"key"), column: Column::Row, effect }];
        let change = Change::Effects { keyspace: KeyspaceId(3), transaction: None, effects };
        Entry { change, ..entries()[0].clone() }
    };
    let entry = entry_of(Effect::Remove { observed, seen: vec![] });
    let bytes = encode_entry(&entry);
    assert_eq!(decode_entry(&bytes), Ok(entry));
    assert_eq!(format!("{:08x}", crc32fast::hash(&bytes)), "436c39ac");
    let put = entry_of(Effect::Delete { seen: vec![] });
    let refused = decode_entry(&encode_entry(&put));
    assert!(
        matches!(refused, Err(LayoutError::Unknown { what: "column kind", value: 9, .. })),
        "{refused:?}"
    );
}

/// Changing one of these means a new format number, and a reader for the old one.
const GOLDEN_HASHES: [&str; 6] = ["622b0c8f", "addbb3e0", "4ca7d46f", "d6445f4d", "8e02e757", "02f53b3e"];

/// What format 1 wrote, by its own golden hash, is still read; what a later version writes is refused by name.
#[test]
fn checkpoints_of_every_format_up_to_this_one_are_read() {
    let place = checkpoint::CheckpointPlace { number: 3, log_start: Lsn(500), retain: Lsn(100) };
    let seal = batch::Seal(0x55);
    let of_format = |format| {
        let mut bytes = place.encode(seal);
        bytes[4] = format;
        let checksum = seal.checksum(&bytes[..36]);
        bytes[36..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    };
    assert_eq!(format!("{:08x}", crc32fast::hash(&of_format(1)[..36])), "1f5b57f2");
    for format in [1, 2] {
        assert_eq!(checkpoint::CheckpointPlace::decode(&of_format(format), seal), Ok(place));
    }
    let refused = checkpoint::CheckpointPlace::decode(&of_format(3), seal);
    assert_eq!(refused, Err(LayoutError::UnknownFormat { what: "checkpoint", format: 3, known: 2 }));
}

#[test]
fn cut_and_extended_encodings_are_refused() {
    for bytes in entries().iter().map(encode_entry) {
        for length in 0..bytes.len() {
            assert!(decode_entry(&bytes.slice(..length)).is_err(), "{length} bytes of an entry");
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert!(decode_entry(&Bytes::from(longer)).is_err());
    }
}

/// Whatever is accepted has one encoding: decoding and encoding again gives the same bytes.
#[test]
fn garbage_is_refused_or_means_itself() {
    let mut random = Random(1);
    let samples: Vec<Bytes> = entries().iter().map(encode_entry).collect();
    let record_samples: Vec<Bytes> = records().iter().map(record_bytes).collect();
    for _ in 0..20_000 {
        let mut bytes = samples[random.below(samples.len())].to_vec();
        let mut record = record_samples[random.below(record_samples.len())].to_vec();
        for sample in [&mut bytes, &mut record] {
            for _ in 0..=random.below(3) {
                let at = random.below(sample.len());
                sample[at] = random.next() as u8;
            }
            sample.truncate(sample.len() - random.below(2) * random.below(sample.len()));
        }
        let (bytes, record) = (Bytes::from(bytes), Bytes::from(record));
        if let Ok(entry) = decode_entry(&bytes) {
            assert_eq!(encode_entry(&entry), bytes);
        }
        if let Ok(decoded) = decode_record(&record) {
            assert_eq!(record_bytes(&decoded), record);
        }
    }
    for length in 0..200 {
        let noise: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        assert!(decode_entry(&Bytes::from(noise)).is_err());
    }
}

#[test]
fn a_keyspace_that_no_server_has_is_refused() {
    for entry in entries() {
        let mut bytes = encode_entry(&entry).to_vec();
        bytes[2] = ensue_types::limits::KEYSPACES;
        let refused = decode_entry(&Bytes::from(bytes));
        assert_eq!(refused, Err(LayoutError::Unknown { what: "keyspace", at: 2, value: 16 }));
    }
}

/// `cargo test --release -p ensue-store encode_speed -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]
fn encode_speed() {
    let entry = entries().swap_remove(0);
    let rounds = 20_000_000u32;
    let begin = std::time::Instant::now();
    let total: usize = (0..rounds).map(|_| encode_entry(std::hint::black_box(&entry)).len()).sum();
    println!("encode_entry {:?} ({total})", begin.elapsed() / rounds);
    let (begin, mut out) = (std::time::Instant::now(), Vec::with_capacity(128));
    for _ in 0..rounds {
        out.clear();
        encode_entry_into(&mut out, std::hint::black_box(&entry));
        std::hint::black_box(&out);
    }
    println!("encode_entry_into {:?}", begin.elapsed() / rounds);
    let (begin, bytes) = (std::time::Instant::now(), encode_entry(&entry));
    for _ in 0..rounds {
        std::hint::black_box(decode_entry(std::hint::black_box(&bytes)).is_ok());
    }
    println!("decode_entry {:?}", begin.elapsed() / rounds);
}
