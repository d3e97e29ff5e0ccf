//! All users of a server: who there is, in which version.
//!
//! Changes arrive, whole or not at all; a change makes new users and leaves those that sessions hold as they are. Each
//! change makes the version go up, so that a session that compares one number knows whether to look for its user again.
//! There is always a user `default`. It does not know sessions, and reads no file.

mod file;

use crate::commands::has_spaces;
use crate::hashing::Hasher;
use crate::limits::{NAME_BYTES_MAX, USERS_MAX};
use crate::rule_error::SetError;
use crate::rules::join_selectors;
use crate::user::{DEFAULT_USER, User, UserVersion};
use bytes::Bytes;
use ensue_types::Reply;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use file::LoadError;

/// The users by name.
#[derive(Clone, Debug)]
pub struct Users {
    by_name: BTreeMap<Bytes, Arc<User>>,
    version: UserVersion,
    /// New users and selectors may use all channels: `acl-pubsub-default allchannels`.
    opens_channels: bool,
}

impl Default for Users {
    fn default() -> Users {
        Users::new()
    }
}

impl Users {
    /// Only the user `default`, who may do everything.
    pub fn new() -> Users {
        let mut users =
            Users { by_name: BTreeMap::new(), version: UserVersion::default(), opens_channels: false };
        users.put(User::unrestricted());
        users
    }

    /// Sets whether users and selectors that are made from now on, and users that are reset, may use all channels:
    /// `acl-pubsub-default`. Those that there are stay as they are.
    pub fn open_channels(&mut self, opens: bool) {
        self.opens_channels = opens;
    }

    /// How many changes there have been: equal numbers, equal users.
    pub fn version(&self) -> UserVersion {
        self.version
    }

    /// The user of a name, as it is now.
    pub fn user(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.by_name.get(name)
    }

    /// The user that connections begin with.
    pub fn default_user(&self) -> &Arc<User> {
        self.user(DEFAULT_USER.as_bytes()).expect("the default user is never deleted")
    }

    /// Whether a session's user is as it is now; else it has been changed or deleted, perhaps made again.
    pub fn is_current(&self, user: &User) -> bool {
        self.user(user.name()).is_some_and(|now| now.version() == user.version())
    }

    /// All users, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<User>> {
        self.by_name.values()
    }

    /// `ACL SETUSER name rules…`: makes the user or changes it, by all rules in their order or, if one is wrong, by
    /// none. Answers the user as it is then. As slow as the hasher.
    pub fn set<R: AsRef<[u8]>>(
        &mut self,
        name: &[u8],
        words: &[R],
        hasher: &mut dyn Hasher,
    ) -> Result<Arc<User>, SetError> {
        if has_spaces(name) || name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(SetError::Name);
        }
        let held = self.user(name);
        if held.is_none() && self.by_name.len() >= USERS_MAX {
            return Err(SetError::TooManyUsers);
        }
        let opens = self.opens_channels;
        let mut user = match held {
            Some(held) => User::clone(held),
            None => User::made(Bytes::copy_from_slice(name), opens),
        };
        let rules =
            join_selectors(words).map_err(|place| SetError::Unmatched(words[place].as_ref().to_vec()))?;
        for rule in rules {
            user.apply_by_default(&rule, opens, hasher).map_err(|error| SetError::Rule { rule, error })?;
        }
        Ok(self.put(user))
    }

    /// `ACL DELUSER name…`: the users that are no longer there, whose connections are to be closed. Nothing is deleted
    /// if `default` is among them.
    pub fn delete<N: AsRef<[u8]>>(&mut self, names: &[N]) -> Result<Vec<Arc<User>>, Reply> {
        if names.iter().any(|name| name.as_ref() == DEFAULT_USER.as_bytes()) {
            return Err(Reply::error("ERR The 'default' user cannot be removed"));
        }
        let deleted: Vec<Arc<User>> =
            names.iter().filter_map(|name| self.by_name.remove(name.as_ref())).collect();
        if !deleted.is_empty() {
            self.version.0 += 1;
        }
        Ok(deleted)
    }

    /// Puts a user in the place of the one of its name.
    fn put(&mut self, user: User) -> Arc<User> {
        self.version.0 += 1;
        let user = Arc::new(user.with_version(self.version));
        self.by_name.insert(user.name().clone(), user.clone());
        user
    }

    /// `ACL USERS`
    pub fn names(&self) -> Reply {
        Reply::Array(self.by_name.keys().cloned().map(Reply::Bulk).collect())
    }

    /// `ACL LIST`
    pub fn list(&self) -> Reply {
        Reply::Array(self.iter().map(|user| Reply::bulk(user.describe())).collect())
    }

    /// `ACL GETUSER name`: nil if there is none.
    pub fn describe(&self, name: &[u8]) -> Reply {
        self.user(name).map_or(Reply::Nil, |user| user.reply())
    }
}

#[cfg(test)]
mod tests;
