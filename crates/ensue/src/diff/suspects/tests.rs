//! Which keys stay suspect.

use super::*;
use crate::diff::digest::Digest;
use crate::diff::fingerprint::Fingerprint;
use crate::diff::kind::Kind;

fn suspect(left: u8, right: u8) -> Suspect {
    let row = |value| {
        let (value, field_deadlines) = (Digest([value; 32]), Digest::default());
        Seen::Row(Fingerprint { kind: Kind::List, value, deadline_ms: None, field_deadlines, is_torn: false })
    };
    let verdict = if left == right { Verdict::Equal } else { Verdict::OtherValue };
    Suspect { left: row(left), right: row(right), verdict, is_changing: false }
}

fn after(readings: &[(u8, u8)]) -> Option<bool> {
    let mut suspects = Suspects::default();
    let key = Bytes::from("k");
    suspects.add(&key, suspect(1, 2));
    for (left, right) in readings {
        suspects.read_again(&key, suspect(*left, *right), 0);
    }
    suspects.into_iter().next().map(|(_, suspect)| suspect.is_changing)
}

#[test]
fn what_stands_still_is_different_and_what_does_not_is_changing() {
    assert_eq!(after(&[(1, 2), (1, 2)]), Some(false));
    assert_eq!(after(&[(1, 3), (1, 3)]), Some(true));
    assert_eq!(after(&[(3, 2)]), Some(true));
    // It came back, and has changed all the same.
    assert_eq!(after(&[(1, 3), (1, 2), (1, 2)]), Some(true));
}

#[test]
fn what_is_equal_once_is_no_suspect_any_more() {
    assert_eq!(after(&[(1, 2), (2, 2), (1, 2)]), None);
}

#[test]
fn there_is_room_for_so_many() {
    let mut suspects = Suspects::default();
    for number in 0..KEYS_MAX + 3 {
        suspects.add(number.to_string().as_bytes(), suspect(1, 2));
    }
    // One that is there already takes no more room.
    suspects.add(b"7", suspect(1, 3));
    assert!(suspects.is_full());
    assert_eq!((suspects.len(), suspects.left_out), (KEYS_MAX as u64, 3));
    let mut large = Suspects::default();
    large.add(&vec![b'x'; BYTES_MAX], suspect(1, 2));
    large.add(b"y", suspect(1, 2));
    assert_eq!((large.len(), large.left_out), (1, 1));
}
