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

    /// The response without what differs between correct replicas, which is what is compared and what clients get.
    fn canonical_response(&self, response: Vec<u8>) -> Vec<u8>;
}

/// Adds a part and its length, so that no two lists of parts make the same bytes.
fn push_part(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u64).to_le_bytes());
    out.extend_from_slice(part);
}
