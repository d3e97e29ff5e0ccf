//! Which page follows which.

use super::*;
use crate::diff::fake::{entry, list};

fn command(pages: &Pages) -> Option<String> {
    let words = pages.command()?;
    Some(words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(" "))
}

#[test]
fn cursors_are_followed_to_their_end() {
    let mut pages = Pages::new(Kind::Hash, "h".into());
    assert_eq!(command(&pages).unwrap(), "HSCAN h 0 COUNT 1000");
    let page = pages.take(Reply::Array(vec![Reply::bulk("17"), list(&["a", "1"])])).unwrap();
    assert_eq!(page, list(&["a", "1"]));
    assert_eq!(command(&pages).unwrap(), "HSCAN h 17 COUNT 1000");
    pages.take(Reply::Array(vec![Reply::bulk("0"), list(&[])])).unwrap();
    assert_eq!(command(&pages), None);
}

#[test]
fn a_list_ends_with_a_page_that_is_not_full() {
    let mut pages = Pages::new(Kind::List, "l".into());
    assert_eq!(command(&pages).unwrap(), "LRANGE l 0 999");
    pages.take(Reply::Array(vec![Reply::bulk("x"); 1_000])).unwrap();
    assert_eq!(command(&pages).unwrap(), "LRANGE l 1000 1999");
    pages.take(Reply::Array(vec![Reply::bulk("x"); 999])).unwrap();
    assert_eq!(command(&pages), None);
}

#[test]
fn a_string_is_read_in_ranges() {
    let mut pages = Pages::new(Kind::String, "s".into());
    assert_eq!(command(&pages).unwrap(), "GETRANGE s 0 1048575");
    pages.take(Reply::bulk(vec![0; 1 << 20])).unwrap();
    assert_eq!(command(&pages).unwrap(), "GETRANGE s 1048576 2097151");
    pages.take(Reply::bulk("")).unwrap();
    assert_eq!(command(&pages), None);
}

#[test]
fn a_stream_continues_behind_its_last_entry() {
    let mut pages = Pages::new(Kind::Stream, "x".into());
    assert_eq!(command(&pages).unwrap(), "XRANGE x - + COUNT 1000");
    let full: Vec<Reply> = (0..1_000).map(|number| entry(&format!("7-{number}"), &["a", "1"])).collect();
    pages.take(Reply::Array(full)).unwrap();
    assert_eq!(command(&pages).unwrap(), "XRANGE x 7-1000 + COUNT 1000");
    pages.take(Reply::Array(Vec::new())).unwrap();
    assert_eq!(command(&pages), None);
}

#[test]
fn ids_follow_one_another() {
    assert_eq!(following(b"3-4").unwrap(), "3-5");
    assert_eq!(following(format!("3-{}", u64::MAX).as_bytes()).unwrap(), "4-0");
    assert_eq!(following(format!("{0}-{0}", u64::MAX).as_bytes()), None);
    assert_eq!(following(b"3"), None);
}

#[test]
fn an_error_ends_it() {
    let mut pages = Pages::new(Kind::Set, "s".into());
    assert_eq!(pages.take(Reply::Error("WRONGTYPE no".into())).unwrap_err(), "WRONGTYPE no");
    assert_eq!(command(&pages), None);
}
