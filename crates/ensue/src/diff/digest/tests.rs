//! What makes digests equal, and what makes them differ.

use super::*;

fn sum(secret: &Secret, elements: &[&[&[u8]]]) -> Digest {
    let mut sum = Sum::new(secret);
    elements.iter().for_each(|parts| sum.add(parts));
    sum.digest()
}

fn sequence(secret: &Secret, elements: &[&[&[u8]]]) -> Digest {
    let mut sequence = Sequence::new(secret);
    elements.iter().for_each(|parts| sequence.add(parts));
    sequence.digest()
}

#[test]
fn a_sum_has_no_order_and_a_sequence_has_one() {
    let secret = Secret::draw();
    let there: &[&[&[u8]]] = &[&[b"a"], &[b"b"]];
    let back: &[&[&[u8]]] = &[&[b"b"], &[b"a"]];
    assert_eq!(sum(&secret, there), sum(&secret, back));
    assert_ne!(sequence(&secret, there), sequence(&secret, back));
    assert_eq!(sequence(&secret, there), sequence(&secret, there));
}

#[test]
fn parts_are_kept_apart() {
    let secret = Secret::draw();
    assert_ne!(sum(&secret, &[&[b"ab", b"c"]]), sum(&secret, &[&[b"a", b"bc"]]));
    assert_ne!(sum(&secret, &[&[b"a", b"b"]]), sum(&secret, &[&[b"a"], &[b"b"]]));
    assert_ne!(sequence(&secret, &[&[b"a"], &[b""]]), sequence(&secret, &[&[b"a"]]));
}

#[test]
fn an_element_that_stands_twice_is_not_one_that_is_missing() {
    let secret = Secret::draw();
    assert_ne!(sum(&secret, &[&[b"a"], &[b"a"]]), sum(&secret, &[]));
    assert_ne!(sum(&secret, &[&[b"a"], &[b"a"]]), sum(&secret, &[&[b"a"]]));
}

#[test]
fn both_halves_of_a_sum_count() {
    let secret = Secret::draw();
    let Digest(bytes) = sum(&secret, &[&[b"a"]]);
    let Digest(others) = sum(&secret, &[&[b"b"]]);
    assert_ne!((&bytes[..16], &bytes[16..]), (&others[..16], &bytes[16..]));
    assert_ne!(&bytes[16..], &others[16..]);
    assert_ne!(&bytes[..16], &bytes[16..]);
}

#[test]
fn two_runs_have_two_keys() {
    assert_ne!(sum(&Secret::draw(), &[&[b"a"]]), sum(&Secret::draw(), &[&[b"a"]]));
}
