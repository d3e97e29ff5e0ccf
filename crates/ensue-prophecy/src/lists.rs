//! Lists of an operator: patterns of reads that are always fast, and of such that never are.
//!
//! A pattern is compared with the words of a read: `GET /index.html` of HTTP, `HGET page title` of the Redis protocol.
//! It may have `*`, `?` and `[...]` as in `KEYS`. Unlike an entry of the history table, a pattern is not evicted, and
//! what it blacklists does not come to rest.

use crate::table::List;
use ensue_resp::glob;

/// Patterns of both lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    white: Vec<Vec<u8>>,
    black: Vec<Vec<u8>>,
}

impl Lists {
    /// Reads that one replica answers without comparison, and reads that are always replicated.
    pub fn new(white: &[String], black: &[String]) -> Lists {
        let bytes =
            |patterns: &[String]| patterns.iter().map(|pattern| pattern.clone().into_bytes()).collect();
        Lists { white: bytes(white), black: bytes(black) }
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.white.is_empty() && self.black.is_empty()
    }

    /// The list of a read with these words. What both name is blacklisted, which is never wrong.
    pub fn of(&self, words: &[u8]) -> List {
        let is_in = |patterns: &[Vec<u8>]| patterns.iter().any(|pattern| glob::matches(pattern, words));
        match () {
            () if is_in(&self.black) => List::Black,
            () if is_in(&self.white) => List::White,
            () => List::Neither,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_all_words_and_the_blacklist_goes_first() {
        let lists = Lists::new(&["GET /static/*".into(), "GET page:*".into()], &["* /static/clock".into()]);
        for (words, list) in [
            ("GET /static/a.css", List::White),
            ("GET /static/clock", List::Black),
            ("HEAD /static/clock", List::Black),
            ("GET page:1", List::White),
            ("GET page", List::Neither),
            ("get page:1", List::Neither),
            ("MGET page:1", List::Neither),
        ] {
            assert_eq!(lists.of(words.as_bytes()), list, "{words}");
        }
        assert!(Lists::default().is_empty() && !lists.is_empty());
    }
}
