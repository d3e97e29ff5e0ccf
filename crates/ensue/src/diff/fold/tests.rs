//! Which answers are of one value.

use super::*;
use crate::diff::fake::{entry, list};

fn value(secret: &Secret, kind: Kind, pages: &[Reply]) -> Digest {
    let mut fold = Fold::new(kind, secret);
    pages.iter().for_each(|page| fold.add_whole(page).unwrap());
    fold.value()
}

#[test]
fn pages_of_a_value_are_the_value() {
    let secret = Secret::draw();
    let cases = [
        (Kind::Hash, list(&["a", "1", "b", "2"]), [list(&["b", "2"]), list(&["a", "1"])]),
        (Kind::Set, list(&["a", "b"]), [list(&["b"]), list(&["a"])]),
        (Kind::SortedSet, list(&["a", "1", "b", "2.5"]), [list(&["b", "2.50"]), list(&["a", "1e0"])]),
        (Kind::List, list(&["a", "b"]), [list(&["a"]), list(&["b"])]),
        (Kind::String, Reply::bulk("ab"), [Reply::bulk("a"), Reply::bulk("b")]),
    ];
    for (kind, whole, pages) in cases {
        assert_eq!(value(&secret, kind.clone(), &[whole]), value(&secret, kind.clone(), &pages), "{kind:?}");
    }
}

#[test]
fn each_part_of_a_value_counts() {
    let secret = Secret::draw();
    let cases = [
        (Kind::Hash, list(&["a", "1"]), list(&["a", "2"])),
        (Kind::Hash, list(&["a", "1", "b", "2"]), list(&["a", "2", "b", "1"])),
        (Kind::Set, list(&["a"]), list(&["b"])),
        (Kind::SortedSet, list(&["a", "1"]), list(&["a", "1.0000000000000002"])),
        (Kind::SortedSet, list(&["a", "1"]), list(&["b", "1"])),
        (Kind::List, list(&["a", "b"]), list(&["b", "a"])),
        (Kind::String, Reply::bulk("a"), Reply::bulk("A")),
        (
            Kind::Stream,
            Reply::Array(vec![entry("1-0", &["a", "1"])]),
            Reply::Array(vec![entry("1-0", &["a", "2"])]),
        ),
        (
            Kind::Stream,
            Reply::Array(vec![entry("1-0", &["a", "1"])]),
            Reply::Array(vec![entry("1-1", &["a", "1"])]),
        ),
        (Kind::BoundedCounter, Reply::Integer(3), Reply::Integer(4)),
        (Kind::Other("m".into()), Reply::bulk("one of ten bytes"), Reply::bulk("two of ten bytes")),
    ];
    for (kind, one, other) in cases {
        assert_ne!(value(&secret, kind.clone(), &[one]), value(&secret, kind.clone(), &[other]), "{kind:?}");
    }
}

#[test]
fn minus_zero_is_zero_and_the_end_of_a_dump_does_not_count() {
    let secret = Secret::draw();
    let scores = [list(&["a", "-0"]), list(&["a", "0"])].map(|page| value(&secret, Kind::SortedSet, &[page]));
    assert_eq!(scores[0], scores[1]);
    let kind = Kind::Other("m".into());
    let dumps = ["value 0123456789", "value abcdefghij"]
        .map(|dump| value(&secret, kind.clone(), &[Reply::bulk(dump)]));
    assert_eq!(dumps[0], dumps[1]);
}

#[test]
fn last_ids_and_groups_are_parts_of_a_stream() {
    let secret = Secret::draw();
    let stream = |last: &str, groups: &[(&str, &str, i64)]| {
        let mut fold = Fold::new(Kind::Stream, &secret);
        fold.add(&Reply::Array(vec![entry("1-0", &["a", "1"])])).unwrap();
        fold.add_about(&list(&["length", "1", "last-generated-id", last])).unwrap();
        let groups = groups.iter().map(|(name, last, pending)| {
            let mut group = vec![Reply::bulk("name"), Reply::bulk(name.to_string())];
            group.extend([Reply::bulk("pending"), Reply::Integer(*pending)]);
            group.extend([Reply::bulk("last-delivered-id"), Reply::bulk(last.to_string())]);
            Reply::Array(group)
        });
        fold.add_groups(&Reply::Array(groups.collect())).unwrap();
        fold.value()
    };
    let first = stream("5-0", &[("g", "1-0", 1), ("h", "0-0", 0)]);
    assert_eq!(first, stream("5-0", &[("h", "0-0", 0), ("g", "1-0", 1)]));
    assert_ne!(first, stream("6-0", &[("g", "1-0", 1), ("h", "0-0", 0)]));
    assert_ne!(first, stream("5-0", &[("g", "0-0", 1), ("h", "0-0", 0)]));
    assert_ne!(first, stream("5-0", &[("g", "1-0", 2), ("h", "0-0", 0)]));
    assert_ne!(first, stream("5-0", &[("g", "1-0", 1)]));
}

#[test]
fn deadlines_of_fields_count_by_themselves() {
    let secret = Secret::draw();
    let deadlines = |times: [i64; 2]| {
        let mut fold = Fold::new(Kind::Hash, &secret);
        fold.add(&list(&["a", "1", "b", "2"])).unwrap();
        let names = fold.take_names();
        fold.add_field_deadlines(&names, &Reply::Array(times.map(Reply::Integer).to_vec())).unwrap();
        (fold.field_deadlines(), fold.value())
    };
    assert_eq!(deadlines([-1, -1]).0, Digest::default());
    assert_ne!(deadlines([-1, 5]).0, deadlines([5, -1]).0);
    assert_ne!(deadlines([-1, 5]).0, deadlines([-1, 6]).0);
    assert_eq!(deadlines([-1, 5]).1, deadlines([-1, -1]).1);
}

#[test]
fn what_is_gone_meanwhile_is_told() {
    let secret = Secret::draw();
    let is_gone = |kind: Kind, reply: &Reply| {
        let mut fold = Fold::new(kind, &secret);
        fold.add_whole(reply).unwrap();
        fold.is_gone()
    };
    assert!(is_gone(Kind::String, &Reply::Nil) && !is_gone(Kind::String, &Reply::bulk("")));
    assert!(is_gone(Kind::Hash, &list(&[])) && !is_gone(Kind::Hash, &list(&["a", "1"])));
    assert!(is_gone(Kind::List, &list(&[])) && !is_gone(Kind::Stream, &list(&[])));
}

#[test]
fn an_error_is_handed_on() {
    let mut fold = Fold::new(Kind::Hash, &Secret::draw());
    let words = fold.add_whole(&Reply::Error("WRONGTYPE no".into())).unwrap_err();
    assert_eq!(words, "WRONGTYPE no");
    assert!(fold.add(&Reply::Integer(1)).unwrap_err().contains("not expected"));
}
