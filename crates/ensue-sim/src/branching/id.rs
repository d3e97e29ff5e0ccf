//! Ids of states, as clients read them: `12.0`, or `12.0.2` in the second incarnation of a site.

use std::fmt;

/// A state, by what its name says. Derived order: by counter, then incarnation, then site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId {
    pub counter: u64,
    pub incarnation: u32,
    pub site: u8,
}

/// The empty state that everything begins with.
pub const ROOT: StateId = StateId { counter: 0, incarnation: 1, site: 0 };

impl StateId {
    /// Reads `counter.site` or `counter.site.incarnation`.
    pub fn parse(text: &str) -> Option<StateId> {
        let mut parts = text.split('.');
        let counter = parts.next()?.parse().ok()?;
        let site = parts.next()?.parse().ok()?;
        let incarnation = match parts.next() {
            None => 1,
            Some(part) => part.parse().ok()?,
        };
        parts.next().is_none().then_some(StateId { counter, incarnation, site })
    }
}

impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.counter, self.site)?;
        if self.incarnation > 1 { write!(f, ".{}", self.incarnation) } else { Ok(()) }
    }
}

/// Several ids in one line.
pub fn show<'a>(ids: impl IntoIterator<Item = &'a StateId>) -> String {
    let texts: Vec<String> = ids.into_iter().map(StateId::to_string).collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{ROOT, StateId};

    #[test]
    fn ids_are_read_as_they_are_written() {
        for text in ["0.0", "12.0", "12.3.2"] {
            assert_eq!(StateId::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(StateId::parse("0.0"), Some(ROOT));
        for text in ["", "1", "1.", ".1", "1.x", "1.2.3.4", "1.300"] {
            assert_eq!(StateId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_counter_goes_first_then_the_incarnation() {
        let id = |text| StateId::parse(text).unwrap();
        assert!(id("2.0") > id("1.9.9"));
        assert!(id("2.0.2") > id("2.1"));
        assert!(id("2.1") > id("2.0"));
    }
}
