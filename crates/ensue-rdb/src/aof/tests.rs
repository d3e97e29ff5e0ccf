//! Append-only files with and without a snapshot in front, whole and cut off.

use super::*;
use crate::{Content, FileVersion, RdbWriter, Value};

fn all(bytes: &[u8]) -> (Vec<AofItem>, Option<Damage>, u64) {
    let mut items = Vec::new();
    let mut reader = match AofReader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return (items, error.damage(), 0),
    };
    loop {
        match reader.next_item() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => return (items, None, reader.offset()),
            Err(error) => return (items, error.damage(), reader.offset()),
        }
    }
}

fn command(words: &[&'static str]) -> AofItem {
    AofItem::Command(words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect())
}

const COMMANDS: &[u8] =
    b"#TS:1700000000\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";

#[test]
fn commands_are_read_and_notes_passed_over() {
    let expected = vec![command(&["SELECT", "0"]), command(&["SET", "k", "v"])];
    assert_eq!(all(COMMANDS), (expected, None, COMMANDS.len() as u64));
    assert_eq!(all(b""), (vec![], None, 0));
}

#[test]
fn a_snapshot_may_stand_in_front() {
    let mut writer = RdbWriter::new(Vec::new(), FileVersion::Eleven).expect("memory takes it");
    let value = Content::Value(Value::Text(Bytes::from_static(b"v")));
    writer.entry(3, b"k", None, &value).expect("memory takes it");
    let mut bytes = writer.finish().expect("memory takes it");
    bytes.extend_from_slice(COMMANDS);
    let (items, damage, offset) = all(&bytes);
    assert_eq!((damage, offset), (None, bytes.len() as u64));
    assert!(
        matches!(&items[0], AofItem::Item(Item::Entry(entry)) if entry.database == 3 && entry.content == value)
    );
    assert_eq!(items[1..], [command(&["SELECT", "0"]), command(&["SET", "k", "v"])]);
}

#[test]
fn a_file_that_is_cut_off_or_none_says_so() {
    let last = COMMANDS.len() - 27;
    for end in last + 1..COMMANDS.len() - 2 {
        let (items, damage, _) = all(&COMMANDS[..end]);
        assert_eq!((items.len(), damage), (1, Some(Damage::Truncated)), "{end}");
    }
    assert_eq!(all(&COMMANDS[..last]), (vec![command(&["SELECT", "0"])], None, last as u64));
    assert_eq!(all(b"SET k v\r\n").1, Some(Damage::NotCommand));
    assert_eq!(all(b"*1\r\n:3\r\n").1, Some(Damage::NotCommand));
}
