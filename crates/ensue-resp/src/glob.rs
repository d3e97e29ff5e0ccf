//! Patterns of `KEYS`, `SCAN MATCH` and `COMMAND LIST FILTERBY PATTERN`.
//!
//! A pattern and a text arrive, both any bytes; the answer is whether the whole text matches, with the meaning that
//! Redis gives to `* ? [a-z] [^x] \`. It promises neither to recurse nor to run away: one star is tried at a time,
//! and a match that takes more than a fixed number of steps is answered as no match. It does not compile patterns.

/// Longest pattern that is tried; callers refuse longer ones, and here they match nothing.
pub const PATTERN_BYTES_MAX: usize = 64 << 10;

/// Steps after which a match is given up: some milliseconds, beyond any pattern of good intent.
const STEPS_MAX: usize = 1 << 22;

/// Whether the whole text matches the pattern.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    if pattern.len() > PATTERN_BYTES_MAX {
        return false;
    }
    let (mut at, mut read) = (0, 0);
    // Where to go on when what follows the latest star fails: behind the star, one byte further in the text.
    let mut retry: Option<(usize, usize)> = None;
    let mut steps = 0;
    while read < text.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            if at == pattern.len() {
                return true;
            }
            retry = Some((at, read));
            continue;
        }
        let (matched, consumed) = match_one(&pattern[at..], text[read]);
        steps += consumed.max(1);
        if steps > STEPS_MAX {
            return false;
        }
        if matched {
            at += consumed;
            read += 1;
            continue;
        }
        let Some((after_star, from)) = retry else { return false };
        at = after_star;
        read = from + 1;
        retry = Some((after_star, read));
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// Matches one byte against the first element of a pattern; also says how long that element is.
fn match_one(pattern: &[u8], byte: u8) -> (bool, usize) {
    match pattern {
        [] => (false, 0),
        [b'?', ..] => (true, 1),
        [b'[', class @ ..] => {
            let (matched, length) = match_class(class, byte);
            (matched, 1 + length)
        }
        [b'\\', literal, ..] => (*literal == byte, 2),
        [literal, ..] => (*literal == byte, 1),
    }
}

/// Matches one byte against a class whose `[` has been read. A class that does not close ends with the pattern.
fn match_class(class: &[u8], byte: u8) -> (bool, usize) {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    loop {
        match &class[at..] {
            [] => break,
            [b'\\', literal, ..] => {
                found |= *literal == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                found |= (*first.min(last)..=*first.max(last)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= *literal == byte;
                at += 1;
            }
        }
    }
    (found != negated, at)
}

#[cfg(test)]
mod tests;
