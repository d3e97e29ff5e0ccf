//! Sizes in bytes with a unit, as redis.conf has them: `k`, `m`, `g` count in thousands, `kb`, `mb`, `gb` in 1024s.

/// Reads a size.
///
/// # Errors
///
/// What is wrong with it, in words.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return Err(format!("'{text}' is no size: the units are b, k, kb, m, mb, g and gb")),
    };
    let number: u64 = number.parse().map_err(|_| format!("'{text}' is no size"))?;
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is too large"))
}
