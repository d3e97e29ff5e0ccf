//! What a text is given of siblings, and what names it.

use super::{LuaHandler, sortable};
use bytes::Bytes;
use ensue_store::fold::{Failed, Fold, Folded};
use ensue_types::{DatacenterId, LogicalTime, PartitionId, Stamp};
use proptest::prelude::*;

fn stamp(time: u64, datacenter: u8, partition: u16) -> Stamp {
    Stamp { time: LogicalTime(time), datacenter: DatacenterId(datacenter), partition: PartitionId(partition) }
}

fn sibling(at: u64, value: Option<&'static str>, deletes: bool) -> Folded {
    Folded {
        stamp: stamp(at, at as u8, 7),
        value: value.map(|value| Bytes::from_static(value.as_bytes())),
        deletes,
    }
}

fn handler(text: &str) -> LuaHandler {
    LuaHandler::unproved("a.lua", text.as_bytes()).expect(text)
}

#[test]
fn a_text_is_given_what_counts() {
    let all = handler(
        "local all = {}
         for at, s in ipairs(siblings) do all[at] = s.datacenter .. ':' .. tostring(s.value) .. '@' .. s.stamp end
         return table.concat(all, ' ')",
    );
    let pair = [sibling(1, Some("1"), true), sibling(2, Some("two"), false)];
    let shown = all.fold(&pair).expect("it does not fail").expect("it is a value");
    let stamps = ["00000000000000000001-002-00007", "00000000000000000002-003-00007"];
    assert_eq!(shown, format!("2:nil@{} 3:two@{}", stamps[0], stamps[1]), "what was added to a delete");
}

#[test]
fn where_no_value_stands_nothing_is_asked() {
    let always = handler("return 'x'");
    assert_eq!(always.fold(&[sibling(1, None, true), sibling(2, None, true)]), Ok(None));
    let added = [sibling(1, None, true), sibling(2, Some("3"), true)];
    assert_eq!(always.fold(&added), Ok(Some(Bytes::from("x"))), "since both deletes");
}

#[test]
fn a_failure_has_words() {
    let pair = [sibling(1, Some("a"), false), sibling(2, Some("b"), false)];
    let failed = handler("error('mine')").fold(&pair);
    assert_eq!(failed, Err(Failed("line 1: mine".into())));
}

#[test]
fn the_file_and_the_text_are_the_identity() {
    let of = |file, text: &str| LuaHandler::unproved(file, text.as_bytes()).expect(text).identity();
    assert_eq!(of("a.lua", "return nil"), "lua a.lua 79cefb99366d8809d2e903c5f36f50c2b731913f");
    assert_ne!(of("a.lua", "return nil"), of("a.lua", "return nil "));
    assert_ne!(of("a.lua", "return nil"), of("b.lua", "return nil"));
    assert!(LuaHandler::unproved("a\nb", b"return nil").expect("any name").name() == "lua a\\nb");
}

proptest! {
    #[test]
    fn stamps_sort_as_their_texts(
        one in (any::<u64>(), any::<u8>(), any::<u16>()),
        other in (any::<u64>(), any::<u8>(), any::<u16>()),
    ) {
        let (one, other) = (stamp(one.0, one.1, one.2), stamp(other.0, other.1, other.2));
        prop_assert_eq!(one.cmp(&other), sortable(one).cmp(&sortable(other)));
    }
}
