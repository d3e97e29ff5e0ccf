//! Streams.

use super::convergence::all_writes;
use super::{Datacenter, changes_nothing, check, show};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn entries() {
    check(
        "XADD s 1-1 a 1 => \"1-1\"
         XADD s 1-2 a 2 b 3 => \"1-2\"
         XADD s 1-2 a 2 => -ERR The ID specified in XADD is equal or smaller than the target stream top item
         XADD s 1-* a 3 => \"1-3\"
         XADD s 2-* a 4 => \"2-0\"
         XADD s 3 a 5 => \"3-0\"
         XADD none NOMKSTREAM * a 1 => nil
         TYPE s => stream
         XLEN s => 5
         XLEN none => 0
         XRANGE s - + => [[\"1-1\" [\"a\" \"1\"]] [\"1-2\" [\"a\" \"2\" \"b\" \"3\"]] [\"1-3\" [\"a\" \"3\"]] [\"2-0\" [\"a\" \"4\"]] [\"3-0\" [\"a\" \"5\"]]]
         XRANGE s 1-2 1 => [[\"1-2\" [\"a\" \"2\" \"b\" \"3\"]] [\"1-3\" [\"a\" \"3\"]]]
         XRANGE s (1-2 + COUNT 1 => [[\"1-3\" [\"a\" \"3\"]]]
         XREVRANGE s + - COUNT 2 => [[\"3-0\" [\"a\" \"5\"]] [\"2-0\" [\"a\" \"4\"]]]
         XREVRANGE s (2-0 1-3 => [[\"1-3\" [\"a\" \"3\"]]]
         XRANGE s 5 4 => []
         XRANGE s - + COUNT 0 => nil-array
         XRANGE none - + COUNT 0 => []
         XDEL s 1-2 1-2 7-7 => 1
         XLEN s => 4
         XTRIM s MAXLEN 2 => 2
         XTRIM s MAXLEN 2 => 0
         XTRIM s MINID 3 => 1
         XTRIM s MAXLEN ~ 0 LIMIT 0 => 1
         XADD s 3-1 a 1 => \"3-1\"
         XADD s 3-2 a 1 => \"3-2\"
         XTRIM s MAXLEN ~ 1 => 0
         XTRIM s MINID ~ 4 LIMIT 1 => 0
         XDEL s 3-0 3-1 3-2 => 2
         XLEN s => 0
         EXISTS s => 1
         XADD s 3-0 a 5 => -ERR The ID specified in XADD is equal or smaller than the target stream top item
         XADD s 4-0 MAXLEN 1 => \"4-0\"
         XADD s MAXLEN 1 5-0 a b => \"5-0\"
         XRANGE s - + => [[\"5-0\" [\"a\" \"b\"]]]
         SET t 1 => OK
         XADD t * a b => -WRONGTYPE Operation against a key holding the wrong kind of value
         XLEN t => -WRONGTYPE Operation against a key holding the wrong kind of value
         LPUSH s a => -WRONGTYPE Operation against a key holding the wrong kind of value
         DEL s => 1
         XADD s 1-1 a b => \"1-1\"",
    );
}

/// A stream with entries, groups and what is pending of them, and one that was trimmed and deleted from.
const WHOLE: &str = "XADD s 1-0 a 1
     XADD s 2-0 b 2 c 3
     XADD s 3-0 a 4
     XADD s 4-0 a 5
     XGROUP CREATE s g 0
     XGROUP CREATE s h 2-0
     XREADGROUP GROUP g alice COUNT 2 STREAMS s >
     XREADGROUP GROUP g bob COUNT 1 STREAMS s >
     XGROUP CREATECONSUMER s h carol
     XDEL s 3-0";

#[test]
fn a_copy_is_the_whole_stream() {
    let mut datacenter = Datacenter::new(0);
    WHOLE.lines().for_each(|line| {
        datacenter.run(line.trim());
    });
    let told = show(&datacenter.run("XINFO STREAM s FULL"));
    assert_eq!(show(&datacenter.run("COPY s t")), "1");
    assert_eq!(show(&datacenter.run("COPY s t")), "0");
    assert_eq!(show(&datacenter.run("XINFO STREAM t FULL")), told);
    datacenter.run("DEL s");
    assert_eq!(show(&datacenter.run("XINFO STREAM t FULL")), told);
    // One over another kind of value, and back over itself.
    datacenter.run("SET u x");
    assert_eq!(show(&datacenter.run("COPY t u REPLACE")), "1");
    assert_eq!(show(&datacenter.run("COPY u t REPLACE")), "1");
    assert_eq!(show(&datacenter.run("XINFO STREAM t FULL")), told);
    assert_eq!(show(&datacenter.run("XADD t 5-0 a 6")), "\"5-0\"");
}

#[test]
fn a_dump_is_the_whole_stream() {
    let mut datacenter = Datacenter::new(0);
    WHOLE.lines().for_each(|line| {
        datacenter.run(line.trim());
    });
    let told = show(&datacenter.run("XINFO STREAM s FULL"));
    let ensue_types::Reply::Bulk(dump) = datacenter.run("DUMP s") else { panic!("it is there") };
    let restore =
        ensue_resp::request::Whole::Restore { key: "t".into(), deadline: Ok(None), dump, replace: false };
    let restore = ensue_resp::Request::Whole(restore);
    assert_eq!(datacenter.run_all(&[restore]), [ensue_types::Reply::OK]);
    assert_eq!(show(&datacenter.run("XINFO STREAM t FULL")), told);
    assert_eq!(show(&datacenter.run("DUMP none")), "nil");
}

#[test]
fn what_a_group_has_passed_over_is_given_to_it_after_a_restore() {
    let (mut one, mut other) = (Datacenter::new(0), Datacenter::new(1));
    one.run("XADD s 5-0 a 1");
    one.run("XGROUP CREATE s g 0");
    one.run("XREADGROUP GROUP g alice STREAMS s >");
    other.run("XADD s 3-0 late 1");
    other.log.iter().for_each(|logged| one.receive(logged));
    let ensue_types::Reply::Bulk(dump) = one.run("DUMP s") else { panic!("it is there") };
    let restore =
        ensue_resp::request::Whole::Restore { key: "t".into(), deadline: Ok(None), dump, replace: false };
    assert_eq!(one.run_all(&[ensue_resp::Request::Whole(restore)]), [ensue_types::Reply::OK]);
    let read = show(&one.run("XREADGROUP GROUP g bob STREAMS t >"));
    assert!(read.contains("3-0") && read.contains("5-0"), "{read}");
}

#[test]
fn about_trims_whole_nodes() {
    let mut datacenter = Datacenter::new(0);
    datacenter.node_entries = 10;
    for ms in 1..=100 {
        datacenter.run(&format!("XADD s {ms}-0 a 1"));
    }
    for (line, removed) in [
        ("XTRIM s MAXLEN ~ 91", "0"),
        ("XTRIM s MAXLEN ~ 85", "10"),
        ("XTRIM s MINID ~ 35", "20"),
        ("XTRIM s MAXLEN ~ 0 LIMIT 9", "0"),
        ("XTRIM s MAXLEN ~ 0 LIMIT 25", "20"),
        ("XTRIM s MAXLEN 45", "5"),
    ] {
        assert_eq!(show(&datacenter.run(line)), removed, "{line}");
    }
    datacenter.run("XADD s MAXLEN ~ 20 LIMIT 10 101-0 a 1");
    assert_eq!(show(&datacenter.run("XLEN s")), "36");
}

#[test]
fn drawn_ids() {
    // The wall clock of these tests stands; the second number says that datacenter 0 drew it.
    check(
        "XADD s * a 1 => \"1700000000000-0\"
         XADD s * a 1 => \"1700000000000-16\"
         + 1
         XADD s * a 1 => \"1700000000001-0\"
         XADD s 1700000000005-3 a 1 => \"1700000000005-3\"
         XADD s * a 1 => \"1700000000005-16\"
         XADD s 1700000000005-18446744073709551615 a 1 => \"1700000000005-18446744073709551615\"
         XADD s * a 1 => \"1700000000006-0\"
         XADD s 18446744073709551615-18446744073709551614 a 1 => \"18446744073709551615-18446744073709551614\"
         XADD s * a 1 => -ERR The stream has exhausted the last possible ID, unable to add more items
         XADD s 18446744073709551615-* a 1 => \"18446744073709551615-18446744073709551615\"
         XADD s * a 1 => -ERR The stream has exhausted the last possible ID, unable to add more items
         XADD t 0-* a 1 => \"0-1\"",
    );
}

#[test]
fn reading() {
    check(
        "XADD s 1-1 a 1 => \"1-1\"
         XADD s 1-2 a 2 => \"1-2\"
         XADD t 1-3 a 3 => \"1-3\"
         XREAD STREAMS s t u 0 1 0 => {\"s\":[[\"1-1\" [\"a\" \"1\"]] [\"1-2\" [\"a\" \"2\"]]] \"t\":[[\"1-3\" [\"a\" \"3\"]]]}
         XREAD COUNT 1 STREAMS s t 0 1-3 => {\"s\":[[\"1-1\" [\"a\" \"1\"]]]}
         XREAD COUNT 0 STREAMS s 1-1 => {\"s\":[[\"1-2\" [\"a\" \"2\"]]]}
         XREAD STREAMS s $ => nil-array
         XREAD BLOCK 5 STREAMS s $ => nil-array
         XREAD BLOCK 5 STREAMS s 1-1 => {\"s\":[[\"1-2\" [\"a\" \"2\"]]]}
         XREAD STREAMS s 18446744073709551615-18446744073709551615 => nil-array
         SET x 1 => OK
         XREAD STREAMS x 0 => -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

#[test]
fn groups() {
    check(
        "XGROUP CREATE s g $ => -ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
         XGROUP CREATE s g $ MKSTREAM => OK
         XGROUP CREATE s g $ => -BUSYGROUP Consumer Group name already exists
         TYPE s => stream
         XLEN s => 0
         XADD s 1-1 a 1 => \"1-1\"
         XADD s 1-2 a 2 => \"1-2\"
         XADD s 1-3 a 3 => \"1-3\"
         XREADGROUP GROUP g alice COUNT 2 STREAMS s > => {\"s\":[[\"1-1\" [\"a\" \"1\"]] [\"1-2\" [\"a\" \"2\"]]]}
         XREADGROUP GROUP g bob STREAMS s > => {\"s\":[[\"1-3\" [\"a\" \"3\"]]]}
         XREADGROUP GROUP g bob STREAMS s > => nil-array
         XREADGROUP GROUP g alice STREAMS s 0 => {\"s\":[[\"1-1\" [\"a\" \"1\"]] [\"1-2\" [\"a\" \"2\"]]]}
         XREADGROUP GROUP g alice COUNT 1 STREAMS s 1-1 => {\"s\":[[\"1-2\" [\"a\" \"2\"]]]}
         XPENDING s g => [3 \"1-1\" \"1-3\" [[\"alice\" \"2\"] [\"bob\" \"1\"]]]
         + 10
         XPENDING s g - + 5 => [[\"1-1\" \"alice\" 10 2] [\"1-2\" \"alice\" 10 3] [\"1-3\" \"bob\" 10 1]]
         XPENDING s g - + 5 bob => [[\"1-3\" \"bob\" 10 1]]
         XPENDING s g IDLE 11 - + 5 => []
         XPENDING s g (1-1 + 1 => [[\"1-2\" \"alice\" 10 3]]
         XACK s g 1-1 1-1 9-9 => 1
         XACK s none 1-1 => 0
         XACK none g 1-1 => 0
         XDEL s 1-2 => 1
         XREADGROUP GROUP g alice STREAMS s 0 => {\"s\":[[\"1-2\" nil-array]]}
         XREADGROUP GROUP none alice STREAMS s > => -NOGROUP No such key 's' or consumer group 'none' in XREADGROUP with GROUP option
         XPENDING s none => -NOGROUP No such key 's' or consumer group 'none'
         XGROUP SETID s none 0 => -NOGROUP No such consumer group 'none' for key name 's'
         XGROUP CREATECONSUMER s g carol => 1
         XGROUP CREATECONSUMER s g carol => 0
         XGROUP DELCONSUMER s g carol => 0
         XGROUP DELCONSUMER s g bob => 1
         XGROUP SETID s g 0 => OK
         XREADGROUP GROUP g dave NOACK STREAMS s > => {\"s\":[[\"1-1\" [\"a\" \"1\"]] [\"1-3\" [\"a\" \"3\"]]]}
         XPENDING s g => [1 \"1-2\" \"1-2\" [[\"alice\" \"1\"]]]
         XGROUP DESTROY s g => 1
         XGROUP DESTROY s g => 0
         XREADGROUP GROUP g alice STREAMS s > => -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option",
    );
}

#[test]
fn claims() {
    check(
        "XADD s 1-1 a 1 => \"1-1\"
         XADD s 1-2 a 2 => \"1-2\"
         XADD s 1-3 a 3 => \"1-3\"
         XGROUP CREATE s g 0 => OK
         XREADGROUP GROUP g alice STREAMS s > => {\"s\":[[\"1-1\" [\"a\" \"1\"]] [\"1-2\" [\"a\" \"2\"]] [\"1-3\" [\"a\" \"3\"]]]}
         + 50
         XCLAIM s g bob 51 1-1 => []
         XCLAIM s g bob 50 1-1 => [[\"1-1\" [\"a\" \"1\"]]]
         XCLAIM s g bob 0 1-2 JUSTID IDLE 7 => [\"1-2\"]
         XPENDING s g - + 9 => [[\"1-1\" \"bob\" 0 2] [\"1-2\" \"bob\" 7 1] [\"1-3\" \"alice\" 50 1]]
         XCLAIM s g bob 0 1-3 RETRYCOUNT 9 TIME 1700000000000 => [[\"1-3\" [\"a\" \"3\"]]]
         XPENDING s g 1-3 + 9 => [[\"1-3\" \"bob\" 50 9]]
         XDEL s 1-2 => 1
         XAUTOCLAIM s g carol 50 - => [\"0-0\" [[\"1-3\" [\"a\" \"3\"]]] [\"1-2\"]]
         XAUTOCLAIM s g carol 0 - COUNT 1 JUSTID => [\"1-3\" [\"1-1\"] []]
         XPENDING s g => [2 \"1-1\" \"1-3\" [[\"carol\" \"2\"]]]
         XACK s g 1-1 => 1
         XCLAIM s g bob 0 1-1 => []
         XCLAIM s g bob 0 1-1 8-8 FORCE JUSTID => [\"1-1\"]
         XPENDING s g - + 9 bob => [[\"1-1\" \"bob\" 0 1]]
         XCLAIM s none bob 0 1-1 => -NOGROUP No such key 's' or consumer group 'none'",
    );
}

#[test]
fn told() {
    check(
        "XINFO STREAM s => -ERR no such key
         XADD s 1-1 a 1 => \"1-1\"
         XADD s 1-2 a 2 => \"1-2\"
         XADD s 1-3 a 3 => \"1-3\"
         XGROUP CREATE s g 0 => OK
         XGROUP CREATE s h $ => OK
         XREADGROUP GROUP g alice COUNT 2 STREAMS s > => {\"s\":[[\"1-1\" [\"a\" \"1\"]] [\"1-2\" [\"a\" \"2\"]]]}
         + 5
         XINFO GROUPS s => [{\"name\":\"g\" \"consumers\":1 \"pending\":2 \"last-delivered-id\":\"1-2\" \"entries-read\":2 \"lag\":1} {\"name\":\"h\" \"consumers\":0 \"pending\":0 \"last-delivered-id\":\"1-3\" \"entries-read\":nil \"lag\":0}]
         XINFO CONSUMERS s g => [{\"name\":\"alice\" \"pending\":2 \"idle\":5 \"inactive\":5}]
         XINFO CONSUMERS s none => -NOGROUP No such consumer group 'none' for key name 's'
         XDEL s 1-2 => 1
         XINFO STREAM s => {\"length\":2 \"radix-tree-keys\":1 \"radix-tree-nodes\":2 \"last-generated-id\":\"1-3\" \"max-deleted-entry-id\":\"1-2\" \"entries-added\":3 \"recorded-first-entry-id\":\"1-1\" \"groups\":2 \"first-entry\":[\"1-1\" [\"a\" \"1\"]] \"last-entry\":[\"1-3\" [\"a\" \"3\"]]}
         XINFO STREAM s FULL COUNT 1 => {\"length\":2 \"radix-tree-keys\":1 \"radix-tree-nodes\":2 \"last-generated-id\":\"1-3\" \"max-deleted-entry-id\":\"1-2\" \"entries-added\":3 \"recorded-first-entry-id\":\"1-1\" \"entries\":[[\"1-1\" [\"a\" \"1\"]]] \"groups\":[{\"name\":\"g\" \"last-delivered-id\":\"1-2\" \"entries-read\":2 \"lag\":nil \"pel-count\":2 \"pending\":[[\"1-1\" \"alice\" 1700000000000 1]] \"consumers\":[{\"name\":\"alice\" \"seen-time\":1700000000000 \"active-time\":1700000000000 \"pel-count\":2 \"pending\":[[\"1-1\" 1700000000000 1]]}]} {\"name\":\"h\" \"last-delivered-id\":\"1-3\" \"entries-read\":nil \"lag\":0 \"pel-count\":0 \"pending\":[] \"consumers\":[]}]}
         XSETID s 1-2 => -ERR The ID specified in XSETID is smaller than the target stream top item
         XSETID s 9-0 ENTRIESADDED 1 => -ERR The entries_added specified in XSETID is smaller than the target stream length
         XSETID s 9-0 ENTRIESADDED 7 MAXDELETEDID 3-0 => OK
         XINFO GROUPS s => [{\"name\":\"g\" \"consumers\":1 \"pending\":2 \"last-delivered-id\":\"1-2\" \"entries-read\":2 \"lag\":nil} {\"name\":\"h\" \"consumers\":0 \"pending\":0 \"last-delivered-id\":\"1-3\" \"entries-read\":nil \"lag\":nil}]
         XADD s 8-0 a b => -ERR The ID specified in XADD is equal or smaller than the target stream top item
         XSETID s 2-0 MAXDELETEDID 9-0 => -ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id
         XSETID none 1-1 => -ERR no such key
         XADD t 1-1 a 1 => \"1-1\"
         XADD t 1-2 a 2 => \"1-2\"
         XDEL t 1-1 1-2 => 2
         XSETID t 1-1 => -ERR The ID specified in XSETID is smaller than current max_deleted_entry_id
         XGROUP CREATE t g - => -ERR Invalid stream ID specified as stream command argument
         XGROUP CREATE t g 0 => OK
         XGROUP SETID t g + => -ERR Invalid stream ID specified as stream command argument
         XAUTOCLAIM t g c 0 0 COUNT 8070450532247928833 => -ERR COUNT must be > 0",
    );
}

#[test]
fn nothing_changes() {
    changes_nothing("XADD s 1-1 a b\nXDEL s 2-2");
    changes_nothing("XADD s 1-1 a b\nXTRIM s MAXLEN 1");
    changes_nothing(
        "XADD s 1-1 a b\nXGROUP CREATE s g 0\nXREADGROUP GROUP g c STREAMS s >\nXREADGROUP GROUP g c STREAMS s >",
    );
    changes_nothing("XADD s 1-1 a b\nXGROUP CREATE s g 0\nXACK s g 1-1");
    changes_nothing("XADD s NOMKSTREAM 1-1 a b");
    changes_nothing("XADD s 1-1 a b\nXREAD BLOCK 1 STREAMS s 0");
}

#[test]
fn in_a_transaction() {
    check(
        "XADD s 1-1 a 1; XADD s 1-2 a 2; XLEN s; XDEL s 1-1; XRANGE s - + => \"1-1\"; \"1-2\"; 2; 1; [[\"1-2\" [\"a\" \"2\"]]]
         EXPIRE s 1; XGROUP CREATE s g 0 => 1; OK
         + 1000
         XLEN s => 0
         XADD s 1-1 a 1 => \"1-1\"
         XINFO GROUPS s => []
         TTL s => -1",
    );
}

/// Two datacenters begin alike and then act without each other; both end the same.
#[track_caller]
fn meets(common: &str, first: &str, second: &str, queries: &[(&str, &str)]) {
    let mut datacenters = [Datacenter::new(0), Datacenter::new(1)];
    common.split(';').for_each(|line| drop(datacenters[0].run(line)));
    let begun = all_writes(&datacenters);
    begun.iter().for_each(|logged| datacenters[1].receive(logged));
    first.split(';').for_each(|line| drop(datacenters[0].run(line)));
    datacenters[1].advance(5);
    second.split(';').for_each(|line| drop(datacenters[1].run(line)));
    let writes = all_writes(&datacenters);
    for datacenter in &mut datacenters {
        writes.iter().rev().for_each(|logged| datacenter.receive(logged));
        for (query, ends) in queries {
            let shown = show(&datacenter.run(query));
            assert_eq!(
                shown.replace('"', ""),
                *ends,
                "{query}: {first} beside {second} in {}",
                datacenter.id
            );
        }
    }
}

#[test]
fn concurrent_changes() {
    let all = "XRANGE s - +";
    meets("GET x", "XADD s 1-1 a 1", "XADD s 1-2 a 2", &[(all, "[[1-1 [a 1]] [1-2 [a 2]]]")]);
    // Both stay, even under one id.
    meets(
        "GET x",
        "XADD s 1-1 a 1",
        "XADD s 1-1 a 2",
        &[(all, "[[1-1 [a 1]] [1-1 [a 2]]]"), ("XLEN s", "2")],
    );
    meets("XADD s 1-1 a 1", "XDEL s 1-1", "XADD s 1-2 a 2", &[(all, "[[1-2 [a 2]]]")]);
    meets(
        "XADD s 1-1 a 1;XADD s 1-2 a 2",
        "XTRIM s MAXLEN 1",
        "XADD s 1-3 a 3",
        &[(all, "[[1-2 [a 2]] [1-3 [a 3]]]")],
    );
    meets(
        "XADD s 1-1 a 1",
        "DEL s",
        "XADD s 1-2 a 2",
        &[
            (all, "[[1-2 [a 2]]]"),
            (
                "XADD s 1-1 b c",
                "-ERR The ID specified in XADD is equal or smaller than the target stream top item",
            ),
        ],
    );
    meets(
        "XADD s 1-1 a 1;XADD s 1-2 a 2;XGROUP CREATE s g 0",
        "XREADGROUP GROUP g alice COUNT 1 STREAMS s >",
        "XREADGROUP GROUP g bob STREAMS s >",
        &[
            ("XPENDING s g - + 9 alice", "[]"),
            ("XPENDING s g", "[2 1-1 1-2 [[bob 2]]]"),
            ("XREADGROUP GROUP g carol STREAMS s >", "nil-array"),
        ],
    );
    // What was delivered again concurrently is still pending.
    let read = "XADD s 1-1 a 1;XGROUP CREATE s g 0;XREADGROUP GROUP g alice STREAMS s >";
    meets(read, "XACK s g 1-1", "XCLAIM s g bob 0 1-1", &[("XPENDING s g", "[1 1-1 1-1 [[bob 1]]]")]);
    meets(read, "XACK s g 1-1", "XACK s g 1-1", &[("XPENDING s g", "[0 nil nil nil-array]")]);
    meets(read, "XGROUP DESTROY s g", "XGROUP CREATECONSUMER s g bob", &[("XINFO GROUPS s", "[]")]);
}

/// An entry that comes later with a lower id is delivered by a group, and passed over by whoever reads behind an id.
#[test]
fn groups_pass_over_nothing() {
    let mut datacenters = [Datacenter::new(0), Datacenter::new(1)];
    datacenters[0].run("XADD s 5-1 a 1");
    datacenters[0].run("XGROUP CREATE s g 0");
    datacenters[0].run("XGROUP CREATE s h $");
    datacenters[1].run("XADD s 4-1 a late");
    assert_eq!(
        show(&datacenters[0].run("XREADGROUP GROUP g c STREAMS s >")),
        "{\"s\":[[\"5-1\" [\"a\" \"1\"]]]}"
    );
    let late = datacenters[1].log.clone();
    late.iter().for_each(|logged| datacenters[0].receive(logged));
    assert_eq!(show(&datacenters[0].run("XREAD STREAMS s 5-1")), "nil-array");
    for group in ["g", "h"] {
        assert_eq!(
            show(&datacenters[0].run(&format!("XREADGROUP GROUP {group} c STREAMS s >"))),
            "{\"s\":[[\"4-1\" [\"a\" \"late\"]]]}"
        );
        assert_eq!(
            show(&datacenters[0].run(&format!("XREADGROUP GROUP {group} c STREAMS s >"))),
            "nil-array"
        );
    }
}

/// What is hidden from a writer is not named again.
#[test]
fn hidden_entries_keep_their_ids() {
    let mut datacenter = Datacenter::with_versions(0);
    for _ in 0..4 {
        datacenter.run("XADD s * a b");
        datacenter.hidden.extend(datacenter.log.last().map(|logged| logged.write.operation));
    }
    datacenter.hidden.clear();
    assert_eq!(show(&datacenter.run("XLEN s")), "4");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A stream that two datacenters write in turns looks like a map of its own, and no two of their ids are the same.
    #[test]
    fn a_stream_is_a_stream(
        versions in any::<bool>(),
        begun in prop::sample::select(vec![0_usize, 5, 600]),
        steps in prop::collection::vec((0_u8..9, 0_usize..1000, any::<bool>()), 1..60),
    ) {
        let mut datacenters = match versions {
            true => [Datacenter::with_versions(0), Datacenter::with_versions(1)],
            false => [Datacenter::new(0), Datacenter::new(1)],
        };
        let mut model: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        let steps = std::iter::repeat_n((0, 3, false), begun).chain(steps);
        for (which, number, moves_over) in steps {
            let own = usize::from(moves_over);
            let before = datacenters[own].log.len();
            let nth = |model: &BTreeMap<(u64, u64), usize>| {
                model.keys().nth(number % model.len().max(1)).copied().unwrap_or((9, 9))
            };
            let (ms, sequence) = nth(&model);
            match which {
                0..=4 => {
                    let id = show(&datacenters[own].run(&format!("XADD s * n {number}")));
                    let (ms, sequence) = id.trim_matches('"').split_once('-').expect("an id");
                    let id = (ms.parse().expect("a number"), sequence.parse().expect("a number"));
                    prop_assert!(model.keys().next_back().is_none_or(|last| *last < id), "{:?}", id);
                    model.insert(id, number);
                }
                5 => {
                    datacenters[own].run(&format!("XDEL s {ms}-{sequence}"));
                    model.remove(&(ms, sequence));
                }
                6 => {
                    let count = model.len() - number.min(model.len()) / 9;
                    datacenters[own].run(&format!("XTRIM s MAXLEN {count}"));
                    while model.len() > count {
                        model.pop_first();
                    }
                }
                7 => {
                    datacenters[own].run(&format!("XTRIM s MINID {ms}-{sequence}"));
                    model.retain(|id, _| *id >= (ms, sequence) || (ms, sequence) == (9, 9));
                }
                _ => datacenters[own].advance(number as u64),
            }
            let new = datacenters[own].log[before..].to_vec();
            new.iter().for_each(|logged| datacenters[1 - own].receive(logged));
            let ids = |range: &mut dyn Iterator<Item = (&(u64, u64), &usize)>| {
                let entry = |(id, value): (&(u64, u64), &usize)| format!("[{}-{} [n {value}]]", id.0, id.1);
                format!("[{}]", range.map(entry).collect::<Vec<_>>().join(" "))
            };
            for datacenter in &mut datacenters {
                prop_assert_eq!(show(&datacenter.run("XLEN s")), model.len().to_string());
                let ahead = show(&datacenter.run(&format!("XRANGE s {ms}-{sequence} + COUNT 3"))).replace('"', "");
                prop_assert_eq!(ahead, ids(&mut model.range((ms, sequence)..).take(3)));
                let back = show(&datacenter.run("XREVRANGE s + - COUNT 3")).replace('"', "");
                prop_assert_eq!(back, ids(&mut model.iter().rev().take(3)));
            }
        }
    }

    /// Whatever order entries arrive in, and whoever reads, a group delivers each of them, and one that is read in one
    /// place alone delivers each once.
    #[test]
    fn a_group_delivers_everything(
        steps in prop::collection::vec((0_u8..6, 0_usize..3, any::<usize>()), 1..80),
        readers in 1_usize..3,
    ) {
        let mut datacenters: Vec<_> = (0..3).map(Datacenter::new).collect();
        datacenters[0].run("XGROUP CREATE s g 0 MKSTREAM");
        let begun = datacenters[0].log.clone();
        for datacenter in &mut datacenters[1..] {
            begun.iter().for_each(|logged| datacenter.receive(logged));
        }
        let mut delivered: BTreeMap<String, usize> = BTreeMap::new();
        let mut received = [[0; 3]; 3];
        let mut added = 0;
        let read = |datacenter: &mut Datacenter, count: usize, delivered: &mut BTreeMap<String, usize>| {
            let answer = show(&datacenter.run(&format!("XREADGROUP GROUP g c COUNT {count} STREAMS s >")));
            for value in answer.split("[\"v\" \"").skip(1) {
                *delivered.entry(value.split('"').next().expect("a value").to_owned()).or_default() += 1;
            }
        };
        for (which, at, chosen) in steps {
            match which {
                0 | 1 => {
                    added += 1;
                    datacenters[at].run(&format!("XADD s * v {added}"));
                }
                2 => datacenters[at].advance(chosen as u64 % 50),
                3 => read(&mut datacenters[at % readers], 1 + chosen % 3, &mut delivered),
                // What a datacenter wrote arrives in its order, and may be late.
                _ => {
                    let from = chosen % 3;
                    let next = datacenters[from].log.get(received[at][from]).cloned();
                    if let Some(logged) = next.filter(|_| from != at) {
                        received[at][from] += 1;
                        datacenters[at].receive(&logged);
                    }
                }
            }
        }
        let writes = all_writes(&datacenters);
        writes.iter().for_each(|logged| datacenters[0].receive(logged));
        read(&mut datacenters[0], 1000, &mut delivered);
        prop_assert_eq!(delivered.len(), added);
        if readers == 1 {
            prop_assert!(delivered.values().all(|count| *count == 1), "{:?}", delivered);
        }
    }
}
