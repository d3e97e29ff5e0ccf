//! Layouts that are not written here: of old versions, of Redis 7.4, of Valkey 9, of modules; and what is no file.

use super::*;
use crate::value::{ExpiringField, Value};

fn b(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn items(bytes: &[u8]) -> Result<Vec<Item>, RdbError> {
    let mut reader = RdbReader::new(bytes)?;
    let mut items = Vec::new();
    while let Some(item) = reader.next_item()? {
        items.push(item);
    }
    Ok(items)
}

/// The items of a file with these parts, which tells that it has no checksum.
fn of(magic: &str, parts: &[u8]) -> Vec<Item> {
    items(&[magic.as_bytes(), parts, b"\xff\0\0\0\0\0\0\0\0"].concat()).expect("it is one")
}

fn content(magic: &str, layout: u8, body: &[u8]) -> Content {
    match of(magic, &[&[layout, 1, b'k'], body].concat()).pop() {
        Some(Item::Entry(Entry { content, .. })) => content,
        other => panic!("{other:?}"),
    }
}

fn field(name: &str, value: &str, deadline_ms: Option<u64>) -> ExpiringField {
    ExpiringField { name: b(name), value: b(value), deadline_ms }
}

#[test]
fn what_stands_around_entries_is_read() {
    let parts = b"\xfa\x09redis-ver\x057.4.0\xfe\x02\xfb\x01\x01\xf4\x07\x01\x00\xf5\x05#!lua\
        \xfc\x10\x27\0\0\0\0\0\0\xf8\x05\x00\x01k\x01v\xfd\x0a\0\0\0\xf9\xff\x00\x01e\xc0\x07";
    let entry = |key, deadline_ms, value| {
        let content = Content::Value(Value::Text(b(value)));
        Item::Entry(Entry { database: 2, key: b(key), deadline_ms: Some(deadline_ms), content })
    };
    assert_eq!(
        of("REDIS0012", parts),
        [
            Item::Aux { name: b("redis-ver"), value: b("7.4.0") },
            Item::Library(b("#!lua")),
            entry("k", 10_000, "v"),
            entry("e", 10_000, "7"),
        ]
    );
}

#[test]
fn old_layouts_are_read() {
    // A file of version 1 has no checksum.
    let first = items(b"REDIS0001\xfe\x00\x00\x01k\x01v\xff").expect("it is one");
    assert!(matches!(&first[..], [Item::Entry(_)]));
    // The last value has a byte behind it that is not used.
    let zipmap = b"\x02\x01a\x02\x00xy\x01b\x01\x01z_\xff";
    let expected = Value::Hash(vec![(b("a"), b("xy")), (b("b"), b("z"))]);
    let body = [&[zipmap.len() as u8][..], zipmap].concat();
    assert_eq!(content("REDIS0002", 9, &body), Content::Value(expected));
}

#[test]
fn scores_in_digits_are_read() {
    let members = content("REDIS0007", 3, b"\x03\x01a\x031.5\x01b\xfe\x01c\xff");
    let Content::Value(Value::Sorted(members)) = members else { panic!("{members:?}") };
    let scores: Vec<f64> = members.iter().map(|(score, _)| score.value()).collect();
    assert_eq!(scores, [1.5, f64::INFINITY, f64::NEG_INFINITY]);
}

#[test]
fn fields_with_deadlines_are_read() {
    let expected = Content::Expiring(vec![field("a", "1", None), field("b", "2", Some(1_005))]);
    let earliest = 1_000_u64.to_le_bytes();
    let body = [&earliest[..], b"\x02\x00\x01a\x011\x06\x01b\x012"].concat();
    assert_eq!(content("REDIS0012", 24, &body), expected);
    assert_eq!(content("REDIS0012", 22, b"\x02\x00\x01a\x011\x43\xed\x01b\x012"), expected);
    let list = b"\x1e\x00\x00\x00\x06\x00\x81a\x02\x01\x01\x00\x01\x81b\x02\x02\x01\xc3\xed\x02\xff";
    let mut list = list.to_vec();
    list[0] = list.len() as u8;
    let body = [&earliest[..], &[list.len() as u8], &list].concat();
    assert_eq!(content("REDIS0012", 25, &body), expected);
    let none = (-1_i64).to_le_bytes();
    let body = [b"\x02\x01a\x011", &none[..], b"\x01b\x012", &1_005_u64.to_le_bytes()].concat();
    assert_eq!(content("VALKEY080", 22, &body), expected);
}

#[test]
fn what_keydb_adds_is_read() {
    let parts = b"\xfc\x10\x27\0\0\0\0\0\0\xfa\x0bmvcc-tstamp\xc0\x07\x00\x01k\x01v\
        \x40\x03job\x01s\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01a\x00\x00\x01l\x01w";
    let items = of("REDIS0009", parts);
    let entries: Vec<&Entry> = items
        .iter()
        .filter_map(|item| if let Item::Entry(entry) = item { Some(entry) } else { None })
        .collect();
    assert_eq!(entries.iter().map(|entry| entry.deadline_ms).collect::<Vec<_>>(), [Some(10_000), None, None]);
    assert_eq!(entries[1].content, Content::Module { name: "KEYDB.CRON".into() });
}

#[test]
fn what_modules_wrote_is_read_past_and_named() {
    // "ReJSON-RL" and the version 3: nine characters of six bits, and ten bits.
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let place = |byte: &u8| alphabet.iter().position(|one| one == byte).unwrap_or(0) as u64;
    let id = b"ReJSON-RL".iter().fold(0, |id, byte| id << 6 | place(byte)) << 10 | 3;
    let id = [&[0x81][..], &id.to_be_bytes()].concat();
    let parts = b"\x05\x02{}\x02\x07\x04\0\0\0\0\0\0\xf8\x3f\x03\0\0\0\0\x00";
    let value = content("REDIS0011", 7, &[&id[..], parts].concat());
    assert_eq!(value, Content::Module { name: "ReJSON-RL".into() });
    let aux = of("REDIS0011", &[b"\xf7", &id[..], b"\x02\x02\x05\x02{}\x00"].concat());
    assert_eq!(aux, [Item::ModuleAux { name: "ReJSON-RL".into() }]);
}

#[test]
fn what_is_no_file_is_refused_with_its_place() {
    let damage = |bytes: &[u8]| match items(bytes) {
        Err(RdbError::Damaged { offset, damage }) => (offset, damage),
        other => panic!("{other:?}"),
    };
    assert_eq!(damage(b"PNG and more"), (0, Damage::NotRdb));
    assert_eq!(damage(b"REDIS00x1"), (0, Damage::NotRdb));
    assert_eq!(damage(b"REDIS0013"), (0, Damage::Version(13)));
    assert_eq!(damage(b"VALKEY079"), (0, Damage::Version(79)));
    assert_eq!(damage(b"REDIS"), (5, Damage::Truncated));
    assert_eq!(damage(b"REDIS0011\xff\x01\0\0\0\0\0\0\0"), (18, Damage::Checksum));
    assert_eq!(damage(b"REDIS0011\x06\x01k"), (10, Damage::Type(6)));
    assert_eq!(damage(b"REDIS0011\x1a\x01k"), (10, Damage::Type(26)));
    assert_eq!(damage(b"REDIS0011\xf6\x01k"), (10, Damage::Type(246)));
    // Lengths of exabytes with nothing behind them.
    assert_eq!(damage(b"REDIS0011\x01\x01k\x81\xff\xff\xff\xff\xff\xff\xff\xff"), (21, Damage::Truncated));
    assert_eq!(damage(b"REDIS0011\x00\x01k\x81\x7f\xff\xff\xff\xff\xff\xff\xff"), (21, Damage::Truncated));
    assert_eq!(
        damage(b"REDIS0011\x00\x01k\xc3\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x00").1,
        Damage::Compressed
    );
}
