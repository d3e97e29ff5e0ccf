//! What is written is read again, whatever it is; and what is damaged is neither believed nor fatal.

use super::*;
use crate::error::Damage;
use crate::stream::{Consumer, Pending};
use crate::value::Value;
use crate::{Entry, Item, RdbReader};
use bytes::Bytes;
use ensue_types::Score;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn texts() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        any::<i64>().prop_map(|number| Bytes::from(number.to_string())),
        proptest::collection::vec(any::<u8>(), 0..80).prop_map(Bytes::from),
        (4_000..5_000_usize).prop_map(|length| Bytes::from(vec![b'x'; length])),
    ]
}

fn ids() -> impl Strategy<Value = StreamId> {
    (any::<u64>(), 0..5_u64).prop_map(|(ms, sequence)| StreamId { ms: ms >> 8, sequence })
}

fn streams() -> impl Strategy<Value = Stream> {
    let fields = proptest::collection::vec((texts(), texts()), 1..4);
    let entries = proptest::collection::btree_map(ids(), fields, 0..20);
    let pending = proptest::collection::btree_map(ids(), (any::<u64>(), any::<u64>(), 0..2_usize), 0..5);
    let groups =
        proptest::collection::vec((texts(), ids(), proptest::option::of(0..u64::MAX / 2), pending), 0..3);
    (entries, ids(), ids(), any::<u64>(), groups).prop_map(
        |(entries, last_id, max_deleted_id, entries_added, groups)| Stream {
            entries: entries.into_iter().map(|(id, fields)| StreamEntry { id, fields }).collect(),
            last_id,
            max_deleted_id,
            entries_added,
            groups: groups.into_iter().map(group).collect(),
        },
    )
}

type Drawn = (Bytes, StreamId, Option<u64>, BTreeMap<StreamId, (u64, u64, usize)>);

fn group((name, last_id, entries_read, pending): Drawn) -> Group {
    let names = [Bytes::from_static(b"ann"), Bytes::from_static(b"17")];
    let pending = pending.into_iter().map(|(id, (delivered_ms, deliveries, owner))| {
        let consumer = names[owner].clone();
        Pending { id, consumer, delivered_ms, deliveries }
    });
    let consumer = |name: &Bytes| Consumer { name: name.clone(), seen_ms: 5, active_ms: Some(7) };
    let consumers = names.iter().map(consumer).collect();
    Group { name, last_id, entries_read, consumers, pending: pending.collect() }
}

fn contents() -> impl Strategy<Value = Content> {
    let score = any::<f64>().prop_map(|value| Score::new(value).unwrap_or(Score::ONE));
    prop_oneof![
        texts().prop_map(|text| Content::Value(Value::Text(text))),
        proptest::collection::vec(texts(), 1..20).prop_map(|all| Content::Value(Value::List(all))),
        proptest::collection::vec(texts(), 1..20).prop_map(|all| Content::Value(Value::Set(all))),
        proptest::collection::vec((texts(), texts()), 1..20).prop_map(|all| Content::Value(Value::Hash(all))),
        proptest::collection::vec((score, texts()), 1..20).prop_map(|all| Content::Value(Value::Sorted(all))),
        streams().prop_map(Content::Stream),
    ]
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (0..20_u64, texts(), proptest::option::of(any::<u64>()), contents());
    let entry =
        entry.prop_map(|(database, key, deadline_ms, content)| Entry { database, key, deadline_ms, content });
    proptest::collection::vec(entry, 0..8)
}

fn written(entries: &[Entry], version: FileVersion) -> Vec<u8> {
    let mut writer = RdbWriter::new(Vec::new(), version).expect("memory takes it");
    writer.aux("redis-ver", "7.2.0").expect("memory takes it");
    for entry in entries {
        let is_written = writer.entry(entry.database, &entry.key, entry.deadline_ms, &entry.content);
        assert!(is_written.expect("memory takes it"));
    }
    writer.finish().expect("memory takes it")
}

fn read(bytes: &[u8]) -> Result<Vec<Item>, crate::RdbError> {
    let mut reader = RdbReader::new(bytes)?;
    let mut items = Vec::new();
    while let Some(item) = reader.next_item()? {
        items.push(item);
    }
    Ok(items)
}

/// Members stand in a file the other way round.
fn turned(mut entry: Entry) -> Entry {
    if let Content::Value(Value::Sorted(members)) = &mut entry.content {
        members.reverse();
    }
    entry
}

/// What a version does not keep.
fn without_later(mut entry: Entry, version: FileVersion) -> Entry {
    let Content::Stream(stream) = &mut entry.content else { return entry };
    if version == FileVersion::Nine {
        stream.max_deleted_id = StreamId::MIN;
        stream.entries_added = stream.entries.len() as u64;
        stream.groups.iter_mut().for_each(|group| group.entries_read = None);
    }
    if version < FileVersion::Eleven {
        let consumers = stream.groups.iter_mut().flat_map(|group| &mut group.consumers);
        consumers.for_each(|consumer| consumer.active_ms = None);
    }
    entry
}

/// Bytes that are held for what was read.
fn held(items: &[Item]) -> usize {
    let content = |item: &Item| match item {
        Item::Entry(entry) => entry.key.len() + entry.content.bytes(),
        Item::Aux { name, value } => name.len() + value.len(),
        Item::Library(text) => text.len(),
        Item::ModuleAux { name } => name.len(),
    };
    items.iter().map(content).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(entries in entries()) {
        for version in [FileVersion::Nine, FileVersion::Ten, FileVersion::Eleven] {
            let items = read(&written(&entries, version)).expect("it was just written");
            let expected = entries.iter().cloned().map(|entry| Item::Entry(turned(without_later(entry, version))));
            prop_assert_eq!(&items[1..], &expected.collect::<Vec<Item>>()[..]);
        }
    }

    #[test]
    fn a_file_that_is_cut_off_is_truncated(entries in entries(), place in any::<prop::sample::Index>()) {
        let bytes = written(&entries, FileVersion::Eleven);
        let cut = &bytes[..place.index(bytes.len())];
        let damage = read(cut).expect_err("it has no end").damage();
        prop_assert_eq!(damage, Some(Damage::Truncated));
    }

    /// The checksum finds it at the end at the latest; what was read before is not more than the bytes allow.
    #[test]
    fn a_changed_bit_is_found(entries in entries(), place in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = written(&entries, FileVersion::Eleven);
        let place = place.index(bytes.len() - 8);
        bytes[place] ^= 1 << bit;
        // Files before version 5 have no checksum.
        prop_assume!(!bytes.starts_with(b"REDIS0001"));
        prop_assert!(read(&bytes).is_err());
        let mut reader = match RdbReader::new(&bytes[..]) {
            Ok(reader) => reader,
            Err(_) => return Ok(()),
        };
        let mut items = Vec::new();
        while let Ok(Some(item)) = reader.next_item() {
            items.push(item);
        }
        // A number takes up to ten times its bytes as text, and a compressed copy 88 times.
        prop_assert!(held(&items) <= 264 * bytes.len());
    }

    #[test]
    fn any_bytes_are_survived(layout in 0..=255_u8, body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = b"REDIS0011".to_vec();
        bytes.push(layout);
        bytes.extend_from_slice(b"\x01k");
        bytes.extend_from_slice(&body);
        let _ = read(&bytes);
        let mut packed = b"REDIS0011".to_vec();
        packed.extend_from_slice(&[layout, 1, b'k', 0x40 | (body.len() >> 8) as u8, body.len() as u8]);
        packed.extend_from_slice(&body);
        let _ = read(&packed);
    }
}

#[test]
fn a_dump_is_an_entry() {
    let value = Value::Hash(vec![(Bytes::from_static(b"f"), Bytes::from_static(b"v"))]);
    let mut writer = RdbWriter::new(Vec::new(), FileVersion::Ten).expect("memory takes it");
    let dump = dump::write(&value);
    assert_eq!(writer.dumped(1, b"k", Some(9), &dump).expect("memory takes it"), Ok(()));
    assert_eq!(writer.dumped(1, b"k", None, &dump[1..]).expect("memory takes it"), Err(DumpError::Footer));
    let bytes = writer.finish().expect("memory takes it");
    let entry = Entry {
        database: 1,
        key: Bytes::from_static(b"k"),
        deadline_ms: Some(9),
        content: Content::Value(value),
    };
    assert_eq!(read(&bytes).expect("it was just written"), [Item::Entry(entry)]);
}
