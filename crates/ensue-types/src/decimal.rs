//! Exact decimal arithmetic for counters: an integer count of units of 10^-17.
//!
//! Sums of additions from several datacenters must be the same everywhere in whichever order they are added, which
//! floating point does not give. The range, plus or minus 1.7e21, holds every 64-bit integer.

use std::fmt;

/// Digits after the point, as many as Redis prints for `INCRBYFLOAT`.
const FRACTION_DIGITS: u32 = 17;
/// An integer of so many digits, or fewer, has 64 bits.
const SHORT_DIGITS: usize = 18;
const TEXT_BYTES_MAX: usize = 256;
/// Just within the range.
const MAGNITUDE_MAX: f64 = 1.7e21;
/// Every integer below this has a floating-point number of its own.
const EXACT_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;
const UNIT: i128 = 10_i128.pow(FRACTION_DIGITS);

/// An exact decimal number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(pub i128);

impl Decimal {
    pub const ZERO: Decimal = Decimal(0);
    pub const ONE: Decimal = Decimal(UNIT);

    pub fn from_integer(value: i64) -> Decimal {
        Decimal(i128::from(value) * UNIT)
    }

    /// Sum, or nothing beyond the range.
    pub fn checked_add(self, other: Decimal) -> Option<Decimal> {
        self.0.checked_add(other.0).map(Decimal)
    }

    /// Difference, or nothing beyond the range.
    pub fn checked_sub(self, other: Decimal) -> Option<Decimal> {
        self.0.checked_sub(other.0).map(Decimal)
    }

    /// The nearest value to a floating-point number, going by the shortest digits that name it; nothing beyond the
    /// range.
    pub fn nearest(value: f64) -> Option<Decimal> {
        if value.abs() < EXACT_INTEGER_MAX && value.fract() == 0.0 {
            return Some(Decimal::from_integer(value as i64));
        }
        if value.is_nan() || value.abs() >= MAGNITUDE_MAX {
            return None;
        }
        Decimal::parse(value.to_string().as_bytes())
            .or_else(|| Decimal::parse(format!("{value:.17}").as_bytes()))
    }

    /// Reads what [`Decimal::parse`] reads, and rounds what is not exact in this type.
    pub fn parse_nearest(text: &[u8]) -> Option<Decimal> {
        // No number that fits is written longer, and a long text need not be read to its end.
        let text = if text.len() <= TEXT_BYTES_MAX { text } else { return None };
        let rounded = || Decimal::nearest(std::str::from_utf8(text).ok()?.parse().ok()?);
        Decimal::parse(text).or_else(rounded)
    }

    /// The nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        match self.as_integer() {
            Some(integer) => integer as f64,
            None => self.to_string().parse().expect("digits with a point are a number"),
        }
    }

    /// The value as a 64-bit integer, if it is one.
    pub fn as_integer(self) -> Option<i64> {
        if self.0 % UNIT != 0 { None } else { i64::try_from(self.0 / UNIT).ok() }
    }

    /// Reads an optional sign, digits, an optional fraction and an optional exponent, if the value is exact in this
    /// type. No blanks, no `inf`, no `nan`.
    pub fn parse(text: &[u8]) -> Option<Decimal> {
        // Nearly all are short integers.
        if (1..=SHORT_DIGITS).contains(&text.len()) && text.iter().all(u8::is_ascii_digit) {
            let value = text.iter().fold(0, |value, digit| 10 * value + i64::from(digit - b'0'));
            return Some(Decimal::from_integer(value));
        }
        let (negative, rest) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            (b'+', rest) => (false, rest),
            _ => (false, text),
        };
        let (digits, exponent) = match rest.iter().position(|b| matches!(b, b'e' | b'E')) {
            Some(at) => (&rest[..at], std::str::from_utf8(&rest[at + 1..]).ok()?.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = match digits.iter().position(|&b| b == b'.') {
            Some(at) => (&digits[..at], &digits[at + 1..]),
            None => (digits, &digits[..0]),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut mantissa: i128 = 0;
        for byte in whole.iter().chain(fraction) {
            if !byte.is_ascii_digit() {
                return None;
            }
            mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
        }
        let digits = i32::try_from(FRACTION_DIGITS).ok()?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let shift = digits.checked_add(exponent)?;
        let units = if mantissa == 0 {
            0
        } else if shift >= 0 {
            mantissa.checked_mul(10_i128.checked_pow(shift.unsigned_abs())?)?
        } else {
            let divisor = 10_i128.checked_pow(shift.unsigned_abs())?;
            if mantissa % divisor != 0 {
                return None;
            }
            mantissa / divisor
        };
        Some(Decimal(if negative { -units } else { units }))
    }
}

impl fmt::Display for Decimal {
    /// Without an exponent and without trailing zeroes, as `INCRBYFLOAT` answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let unit = UNIT.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let fraction = magnitude % unit;
        if fraction == 0 {
            return write!(f, "{sign}{}", magnitude / unit);
        }
        let digits = format!("{fraction:017}");
        write!(f, "{sign}{}.{}", magnitude / unit, digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_integer_is_read_as_it_is_written(value: i64, digits in 0..19usize) {
            let text = value.to_string();
            prop_assert_eq!(Decimal::parse(text.as_bytes()), Some(Decimal::from_integer(value)));
            // Short ones, which are read in another way, are the same as with a fraction.
            let magnitude = value.unsigned_abs().to_string();
            let short = &magnitude[..magnitude.len().min(1 + digits)];
            let with_fraction = format!("{short}.0");
            prop_assert_eq!(Decimal::parse(short.as_bytes()), Decimal::parse(with_fraction.as_bytes()));
        }
    }
}
