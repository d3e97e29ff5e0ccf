//! How long values are: always the same, uniform in a range, or a list of sizes with weights.

use crate::error::SpecError;
use crate::random::Random;
use crate::weighted::Weighted;
use std::str::FromStr;

/// Longest value that is written.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

/// A distribution of lengths in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// From, and up to and with.
    ranges: Weighted<(usize, usize)>,
    text: String,
}

impl Sizes {
    pub fn fixed(bytes: usize) -> Sizes {
        let ranges = Weighted::new([((bytes, bytes), 1)]).expect("a weight is above zero");
        Sizes { ranges, text: bytes.to_string() }
    }

    pub fn draw(&self, random: &mut Random) -> usize {
        let (from, to) = *self.ranges.draw(random);
        from + random.below((to - from) as u64 + 1) as usize
    }

    pub fn max(&self) -> usize {
        self.ranges.values().iter().map(|range| range.1).max().unwrap_or(0)
    }
}

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Sizes {
    type Err = SpecError;

    /// `128`, `16-256`, or `16:60,32:39,4096:1`: sizes or ranges, each with a weight.
    fn from_str(text: &str) -> Result<Sizes, SpecError> {
        let wrong = || SpecError::Sizes(text.into());
        let size = |word: &str| word.parse().ok().filter(|bytes| *bytes <= VALUE_BYTES_MAX).ok_or_else(wrong);
        let mut choices = Vec::new();
        for part in text.split(',') {
            let (range, weight) = part.split_once(':').unwrap_or((part, "1"));
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let (from, to) = (size(from)?, size(to)?);
            if from > to {
                return Err(wrong());
            }
            choices.push(((from, to), weight.parse().map_err(|_| wrong())?));
        }
        let ranges = Weighted::new(choices).ok_or_else(wrong)?;
        Ok(Sizes { ranges, text: text.into() })
    }
}
