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

/// Appends a floating-point number as Redis 7.2 writes one: the shortest digits that read back as the same number, with
/// an exponent only where plain digits would be long.
pub fn write_f64(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if value.is_infinite() {
        return out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    }
    if value.abs() < INTEGER_MAGNITUDE_MAX
        && value.fract() == 0.0
        && (value != 0.0 || value.is_sign_positive())
    {
        return write_i64(value as i64, out);
    }
    if value == 0.0 {
        return out.extend_from_slice(b"-0");
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return };
    let fraction_digits = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // The number is its digits, as an integer, times this power of ten.
    let scale = exponent - fraction_digits;
    let plain =
        if scale < 0 { scale > -7 || exponent.abs() < 4 } else { exponent.abs() < fraction_digits + 8 };
    if plain {
        out.extend_from_slice(value.to_string().as_bytes());
    } else {
        out.extend_from_slice(digits.as_bytes());
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        write_u64(exponent.unsigned_abs().into(), out);
    }
}

/// A floating-point number as bytes.
pub fn f64_bytes(value: f64) -> Bytes {
    let mut out = Vec::new();
    write_f64(value, &mut out);
    Bytes::from(out)
}

/// Reads a score as Redis does: a decimal or hexadecimal number, or an infinity. What is no number, or beyond the range
/// of numbers, is none.
pub fn parse_score(text: &[u8]) -> Option<f64> {
    if text.first().is_none_or(u8::is_ascii_whitespace) {
        return None;
    }
    let value = parse_f64(text)?;
    let digits = text.iter().take_while(|byte| !matches!(byte, b'e' | b'E' | b'p' | b'P'));
    let is_nonzero =
        digits.skip_while(|byte| matches!(byte, b'+' | b'-' | b'0' | b'x' | b'X' | b'.')).count() > 0;
    let overflown = value.is_infinite() && text.iter().any(u8::is_ascii_digit);
    let underflown = value == 0.0 && is_nonzero;
    (!value.is_nan() && !overflown && !underflown).then_some(value)
}

/// Reads the end of a range of scores, more loosely: blanks may precede it, and what is out of range is infinite or
/// zero.
pub fn parse_score_bound(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii_start();
    if text.is_empty() {
        return Some(0.0);
    }
    parse_f64(text).filter(|value| !value.is_nan())
}

/// A number in the words of C.
fn parse_f64(text: &[u8]) -> Option<f64> {
    let (sign, rest) = match text {
        [b'-', rest @ ..] => (-1.0, rest),
        [b'+', rest @ ..] => (1.0, rest),
        _ => (1.0, text),
    };
    match rest {
        [b'0', b'x' | b'X', digits @ ..] => parse_hexadecimal(digits).map(|value| sign * value),
        [b'+' | b'-', ..] => None,
        _ => std::str::from_utf8(rest).ok()?.parse().ok().map(|value: f64| sign * value),
    }
}

/// Hexadecimal digits with a fraction, and an exponent of two.
fn parse_hexadecimal(text: &[u8]) -> Option<f64> {
    let (digits, exponent) = match text.iter().position(|byte| matches!(byte, b'p' | b'P')) {
        Some(at) => (&text[..at], std::str::from_utf8(&text[at + 1..]).ok()?.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (mut value, mut shift, mut in_fraction, mut any) = (0.0_f64, 0, false, false);
    for &byte in digits {
        match (byte as char).to_digit(16) {
            Some(digit) => {
                value = value * 16.0 + f64::from(digit);
                shift -= if in_fraction { 4 } else { 0 };
                any = true;
            }
            None if byte == b'.' && !in_fraction => in_fraction = true,
            None => return None,
        }
    }
    let exponent = exponent.checked_add(shift)?;
    // In two steps, since the power alone may be out of range where the number is not.
    let half = exponent / 2;
    any.then(|| value * 2.0_f64.powi(half) * 2.0_f64.powi(exponent - half))
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
/// Whole numbers below this are written as integers.
const INTEGER_MAGNITUDE_MAX: f64 = (i64::MAX / 2) as f64;
/// No number that fits is written longer than this.
const DECIMAL_BYTES_MAX: usize = 256;
/// Just within the range of [`Decimal`].
const DECIMAL_MAGNITUDE_MAX: f64 = 1.7e21;

#[cfg(test)]
mod tests;
