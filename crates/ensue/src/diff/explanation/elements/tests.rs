//! Elements of both sides, and what is said where they differ.

use super::*;
use crate::diff::fake::list;

fn check(kind: Kind, page: &[&str], answer: Reply, expected: Option<&str>) {
    let found = of_page(&kind, &list(page)).unwrap();
    let other = Element::answered(&kind, &found[0].name, &answer).unwrap();
    assert_eq!(
        difference(&kind, Some(&found[0]), other.as_ref()).as_deref(),
        expected,
        "{page:?} {answer:?}"
    );
}

#[test]
fn fields() {
    check(Kind::Hash, &["f", "1"], Reply::bulk("1"), None);
    check(Kind::Hash, &["f", "1"], Reply::bulk("2"), Some("field \"f\": \"1\" left, \"2\" right"));
    check(Kind::Hash, &["f", "1"], Reply::Nil, Some("field \"f\" is only left: \"1\""));
}

#[test]
fn members() {
    check(Kind::Set, &["m"], Reply::Integer(1), None);
    check(Kind::Set, &["m\n"], Reply::Integer(0), Some("member \"m\\n\" is only left"));
}

#[test]
fn scores() {
    check(Kind::SortedSet, &["m", "1"], Reply::bulk("1.0"), None);
    check(Kind::SortedSet, &["m", "1"], Reply::bulk("2.5"), Some("member \"m\": score 1 left, 2.5 right"));
    check(Kind::SortedSet, &["m", "1"], Reply::Nil, Some("member \"m\" is only left, with score 1"));
}

#[test]
fn the_other_side_is_named_as_well() {
    let member = of_page(&Kind::Set, &list(&["m"])).unwrap().remove(0);
    assert_eq!(difference(&Kind::Set, None, Some(&member)).unwrap(), "member \"m\" is only right");
    let scored = of_page(&Kind::SortedSet, &list(&["m", "inf"])).unwrap().remove(0);
    let words = difference(&Kind::SortedSet, None, Some(&scored)).unwrap();
    assert_eq!(words, "member \"m\" is only right, with score inf");
}

#[test]
fn each_kind_is_looked_up_by_its_command() {
    let asked = |kind: Kind| {
        let page = if kind == Kind::Set { list(&["m"]) } else { list(&["m", "1"]) };
        String::from_utf8(of_page(&kind, &page).unwrap()[0].question(&kind, &"k".into())[0].to_vec()).unwrap()
    };
    assert_eq!([Kind::Hash, Kind::Set, Kind::SortedSet].map(asked), ["HGET", "SISMEMBER", "ZSCORE"]);
}
