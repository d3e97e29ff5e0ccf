//! Compressed strings of dumps: LZF, which is only read.
//!
//! A byte below 32 is followed by one more literal byte than it says. Another one begins a copy of earlier output: its
//! upper three bits are the length less two, seven meaning that another byte adds to it, and its lower five bits with
//! the byte behind are the distance less one.

use super::reader::Malformed;

/// What is compressed in these bytes, if it is so long.
pub(super) fn expand(bytes: &[u8], length: usize) -> Result<Vec<u8>, Malformed> {
    // A copy of three bytes makes at most so many.
    if length > bytes.len().saturating_mul(COPIED_MAX) {
        return Err(Malformed);
    }
    let mut out = Vec::with_capacity(length);
    let mut rest = bytes;
    while let [control, others @ ..] = rest {
        let control = usize::from(*control);
        if control < 32 {
            let literal = others.get(..control + 1).ok_or(Malformed)?;
            out.extend_from_slice(literal);
            rest = &others[control + 1..];
        } else {
            let (count, others) = match (control >> 5, others) {
                (7, [more, others @ ..]) => (7 + usize::from(*more) + 2, others),
                (7, []) => return Err(Malformed),
                (short, others) => (short + 2, others),
            };
            let [low, others @ ..] = others else { return Err(Malformed) };
            let distance = (control & 31) << 8 | usize::from(*low);
            let begin = out.len().checked_sub(distance + 1).ok_or(Malformed)?;
            // It may reach into what it copies itself.
            for place in begin..begin + count {
                out.push(out[place]);
            }
            rest = others;
        }
        if out.len() > length {
            return Err(Malformed);
        }
    }
    if out.len() == length { Ok(out) } else { Err(Malformed) }
}

const COPIED_MAX: usize = 7 + 255 + 2;
