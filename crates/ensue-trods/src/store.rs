//! Operations of TRODS-KV on a store that speaks the Redis protocol (section IV-A).
//!
//! A connection is a hash, and each of its exchanges is a field. A field is only ever written once: of two servers that
//! both believe to serve a connection, the first one decides what its client sees, and the second one adopts it.

use crate::limits::RECORD_EXPIRY_SECONDS;
use crate::packet::Endpoint;
use crate::seq::Seq;

/// Ties an outcome to the operation that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A connection: its two ends, as the client knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The client.
    pub client: Endpoint,
    /// The service's address and port.
    pub service: Endpoint,
}

/// An operation on the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOp {
    /// Read all records of a connection.
    Get {
        /// The connection.
        key: Key,
    },
    /// Save a record, unless the exchange has one already, which is then returned.
    Put {
        /// The connection.
        key: Key,
        /// The sequence number of the request, which names the exchange.
        exchange: Seq,
        /// The encoded record.
        record: Vec<u8>,
    },
    /// Delete the record of an exchange.
    Delete {
        /// The connection.
        key: Key,
        /// The sequence number of the request.
        exchange: Seq,
    },
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// The records of a connection.
    Found(Vec<Vec<u8>>),
    /// The record is saved.
    Stored,
    /// Another server saved this record of the exchange before.
    Exists(Vec<u8>),
    /// The record is deleted.
    Deleted,
    /// The store cannot be reached.
    Failed,
}

impl Key {
    /// The key of the connection's hash in the store.
    #[must_use]
    pub fn name(&self) -> Vec<u8> {
        format!("trods:{}:{}", self.service, self.client).into_bytes()
    }
}

impl StoreOp {
    /// The connection that the operation is about.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::Get { key } | Self::Put { key, .. } | Self::Delete { key, .. } => *key,
        }
    }

    /// The commands of the Redis protocol that carry the operation out, to be sent as one pipeline: one round trip.
    ///
    /// Of `Put`, the answer 1 of the first is [`StoreOutcome::Stored`], and otherwise the second one's answer is what
    /// [`StoreOutcome::Exists`] holds.
    #[must_use]
    pub fn commands(&self) -> Vec<Vec<Vec<u8>>> {
        let field = |exchange: &Seq| exchange.0.to_string().into_bytes();
        let word = |text: &str| text.as_bytes().to_vec();
        match self {
            Self::Get { key } => vec![vec![word("HVALS"), key.name()]],
            Self::Put { key, exchange, record } => vec![
                vec![word("HSETNX"), key.name(), field(exchange), record.clone()],
                vec![word("HGET"), key.name(), field(exchange)],
                vec![word("EXPIRE"), key.name(), RECORD_EXPIRY_SECONDS.to_string().into_bytes()],
            ],
            Self::Delete { key, exchange } => vec![vec![word("HDEL"), key.name(), field(exchange)]],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn operations_are_commands() {
        let end = |last, port| Endpoint { address: Ipv4Addr::new(10, 0, 0, last), port };
        let key = Key { client: end(9, 4000), service: end(1, 80) };
        let text = |op: StoreOp| {
            let lines = op.commands().into_iter().map(|words| {
                words
                    .iter()
                    .map(|word| String::from_utf8_lossy(word).into_owned())
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            lines.collect::<Vec<_>>().join("; ")
        };
        let put = StoreOp::Put { key, exchange: Seq(7), record: b"r".to_vec() };
        let name = "trods:10.0.0.1:80:10.0.0.9:4000";
        assert_eq!(text(put), format!("HSETNX {name} 7 r; HGET {name} 7; EXPIRE {name} 3600"));
        assert_eq!(text(StoreOp::Get { key }), format!("HVALS {name}"));
        assert_eq!(text(StoreOp::Delete { key, exchange: Seq(7) }), format!("HDEL {name} 7"));
    }
}
