//! One set of permissions, which Redis calls a selector: commands, and the keys, channels and databases for them.
//!
//! Rules arrive one by one, then commands; the answer is whether this set alone allows the whole command. It does not
//! know passwords, and does not combine sets: a user does.

use crate::call::{Call, Unlisted};
use crate::channels::Channels;
use crate::commands::Commands;
use crate::databases::Databases;
use crate::denied::Denied;
use crate::keys::Keys;
use crate::rule_error::RuleError;
use ensue_resp::{Access, unplaced_keys};
use ensue_types::Reply;

/// What a user may do by its root or by one of its selectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Which commands.
    pub commands: Commands,
    /// Which keys.
    pub keys: Keys,
    /// Which channels.
    pub channels: Channels,
    /// Which databases.
    pub databases: Databases,
}

impl Permissions {
    /// Whether nothing is denied.
    pub fn allows_all(&self) -> bool {
        self.commands.allows_all()
            && self.keys.allows_all()
            && self.channels.allows_all()
            && self.databases.allows_all()
    }

    /// Whether the whole command is allowed, or what of it is denied. It allocates nothing.
    pub fn check(&self, call: &Call<'_>) -> Result<(), Denied> {
        if !self.commands.allows(call.spec, call.args) {
            return Err(Denied::Command);
        }
        self.check_database(call)?;
        self.check_keys(call)?;
        self.check_channels(call)
    }

    fn check_database(&self, call: &Call<'_>) -> Result<(), Denied> {
        if self.databases.allows_all() {
            return Ok(());
        }
        let denied = if call.touches_every_database() {
            self.databases.first_denied()
        } else {
            call.touched_database().filter(|&database| !self.databases.allows(database))
        };
        denied.map_or(Ok(()), |database| Err(Denied::Database(database)))
    }

    fn check_keys(&self, call: &Call<'_>) -> Result<(), Denied> {
        if self.keys.allows_all() {
            return Ok(());
        }
        for (place, access) in ensue_resp::key_accesses(call.spec, call.args) {
            if !self.keys.allows(&call.args[place], access) {
                return Err(Denied::Key { place });
            }
        }
        match call.unlisted_reads() {
            Unlisted::Key(place)
                if !self.keys.allows(&call.args[place], Access::READ_ONLY | Access::ACCESS) =>
            {
                return Err(Denied::Key { place });
            }
            // There is no key to name but what reads them.
            Unlisted::All if !self.keys.allows_reading_all() => return Err(Denied::Key { place: 1 }),
            _ => {}
        }
        match unplaced_keys(call.spec, call.args).next() {
            Some((option, place)) if !self.keys.allows_reading_all() => {
                Err(Denied::Pattern { place, option: option.into() })
            }
            _ => Ok(()),
        }
    }

    fn check_channels(&self, call: &Call<'_>) -> Result<(), Denied> {
        if self.channels.allows_all() {
            return Ok(());
        }
        let denied = call.channels().find(|(_, channel)| !self.channels.allows(*channel));
        denied.map_or(Ok(()), |(place, _)| Err(Denied::Channel { place }))
    }

    /// Applies a rule of `ACL SETUSER` that may also stand in a selector.
    pub(crate) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            _ if is("allkeys") || is("~*") => self.keys.allow_all(),
            _ if is("resetkeys") => self.keys.reset(),
            _ if is("allchannels") || is("&*") => self.channels.allow_all(),
            _ if is("resetchannels") => self.channels.reset(),
            _ if is("alldbs") => self.databases = Databases::ALL,
            _ if is("resetdbs") => self.databases = Databases::NONE,
            _ if is("allcommands") || is("nocommands") => self.commands.apply(rule)?,
            [b'+' | b'-', ..] => self.commands.apply(rule)?,
            [b'~' | b'%', ..] => self.keys.apply(rule)?,
            [b'&', pattern @ ..] => self.channels.add(pattern)?,
            [b'd' | b'D', b'b' | b'B', b'=', numbers @ ..] => self.databases.add(numbers)?,
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    /// Reads a selector with its parentheses. Its rules are separated by blanks and not quoted; none may end with `)`,
    /// for written down it would end the selector.
    pub(crate) fn of_selector(rule: &[u8]) -> Result<Permissions, RuleError> {
        let inner =
            rule.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")")).ok_or(RuleError::Syntax)?;
        let mut permissions = Permissions::default();
        for rule in inner.split(u8::is_ascii_whitespace).filter(|rule| !rule.is_empty()) {
            if rule.ends_with(b")") {
                return Err(RuleError::Syntax);
            }
            permissions.apply(rule)?;
        }
        Ok(permissions)
    }

    /// The rules that lead from nothing to this value, as `ACL LIST` shows them.
    pub fn describe(&self) -> Vec<u8> {
        let mut rules = self.keys.rules();
        if !self.channels.allows_all() {
            rules.push(b"resetchannels".to_vec());
        }
        rules.extend(self.channels.rules());
        rules.extend(self.databases.describe().map(String::into_bytes));
        rules.push(self.commands.describe().into_bytes());
        rules.join(&b' ')
    }

    /// What `ACL GETUSER` shows of it. The databases are shown only if not all are allowed.
    pub fn entries(&self) -> Vec<(Reply, Reply)> {
        let mut entries = vec![
            (Reply::bulk("commands"), Reply::bulk(self.commands.describe())),
            (Reply::bulk("keys"), Reply::bulk(self.keys.rules().join(&b' '))),
            (Reply::bulk("channels"), Reply::bulk(self.channels.rules().join(&b' '))),
        ];
        let databases = self.databases.describe();
        entries.extend(databases.map(|rule| (Reply::bulk("databases"), Reply::bulk(rule))));
        entries
    }
}

#[cfg(test)]
mod tests;
