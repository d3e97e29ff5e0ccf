//! Dumps as Redis makes them, and what is none.

use super::*;
use crate::stream::{Consumer, Group, Pending, StreamEntry};
use ensue_types::{Score, StreamId};

fn b(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// What was dumped, if it is no stream.
fn read(dump: &[u8]) -> Result<Value, DumpError> {
    match super::read(dump)? {
        Dumped::Value(value) => Ok(value),
        Dumped::Stream(_) => panic!("a stream"),
    }
}

#[test]
fn a_stream_comes_back_and_one_out_of_order_does_not() {
    let id = |ms| StreamId { ms, sequence: ms % 3 };
    let entry = |ms| StreamEntry { id: id(ms), fields: vec![(b("f"), b(&ms.to_string()))] };
    let stream = Stream {
        entries: (1..400).map(entry).collect(),
        last_id: id(500),
        max_deleted_id: id(450),
        entries_added: 460,
        groups: vec![Group {
            name: b("g"),
            last_id: id(7),
            entries_read: Some(7),
            consumers: vec![Consumer { name: b("c"), seen_ms: 5, active_ms: Some(4) }],
            pending: vec![Pending { id: id(6), consumer: b("c"), delivered_ms: 4, deliveries: 2 }],
        }],
    };
    assert_eq!(super::read(&write_stream(&stream)), Ok(Dumped::Stream(stream.clone())));
    let wrong = |change: &dyn Fn(&mut Stream)| {
        let mut stream = stream.clone();
        change(&mut stream);
        assert_eq!(super::read(&write_stream(&stream)), Err(DumpError::Value));
    };
    wrong(&|stream| stream.entries.swap(0, 1));
    wrong(&|stream| stream.last_id = id(3));
    wrong(&|stream| stream.groups.push(stream.groups[0].clone()));
    wrong(&|stream| {
        let consumers = &mut stream.groups[0].consumers;
        consumers.push(consumers[0].clone());
    });
}

/// A body with the version and the checksum that belong to it.
fn sealed(body: &[u8]) -> Bytes {
    super::sealed(body.to_vec(), super::VERSION_MAX)
}

#[test]
fn the_checksum_is_that_of_redis() {
    assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
}

#[test]
fn every_type_comes_back() {
    let long = b(&"x".repeat(20_000));
    let scored = |score: f64, name: &str| (Score::new(score).unwrap_or(Score::ZERO), b(name));
    for value in [
        Value::Text(b("")),
        Value::Text(b("hello")),
        Value::Text(b("-7")),
        Value::Text(b("70000")),
        Value::Text(b("2147483648")),
        Value::Text(long.clone()),
        Value::List(vec![b("a"), b("a"), long.clone(), b("12")]),
        Value::Set(vec![b("1"), b("2"), b("three")]),
        Value::Hash((0..300).map(|n| (b(&n.to_string()), b(&format!("value {n}")))).collect()),
        Value::DatedHash(vec![
            (b("a"), b("1"), Some(1_800_000_000_123)),
            (b("b"), b("2"), None),
            (b("c"), b("3"), Some(1_700_000_000_000)),
        ]),
        Value::Sorted(vec![scored(f64::NEG_INFINITY, "low"), scored(0.1, "a"), scored(3.0, "b")]),
    ] {
        let dump = write(&value);
        let read = read(&dump).expect("it was just written");
        match (read, value) {
            (Value::Sorted(mut members), Value::Sorted(expected)) => {
                members.reverse();
                assert_eq!(members, expected);
            }
            (read, value) => assert_eq!(read, value),
        }
    }
}

/// What redis-server 7.0 answers to `DUMP`, and some layouts of older versions, without their footers.
#[test]
fn layouts_of_redis_are_read() {
    let list = |values: &[&str]| Value::List(values.iter().map(|value| b(value)).collect());
    let of_set = |values: &[&str]| Value::Set(values.iter().map(|value| b(value)).collect());
    // RPUSH l a 1 -1 300
    let packed = b"\x12\x01\x02\x12\x12\x00\x00\x00\x04\x00\x81a\x02\x01\x01\xdf\xff\x02\xc1\x2c\x02\xff";
    assert_eq!(read(&sealed(packed)), Ok(list(&["a", "1", "-1", "300"])));
    // SADD s 1 2 300
    let integers = b"\x0b\x0e\x02\x00\x00\x00\x03\x00\x00\x00\x01\x00\x02\x00\x2c\x01";
    assert_eq!(read(&sealed(integers)), Ok(of_set(&["1", "2", "300"])));
    // A list of the layout before: two elements, "ab" and 5.
    let zipped = b"\x0a\x11\x11\x00\x00\x00\x0e\x00\x00\x00\x02\x00\x00\x02ab\x04\xf6\xff";
    assert_eq!(read(&sealed(zipped)), Ok(list(&["ab", "5"])));
    // A hash of two fields, f until 1700000000000 and g for ever, as Redis 7.4 lays it out, plain and packed.
    let dated = || Value::DatedHash(vec![(b("f"), b("1"), Some(1_700_000_000_000)), (b("g"), b("2"), None)]);
    let plain = b"\x18\x00\x68\xe5\xcf\x8b\x01\x00\x00\x02\x01\x01f\xc0\x01\x00\x01g\xc0\x02";
    assert_eq!(read(&sealed(plain)), Ok(dated()));
    assert_eq!(write(&dated())[..plain.len()], plain[..]);
    let packed = b"\x19\x00\x68\xe5\xcf\x8b\x01\x00\x00\x1d\
        \x1d\x00\x00\x00\x06\x00\x81f\x02\x01\x01\xf4\x00\x68\xe5\xcf\x8b\x01\x00\x00\x09\
        \x81g\x02\x02\x01\x00\x01\xff";
    assert_eq!(read(&sealed(packed)), Ok(dated()));
    // "aaaaaaaaaa", compressed: one literal, then nine copied.
    let compressed = b"\x00\xc3\x05\x0a\x00a\xe0\x00\x00";
    assert_eq!(read(&sealed(compressed)), Ok(Value::Text(b("aaaaaaaaaa"))));
}

#[test]
fn what_is_no_dump_is_refused() {
    let good = write(&Value::List(vec![b("a"), b("b")]));
    for length in 0..good.len() {
        assert_eq!(read(&good[..length]), Err(DumpError::Footer), "{length}");
    }
    let mut newer = good[..good.len() - 10].to_vec();
    newer.extend_from_slice(&[VERSION_MAX as u8 + 1, 0]);
    newer.extend_from_slice(&checksum(&newer).to_le_bytes());
    assert_eq!(read(&newer), Err(DumpError::Footer));
    for body in [
        &b"\x63"[..],
        b"\x01\x00",
        b"\x01\x02\x01a",
        b"\x01\x01\x01ab",
        b"\x02\x02\x01a\x01a",
        b"\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x00\xc3\x05\x0b\x00a\xe0\x00\x00",
        b"\x00\xc3\x02\x81\x00\x00\x00\xff\xff\xff\xff\xff\x00a",
        b"\x0b\x08\x02\x00\x00\x00\x01\x00\x00\x00",
        b"\x0b\x08\x02\x00\x00\x00\x00\x00\x00\x00",
        b"\x05\x01\x01a\x00\x00\x00\x00\x00\x00\xf8\x7f",
    ] {
        assert_eq!(read(&sealed(body)), Err(DumpError::Value), "{body:x?}");
    }
}

/// A list of one packed node with so many elements of two bytes each.
fn packed_list(elements: usize) -> Bytes {
    let mut node = (6 + 2 * elements as u32 + 1).to_le_bytes().to_vec();
    node.extend_from_slice(&u16::MAX.to_le_bytes());
    node.extend_from_slice(&[1, 1].repeat(elements));
    node.push(0xff);
    let mut body = vec![layout::LIST_OF_PACKED, 1, 2, 0x80];
    body.extend_from_slice(&(node.len() as u32).to_be_bytes());
    body.extend_from_slice(&node);
    sealed(&body)
}

#[test]
fn elements_are_bounded_by_what_they_take_and_not_by_how_short_they_are() {
    let most = limits::ENTRY_BYTES_MAX / crate::reader::ELEMENT_BYTES;
    match read(&packed_list(70_000)) {
        Ok(Value::List(values)) => assert_eq!(values.len(), 70_000),
        other => panic!("{other:?}"),
    }
    let more = packed_list(most + 1);
    assert!(matches!(read(&more), Err(DumpError::Value)));
    match read_own(&more) {
        Ok(Dumped::Value(Value::List(values))) => assert_eq!(values.len(), most + 1),
        other => panic!("{:?}", other.map(|_| "no list")),
    }
    let empty = |count: u32| {
        let mut body = vec![layout::SET, 0x80];
        body.extend_from_slice(&count.to_be_bytes());
        body.resize(body.len() + count as usize, 0);
        sealed(&body)
    };
    assert_eq!(read(&empty(1)), Ok(Value::Set(vec![b("")])));
    assert!(matches!(read(&empty(most as u32 + 1)), Err(DumpError::Value)));
    let integers = |count: u32| {
        let mut set = [2_u32.to_le_bytes(), count.to_le_bytes()].concat();
        set.resize(8 + 2 * count as usize, 0);
        let mut budget = crate::reader::Budget::new(limits::ENTRY_BYTES_MAX);
        crate::packed::integers(&set, &mut budget).map(|values| values.len())
    };
    assert_eq!(integers(9), Ok(9));
    assert_eq!(integers(most as u32 + 1), Err(crate::Damage::Elements));
}
