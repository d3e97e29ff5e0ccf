//! Values as a whole, as they stand in dumps and files.

use crate::stream::Stream;
use bytes::Bytes;
use ensue_types::Score;

/// A value of a type that a dump of Ensue can hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(Bytes),
    List(Vec<Bytes>),
    Set(Vec<Bytes>),
    Hash(Vec<(Bytes, Bytes)>),
    /// A hash some of whose fields have a deadline, in milliseconds since 1970.
    DatedHash(Vec<Dated>),
    Sorted(Vec<(Score, Bytes)>),
}

/// A field, its value and its deadline.
pub type Dated = (Bytes, Bytes, Option<u64>);

/// What a key of a file has.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Value(Value),
    Stream(Stream),
    /// A hash some of whose fields have a deadline.
    Expiring(Vec<ExpiringField>),
    /// A value of a module, which was read past.
    Module {
        name: String,
    },
}

/// A field of a hash with its deadline, if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiringField {
    pub name: Bytes,
    pub value: Bytes,
    pub deadline_ms: Option<u64>,
}

impl ExpiringField {
    /// The same as a dump has it.
    pub(crate) fn into_dated(self) -> Dated {
        (self.name, self.value, self.deadline_ms)
    }
}

impl Content {
    /// The name of the type, as `TYPE` answers it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Content::Value(Value::Text(_)) => "string",
            Content::Value(Value::List(_)) => "list",
            Content::Value(Value::Set(_)) => "set",
            Content::Value(Value::Hash(_) | Value::DatedHash(_)) | Content::Expiring(_) => "hash",
            Content::Value(Value::Sorted(_)) => "zset",
            Content::Stream(_) => "stream",
            Content::Module { .. } => "module",
        }
    }

    /// About the bytes that its elements take.
    pub fn bytes(&self) -> usize {
        match self {
            Content::Value(Value::Text(text)) => text.len(),
            Content::Value(Value::List(texts) | Value::Set(texts)) => texts.iter().map(Bytes::len).sum(),
            Content::Value(Value::Hash(pairs)) => {
                pairs.iter().map(|(name, value)| name.len() + value.len()).sum()
            }
            Content::Value(Value::DatedHash(fields)) => {
                fields.iter().map(|(name, value, _)| name.len() + value.len()).sum()
            }
            Content::Value(Value::Sorted(members)) => {
                members.iter().map(|(_, name)| name.len() + size_of::<Score>()).sum()
            }
            Content::Expiring(fields) => {
                fields.iter().map(|field| field.name.len() + field.value.len()).sum()
            }
            Content::Stream(stream) => stream.bytes(),
            Content::Module { .. } => 0,
        }
    }
}
