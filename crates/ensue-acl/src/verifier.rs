//! What is kept of a password: enough to recognize it, and too little to find it out.
//!
//! A password and a salt make a verifier of Argon2id (RFC 9106) with the parameters of `limits.rs`, which costs 20 to
//! 30 ms and 19 MiB, once to make and once for each password that is compared with it. A caller that must not wait does
//! both on another thread: a verifier is a value. The SHA-256 of a password, as Redis keeps it, is accepted for what
//! comes from there; it costs a microsecond, also to whoever guesses. Nothing here draws a salt.

use crate::limits::{
    ARGON2_LANES, ARGON2_LANES_MAX, ARGON2_MEMORY_KIB, ARGON2_MEMORY_KIB_MAX, ARGON2_PASSES,
    ARGON2_PASSES_MAX, VERIFIER_BYTES_MAX,
};
use crate::rule_error::RuleError;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use sha2::{Digest, Sha256};
use std::fmt;

/// 16 random bytes, of which no two verifiers have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salt(pub [u8; 16]);

/// What is kept of a password.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verifier {
    /// SHA-256 of the password, without a salt, as Redis has it.
    Sha256([u8; 32]),
    /// Argon2id, in the format of PHC strings: `$argon2id$v=19$m=19456,t=2,p=1$salt$hash`.
    Argon2id(Box<str>),
}

/// Makes the verifier of a password. Slow: 20 to 30 ms.
pub fn verifier(password: &[u8], salt: Salt) -> Verifier {
    let salt = SaltString::encode_b64(&salt.0).expect("16 bytes are a salt of PHC strings");
    let params = Params::new(ARGON2_MEMORY_KIB, ARGON2_PASSES, ARGON2_LANES, None)
        .expect("the parameters are constants within the bounds of Argon2");
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let made = argon2
        .hash_password(password, &salt)
        .expect("a password is shorter than the 4 GiB that Argon2 takes");
    Verifier::Argon2id(made.to_string().into())
}

impl Verifier {
    /// The SHA-256 of a password. For tests and for what must be as Redis has it; what is made new is Argon2id.
    pub fn sha256(password: &[u8]) -> Verifier {
        Verifier::Sha256(Sha256::digest(password).into())
    }

    /// A verifier of no password, to compare with where there is no user of that name: else the time that the answer
    /// takes would tell.
    pub fn decoy() -> Verifier {
        const PARAMS: &str = "$argon2id$v=19$m=19456,t=2,p=1";
        Verifier::Argon2id(format!("{PARAMS}${}${}", "A".repeat(22), "A".repeat(43)).into())
    }

    /// Reads what stands behind `#` in a rule: 64 lower-case hexadecimal digits, or a PHC string of Argon2id.
    pub fn parse(text: &[u8]) -> Result<Verifier, RuleError> {
        if text.first() == Some(&b'$') {
            return parse_phc(text).ok_or(RuleError::Argon2);
        }
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut hash = [0; 32];
        if text.len() != 2 * hash.len() {
            return Err(RuleError::PasswordHash);
        }
        for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                return Err(RuleError::PasswordHash);
            };
            *byte = high << 4 | low;
        }
        Ok(Verifier::Sha256(hash))
    }

    /// Whether this is its password, in a time that does not depend on how much of it is right. Slow if it
    /// [`is_costly`](Verifier::is_costly): 20 to 30 ms, or as long as the parameters of a verifier from a file ask for.
    pub fn matches(&self, password: &[u8]) -> bool {
        match self {
            Verifier::Sha256(hash) => {
                let other: [u8; 32] = Sha256::digest(password).into();
                blake3::Hash::from_bytes(*hash) == blake3::Hash::from_bytes(other)
            }
            Verifier::Argon2id(text) => {
                let hash = PasswordHash::new(text).expect("the text was made here or has been parsed");
                Argon2::default().verify_password(password, &hash).is_ok()
            }
        }
    }

    /// Whether to compare a password with it takes milliseconds.
    pub fn is_costly(&self) -> bool {
        matches!(self, Verifier::Argon2id(_))
    }
}

/// A PHC string of Argon2id whose memory and time are accepted.
fn parse_phc(text: &[u8]) -> Option<Verifier> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= VERIFIER_BYTES_MAX)?;
    let hash = PasswordHash::new(text).ok()?;
    let params = Params::try_from(&hash).ok()?;
    let is_known =
        hash.algorithm == Algorithm::Argon2id.ident() && hash.version == Some(Version::V0x13.into());
    let is_accepted = params.m_cost() <= ARGON2_MEMORY_KIB_MAX
        && params.t_cost() <= ARGON2_PASSES_MAX
        && params.p_cost() <= ARGON2_LANES_MAX;
    let is_whole = hash.salt.is_some() && hash.hash.is_some_and(|hash| hash.len() >= 16);
    let is_plain = params.keyid().is_empty() && params.data().is_empty();
    (is_known && is_accepted && is_whole && is_plain).then(|| Verifier::Argon2id(hash.to_string().into()))
}

/// As it stands behind `#` in `ACL LIST` and in an ACL file.
impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verifier::Sha256(hash) => hash.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Verifier::Argon2id(text) => f.write_str(text),
        }
    }
}

/// Not the verifier: what is printed for debugging ends in logs.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verifier::Sha256(_) => f.write_str("Sha256(..)"),
            Verifier::Argon2id(_) => f.write_str("Argon2id(..)"),
        }
    }
}

#[cfg(test)]
mod tests;
