//! Transitions of small recordings, and changes whose size is known.

use super::*;
use crate::random::Random;

fn page(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..bytes).map(|_| random.bits() as u8).collect()
}

fn change(old: &[u8], new: &[u8]) -> Change {
    let mut study = Study::new();
    study.add("u", true, old).unwrap();
    study.add("u", true, new).unwrap();
    let mut summary = study.summary();
    assert_eq!(summary.changes.len(), 1);
    summary.changes.remove(0)
}

#[test]
fn transitions_are_counted_by_url() {
    let mut study = Study::new();
    for (url, body) in [("a", "1"), ("a", "1"), ("b", "1"), ("a", "2"), ("a", "1"), ("b", "1"), ("c", "")] {
        study.add(url, url != "b", body.as_bytes()).unwrap();
    }
    let summary = study.summary();
    assert_eq!((summary.requests, summary.first_requests, summary.transitions), (7, 3, 2));
    assert_eq!(summary.fast_requests(), 2);
    let first = &summary.urls[0];
    assert_eq!((&first.url[..], first.requests, first.transitions), ("a", 4, 2));
    assert!((first.ratio() - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(summary.repeated(2, None).len(), 2);
    assert_eq!(summary.repeated(1, Some(false)).len(), 1);
    assert!(summary.repeated(2, Some(true)).iter().all(|url| url.url == "a"));
}

#[test]
fn a_small_edit_of_a_large_page_is_one_edit() {
    let old = page(1, 100_000);
    let (mut inserted, mut replaced) = (old.clone(), old.clone());
    inserted.splice(50_000..50_000, *b"a client's number");
    replaced[70_000] ^= 1;
    let deleted = [&old[..20_000], &old[21_000..]].concat();
    for new in [inserted, replaced, deleted] {
        let change = change(&old, &new);
        assert!(change.is_single_edit, "{change:?}");
        assert!(change.differing > 0.0 && change.differing < 0.1, "{change:?}");
        assert!((1..=8).contains(&change.edited_chunks), "{change:?}");
    }
}

#[test]
fn two_edits_far_apart_and_another_page_are_no_single_edit() {
    let old = page(1, 100_000);
    let mut new = old.clone();
    new[1_000] ^= 1;
    new[99_000] ^= 1;
    let two = change(&old, &new);
    assert!(!two.is_single_edit && two.differing < 0.1, "{two:?}");
    let other = change(&old, &page(2, 100_000));
    assert!(!other.is_single_edit);
    assert!((other.differing - 1.0).abs() < 1e-9);
    let doubled = change(&old, &[&old[..], &page(3, 150_000)].concat());
    assert!(!doubled.is_single_edit, "more than twice as long");
}

#[test]
fn small_responses_have_about_twenty_chunks() {
    let mut new = page(1, 2_000);
    new.splice(1_000..1_000, *b"x");
    let change = change(&page(1, 2_000), &new);
    assert!(change.is_single_edit && change.differing < 0.3, "{change:?}");
}

#[test]
fn empty_and_very_long_responses_are_compared() {
    assert!(!change(b"", b"x").is_single_edit);
    let long = vec![0; STUDY_RESPONSE_BYTES_MAX + 1];
    let longer = vec![0; STUDY_RESPONSE_BYTES_MAX + 2];
    assert_eq!(change(&long, &longer).edited_chunks, 0, "they differ beyond what is kept");
    assert!((share_up_to(&[0.0, 0.5, 1.0], 0.5) - 2.0 / 3.0).abs() < 1e-9);
    assert!(share_up_to(&[], 1.0) < 1e-9);
}
