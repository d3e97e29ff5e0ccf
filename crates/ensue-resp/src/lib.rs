//! The Redis protocol as pure functions: bytes to commands, commands to typed requests, answers to bytes.
//!
//! What a client sent arrives as bytes in a buffer, however it was cut; what leaves is a [`Request`] for the owner of
//! a key, or the bytes of a [`Reply`](ensue_types::Reply). The same bytes give the same result in every datacenter,
//! and no bytes make it panic. It deliberately opens no socket, reads no clock, and knows no store: it decides what a
//! command says and never what it does.

pub mod category;
pub mod command;
pub mod decode;
pub mod describe;
pub mod encode;
pub mod error;
pub mod glob;
pub mod number;
pub mod parse;
pub mod request;

pub use command::{
    AS_USER, Access, Combine, CommandSpec, Flags, Route, SortOption, TABLE, check_arity, key_accesses,
    key_patterns, key_places, keys, lookup, script_keys, unplaced_keys,
};
pub use decode::{Decoder, decode};
pub use encode::{ProtocolVersion, encode};
pub use error::{CommandError, ParseError};
pub use parse::{ParseLimits, Parser, is_cross_protocol};
pub use request::Request;
