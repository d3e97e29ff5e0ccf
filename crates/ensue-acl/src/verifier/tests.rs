//! Verifiers: what they recognize, and how they are written.

use super::*;

#[test]
fn argon2id() {
    let salt = Salt([7; 16]);
    let made = verifier(b"secret", salt);
    assert!(made.matches(b"secret") && !made.matches(b"Secret") && !made.matches(b""));
    assert!(made.is_costly());
    let text = made.to_string();
    assert!(text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
    assert_eq!(Verifier::parse(text.as_bytes()), Ok(made.clone()));
    assert_ne!(verifier(b"secret", Salt([8; 16])), made);
    assert_eq!(verifier(b"secret", salt), made);
    assert_eq!(format!("{made:?}"), "Argon2id(..)");
}

#[test]
fn what_the_reference_implementation_makes() {
    let text = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    let read = Verifier::parse(text.as_bytes()).expect("a verifier");
    assert!(read.matches(b"password") && !read.matches(b"passwore"));
    assert_eq!(read.to_string(), text);
}

#[test]
fn the_decoy_is_no_password() {
    let decoy = Verifier::decoy();
    assert_eq!(Verifier::parse(decoy.to_string().as_bytes()), Ok(decoy.clone()));
    assert!(!decoy.matches(b""));
}

#[test]
fn sha256_as_redis_shows_it() {
    let text = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";
    let read = Verifier::parse(text.as_bytes()).expect("a hash");
    assert_eq!(read, Verifier::sha256(b"alice"));
    assert_eq!(read.to_string(), text);
    assert!(read.matches(b"alice") && !read.matches(b"bob") && !read.is_costly());
}

#[test]
fn what_is_not_accepted() {
    const SALT: &str = "c29tZXNhbHRzb21lc2FsdA";
    const HASH: &str = "MTIzNDU2Nzg5MDEyMzQ1NjEyMzQ1Njc4OTAxMjM0NTY";
    let parse = |text: String| Verifier::parse(text.as_bytes());
    assert!(parse(format!("$argon2id$v=19$m=8192,t=2,p=1${SALT}${HASH}")).is_ok());
    for text in [
        "$".to_owned(),
        "$argon2id".to_owned(),
        format!("$argon2i$v=19$m=8192,t=2,p=1${SALT}${HASH}"),
        format!("$argon2id$v=16$m=8192,t=2,p=1${SALT}${HASH}"),
        format!("$argon2id$v=19$m=8192,t=2,p=1${SALT}"),
        format!("$argon2id$v=19$m=8192,t=2,p=1,keyid=AAAA${SALT}${HASH}"),
        format!("$argon2id$v=19$m=262145,t=2,p=1${SALT}${HASH}"),
        format!("$argon2id$v=19$m=8192,t=17,p=1${SALT}${HASH}"),
        format!("$argon2id$v=19$m=8192,t=2,p=17${SALT}${HASH}"),
        format!("$argon2id$v=19$m=8192,t=2,p=1${SALT}${HASH}{}", "A".repeat(VERIFIER_BYTES_MAX)),
    ] {
        assert_eq!(parse(text.clone()), Err(RuleError::Argon2), "{text}");
    }
    assert_eq!(Verifier::parse(b""), Err(RuleError::PasswordHash));
    assert_eq!(Verifier::parse("g".repeat(64).as_bytes()), Err(RuleError::PasswordHash));
}
