//! `bit`: operations on 32 bits, of numbers that are rounded and wrapped as they come.

/// The 32 bits of a number, as adding this constant leaves them at the end of its mantissa.
pub fn bits(number: f64) -> i32 {
    (number + 6_755_399_441_055_744.0).to_bits() as u32 as i32
}

/// The operation of two or more operands.
pub fn fold(name: &str, operands: &[f64]) -> i32 {
    let mut all = operands.iter().map(|&operand| bits(operand));
    let first = all.next().unwrap_or_default();
    all.fold(first, |one, other| match name {
        "band" => one & other,
        "bor" => one | other,
        _ => one ^ other,
    })
}

pub fn shift(name: &str, number: f64, by: f64) -> i32 {
    let (number, by) = (bits(number), bits(by) as u32 & 31);
    match name {
        "lshift" => number << by,
        "rshift" => (number as u32 >> by) as i32,
        "arshift" => number >> by,
        "rol" => number.rotate_left(by),
        _ => number.rotate_right(by),
    }
}

/// Hexadecimal digits, as many as are asked for; capitals if less than none.
pub fn hex(number: f64, digits: Option<f64>) -> String {
    let digits = digits.map_or(8, bits);
    let count = digits.unsigned_abs().min(8) as usize;
    let text = match digits < 0 {
        true => format!("{:08X}", bits(number)),
        false => format!("{:08x}", bits(number)),
    };
    text[8 - count..].to_owned()
}
