//! What may stand on a line, field by field.

use serde::de::{self, Deserialize, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A line of either kind; which one it is shows in `event`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line<'a> {
    #[serde(borrow, default)]
    pub event: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub session: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub transaction: Option<Text<'a>>,
    /// A token that was handed out after this transaction, by which `merges` may name it.
    #[serde(borrow, default)]
    pub token: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub merges: Vec<Text<'a>>,
    #[serde(borrow, default)]
    pub datacenter: Option<Text<'a>>,
    #[serde(default)]
    pub start: Option<u64>,
    #[serde(default, deserialize_with = "stated")]
    pub end: Option<Option<u64>>,
    #[serde(borrow, default)]
    pub status: Option<Text<'a>>,
    #[serde(default, rename = "final")]
    pub is_final: bool,
    #[serde(borrow, default)]
    pub operations: Vec<Step<'a>>,
    /// Of the event `history`.
    #[serde(default)]
    pub version: Option<u64>,
    /// Of the event `end`.
    #[serde(default)]
    pub transactions: Option<u64>,
    /// Of the event `left-out`.
    #[serde(borrow, default)]
    pub key: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub reason: Option<Text<'a>>,
}

/// An operation: one of the ten words, and what belongs to it.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step<'a> {
    #[serde(borrow, default)]
    pub read: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub write: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub add: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub count: Option<Text<'a>>,
    /// The old name of a key; the new one is `to`.
    #[serde(borrow, default)]
    pub rename: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub to: Option<Text<'a>>,
    /// The number of a keyspace, or `all`.
    #[serde(borrow, default)]
    pub flush: Option<Text<'a>>,
    /// A row that was read whole: the reads beside it say what it held.
    #[serde(borrow, default)]
    pub row: Option<Text<'a>>,
    /// Of a queue, with an element as `value`.
    #[serde(borrow, default)]
    pub push: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub pop: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub hold: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "stated")]
    pub value: Option<Option<Text<'a>>>,
    #[serde(borrow, default, deserialize_with = "stated")]
    pub version: Option<Option<Text<'a>>>,
    #[serde(default)]
    pub delta: Option<i64>,
}

/// Text, or an integer that is taken as its digits.
#[derive(Debug)]
pub(super) struct Text<'a>(pub Cow<'a, str>);

/// A field that stands there, `null` or not, told apart from one that is missing.
fn stated<'de, T: Deserialize<'de>, D: Deserializer<'de>>(input: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(input).map(Some)
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Text<'a>, D::Error> {
        input.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or an integer")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.into())))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }
}
