//! A user: whether it may log in and with which passwords, and what it may do then.
//!
//! Rules of `ACL SETUSER` arrive one by one, then commands of its sessions; the answer is whether a command is allowed
//! by the root or by one selector, as Redis 7.2 has it. A user is a value that is never changed in place: the registry
//! makes the next version of it. It does not know sessions.

use crate::call::Call;
use crate::channels::Channel;
use crate::denied::Denied;
use crate::hashing::Hasher;
use crate::limits::{PASSWORDS_MAX, SELECTORS_MAX};
use crate::permissions::Permissions;
use crate::rule_error::RuleError;
use crate::verifier::Verifier;
use bytes::Bytes;
use ensue_resp::Access;
use ensue_types::Reply;

/// The name of the user that connections begin with.
pub const DEFAULT_USER: &str = "default";

/// How many changes a registry had seen when it made this user: of two users of one name, the greater is the later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserVersion(pub u64);

/// A user.
#[derive(Clone, Debug)]
pub struct User {
    name: Bytes,
    version: UserVersion,
    is_on: bool,
    is_nopass: bool,
    skips_sanitizing: bool,
    verifiers: Vec<Verifier>,
    root: Permissions,
    selectors: Vec<Permissions>,
    /// Whether one set of permissions denies nothing.
    allows_all: bool,
}

impl User {
    /// A user as `ACL SETUSER name` makes it: off, without passwords, allowed nothing.
    pub fn new(name: Bytes) -> User {
        User {
            name,
            version: UserVersion::default(),
            is_on: false,
            is_nopass: false,
            skips_sanitizing: false,
            verifiers: Vec::new(),
            root: Permissions::default(),
            selectors: Vec::new(),
            allows_all: false,
        }
    }

    /// A user as `ACL SETUSER name` makes it where new users may use all channels, or may not.
    pub(crate) fn made(name: Bytes, opens_channels: bool) -> User {
        let mut user = User::new(name);
        if opens_channels {
            user.root.apply(b"allchannels").expect("a rule of one word");
        }
        user
    }

    /// The user `default` of a server without rules: on, with any password, allowed everything.
    pub fn unrestricted() -> User {
        let mut user = User::new(Bytes::from_static(DEFAULT_USER.as_bytes()));
        (user.is_on, user.is_nopass) = (true, true);
        for rule in ["allcommands", "allkeys", "allchannels"] {
            user.root.apply(rule.as_bytes()).expect("a rule of one word");
        }
        user.allows_all = true;
        user
    }

    /// Its name.
    pub fn name(&self) -> &Bytes {
        &self.name
    }

    /// Which version of it this is.
    pub fn version(&self) -> UserVersion {
        self.version
    }

    /// Whether it may log in.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether any password is right.
    pub fn is_nopass(&self) -> bool {
        self.is_nopass
    }

    /// What is kept of its passwords.
    pub fn verifiers(&self) -> &[Verifier] {
        &self.verifiers
    }

    /// Whether it may do everything.
    pub fn allows_all(&self) -> bool {
        self.allows_all
    }

    /// Whether to tell if a password is right takes milliseconds.
    pub fn is_costly(&self) -> bool {
        !self.is_nopass && self.verifiers.iter().any(Verifier::is_costly)
    }

    /// Whether a password is right; whether the user is on is another question. Slow if it
    /// [`is_costly`](User::is_costly): 20 to 30 ms for each of its passwords.
    pub fn accepts(&self, password: &[u8]) -> bool {
        self.is_nopass || self.verifiers.iter().any(|verifier| verifier.matches(password))
    }

    /// Whether a command is allowed, as a whole, by the root or by one selector; else what is denied: of several sets,
    /// what the one denies that comes farthest. It allocates nothing.
    #[inline]
    pub fn check(&self, call: &Call<'_>) -> Result<(), Denied> {
        if self.allows_all {
            return Ok(());
        }
        self.check_sets(call)
    }

    fn check_sets(&self, call: &Call<'_>) -> Result<(), Denied> {
        let mut farthest = Denied::Command;
        for permissions in self.sets() {
            match permissions.check(call) {
                Ok(()) => return Ok(()),
                Err(denied) => farthest = farthest.max(denied),
            }
        }
        Err(farthest)
    }

    /// Whether one of its sets of permissions allows a channel. A subscriber that has one which is no longer allowed is
    /// disconnected, as Redis does.
    pub fn allows_channel(&self, channel: Channel<'_>) -> bool {
        self.sets().any(|permissions| permissions.channels.allows(channel))
    }

    /// Whether one of its sets of permissions allows to read a key, by some command.
    pub fn allows_reading(&self, key: &[u8]) -> bool {
        self.sets().any(|permissions| permissions.keys.allows(key, Access::ACCESS))
    }

    /// The root and the selectors.
    fn sets(&self) -> impl Iterator<Item = &Permissions> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// Whether all but the version is equal.
    pub fn is_same(&self, other: &User) -> bool {
        let facts = |user: &User| (user.is_on, user.is_nopass, user.skips_sanitizing);
        facts(self) == facts(other)
            && self.name == other.name
            && self.verifiers == other.verifiers
            && self.root == other.root
            && self.selectors == other.selectors
    }

    pub(crate) fn with_version(mut self, version: UserVersion) -> User {
        self.version = version;
        self
    }

    /// Applies one rule where a selector that is made, and a user that is reset, may use all channels, or may not.
    pub(crate) fn apply_by_default(
        &mut self,
        rule: &[u8],
        opens_channels: bool,
        hasher: &mut dyn Hasher,
    ) -> Result<(), RuleError> {
        match rule {
            [b'(', inner @ ..] if opens_channels => {
                self.apply(&[&b"(allchannels "[..], inner].concat(), hasher)
            }
            _ if opens_channels && rule.eq_ignore_ascii_case(b"reset") => {
                self.apply(rule, hasher)?;
                self.apply(b"allchannels", hasher)
            }
            _ => self.apply(rule, hasher),
        }
    }

    /// Applies one rule of `ACL SETUSER`, a selector being one rule with its parentheses. On an error the user may be
    /// half changed: the caller has a copy.
    pub(crate) fn apply(&mut self, rule: &[u8], hasher: &mut dyn Hasher) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            b"nopass" => {
                self.is_nopass = true;
                self.verifiers.clear();
            }
            b"resetpass" => {
                self.is_nopass = false;
                self.verifiers.clear();
            }
            b"sanitize-payload" => self.skips_sanitizing = false,
            b"skip-sanitize-payload" => self.skips_sanitizing = true,
            b"clearselectors" => self.selectors.clear(),
            b"reset" => *self = User::new(self.name.clone()).with_version(self.version),
            _ => self.apply_other(rule, hasher)?,
        }
        let allows_all = self.sets().any(Permissions::allows_all);
        self.allows_all = allows_all;
        Ok(())
    }

    fn apply_other(&mut self, rule: &[u8], hasher: &mut dyn Hasher) -> Result<(), RuleError> {
        match rule {
            [b'>', password @ ..] => {
                let is_held = self.verifiers.iter().any(|held| hasher.matches(held, password));
                let verifier = if is_held { None } else { Some(hasher.verifier(password)?) };
                self.add_verifier(verifier)
            }
            [b'#', text @ ..] => {
                let verifier = Verifier::parse(text)?;
                self.add_verifier(Some(verifier).filter(|verifier| !self.verifiers.contains(verifier)))
            }
            [b'<', password @ ..] => self.remove_verifiers(|held| hasher.matches(held, password)),
            [b'!', text @ ..] => {
                let verifier = Verifier::parse(text)?;
                self.remove_verifiers(|held| *held == verifier)
            }
            [b'(', .., b')'] if self.selectors.len() >= SELECTORS_MAX => Err(RuleError::TooManySelectors),
            [b'(', .., b')'] => {
                self.selectors.push(Permissions::of_selector(rule)?);
                Ok(())
            }
            _ => self.root.apply(rule),
        }
    }

    /// A user that has a password no longer takes any; nothing is added if it has this one.
    fn add_verifier(&mut self, verifier: Option<Verifier>) -> Result<(), RuleError> {
        if verifier.is_some() && self.verifiers.len() >= PASSWORDS_MAX {
            return Err(RuleError::TooManyPasswords);
        }
        self.verifiers.extend(verifier);
        self.is_nopass = false;
        Ok(())
    }

    fn remove_verifiers(&mut self, mut is_meant: impl FnMut(&Verifier) -> bool) -> Result<(), RuleError> {
        let count = self.verifiers.len();
        self.verifiers.retain(|held| !is_meant(held));
        if self.verifiers.len() == count { Err(RuleError::NoSuchPassword) } else { Ok(()) }
    }

    /// The flags in the order of Redis.
    fn flags(&self) -> impl Iterator<Item = &'static str> {
        let sanitizing = if self.skips_sanitizing { "skip-sanitize-payload" } else { "sanitize-payload" };
        let nopass = self.is_nopass.then_some("nopass");
        [Some(if self.is_on { "on" } else { "off" }), nopass, Some(sanitizing)].into_iter().flatten()
    }

    /// The line of `ACL LIST` and of an ACL file: `user`, the name, and the rules that lead from a new user to this
    /// one.
    pub fn describe(&self) -> Vec<u8> {
        let mut words = vec![b"user".to_vec(), self.name.to_vec()];
        words.extend(self.flags().map(|flag| flag.as_bytes().to_vec()));
        words.extend(self.verifiers.iter().map(|verifier| format!("#{verifier}").into_bytes()));
        words.push(self.root.describe());
        let selectors = self.selectors.iter();
        words.extend(selectors.map(|selector| [&b"("[..], &selector.describe(), b")"].concat()));
        words.join(&b' ')
    }

    /// The answer of `ACL GETUSER`.
    pub fn reply(&self) -> Reply {
        let passwords = self.verifiers.iter().map(|verifier| Reply::bulk(verifier.to_string()));
        let mut entries = vec![
            (Reply::bulk("flags"), Reply::Set(self.flags().map(Reply::bulk).collect())),
            (Reply::bulk("passwords"), Reply::Array(passwords.collect())),
        ];
        entries.extend(self.root.entries());
        let selectors = self.selectors.iter().map(|selector| Reply::Map(selector.entries()));
        entries.push((Reply::bulk("selectors"), Reply::Array(selectors.collect())));
        Reply::Map(entries)
    }
}

#[cfg(test)]
pub(crate) mod tests;
