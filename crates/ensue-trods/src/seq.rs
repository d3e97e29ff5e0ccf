//! TCP sequence numbers: they wrap at 4 GiB, are compared by serial arithmetic, and unwrap to offsets of 64 bits.

use std::fmt;

/// A TCP sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// The number `count` further on.
    #[must_use]
    pub fn plus(self, count: u64) -> Self {
        // Sequence numbers are counted modulo 2^32, so only the low half of the count matters.
        Self(self.0.wrapping_add(count as u32))
    }

    /// The number `count` before.
    #[must_use]
    pub fn minus(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count))
    }

    /// How far `self` lies after `other`, negative if before; right while they are less than 2 GiB apart.
    #[must_use]
    pub fn since(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// Whether `self` lies after `other`.
    #[must_use]
    pub fn is_after(self, other: Self) -> bool {
        self.since(other) > 0
    }

    /// The offset of `self` in a stream whose byte 0 has the number `first`, given an offset less than 2 GiB away.
    /// `None` if it lies before the stream.
    #[must_use]
    pub fn offset(self, first: Self, near: u64) -> Option<u64> {
        let distance = self.since(first.plus(near));
        near.checked_add_signed(i64::from(distance))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Seq;

    #[test]
    fn offsets_follow_a_stream_over_many_wraps() {
        let first = Seq(u32::MAX - 10);
        let mut near = 0;
        for step in 0..20_u64 {
            let offset = step * 1_000_000_000;
            assert_eq!(first.plus(offset).offset(first, near), Some(offset));
            near = offset;
        }
        assert_eq!(first.minus(1).offset(first, 0), None);
        assert!(Seq(3).is_after(Seq(u32::MAX)));
    }
}
