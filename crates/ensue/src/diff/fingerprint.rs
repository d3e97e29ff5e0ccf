//! What a side says of a key, in a few bytes, and whether two sides say the same.

use super::digest::Digest;
use super::kind::Kind;

/// A key as a side has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Missing,
    Row(Fingerprint),
    /// What was answered in its place.
    Unreadable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) kind: Kind,
    pub(crate) value: Digest,
    /// In milliseconds since 1970.
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) field_deadlines: Digest,
    /// It has changed while it was read: it had another number of elements than was said before.
    pub(crate) is_torn: bool,
}

/// How the two sides differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Equal,
    OnlyLeft,
    OnlyRight,
    OtherType,
    OtherValue,
    OtherDeadline,
    /// The same, as far as the digests of the fields' deadlines tell, which know no tolerance.
    OtherFieldDeadlines,
    /// A side did not say.
    Unreadable,
}

/// Deadlines that differ by no more are equal.
pub(crate) fn are_near(one: Option<u64>, other: Option<u64>, tolerance_ms: u64) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.abs_diff(other) <= tolerance_ms,
        (one, other) => one == other,
    }
}

pub(crate) fn judge(left: &Seen, right: &Seen, tolerance_ms: u64) -> Verdict {
    let (left, right) = match (left, right) {
        (Seen::Unreadable(_), _) | (_, Seen::Unreadable(_)) => return Verdict::Unreadable,
        (Seen::Missing, Seen::Missing) => return Verdict::Equal,
        (Seen::Row(_), Seen::Missing) => return Verdict::OnlyLeft,
        (Seen::Missing, Seen::Row(_)) => return Verdict::OnlyRight,
        (Seen::Row(left), Seen::Row(right)) => (left, right),
    };
    if left.kind != right.kind {
        Verdict::OtherType
    } else if left.value != right.value {
        match left.kind {
            // Servers of other versions may write one value in other bytes.
            Kind::Other(_) => Verdict::Unreadable,
            _ => Verdict::OtherValue,
        }
    } else if !are_near(left.deadline_ms, right.deadline_ms, tolerance_ms) {
        Verdict::OtherDeadline
    } else if left.field_deadlines != right.field_deadlines {
        Verdict::OtherFieldDeadlines
    } else {
        Verdict::Equal
    }
}

impl Seen {
    /// Whether nothing has changed between two readings of one side. What was read torn tells nothing.
    pub(crate) fn is_as_before(&self, before: &Seen, tolerance_ms: u64) -> bool {
        match (self, before) {
            (Seen::Row(row), Seen::Row(before)) => {
                let is_whole = !row.is_torn && !before.is_torn;
                let is_near = are_near(row.deadline_ms, before.deadline_ms, tolerance_ms);
                let is_same = row.kind == before.kind && row.value == before.value;
                is_whole && is_near && is_same && row.field_deadlines == before.field_deadlines
            }
            (seen, before) => seen == before,
        }
    }

    pub(crate) fn is_torn(&self) -> bool {
        matches!(self, Seen::Row(Fingerprint { is_torn: true, .. }))
    }
}

#[cfg(test)]
mod tests;
