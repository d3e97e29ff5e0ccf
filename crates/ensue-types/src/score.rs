//! The score of a member of a sorted set: a floating-point number that is neither NaN nor -0, and its stored text.
//!
//! The stored text is the shortest one that reads back as the same number, or infinity: additions go on top of it as on
//! top of a counter's.

use crate::Decimal;
use bytes::Bytes;
use std::cmp::Ordering;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Score(f64);

impl Score {
    pub const ZERO: Score = Score(0.0);
    pub const ONE: Score = Score(1.0);

    /// Nothing of what is not a number. Minus zero is zero, as it is in a small sorted set of Redis.
    pub fn new(value: f64) -> Option<Score> {
        (!value.is_nan()).then_some(Score(value + 0.0))
    }

    /// Exact up to 53 bits.
    pub fn of_integer(value: u64) -> Score {
        Score(value as f64)
    }

    pub fn value(self) -> f64 {
        self.0
    }

    /// Reads a stored text.
    pub fn from_text(text: &[u8]) -> Option<Score> {
        // Nearly all are short integers.
        if (1..=INTEGER_DIGITS_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_digit) {
            let value = text.iter().fold(0_u64, |value, digit| 10 * value + u64::from(digit - b'0'));
            return Some(Score(value as f64));
        }
        Score::new(std::str::from_utf8(text).ok()?.parse().ok()?)
    }

    /// The text that is stored.
    pub fn to_text(self) -> Bytes {
        let value = self.0;
        let is_plain = value == 0.0 || (PLAIN_MIN..PLAIN_MAX).contains(&value.abs());
        Bytes::from(if is_plain || value.is_infinite() { value.to_string() } else { format!("{value:e}") })
    }

    /// The sum, if it is a number.
    pub fn plus(self, other: f64) -> Option<Score> {
        Score::new(self.0 + other)
    }

    /// The counter's total that shows as this score to the last bit, if there is one.
    pub fn as_total(self) -> Option<Decimal> {
        Decimal::nearest(self.0).filter(|total| total.to_f64().to_bits() == self.0.to_bits())
    }
}

impl From<Decimal> for Score {
    fn from(total: Decimal) -> Score {
        Score(total.to_f64())
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> Ordering {
        self.0.partial_cmp(&other.0).expect("a score is a number")
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Score {
    fn eq(&self, other: &Score) -> bool {
        self.0 == other.0
    }
}

impl Eq for Score {}

/// Every integer of so many digits has a floating-point number of its own.
const INTEGER_DIGITS_MAX: usize = 15;
/// Beyond these, plain digits would be long.
const PLAIN_MIN: f64 = 1e-6;
const PLAIN_MAX: f64 = 1e21;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_text_reads_back_as_the_same_number(bits: u64, small in -1e6..1e6_f64) {
            for value in [f64::from_bits(bits), small, small.round(), small / 1e4] {
                if let Some(score) = Score::new(value) {
                    let read = Score::from_text(&score.to_text()).expect("a number");
                    prop_assert_eq!(read.value().to_bits(), score.value().to_bits());
                }
            }
        }

        #[test]
        fn a_total_shows_as_the_score_or_there_is_none(bits: u64, near in -10.0..10.0_f64) {
            for value in [f64::from_bits(bits), near] {
                let Some(score) = Score::new(value) else { continue };
                if let Some(total) = score.as_total() {
                    prop_assert_eq!(Score::from(total).value().to_bits(), score.value().to_bits());
                    // A base is read by the same rule as a total.
                    prop_assert_eq!(Decimal::parse_nearest(&score.to_text()), Some(total));
                }
                // Seventeen digits behind the point hold every number from a tenth on.
                prop_assert!(score.as_total().is_some() || !(0.1..1.6e21).contains(&value.abs()), "{}", value);
            }
        }
    }

    #[test]
    fn what_has_no_total() {
        for value in [f64::INFINITY, f64::NEG_INFINITY, 1e300, 0.012345678901234567] {
            assert_eq!(Score(value).as_total(), None, "{value}");
        }
    }
}
