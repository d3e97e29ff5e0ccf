//! Tokens as text.

use super::*;
use crate::TokenKey;
use crate::session::causal::token::{Sealing, Token, TokenError};
use ensue_types::{Causes, KeyspaceId, Opaque, limits};

fn token(length: usize) -> Token {
    let bytes: Vec<u8> = (0..length).map(|index| (99 + index * 37) as u8).collect();
    let causes = if bytes.is_empty() { Causes::Nothing } else { Causes::Extension(Opaque(bytes)) };
    Token { keyspace: KeyspaceId(3), context: Context { time: LogicalTime(u64::MAX - 5), causes } }
}

fn decode(text: &[u8]) -> Result<Token, TokenError> {
    Token::decode(text, Sealing::of(&config()))
}

#[test]
fn every_length_survives_the_text() {
    for length in 0..70 {
        let text = token(length).encode(Sealing::of(&config()));
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
        assert_eq!(decode(text.as_bytes()), Ok(token(length)));
    }
}

#[test]
fn every_changed_or_missing_character_is_found() {
    let text = token(14).encode(Sealing::of(&config()));
    for at in 0..text.len() {
        for other in *b"A9-_z" {
            let mut changed = text.clone().into_bytes();
            if changed[at] != other {
                changed[at] = other;
                assert!(decode(&changed).is_err());
            }
        }
        assert!(decode(&text.as_bytes()[..at]).is_err());
    }
}

#[test]
fn what_is_no_token_is_named() {
    assert_eq!(decode(b""), Err(TokenError::Length));
    assert_eq!(decode(b"*"), Err(TokenError::Length));
    assert_eq!(decode(b"AgAA"), Err(TokenError::Length));
    assert_eq!(decode(b"ab*d"), Err(TokenError::Character));
    assert_eq!(decode(&vec![b'A'; 1 << 20]), Err(TokenError::TooLong));
    assert_eq!(decode(&[b'A'; 64]), Err(TokenError::Version));
}

#[test]
fn the_longest_token_is_read() {
    // Header, seal and this are three quarters of the characters.
    let longest = limits::TOKEN_BYTES_MAX / 4 * 3 - 38;
    let text = token(longest).encode(Sealing::of(&config()));
    assert_eq!(text.len(), limits::TOKEN_BYTES_MAX);
    assert_eq!(decode(text.as_bytes()), Ok(token(longest)));
    let text = token(longest + 1).encode(Sealing::of(&config()));
    assert_eq!(decode(text.as_bytes()), Err(TokenError::TooLong));
}

#[test]
fn a_token_is_of_its_cluster_and_of_whoever_has_a_key() {
    let with = |keys: &[u8]| NodeConfig {
        token_keys: keys.iter().map(|&byte| TokenKey([byte; 32])).collect(),
        ..config()
    };
    let (none, old, both, new) = (with(&[]), with(&[1]), with(&[2, 1]), with(&[2]));
    let made = |by: &NodeConfig| token(5).encode(Sealing::of(by));
    let read = |text: &str, by: &NodeConfig| Token::decode(text.as_bytes(), Sealing::of(by)).err();
    assert_eq!(read(&made(&old), &old), None);
    // A key is replaced without a moment in which a token is refused.
    assert_eq!(
        (read(&made(&old), &both), read(&made(&both), &both), read(&made(&both), &new)),
        (None, None, None)
    );
    assert_eq!(read(&made(&old), &new), Some(TokenError::Seal));
    assert_eq!(read(&made(&none), &old), Some(TokenError::Seal), "nobody without a key can make one");
    assert_eq!(read(&made(&old), &none), Some(TokenError::Seal));
    let elsewhere = NodeConfig { cluster: 99, ..with(&[1]) };
    assert_eq!(read(&made(&elsewhere), &old), Some(TokenError::Cluster));
}
