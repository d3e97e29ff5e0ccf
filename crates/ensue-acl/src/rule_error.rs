//! Why a rule of `ACL SETUSER`, of an ACL file or of a `user` directive cannot be applied, in the words of Redis.
//!
//! Clients and operators see these texts; those that Redis does not have are ours. Nothing is decided here.

use crate::limits::{
    FIRST_ARGS_MAX, PASSWORDS_MAX, PASSWORDS_NAMED_MAX, PATTERNS_MAX, SELECTORS_MAX, USERS_MAX,
};
use ensue_types::Reply;
use thiserror::Error;

/// What is wrong with one rule.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RuleError {
    /// It names no command, subcommand or category.
    #[error("Unknown command or category name in ACL")]
    Unknown,
    /// It is no rule.
    #[error("Syntax error")]
    Syntax,
    /// A pattern of keys where all keys are allowed.
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try \
         'resetkeys' to start with an empty list of patterns"
    )]
    KeyAfterAll,
    /// A pattern of channels where all channels are allowed.
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. \
         Try 'resetchannels' to start with an empty list of channels"
    )]
    ChannelAfterAll,
    /// `<password` or `!hash` of a password that the user does not have.
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    /// `#hash` that is neither SHA-256 in hexadecimal nor an Argon2id verifier.
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
    )]
    PasswordHash,
    /// A verifier of Argon2id that is malformed, or costs more than any that is accepted.
    #[error("The Argon2id verifier is malformed or asks for more memory or time than is accepted")]
    Argon2,
    /// Two directives define one user.
    #[error("Duplicate user found. A user can only be defined once in config files")]
    DuplicateUser,
    /// `+config|get|name`.
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgOfSubcommand,
    /// More passwords than a user may have.
    #[error("A user has at most {PASSWORDS_MAX} passwords")]
    TooManyPasswords,
    /// More passwords in one command than it may name.
    #[error("One change names at most {PASSWORDS_NAMED_MAX} passwords")]
    TooManyPasswordsNamed,
    /// More selectors than a user may have.
    #[error("A user has at most {SELECTORS_MAX} selectors")]
    TooManySelectors,
    /// More patterns than one set of permissions may have.
    #[error("A user or selector has at most {PATTERNS_MAX} patterns")]
    TooManyPatterns,
    /// More first arguments than one set of permissions may have.
    #[error("A user or selector has at most {FIRST_ARGS_MAX} rules with a first argument")]
    TooManyFirstArgs,
    /// The password has not been hashed before the rules are applied, which is a mistake of the caller.
    #[error("The password has not been hashed")]
    NotHashed,
}

/// Why `ACL SETUSER` changes nothing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SetError {
    /// The name of the user.
    #[error("Usernames can't contain spaces or null characters")]
    Name,
    /// There are as many users as there may be.
    #[error("There are at most {USERS_MAX} users")]
    TooManyUsers,
    /// A `(` without its `)`.
    #[error("Unmatched parenthesis in acl selector starting at '{}'.", String::from_utf8_lossy(.0))]
    Unmatched(Vec<u8>),
    /// A rule.
    #[error("Error in ACL SETUSER modifier '{}': {error}", String::from_utf8_lossy(rule))]
    Rule {
        /// As it was given, a selector with its parentheses.
        rule: Vec<u8>,
        /// What is wrong with it.
        error: RuleError,
    },
}

impl SetError {
    /// The answer to the client.
    pub fn reply(&self) -> Reply {
        refused(&self.to_string())
    }
}

/// An error of a command, on one line whatever the words quote.
pub(crate) fn refused(words: &str) -> Reply {
    Reply::Error(format!("ERR {}", words.replace(['\r', '\n'], " ")).into())
}
