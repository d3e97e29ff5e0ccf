//! Passwords in rules: who hashes them, and when.
//!
//! On rules that name passwords: make a [`Work`] of them, do it where waiting is no harm, and apply the rules with the
//! [`Prepared`] that it makes, which is fast. A caller that may wait, as one that loads a file at the start, applies
//! them with [`Immediate`]. Salts are an argument of both.

use crate::limits::PASSWORDS_NAMED_MAX;
use crate::rule_error::RuleError;
use crate::user::User;
use crate::verifier::{Salt, Verifier, verifier};
use std::collections::BTreeMap;

/// Makes verifiers of passwords and compares with them, while rules are applied.
pub trait Hasher {
    /// The verifier of a password that stands in a rule.
    fn verifier(&mut self, password: &[u8]) -> Result<Verifier, RuleError>;

    /// Whether a verifier that a user has is of that password.
    fn matches(&mut self, verifier: &Verifier, password: &[u8]) -> bool {
        verifier.matches(password)
    }
}

/// Hashes at once, with salts of that source.
pub struct Immediate<S>(pub S);

impl<S: FnMut() -> Salt> Hasher for Immediate<S> {
    fn verifier(&mut self, password: &[u8]) -> Result<Verifier, RuleError> {
        Ok(verifier(password, (self.0)()))
    }
}

/// Takes no password: for rules in which they are hashed already.
pub struct Unhashed;

impl Hasher for Unhashed {
    fn verifier(&mut self, _password: &[u8]) -> Result<Verifier, RuleError> {
        Err(RuleError::NotHashed)
    }
}

/// Whether to apply the rules takes a hash of a password, of 20 to 30 ms each.
pub fn needs_hashing<R: AsRef<[u8]>>(rules: &[R]) -> bool {
    rules.iter().any(|rule| password_of(rule.as_ref()).is_some())
}

/// What has to be hashed before rules can be applied to a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    passwords: Vec<Vec<u8>>,
    held: Vec<Verifier>,
}

impl Work {
    /// The work that the rules make for a user as it is now, if there is one of that name.
    pub fn of<R: AsRef<[u8]>>(rules: &[R], user: Option<&User>) -> Result<Work, RuleError> {
        let mut passwords: Vec<Vec<u8>> =
            rules.iter().filter_map(|rule| password_of(rule.as_ref())).map(<[u8]>::to_vec).collect();
        passwords.sort();
        passwords.dedup();
        if passwords.len() > PASSWORDS_NAMED_MAX {
            return Err(RuleError::TooManyPasswordsNamed);
        }
        let held = user.into_iter().flat_map(|user| user.verifiers()).cloned();
        Ok(Work { passwords, held: held.filter(Verifier::is_costly).collect() })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.passwords.is_empty()
    }

    /// Does it. Slow: 20 to 30 ms for each password, and as much for each pair of one and a verifier of the user.
    pub fn run(self, mut salts: impl FnMut() -> Salt) -> Prepared {
        let mut prepared = Prepared::default();
        for password in self.passwords {
            for held in &self.held {
                prepared.compared.insert((held.clone(), password.clone()), held.matches(&password));
            }
            prepared.made.insert(password.clone(), verifier(&password, salts()));
        }
        prepared
    }
}

/// Work that is done. To apply rules with it is fast, unless the user has got other passwords in the meantime.
#[derive(Clone, Default)]
pub struct Prepared {
    made: BTreeMap<Vec<u8>, Verifier>,
    compared: BTreeMap<(Verifier, Vec<u8>), bool>,
}

impl Hasher for Prepared {
    fn verifier(&mut self, password: &[u8]) -> Result<Verifier, RuleError> {
        self.made.get(password).cloned().ok_or(RuleError::NotHashed)
    }

    fn matches(&mut self, verifier: &Verifier, password: &[u8]) -> bool {
        // Salts differ: a verifier that was made here is of the password that it was made of, and of no other.
        if let Some((made_of, _)) = self.made.iter().find(|(_, made)| *made == verifier) {
            return made_of == password;
        }
        let known = self.compared.get(&(verifier.clone(), password.to_vec())).copied();
        known.unwrap_or_else(|| verifier.matches(password))
    }
}

/// The password that a rule names.
fn password_of(rule: &[u8]) -> Option<&[u8]> {
    match rule {
        [b'>' | b'<', password @ ..] => Some(password),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
