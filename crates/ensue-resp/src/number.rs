//! Numbers as Redis reads and writes them.
//!
//! Text arrives; exactly one spelling of each integer is accepted, so that a stored number can be told from a stored
//! text by its bytes. Stored values and arguments take the same path. No rounding happens in an integer; a fraction
//! that is not exact in 17 digits is rounded.

use crate::CommandError;
use bytes::Bytes;
use ensue_types::Decimal;

/// Reads a 64-bit integer: an optional minus, digits without leading zeroes, nothing else.
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if let [digit @ b'0'..=b'9'] = digits {
        // The commonest case by far: lengths in headers. `-0` is no integer.
        let value = i64::from(digit - b'0');
        return if negative { (value != 0).then_some(-value) } else { Some(value) };
    }
    if digits.is_empty() || digits.len() > I64_DIGITS_MAX || digits[0] == b'0' {
        return None;
    }
    let mut magnitude: u64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // 19 digits stay below 10^19, which an unsigned 64-bit number holds.
        magnitude = magnitude * 10 + u64::from(digit);
    }
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Reads the cursor of a `SCAN`, as loosely as Redis does: a sign and leading zeroes are accepted, a minus wraps.
pub fn parse_cursor(text: &[u8]) -> Option<u64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() && !text.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(if negative { value.wrapping_neg() } else { value })
}

/// Reads a decimal number for `INCRBYFLOAT`; refuses with `infinite` what is beyond the range of [`Decimal`].
pub fn parse_decimal(text: &[u8], infinite: CommandError) -> Result<Decimal, CommandError> {
    if text.len() > DECIMAL_BYTES_MAX {
        return Err(CommandError::NotFloat);
    }
    if exponent_is_short(text) {
        if let Some(exact) = Decimal::parse(text) {
            return Ok(exact);
        }
    }
    // Not exact in our units, or not a number: let the nearest float decide which.
    let float: f64 =
        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(CommandError::NotFloat)?;
    if float.is_nan() {
        return Err(CommandError::NotFloat);
    }
    if float.abs() >= DECIMAL_MAGNITUDE_MAX {
        return Err(infinite);
    }
    // The shortest text of the float first: it is what its sender meant.
    Decimal::parse(format!("{float}").as_bytes())
        .or_else(|| Decimal::parse(format!("{float:.17}").as_bytes()))
        .ok_or(infinite)
}

/// Appends the digits of an integer.
pub fn write_i64(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    write_u64(value.unsigned_abs(), out);
}

/// Appends the digits of an unsigned integer.
pub fn write_u64(value: u64, out: &mut Vec<u8>) {
    if value < 10 {
        out.push(b'0' + value as u8);
        return;
    }
    let mut digits = [0_u8; U64_DIGITS_MAX];
    let mut at = digits.len();
    let mut rest = value;
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[at..]);
}

/// The digits of an integer as bytes, the way a counter is stored and answered.
pub fn i64_bytes(value: i64) -> Bytes {
    let mut out = Vec::with_capacity(U64_DIGITS_MAX);
    write_i64(value, &mut out);
    Bytes::from(out)
}

/// Keeps exponents away from the edges of the type that [`Decimal::parse`] computes them in.
fn exponent_is_short(text: &[u8]) -> bool {
    match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => text.len() - at <= 6,
        None => true,
    }
}

const I64_DIGITS_MAX: usize = 19;
const U64_DIGITS_MAX: usize = 20;
/// No number that fits is written longer than this.
const DECIMAL_BYTES_MAX: usize = 256;
/// Just within the range of [`Decimal`].
const DECIMAL_MAGNITUDE_MAX: f64 = 1.7e21;

#[cfg(test)]
mod tests;
