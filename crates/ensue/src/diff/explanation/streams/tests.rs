//! What is said of two streams.

use super::*;
use crate::diff::fake::{entry, list, side_with};

struct Stream<'a> {
    entries: Vec<Reply>,
    last: &'a str,
    groups: Vec<Reply>,
}

fn group(name: &str, last: &str) -> Reply {
    list(&["name", name, "last-delivered-id", last, "pending", "1"])
}

fn check(left: Stream<'_>, right: Stream<'_>, expected: Option<&str>) {
    let [mut left, mut right] = [("left", left), ("right", right)].map(|(name, stream)| {
        side_with(
            name,
            &[
                ("XRANGE k - + COUNT 1000", Reply::Array(stream.entries)),
                ("XINFO STREAM k", list(&["last-generated-id", stream.last])),
                ("XINFO GROUPS k", Reply::Array(stream.groups)),
            ],
        )
    });
    let mut explanation =
        Explanation { left: &mut left, right: &mut right, key: &"k".into(), tolerance_ms: 0 };
    let Ok(words) = explanation.stream() else { panic!("it cannot be read") };
    assert_eq!(words.as_deref(), expected);
}

fn stream<'a>(entries: &[(&str, &str)], last: &'a str, groups: Vec<Reply>) -> Stream<'a> {
    Stream { entries: entries.iter().map(|(id, value)| entry(id, &["f", value])).collect(), last, groups }
}

#[test]
fn an_entry_is_missing_where_it_has_a_lower_id_elsewhere() {
    let of = |entries: &[(&str, &str)]| stream(entries, "9-0", Vec::new());
    let both = [("1-0", "a"), ("2-0", "b")];
    check(of(&both), of(&[("2-0", "b")]), Some("entry 1-0 is only left"));
    check(of(&[("2-0", "b")]), of(&both), Some("entry 1-0 is only right"));
    check(of(&both), of(&[("1-0", "a")]), Some("entry 2-0 is only left"));
    check(
        of(&both),
        of(&[("1-0", "x"), ("2-0", "b")]),
        Some("entry 1-0: \"f\" \"a\" left, \"f\" \"x\" right"),
    );
    check(of(&both), of(&both), None);
}

#[test]
fn last_ids_and_groups_differ_after_the_entries() {
    let of = |last: &'static str, groups: &[(&str, &str)]| {
        stream(&[("1-0", "a")], last, groups.iter().map(|(name, last)| group(name, last)).collect())
    };
    check(of("1-0", &[]), of("2-0", &[]), Some("last id 1-0 left, 2-0 right"));
    check(of("1-0", &[("g", "1-0")]), of("1-0", &[]), Some("group \"g\" is only left"));
    let words = "group \"g\": last id 1-0, 1 pending left, last id 0-0, 1 pending right";
    check(of("1-0", &[("g", "1-0")]), of("1-0", &[("g", "0-0")]), Some(words));
}
