//! A session's past as text: what `CAUSAL TOKEN` answers and `CAUSAL MERGE` takes.
//!
//! ```text
//! version u8 = 2 | keyspace u8 | cluster u64 | time u64 | length u32 | causes | seal 16 bytes
//! ```
//!
//! Little endian, then base64url. The seal is the first half of a keyed BLAKE3 of everything before it. Where the
//! cluster has keys for it, nobody else can make a token; any of them is accepted, and the first one seals, so
//! that keys can be replaced one after the other. Without keys the seal finds typing and copying mistakes only. A
//! token of another cluster is known by its name. What a token names is checked before it is used, whoever made
//! it. The causes are the protocol's own bytes: this module does not look into them.

use crate::config::{NodeConfig, TokenKey};
use ensue_types::{Causes, Context, KeyspaceId, LogicalTime, limits};
use thiserror::Error;

const VERSION: u8 = 2;
const HEADER_BYTES: usize = 22;
const SEAL_BYTES: usize = 16;
/// What seals where there are no keys.
const NO_KEY: [u8; 32] = [0; 32];

/// What makes a token one of this cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealing<'a> {
    cluster: u64,
    keys: &'a [TokenKey],
}

impl<'a> Sealing<'a> {
    pub(crate) fn of(config: &'a NodeConfig) -> Sealing<'a> {
        Sealing { cluster: config.cluster as u64, keys: &config.token_keys }
    }

    fn seal(&self, content: &[u8]) -> [u8; SEAL_BYTES] {
        seal(self.keys.first().map_or(&NO_KEY, |key| &key.0), content)
    }

    /// Compares with every key in a time that does not depend on how much of a seal is right.
    fn accepts(&self, content: &[u8], given: &[u8]) -> bool {
        let is_of = |key: &[u8; 32]| {
            let right = seal(key, content);
            right.iter().zip(given).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
        };
        match self.keys {
            [] => is_of(&NO_KEY),
            keys => keys.iter().any(|key| is_of(&key.0)),
        }
    }
}

fn seal(key: &[u8; 32], content: &[u8]) -> [u8; SEAL_BYTES] {
    let hash = blake3::keyed_hash(key, content);
    let mut half = [0; SEAL_BYTES];
    half.copy_from_slice(&hash.as_bytes()[..SEAL_BYTES]);
    half
}

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
    #[error("it is of another cluster")]
    Cluster,
    #[error("its seal does not match: it was changed, or not made with a key of this cluster")]
    Seal,
    #[error("its facts are those of no protocol")]
    Causes,
}

impl Token {
    pub(crate) fn encode(&self, sealing: Sealing<'_>) -> String {
        let causes = self.context.causes.encode();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + causes.len() + SEAL_BYTES);
        bytes.push(VERSION);
        bytes.push(self.keyspace.0);
        bytes.extend_from_slice(&sealing.cluster.to_le_bytes());
        bytes.extend_from_slice(&self.context.time.0.to_le_bytes());
        bytes.extend_from_slice(&(causes.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&causes);
        bytes.extend_from_slice(&sealing.seal(&bytes));
        to_text(&bytes)
    }

    pub(crate) fn decode(text: &[u8], sealing: Sealing<'_>) -> Result<Token, TokenError> {
        if text.len() > limits::TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let bytes = from_text(text)?;
        match bytes.first() {
            Some(&VERSION) if bytes.len() >= HEADER_BYTES + SEAL_BYTES => {}
            Some(&VERSION) | None => return Err(TokenError::Length),
            Some(_) => return Err(TokenError::Version),
        }
        let (content, given) = bytes.split_at(bytes.len() - SEAL_BYTES);
        if content[2..10] != sealing.cluster.to_le_bytes() {
            return Err(TokenError::Cluster);
        }
        if !sealing.accepts(content, given) {
            return Err(TokenError::Seal);
        }
        let (header, causes) = content.split_at(HEADER_BYTES);
        let time = <[u8; 8]>::try_from(&header[10..18]).map_err(|_| TokenError::Length)?;
        let length = <[u8; 4]>::try_from(&header[18..22]).map_err(|_| TokenError::Length)?;
        if u32::from_le_bytes(length) as usize != causes.len() {
            return Err(TokenError::Length);
        }
        let time = LogicalTime(u64::from_le_bytes(time));
        let causes = Causes::decode(causes).map_err(|_| TokenError::Causes)?;
        let context = Context { time, causes };
        Ok(Token { keyspace: KeyspaceId(header[1]), context })
    }
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
