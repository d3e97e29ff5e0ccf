//! Constraints on read states and commit states, as the simulator's clients say them and its oracle judges them.

use super::id::StateId;
use std::fmt;

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Any,
    Serializability,
    SnapshotIsolation,
    ReadCommitted,
    NoBranching,
    KBranching(u64),
    Parent,
    Ancestor,
    State(Vec<StateId>),
}

/// One of several lists of conditions, each of which is fulfilled as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint(pub Vec<Vec<Condition>>);

impl Constraint {
    pub fn one(condition: Condition) -> Constraint {
        Constraint(vec![vec![condition]])
    }

    /// Reads the words of a constraint; nothing if they are none.
    pub fn parse(words: &[&str]) -> Option<Constraint> {
        let mut words = words.iter().copied().peekable();
        let mut alternatives = vec![Vec::new()];
        loop {
            let word = words.next()?.to_ascii_uppercase();
            let condition = match word.as_str() {
                "ANY" => Condition::Any,
                "SERIALIZABILITY" => Condition::Serializability,
                "SNAPSHOT-ISOLATION" => Condition::SnapshotIsolation,
                "READ-COMMITTED" => Condition::ReadCommitted,
                "NO-BRANCHING" => Condition::NoBranching,
                "K-BRANCHING" => Condition::KBranching(words.next()?.parse().ok()?),
                "PARENT" => Condition::Parent,
                "ANCESTOR" => Condition::Ancestor,
                "STATE" => {
                    let mut ids = vec![StateId::parse(words.next()?)?];
                    while let Some(id) = words.peek().and_then(|word| StateId::parse(word)) {
                        ids.push(id);
                        words.next();
                    }
                    Condition::State(ids)
                }
                _ => return None,
            };
            alternatives.last_mut()?.push(condition);
            match words.next() {
                None => return Some(Constraint(alternatives)),
                Some(word) if word.eq_ignore_ascii_case("AND") => {}
                Some(word) if word.eq_ignore_ascii_case("OR") => alternatives.push(Vec::new()),
                Some(_) => return None,
            }
        }
    }

    /// Whether every alternative has a condition of this kind.
    pub fn always(&self, is: impl Fn(&Condition) -> bool) -> bool {
        self.0.iter().all(|alternative| alternative.iter().any(&is))
    }

    /// Whether some alternative is fulfilled, if each condition is judged so.
    pub fn holds(&self, is: impl Fn(&Condition) -> bool) -> bool {
        self.0.iter().any(|alternative| alternative.iter().all(&is))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Any => write!(f, "ANY"),
            Condition::Serializability => write!(f, "SERIALIZABILITY"),
            Condition::SnapshotIsolation => write!(f, "SNAPSHOT-ISOLATION"),
            Condition::ReadCommitted => write!(f, "READ-COMMITTED"),
            Condition::NoBranching => write!(f, "NO-BRANCHING"),
            Condition::KBranching(k) => write!(f, "K-BRANCHING {k}"),
            Condition::Parent => write!(f, "PARENT"),
            Condition::Ancestor => write!(f, "ANCESTOR"),
            Condition::State(ids) => write!(f, "STATE {}", super::id::show(ids)),
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alternatives: Vec<String> = self
            .0
            .iter()
            .map(|all| all.iter().map(Condition::to_string).collect::<Vec<_>>().join(" AND "))
            .collect();
        write!(f, "{}", alternatives.join(" OR "))
    }
}

#[cfg(test)]
mod tests {
    use super::Constraint;

    #[test]
    fn constraints_are_read_as_they_are_written() {
        for text in [
            "ANY",
            "SERIALIZABILITY AND K-BRANCHING 3 OR PARENT",
            "STATE 1.0 2.1.2 AND ANCESTOR",
            "READ-COMMITTED OR SNAPSHOT-ISOLATION AND NO-BRANCHING",
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(Constraint::parse(&words).unwrap().to_string(), text);
        }
        for text in ["", "ANY AND", "STATE", "K-BRANCHING", "ANY ANY", "OR"] {
            let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
            assert_eq!(Constraint::parse(&words), None, "{text}");
        }
    }
}
