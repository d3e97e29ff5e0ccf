//! Which rules hold in a world: all of them, or all but one.

use ensue_types::{Breaking, Rule};

/// What a world is to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    broken: Option<Rule>,
}

impl Rules {
    /// A world in which one rule is broken. Only a build with the feature `breakable` can run it.
    pub fn breaking(rule: Rule) -> Rules {
        Rules { broken: Some(rule) }
    }

    pub fn broken(self) -> Option<Rule> {
        self.broken
    }

    /// Makes this thread run such a world for as long as the value lives.
    pub fn enter(self) -> Breaking {
        Breaking::only(self.broken)
    }
}

/// What a build says that keeps every rule.
pub(crate) const NOT_BREAKABLE: &str =
    "this build keeps every rule; for one that can break a rule, say: cargo breakable sim --break RULE";
