//! HyperLogLogs: strings with two layouts and a cached estimate. Their registers are what they hold.

const HEADER_BYTES: usize = 16;
const REGISTERS: usize = 16_384;
const REGISTER_BITS: usize = 6;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;

/// One byte a register; nothing if these bytes are no HyperLogLog.
pub(crate) fn registers(text: &[u8]) -> Option<Vec<u8>> {
    let body = text.get(HEADER_BYTES..)?;
    match (text.starts_with(b"HYLL"), text[4]) {
        (true, DENSE) if body.len() == REGISTERS * REGISTER_BITS / 8 => Some(dense(body)),
        (true, SPARSE) => sparse(body),
        _ => None,
    }
}

/// Six bits a register, the first one in the lowest bits.
fn dense(body: &[u8]) -> Vec<u8> {
    let at = |place: usize| u16::from(body.get(place).copied().unwrap_or_default());
    let register = |number: usize| {
        let (byte, shift) = (number * REGISTER_BITS / 8, number * REGISTER_BITS % 8);
        let pair = at(byte) | at(byte + 1) << 8;
        (pair >> shift & 0x3f) as u8
    };
    (0..REGISTERS).map(register).collect()
}

/// Runs of equal registers.
fn sparse(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut registers = Vec::with_capacity(REGISTERS);
    while let [first, rest @ ..] = body {
        let (length, value, rest) = match first >> 6 {
            0 => (usize::from(first & 0x3f) + 1, 0, rest),
            1 => {
                let (second, rest) = rest.split_first()?;
                ((usize::from(first & 0x3f) << 8 | usize::from(*second)) + 1, 0, rest)
            }
            _ => (usize::from(first & 0x03) + 1, (first >> 2 & 0x1f) + 1, rest),
        };
        if registers.len() + length > REGISTERS {
            return None;
        }
        registers.resize(registers.len() + length, value);
        body = rest;
    }
    (registers.len() == REGISTERS).then_some(registers)
}

#[cfg(test)]
mod tests;
