//! The answer to `BRANCH LOG` as states: newest first, each below its children. What does not fit is a typed error.

use ensue_client::Reply;
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// `12.0`, or `12.0.2` in the second incarnation of a site. Ordered as the server orders them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct StateId {
    pub counter: u64,
    pub incarnation: u32,
    pub site: u8,
}

/// A state as the server tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub id: StateId,
    /// Each once.
    pub parents: Vec<StateId>,
    pub keys: Vec<String>,
    pub flags: Vec<String>,
}

/// Why an answer cannot be drawn.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum LogError {
    #[error("{0}")]
    Refused(String),
    #[error("the answer to BRANCH LOG is not a list of states: {0}")]
    NotALog(String),
    #[error("state {0} is no id: it should be counter.site or counter.site.incarnation")]
    NotAnId(String),
    #[error("state {state} stands below {above}, which is not higher")]
    OutOfOrder { state: StateId, above: StateId },
    #[error("state {state} has {parent} for a parent, which is not lower")]
    ParentNotLower { state: StateId, parent: StateId },
}

impl State {
    pub(super) fn is_leaf(&self) -> bool {
        self.has("leaf")
    }

    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|held| held == flag)
    }
}

/// Reads the answer to `BRANCH LOG`.
pub(super) fn read_log(reply: &Reply) -> Result<Vec<State>, LogError> {
    let mut states: Vec<State> = Vec::new();
    for item in items(reply)? {
        let state = read_state(item)?;
        if let Some(above) = states.last().filter(|above| above.id <= state.id) {
            return Err(LogError::OutOfOrder { state: state.id, above: above.id });
        }
        states.push(state);
    }
    Ok(states)
}

fn read_state(reply: &Reply) -> Result<State, LogError> {
    let [id, parents, keys, flags] = items(reply)? else {
        return Err(LogError::NotALog(format!("a state is four things, not {reply:?}")));
    };
    let id: StateId = word(id)?.parse()?;
    let mut seen = HashSet::new();
    let mut distinct = Vec::new();
    for parent in items(parents)? {
        let parent: StateId = word(parent)?.parse()?;
        if parent >= id {
            return Err(LogError::ParentNotLower { state: id, parent });
        }
        // Two parents that were collected may have been taken over by one state.
        if seen.insert(parent) {
            distinct.push(parent);
        }
    }
    let words = |list| items(list)?.iter().map(word).collect::<Result<Vec<String>, LogError>>();
    Ok(State { id, parents: distinct, keys: words(keys)?, flags: words(flags)? })
}

fn items(reply: &Reply) -> Result<&[Reply], LogError> {
    match reply {
        Reply::Array(items) | Reply::Set(items) => Ok(items),
        Reply::Error(words) => Err(LogError::Refused(words.to_string())),
        other => Err(LogError::NotALog(format!("a list was expected, not {other:?}"))),
    }
}

/// Text, with what cannot be shown escaped.
fn word(reply: &Reply) -> Result<String, LogError> {
    match reply {
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) => {
            Ok(String::from_utf8_lossy(bytes).chars().flat_map(shown).collect())
        }
        Reply::Status(text) => Ok(text.to_string()),
        other => Err(LogError::NotALog(format!("a word was expected, not {other:?}"))),
    }
}

/// A control character would move the cursor of a terminal.
fn shown(character: char) -> Vec<char> {
    if character.is_control() { character.escape_default().collect() } else { vec![character] }
}

impl FromStr for StateId {
    type Err = LogError;

    fn from_str(text: &str) -> Result<StateId, LogError> {
        let wrong = || LogError::NotAnId(text.into());
        let parts: Vec<&str> = text.split('.').collect();
        let (counter, site, incarnation) = match parts[..] {
            [counter, site] => (counter, site, "0"),
            [counter, site, incarnation] => (counter, site, incarnation),
            _ => return Err(wrong()),
        };
        Ok(StateId {
            counter: counter.parse().map_err(|_| wrong())?,
            incarnation: incarnation.parse().map_err(|_| wrong())?,
            site: site.parse().map_err(|_| wrong())?,
        })
    }
}

impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.counter, self.site)?;
        if self.incarnation > 0 {
            write!(f, ".{}", self.incarnation)?;
        }
        Ok(())
    }
}

impl StateId {
    /// The datacenter in which it was committed, as people name it.
    pub(super) fn site_name(self) -> String {
        format!("dc{}", u16::from(self.site) + 1)
    }

    /// The root is nobody's.
    pub(super) fn is_root(self) -> bool {
        self.counter == 0
    }
}

#[cfg(test)]
pub(super) mod tests;
