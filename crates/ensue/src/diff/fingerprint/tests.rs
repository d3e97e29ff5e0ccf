//! When two sides are equal, and when one side has changed.

use super::*;

fn row(kind: Kind, value: u8, deadline_ms: Option<u64>) -> Seen {
    let value = Digest([value; 32]);
    Seen::Row(Fingerprint { kind, value, deadline_ms, field_deadlines: Digest::default(), is_torn: false })
}

#[test]
fn each_difference_has_its_verdict() {
    let base = row(Kind::Hash, 1, Some(10_000));
    let mut fields = base.clone();
    if let Seen::Row(row) = &mut fields {
        row.field_deadlines = Digest([1; 32]);
    }
    let cases = [
        (base.clone(), Verdict::Equal),
        (Seen::Missing, Verdict::OnlyLeft),
        (row(Kind::Set, 1, Some(10_000)), Verdict::OtherType),
        (row(Kind::Hash, 2, Some(10_000)), Verdict::OtherValue),
        (row(Kind::Hash, 1, Some(12_000)), Verdict::Equal),
        (row(Kind::Hash, 1, Some(12_001)), Verdict::OtherDeadline),
        (row(Kind::Hash, 1, None), Verdict::OtherDeadline),
        (fields, Verdict::OtherFieldDeadlines),
        (Seen::Unreadable("NOPERM".into()), Verdict::Unreadable),
    ];
    for (other, verdict) in cases {
        assert_eq!(judge(&base, &other, 2_000), verdict, "{other:?}");
    }
    assert_eq!(judge(&Seen::Missing, &base, 0), Verdict::OnlyRight);
    assert_eq!(judge(&Seen::Missing, &Seen::Missing, 0), Verdict::Equal);
}

#[test]
fn a_type_that_only_its_server_knows_is_equal_or_not_judged() {
    let module = |value| row(Kind::Other("json".into()), value, None);
    assert_eq!(judge(&module(1), &module(1), 0), Verdict::Equal);
    assert_eq!(judge(&module(1), &module(2), 0), Verdict::Unreadable);
}

#[test]
fn what_changes_between_readings_is_seen() {
    let base = row(Kind::Hash, 1, Some(10_000));
    assert!(base.is_as_before(&row(Kind::Hash, 1, Some(10_500)), 1_000));
    assert!(!base.is_as_before(&row(Kind::Hash, 2, Some(10_000)), 1_000));
    assert!(!base.is_as_before(&row(Kind::Hash, 1, None), 1_000));
    assert!(!base.is_as_before(&Seen::Missing, 1_000));
    assert!(Seen::Missing.is_as_before(&Seen::Missing, 0));
    let mut torn = base.clone();
    if let Seen::Row(row) = &mut torn {
        row.is_torn = true;
    }
    assert!(!torn.is_as_before(&torn.clone(), 0));
}
