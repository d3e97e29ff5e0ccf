//! The words of `ACL SETUSER` and of a line of an ACL file as rules: a selector that has blanks becomes one rule.
//!
//! Words arrive as they were separated; rules leave, which are the words, and for each `(` up to its `)` one. It does
//! not read what a rule says.

/// Joins the words of selectors; an error is the place of the word with a `(` that is not closed.
pub(crate) fn join_selectors<W: AsRef<[u8]>>(words: &[W]) -> Result<Vec<Vec<u8>>, usize> {
    let mut rules = Vec::new();
    let mut open: Option<(usize, Vec<u8>)> = None;
    for (place, word) in words.iter().enumerate() {
        let word = word.as_ref();
        let closes = word.ends_with(b")");
        let selector = match open.take() {
            Some((begin, selector)) => (begin, [&selector, &b" "[..], word].concat()),
            None if word.starts_with(b"(") && !closes => {
                open = Some((place, word.to_vec()));
                continue;
            }
            None => {
                rules.push(word.to_vec());
                continue;
            }
        };
        if closes {
            rules.push(selector.1);
        } else {
            open = Some(selector);
        }
    }
    open.map_or(Ok(rules), |(place, _)| Err(place))
}

#[cfg(test)]
mod tests;
