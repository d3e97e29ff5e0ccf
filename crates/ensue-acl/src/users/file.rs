//! Users as text: the lines of an ACL file and of `user` directives.
//!
//! A whole text arrives and replaces all users, or changes nothing and answers everything that is wrong with it, with
//! file and line, in the words of Redis 7.2. The text that is written leads to the same users when it is read. It opens
//! no file.

use super::Users;
use crate::commands::has_spaces;
use crate::hashing::{Hasher, Unhashed};
use crate::limits::USERS_MAX;
use crate::rule_error::{RuleError, refused};
use crate::rules::join_selectors;
use crate::user::{DEFAULT_USER, User};
use bytes::Bytes;
use ensue_types::Reply;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// Why a text changes nothing: all that is wrong with it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{errors}WARNING: ACL errors detected, no change to the previously active ACL rules was performed")]
pub struct LoadError {
    errors: String,
}

impl LoadError {
    /// The answer to `ACL LOAD`.
    pub fn reply(&self) -> Reply {
        refused(&self.to_string())
    }
}

/// A line that says something, and where it stands.
#[derive(Clone, Copy)]
struct Line<'a> {
    file: &'a str,
    number: usize,
    text: &'a [u8],
    /// A user that is made may use all channels.
    opens_channels: bool,
}

impl Users {
    /// `ACL LOAD`: replaces all users by those of the text of an ACL file, whose name errors show. A user that the text
    /// leaves as it was stays in its version, `default` becomes unrestricted if it is not there. Answers the users that
    /// are no longer there, whose connections are to be closed. As slow as the hasher.
    pub fn load(
        &mut self,
        file: &str,
        text: &[u8],
        hasher: &mut dyn Hasher,
    ) -> Result<Vec<Arc<User>>, LoadError> {
        let lines = text.split(|&byte| byte == b'\n').enumerate();
        let opens_channels = self.opens_channels;
        let line = |(index, text)| Line { file, number: index + 1, text, opens_channels };
        self.replace(lines.map(line), hasher)
    }

    /// The same with the values of `user` directives of a configuration, each with the number of its line:
    /// `alice on >secret +@read ~*`.
    pub fn load_directives(
        &mut self,
        file: &str,
        directives: &[(usize, &str)],
        hasher: &mut dyn Hasher,
    ) -> Result<Vec<Arc<User>>, LoadError> {
        let lines: Vec<String> = directives.iter().map(|(_, value)| format!("user {value}")).collect();
        let lines = directives.iter().zip(&lines);
        let opens_channels = self.opens_channels;
        let lines =
            lines.map(|(&(number, _), text)| Line { file, number, text: text.as_bytes(), opens_channels });
        self.replace(lines, hasher)
    }

    fn replace<'a>(
        &mut self,
        lines: impl Iterator<Item = Line<'a>>,
        hasher: &mut dyn Hasher,
    ) -> Result<Vec<Arc<User>>, LoadError> {
        let mut loaded: BTreeMap<Bytes, User> = BTreeMap::new();
        let mut errors = String::new();
        for line in lines {
            match line.read(&loaded, hasher) {
                Ok(user) => loaded.extend(user.map(|user| (user.name().clone(), user))),
                Err(error) => errors.push_str(&error),
            }
        }
        if !errors.is_empty() {
            return Err(LoadError { errors });
        }
        loaded.entry(Bytes::from_static(DEFAULT_USER.as_bytes())).or_insert_with(User::unrestricted);
        let is_gone = |user: &&Arc<User>| !loaded.contains_key(user.name());
        let gone: Vec<Arc<User>> = self.iter().filter(is_gone).cloned().collect();
        for user in &gone {
            self.by_name.remove(user.name());
        }
        self.version.0 += u64::from(!gone.is_empty());
        for user in loaded.into_values() {
            if !self.user(user.name()).is_some_and(|held| held.is_same(&user)) {
                self.put(user);
            }
        }
        Ok(gone)
    }

    /// `ACL SAVE`: the text of an ACL file, a line a user. Its passwords are verifiers.
    pub fn save(&self) -> Vec<u8> {
        self.iter().flat_map(|user| [user.describe(), b"\n".to_vec()].concat()).collect()
    }
}

impl User {
    /// The user of a line that [`User::describe`] wrote; nothing if it is none, or holds a password that is not hashed.
    pub fn parse(line: &[u8]) -> Option<User> {
        let line = Line { file: "", number: 0, text: line, opens_channels: false };
        line.read(&BTreeMap::new(), &mut Unhashed).ok().flatten()
    }
}

impl Line<'_> {
    /// The user of the line, if it is not empty, or what is wrong, each error ending with a blank.
    fn read(&self, loaded: &BTreeMap<Bytes, User>, hasher: &mut dyn Hasher) -> Result<Option<User>, String> {
        let Line { file, number, text, .. } = *self;
        let words: Vec<&[u8]> = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        let (name, words) = match words.as_slice() {
            [] => return Ok(None),
            [b"user", name, words @ ..] => (*name, words),
            _ => {
                let words = "should start with user keyword followed by the username";
                return Err(format!("{file}:{number} {words}. "));
            }
        };
        let shown = String::from_utf8_lossy(name);
        if has_spaces(name) {
            return Err(format!("{file}:{number}: username '{shown}' contains invalid characters. "));
        }
        if loaded.contains_key(name) {
            return Err(format!("WARNING: Duplicate user '{shown}' found on line {number}. "));
        }
        if loaded.len() >= USERS_MAX {
            return Err(format!("{file}:{number}: more than {USERS_MAX} users. "));
        }
        let rules = join_selectors(words)
            .map_err(|_| format!("{file}:{number}: Unmatched parenthesis in selector definition. "))?;
        let mut user = User::made(Bytes::copy_from_slice(name), self.opens_channels);
        let errors = self.apply(&mut user, &rules, hasher);
        if errors.is_empty() { Ok(Some(user)) } else { Err(errors) }
    }

    /// Applies the rules. Each unknown name is told; of the other errors the first, which may be why there are others,
    /// and without the rule, which may be a password.
    fn apply(&self, user: &mut User, rules: &[Vec<u8>], hasher: &mut dyn Hasher) -> String {
        let Line { file, number, .. } = *self;
        let (mut errors, mut has_other) = (String::new(), false);
        for rule in rules {
            match user.apply_by_default(rule, self.opens_channels, hasher) {
                Ok(()) => {}
                Err(error @ RuleError::Unknown) => {
                    let rule = String::from_utf8_lossy(rule);
                    errors += &format!("{file}:{number}: Error in applying operation '{rule}': {error}. ");
                }
                Err(error) if !has_other => {
                    errors += &format!("{file}:{number}: {error}. ");
                    has_other = true;
                }
                Err(_) => {}
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests;
