//! Numbers as text, as the `%g` of C writes them, and as integers, as a cast of C on common processors makes them.

/// What `%.<digits>g` writes.
pub fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan".into() } else { "nan".into() };
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf".into() } else { "inf".into() };
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

/// Without zeros at the end of a fraction.
fn without_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// Truncated; what is beyond 64 bits, and what is no number, is the smallest integer.
pub fn truncated(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests;
