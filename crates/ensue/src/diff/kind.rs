//! The types of values, and the commands that read each.

use crate::import::target::{Words, words};
use bytes::Bytes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Hash,
    Set,
    SortedSet,
    List,
    Stream,
    BoundedCounter,
    /// What only its server knows, such as a type of a module.
    Other(String),
}

impl Kind {
    /// By the answer to `TYPE`; nothing for a key that is missing.
    pub(crate) fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "none" => return None,
            "string" => Kind::String,
            "hash" => Kind::Hash,
            "set" => Kind::Set,
            "zset" => Kind::SortedSet,
            "list" => Kind::List,
            "stream" => Kind::Stream,
            "bcounter" => Kind::BoundedCounter,
            other => Kind::Other(other.into()),
        })
    }

    /// As people call it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Kind::String => "string",
            Kind::Hash => "hash",
            Kind::Set => "set",
            Kind::SortedSet => "sorted set",
            Kind::List => "list",
            Kind::Stream => "stream",
            Kind::BoundedCounter => "bounded counter",
            Kind::Other(name) => name,
        }
    }

    /// What asks for the number of bytes or elements; nothing for what is always read whole.
    pub(crate) fn size(&self, key: &Bytes) -> Option<Words> {
        let question = match self {
            Kind::String => "STRLEN",
            Kind::Hash => "HLEN",
            Kind::Set => "SCARD",
            Kind::SortedSet => "ZCARD",
            Kind::List => "LLEN",
            Kind::Stream => "XLEN",
            Kind::BoundedCounter | Kind::Other(_) => return None,
        };
        Some(words![question, key.clone()])
    }

    /// Whether there is a number of elements to go by.
    pub(crate) fn has_size(&self) -> bool {
        !matches!(self, Kind::BoundedCounter | Kind::Other(_))
    }

    /// What reads it whole.
    pub(crate) fn whole(&self, key: &Bytes) -> Words {
        let key = key.clone();
        match self {
            Kind::String => words!["GET", key],
            Kind::Hash => words!["HGETALL", key],
            Kind::Set => words!["SMEMBERS", key],
            Kind::SortedSet => words!["ZRANGE", key, "0", "-1", "WITHSCORES"],
            Kind::List => words!["LRANGE", key, "0", "-1"],
            Kind::Stream => words!["XRANGE", key, "-", "+"],
            Kind::BoundedCounter => words!["BGET", key],
            Kind::Other(_) => words!["DUMP", key],
        }
    }

    /// Whether it is read by steps of a cursor, which may return an element twice and know no order.
    pub(crate) fn has_cursor(&self) -> bool {
        matches!(self, Kind::Hash | Kind::Set | Kind::SortedSet)
    }
}
