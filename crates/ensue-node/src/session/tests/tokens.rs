//! Tokens as text.

use super::*;
use crate::session::causal::token::{Token, TokenError};
use ensue_types::{Causes, KeyspaceId, Opaque, limits};

fn token(length: usize) -> Token {
    let bytes: Vec<u8> = (0..length).map(|index| (99 + index * 37) as u8).collect();
    let causes = if bytes.is_empty() { Causes::Nothing } else { Causes::Extension(Opaque(bytes)) };
    Token { keyspace: KeyspaceId(3), context: Context { time: LogicalTime(u64::MAX - 5), causes } }
}

#[test]
fn every_length_survives_the_text() {
    for length in 0..70 {
        let text = token(length).encode();
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
        assert_eq!(Token::decode(text.as_bytes()), Ok(token(length)));
    }
}

#[test]
fn every_changed_or_missing_character_is_found() {
    let text = token(14).encode();
    for at in 0..text.len() {
        for other in *b"A9-_z" {
            let mut changed = text.clone().into_bytes();
            if changed[at] != other {
                changed[at] = other;
                assert!(Token::decode(&changed).is_err());
            }
        }
        assert!(Token::decode(&text.as_bytes()[..at]).is_err());
    }
}

#[test]
fn what_is_no_token_is_named() {
    assert_eq!(Token::decode(b""), Err(TokenError::Length));
    assert_eq!(Token::decode(b"*"), Err(TokenError::Length));
    assert_eq!(Token::decode(b"ab*d"), Err(TokenError::Character));
    assert_eq!(Token::decode(&vec![b'A'; 1 << 20]), Err(TokenError::TooLong));
    assert_eq!(Token::decode(&[b'A'; 64]), Err(TokenError::Version));
}

#[test]
fn the_longest_token_is_read() {
    // Header, checksum and this are three quarters of the characters.
    let longest = limits::TOKEN_BYTES_MAX / 4 * 3 - 22;
    let text = token(longest).encode();
    assert_eq!(text.len(), limits::TOKEN_BYTES_MAX);
    assert_eq!(Token::decode(text.as_bytes()), Ok(token(longest)));
    let text = token(longest + 1).encode();
    assert_eq!(Token::decode(text.as_bytes()), Err(TokenError::TooLong));
}
