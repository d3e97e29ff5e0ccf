//! Between nodes: one message enum, frames, codec and handshake.
//!
//! Bytes of a connection arrive, envelopes leave, and the other way round. Only this crate and `ensue-store` know the
//! byte layouts of our own formats. It promises that no bytes make it panic or reserve memory that they do not fill,
//! and that each message has one encoding. It opens no socket and decides nothing: what to do about a bad peer is the
//! caller's.

pub mod codec;
pub mod error;
pub mod frame;
pub mod handshake;
pub mod limits;
pub mod message;
mod unsendable;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use codec::{WIRE_VERSION, WIRE_VERSION_MAX, WIRE_VERSION_MIN, decode, encode};
pub use error::{Damaged, Excess, Malformed, Unsendable, WireError};
pub use frame::{FRAME_HEADER_BYTES, FrameKey, FrameReader, FrameWriter};
pub use handshake::{
    CoreName, Differences, FLAG_SECRET, Foreign, HELLO_BYTES, Handshake, HandshakeError, Hello, Identity,
    Joined, Keys, MAGIC, NONCE_BYTES, SETTINGS_BYTES_MAX, Scope, Setting, Settings, SharedKey, Speaker,
    VersionRange, cluster_hash, negotiate, negotiate_dialled,
};
pub use message::{
    Address, AtValues, ChannelKind, ContextName, CoreQuery, Decision, Envelope, FirstValues, HomeOutcome,
    HomeRequest, Interest, Introduction, Message, PeerStage, SnapshotOutcome, StreamAcknowledge,
};
pub use unsendable::Instead;
