//! Sketches: what stands for a request or a response in a history table.
//!
//! A sketch is BLAKE3, cut to the length of its use. Two uses differ in who knows the key:
//!
//! - The sketcher of Prophecy keeps its sketches to itself, so they are keyed with a secret. Nobody without the key can
//!   search for two responses with one sketch, and 128 bits leave a guess a chance of 2^-128. ([`KeyedSketch`])
//! - The replicas of D-Prophecy send their sketches to clients and to each other's clients, and some of them lie: there
//!   is no secret. Finding a collision of `n` bits takes 2^(n/2) steps, so 256 bits give 128 bits of collision
//!   resistance. ([`PublicSketch`])
//!
//! The paper takes SHA-1, 160 bits, which gave 80 bits of collision resistance then and gives fewer now. Requests and
//! responses are hashed under different keys, so that neither can be passed off as the other.

use std::fmt;

/// The sketch of a request or of a response, of so many bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sketch<const BYTES: usize>(pub(crate) [u8; BYTES]);

/// 128 bits, of no use without the key.
pub type KeyedSketch = Sketch<16>;
/// 256 bits, which everybody can compute.
pub type PublicSketch = Sketch<32>;

impl<const BYTES: usize> Sketch<BYTES> {
    fn cut(hash: &blake3::Hash) -> Sketch<BYTES> {
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&hash.as_bytes()[..BYTES]);
        Sketch(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; BYTES] {
        &self.0
    }
}

impl<const BYTES: usize> fmt::Debug for Sketch<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What computes sketches of `BYTES` bytes, at most 32.
#[derive(Clone)]
pub struct Sketching<const BYTES: usize> {
    request_key: [u8; 32],
    response_key: [u8; 32],
    pair_key: [u8; 32],
}

impl<const BYTES: usize> fmt::Debug for Sketching<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sketching")
    }
}

impl Sketching<16> {
    /// With a secret of 32 random bytes.
    pub fn keyed(secret: &[u8; 32]) -> Sketching<16> {
        Sketching::derived(secret)
    }
}

impl Sketching<32> {
    /// Without a secret: every party computes the same.
    pub fn public() -> Sketching<32> {
        Sketching::derived(&[0; 32])
    }
}

impl<const BYTES: usize> Sketching<BYTES> {
    fn derived(secret: &[u8; 32]) -> Sketching<BYTES> {
        const { assert!(BYTES >= 16 && BYTES <= 32, "a sketch has 16 to 32 bytes") }
        Sketching {
            request_key: blake3::derive_key("ensue-prophecy 1 request", secret),
            response_key: blake3::derive_key("ensue-prophecy 1 response", secret),
            pair_key: blake3::derive_key("ensue-prophecy 1 pair", secret),
        }
    }

    /// s(q), of what the protocol handler left of a request.
    pub fn request(&self, canonical: &[u8]) -> Sketch<BYTES> {
        Sketch::cut(&blake3::keyed_hash(&self.request_key, canonical))
    }

    /// s(r), of what the protocol handler left of a response.
    pub fn response(&self, canonical: &[u8]) -> Sketch<BYTES> {
        Sketch::cut(&blake3::keyed_hash(&self.response_key, canonical))
    }

    /// One sketch for a request with one of its responses.
    pub(crate) fn pair(&self, request: &Sketch<BYTES>, response: &Sketch<BYTES>) -> Sketch<BYTES> {
        let mut hasher = blake3::Hasher::new_keyed(&self.pair_key);
        hasher.update(&request.0).update(&response.0);
        Sketch::cut(&hasher.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sketches_depend_on_key_kind_and_every_byte() {
        let (one, other) = (Sketching::keyed(&[1; 32]), Sketching::keyed(&[2; 32]));
        assert_eq!(one.response(b"a"), one.response(b"a"));
        assert_ne!(one.response(b"a"), one.response(b"b"));
        assert_ne!(one.response(b"a"), one.request(b"a"));
        assert_ne!(one.response(b"a"), other.response(b"a"));
        assert_eq!(Sketching::public().request(b"a"), Sketching::public().request(b"a"));
        let (a, b) = (one.request(b"a"), one.response(b"b"));
        assert_ne!(one.pair(&a, &b), one.pair(&b, &a));
    }
}
