//! Compressed strings: LZF, which is only read.
//!
//! A byte below 32 is followed by one more literal byte than it says. Another one begins a copy of earlier output: its
//! upper three bits are the length less two, seven meaning that another byte adds to it, and its lower five bits with
//! the byte behind are the distance less one.

use crate::Damage;

/// What is compressed in these bytes, if it is so long.
pub(crate) fn expand(bytes: &[u8], length: usize) -> Result<Vec<u8>, Damage> {
    // A copy of three bytes makes at most so many.
    if length > bytes.len().saturating_mul(COPIED_MAX) {
        return Err(Damage::Compressed);
    }
    let mut out = Vec::with_capacity(length);
    let mut rest = bytes;
    while let [control, others @ ..] = rest {
        let control = usize::from(*control);
        if control < 32 {
            let literal = others.get(..control + 1).ok_or(Damage::Compressed)?;
            out.extend_from_slice(literal);
            rest = &others[control + 1..];
        } else {
            let (count, others) = match (control >> 5, others) {
                (7, [more, others @ ..]) => (7 + usize::from(*more) + 2, others),
                (7, []) => return Err(Damage::Compressed),
                (short, others) => (short + 2, others),
            };
            let [low, others @ ..] = others else { return Err(Damage::Compressed) };
            let distance = (control & 31) << 8 | usize::from(*low);
            let begin = out.len().checked_sub(distance + 1).ok_or(Damage::Compressed)?;
            // It may reach into what it copies itself.
            for place in begin..begin + count {
                out.push(out[place]);
            }
            rest = others;
        }
        if out.len() > length {
            return Err(Damage::Compressed);
        }
    }
    if out.len() == length { Ok(out) } else { Err(Damage::Compressed) }
}

const COPIED_MAX: usize = 7 + 255 + 2;
