//! A session's past as text: what `CAUSAL TOKEN` answers and `CAUSAL MERGE` takes.
//!
//! ```text
//! version u8 = 1 | keyspace u8 | time u64 | length u32 | causes | checksum u64        little endian, then base64url
//! ```
//!
//! The checksum, FNV-1a over everything before it, finds typing and copying mistakes; it is no protection against
//! forging. A forged token can make a session wait, or remember too much; what it names is checked before it is used.
//! The causes are the protocol's own bytes: this module does not look into them.

use ensue_types::{Causes, Context, KeyspaceId, LogicalTime, limits};
use thiserror::Error;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 14;
const CHECKSUM_BYTES: usize = 8;

/// A past within one keyspace, on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) context: Context,
}

/// Why a text is no token.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum TokenError {
    #[error("longer than {} bytes", limits::TOKEN_BYTES_MAX)]
    TooLong,
    #[error("a character that no token has")]
    Character,
    #[error("cut short, or with something added")]
    Length,
    #[error("a version that this server does not know")]
    Version,
    #[error("the checksum does not match")]
    Checksum,
    #[error("its facts are those of no protocol")]
    Causes,
}

impl Token {
    pub(crate) fn encode(&self) -> String {
        let causes = self.context.causes.encode();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + causes.len() + CHECKSUM_BYTES);
        bytes.push(VERSION);
        bytes.push(self.keyspace.0);
        bytes.extend_from_slice(&self.context.time.0.to_le_bytes());
        bytes.extend_from_slice(&(causes.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&causes);
        bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
        to_text(&bytes)
    }

    pub(crate) fn decode(text: &[u8]) -> Result<Token, TokenError> {
        if text.len() > limits::TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let bytes = from_text(text)?;
        if bytes.len() < HEADER_BYTES + CHECKSUM_BYTES {
            return Err(TokenError::Length);
        }
        if bytes[0] != VERSION {
            return Err(TokenError::Version);
        }
        let (content, sum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        if checksum(content).to_le_bytes() != sum {
            return Err(TokenError::Checksum);
        }
        let (header, causes) = content.split_at(HEADER_BYTES);
        let time = <[u8; 8]>::try_from(&header[2..10]).map_err(|_| TokenError::Length)?;
        let length = <[u8; 4]>::try_from(&header[10..14]).map_err(|_| TokenError::Length)?;
        if u32::from_le_bytes(length) as usize != causes.len() {
            return Err(TokenError::Length);
        }
        let time = LogicalTime(u64::from_le_bytes(time));
        let causes = Causes::decode(causes).map_err(|_| TokenError::Causes)?;
        let context = Context { time, causes };
        Ok(Token { keyspace: KeyspaceId(header[1]), context })
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn to_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(group);
        for place in 0..=chunk.len() {
            let index = bits >> (18 - 6 * place) & 0x3f;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    text
}

fn from_text(text: &[u8]) -> Result<Vec<u8>, TokenError> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.chunks(4) {
        if chunk.len() == 1 {
            return Err(TokenError::Length);
        }
        let mut bits: u32 = 0;
        for (place, &character) in chunk.iter().enumerate() {
            bits |= value_of(character).ok_or(TokenError::Character)? << (18 - 6 * place);
        }
        let whole = chunk.len() - 1;
        let group = bits.to_be_bytes();
        // Bits beyond the last whole byte would make two texts of one token.
        if group[1 + whole..].iter().any(|&rest| rest != 0) {
            return Err(TokenError::Character);
        }
        bytes.extend_from_slice(&group[1..=whole]);
    }
    Ok(bytes)
}

fn value_of(character: u8) -> Option<u32> {
    Some(u32::from(match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    }))
}
