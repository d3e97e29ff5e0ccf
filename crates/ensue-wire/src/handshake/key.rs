//! Keys that two datacenters share, and what one handshake derives from them.
//!
//! Everything is a keyed BLAKE3 of both hellos, nonces and names included, under a label that says what it is for: the
//! proof of either side, and the key of either direction. So a proof is worth nothing on another connection, in the
//! other direction, or for another name, and each connection has frame keys of its own. Where there is no secret the
//! key is a constant that everybody knows: the same steps are taken, and prove nothing.

use super::{HELLO_BYTES, Hello};
use crate::frame::{FrameKey, equal};
use std::fmt;

/// Bytes of a proof.
pub const PROOF_BYTES: usize = 32;

/// What two datacenters share, or the nodes of one, and nobody else has. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey([u8; 32]);

impl SharedKey {
    /// Of a cluster without a secret.
    pub const PUBLIC: SharedKey = SharedKey([0; 32]);

    /// Nothing if it is the key of clusters without a secret.
    pub fn new(bytes: [u8; 32]) -> Option<SharedKey> {
        Some(SharedKey(bytes)).filter(|key| *key != SharedKey::PUBLIC)
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey(hidden)")
    }
}

/// Who began the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Dialler,
    Accepter,
}

/// What one connection derives from its key.
#[derive(Clone, Debug)]
pub(super) struct Derived {
    pub(super) our_proof: Proof,
    pub(super) their_proof: Proof,
    pub(super) sealing: FrameKey,
    pub(super) opening: FrameKey,
}

/// Shows that its sender has the key. Compared in constant time and never printed.
#[derive(Clone)]
pub(super) struct Proof(pub(super) [u8; PROOF_BYTES]);

impl Proof {
    pub(super) fn is(&self, shown: &[u8; PROOF_BYTES]) -> bool {
        equal(&self.0, shown)
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proof(hidden)")
    }
}

/// The labels all have one length, so that no input of one is an input of another.
const DIALLER_PROVES: &[u8; 24] = b"ensue 1: dialler proves ";
const ACCEPTER_PROVES: &[u8; 24] = b"ensue 1: accepter proves";
const FROM_DIALLER: &[u8; 24] = b"ensue 1: from dialler   ";
const FROM_ACCEPTER: &[u8; 24] = b"ensue 1: from accepter  ";

pub(super) fn derive(key: &SharedKey, side: Side, ours: &Hello, theirs: &Hello) -> Derived {
    let (dialler, accepter) = match side {
        Side::Dialler => (ours.encode(), theirs.encode()),
        Side::Accepter => (theirs.encode(), ours.encode()),
    };
    let make = |label| keyed(key, label, &dialler, &accepter);
    let (our_label, their_label, sealing, opening) = match side {
        Side::Dialler => (DIALLER_PROVES, ACCEPTER_PROVES, FROM_DIALLER, FROM_ACCEPTER),
        Side::Accepter => (ACCEPTER_PROVES, DIALLER_PROVES, FROM_ACCEPTER, FROM_DIALLER),
    };
    Derived {
        our_proof: Proof(make(our_label)),
        their_proof: Proof(make(their_label)),
        sealing: FrameKey(make(sealing)),
        opening: FrameKey(make(opening)),
    }
}

fn keyed(
    key: &SharedKey,
    label: &[u8],
    dialler: &[u8; HELLO_BYTES],
    accepter: &[u8; HELLO_BYTES],
) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(&key.0);
    hasher.update(label).update(dialler).update(accepter);
    *hasher.finalize().as_bytes()
}
