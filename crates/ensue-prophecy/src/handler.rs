//! Protocol handlers: what the sketcher has to know of a request and a response (section 3.3.1).
//!
//! A handler says whether a request only reads, and brings requests and responses into a canonical form from which
//! sketches are made. The body is never looked into.
//!
//! What a handler removes from a response is removed from what the client gets, too. The paper's handler removes the
//! date for the sketch only; but what is not compared could be anything a lying replica likes, so it is not returned.
//! And a canonical request holds everything that the response may depend on: if two users' requests had one sketch, a
//! lying replica could answer one with the page of the other, and the history table would agree.

pub mod http;
pub mod redis;

use crate::table::List;

/// What a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspected {
    /// It reads and changes nothing, and its response depends on the service's state and on these bytes only.
    Read {
        /// What s(q) is computed of. Two different reads have different bytes.
        canonical: Vec<u8>,
    },
    /// It writes, or may: it is executed by every replica, in one order.
    Write,
}

/// Why a request cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It is not a request of the protocol, or not a whole one, or more than one.
    #[error("not one whole request: {0}")]
    Malformed(&'static str),
    /// It changes the state of a connection, and the connections to replicas are shared.
    #[error("`{0}` changes the state of a connection, which clients of a sketcher do not have")]
    ConnectionState(String),
    /// Correct replicas give different replies to it.
    #[error("the replies to `{0}` differ from replica to replica")]
    Differs(String),
    /// It would leave correct replicas in different states.
    #[error(
        "what `{0}` does depends on the time or on chance, and replicas would be in different states after it"
    )]
    Diverges(String),
    /// It may block, is of an operator, or is not known to be safe.
    #[error("`{0}` is none of the commands that can be served here")]
    NotServed(String),
    /// It is longer than a request may be.
    #[error("a request of {0} bytes is longer than {max}", max = crate::limits::REQUEST_BYTES_MAX)]
    TooLong(usize),
}

/// A protocol.
pub trait Handler {
    /// What this request is.
    fn inspect(&self, request: &[u8]) -> Result<Inspected, RequestError>;

    /// Which list an operator put a read on, by its canonical form.
    fn listed(&self, _canonical: &[u8]) -> List {
        List::Neither
    }

    /// The response without what differs between correct replicas, which is what is compared and what clients get.
    fn canonical_response(&self, response: Vec<u8>) -> Vec<u8>;
}

/// The first words of a read, by its canonical form, with a space between them: method and target of HTTP come first,
/// and the words of a command are all that there is.
pub fn words(canonical: &[u8], count: usize) -> Vec<u8> {
    let mut words = Vec::new();
    let mut rest = canonical;
    for place in 0..count {
        let Some((length, after)) = rest.split_first_chunk() else { break };
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (word, after) = after.split_at(length.min(after.len()));
        words.extend_from_slice(if place == 0 { b"" } else { b" " });
        words.extend_from_slice(word);
        rest = after;
    }
    words
}

/// Adds a part and its length, so that no two lists of parts make the same bytes.
fn push_part(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u64).to_le_bytes());
    out.extend_from_slice(part);
}
