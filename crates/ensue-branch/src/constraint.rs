//! What a transaction asks of the state that it reads, and of the state that it commits below (Table 1).
//!
//! As text: words joined by `AND` and `OR`, of which `AND` binds tighter. `SERIALIZABILITY AND NO-BRANCHING` is a
//! sequential store.

use crate::id::StateId;
use std::fmt;

/// One predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// Every state will do.
    Any,
    /// Nothing that the transaction read was written since.
    Serializability,
    /// Nothing that the transaction writes was written since.
    SnapshotIsolation,
    /// What was read had been committed: it always had.
    ReadCommitted,
    /// The state has no child.
    NoBranching,
    /// The state has fewer than k - 1 children.
    KBranching(u32),
    /// The session committed it last.
    Parent,
    /// The session's last commit is an ancestor of it, or it is that commit.
    Ancestor,
    /// One of these.
    State(Vec<StateId>),
}

/// A union of intersections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    any_of: Vec<Vec<Term>>,
}

/// What was written between the read state and another that a transaction could commit below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// Something that it read.
    pub read: bool,
    /// Something that it writes.
    pub written: bool,
}

/// Words that are no constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConstraint {
    #[error(
        "'{0}' is no constraint: ANY, SERIALIZABILITY, SNAPSHOT-ISOLATION, READ-COMMITTED, NO-BRANCHING, K-BRANCHING k, PARENT, ANCESTOR or STATE id"
    )]
    Word(String),
    #[error("K-BRANCHING takes a number of at least 2")]
    Degree,
    #[error("STATE takes the ids of states, such as 12.0")]
    States,
    #[error("a constraint ends where another word must follow")]
    Unfinished,
    #[error("{0} is a constraint on the end of a transaction")]
    OnlyAtTheEnd(&'static str),
}

impl Constraint {
    pub fn of(term: Term) -> Constraint {
        Constraint { any_of: vec![vec![term]] }
    }

    /// Satisfied where both are.
    pub fn and(self, other: Constraint) -> Constraint {
        let each = |mine: &Vec<Term>| {
            let both = |theirs: &Vec<Term>| mine.iter().chain(theirs).cloned().collect();
            other.any_of.iter().map(both).collect::<Vec<Vec<Term>>>()
        };
        Constraint { any_of: self.any_of.iter().flat_map(each).collect() }
    }

    /// Satisfied where one of them is.
    pub fn or(self, other: Constraint) -> Constraint {
        Constraint { any_of: [self.any_of, other.any_of].concat() }
    }

    /// Reads words.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Result<Constraint, BadConstraint> {
        let mut words = words.into_iter().peekable();
        let mut any_of = vec![Vec::new()];
        loop {
            let term = Term::parse(&mut words)?;
            any_of.last_mut().expect("begun with one").push(term);
            match words.next() {
                None => return Ok(Constraint { any_of }),
                Some(word) if word.eq_ignore_ascii_case(b"and") => {}
                Some(word) if word.eq_ignore_ascii_case(b"or") => any_of.push(Vec::new()),
                Some(word) => return Err(BadConstraint::Word(String::from_utf8_lossy(word).into_owned())),
            }
        }
    }

    /// Refuses what means nothing before a transaction has run.
    pub fn for_begin(self) -> Result<Constraint, BadConstraint> {
        for term in self.any_of.iter().flatten() {
            if let Term::Serializability | Term::SnapshotIsolation | Term::ReadCommitted = term {
                return Err(BadConstraint::OnlyAtTheEnd(term.word()));
            }
        }
        Ok(self)
    }

    /// Whether a predicate on terms holds.
    pub fn holds(&self, term: impl Fn(&Term) -> bool) -> bool {
        self.any_of.iter().any(|all| all.iter().all(&term))
    }

    /// Whether it may still hold below a state with such writes since: they never become fewer.
    pub fn may_hold(&self, since: Since) -> bool {
        self.holds(|term| match term {
            Term::Serializability => !since.read,
            Term::SnapshotIsolation => !since.written,
            _ => true,
        })
    }

    /// Whether it asks what was written since of what the transaction writes.
    pub fn minds_writes(&self) -> bool {
        self.any_of.iter().flatten().any(|term| matches!(term, Term::SnapshotIsolation))
    }

    /// Whether no state with a child satisfies it.
    pub fn asks_for_a_leaf(&self) -> bool {
        self.any_of.iter().all(|all| all.contains(&Term::NoBranching))
    }

    pub fn names_the_session(&self) -> bool {
        self.any_of.iter().flatten().any(|term| matches!(term, Term::Parent | Term::Ancestor))
    }

    pub fn names_the_parent(&self) -> bool {
        self.any_of.iter().flatten().any(|term| *term == Term::Parent)
    }

    /// The states that it names.
    pub fn states(&self) -> impl Iterator<Item = StateId> + '_ {
        let named = self.any_of.iter().flatten().filter_map(|term| match term {
            Term::State(states) => Some(states),
            _ => None,
        });
        named.flatten().copied()
    }
}

impl Term {
    fn parse<'a>(
        words: &mut std::iter::Peekable<impl Iterator<Item = &'a [u8]>>,
    ) -> Result<Term, BadConstraint> {
        let word = words.next().ok_or(BadConstraint::Unfinished)?;
        let plain = [
            Term::Any,
            Term::Serializability,
            Term::SnapshotIsolation,
            Term::ReadCommitted,
            Term::NoBranching,
            Term::Parent,
            Term::Ancestor,
        ];
        if let Some(term) = plain.into_iter().find(|term| word.eq_ignore_ascii_case(term.word().as_bytes())) {
            return Ok(term);
        }
        if word.eq_ignore_ascii_case(b"k-branching") {
            let degree = words.next().and_then(text).and_then(|text| text.parse().ok());
            return degree.filter(|&k| k >= 2).map(Term::KBranching).ok_or(BadConstraint::Degree);
        }
        if word.eq_ignore_ascii_case(b"state") {
            let mut states = Vec::new();
            let id = |word: &&'a [u8]| text(word).and_then(|text| text.parse().ok());
            while let Some(state) = words.peek().and_then(id) {
                states.push(state);
                words.next();
            }
            return if states.is_empty() { Err(BadConstraint::States) } else { Ok(Term::State(states)) };
        }
        Err(BadConstraint::Word(String::from_utf8_lossy(word).into_owned()))
    }

    fn word(&self) -> &'static str {
        match self {
            Term::Any => "ANY",
            Term::Serializability => "SERIALIZABILITY",
            Term::SnapshotIsolation => "SNAPSHOT-ISOLATION",
            Term::ReadCommitted => "READ-COMMITTED",
            Term::NoBranching => "NO-BRANCHING",
            Term::KBranching(_) => "K-BRANCHING",
            Term::Parent => "PARENT",
            Term::Ancestor => "ANCESTOR",
            Term::State(_) => "STATE",
        }
    }
}

fn text(word: &[u8]) -> Option<&str> {
    std::str::from_utf8(word).ok()
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, all) in self.any_of.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { " OR " })?;
            for (place, term) in all.iter().enumerate() {
                f.write_str(if place == 0 { "" } else { " AND " })?;
                f.write_str(term.word())?;
                match term {
                    Term::KBranching(degree) => write!(f, " {degree}")?,
                    Term::State(states) => states.iter().try_for_each(|state| write!(f, " {state}"))?,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
