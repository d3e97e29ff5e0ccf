//! Elements of values without an order: one side's, looked up on the other.

use super::{cut, of_two};
use crate::diff::answer::{self, unexpected};
use crate::diff::kind::Kind;
use crate::import::target::{Words, words};
use bytes::Bytes;
use ensue_client::Reply;

/// A field with its value, a member, or a member with its score.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Element {
    pub(super) name: Bytes,
    /// Nothing for a member of a set.
    value: Bytes,
}

/// The elements in a page.
pub(super) fn of_page(kind: &Kind, page: &Reply) -> Result<Vec<Element>, String> {
    let texts = answer::texts(page)?;
    let pair = |pair: &[Bytes]| Element { name: pair[0].clone(), value: pair[1].clone() };
    Ok(match kind {
        Kind::Set => texts.into_iter().map(|name| Element { name, value: Bytes::new() }).collect(),
        _ => texts.chunks_exact(2).map(pair).collect(),
    })
}

impl Element {
    /// What asks a side for the element of this name.
    pub(super) fn question(&self, kind: &Kind, key: &Bytes) -> Words {
        let question = match kind {
            Kind::Hash => "HGET",
            Kind::Set => "SISMEMBER",
            _ => "ZSCORE",
        };
        words![question, key.clone(), self.name.clone()]
    }

    /// What was answered to that; nothing if there is no such element.
    pub(super) fn answered(kind: &Kind, name: &Bytes, reply: &Reply) -> Result<Option<Element>, String> {
        let value = match (kind, reply) {
            (_, Reply::Nil) => return Ok(None),
            (Kind::Set, Reply::Integer(0)) => return Ok(None),
            (Kind::Set, Reply::Integer(_)) => Bytes::new(),
            (_, Reply::Bulk(value)) => value.clone(),
            (_, other) => return Err(unexpected(other)),
        };
        Ok(Some(Element { name: name.clone(), value }))
    }
}

/// In what the two sides differ.
pub(super) fn difference(kind: &Kind, left: Option<&Element>, right: Option<&Element>) -> Option<String> {
    let name = cut(&left.or(right)?.name);
    let value = |element: Option<&Element>| element.map(|element| element.value.clone());
    let (left, right) = (value(left), value(right));
    match kind {
        Kind::Hash => of_two(&format!("field {name}"), left.as_ref(), right.as_ref()),
        Kind::Set => match (left, right) {
            (Some(_), None) => Some(format!("member {name} is only left")),
            (None, Some(_)) => Some(format!("member {name} is only right")),
            _ => None,
        },
        _ => {
            let score = |text: &Option<Bytes>| text.as_ref().and_then(|text| answer::score(text));
            match (score(&left), score(&right)) {
                (Some(left), Some(right)) if left.to_bits() == right.to_bits() => None,
                (Some(left), Some(right)) => Some(format!("member {name}: score {left} left, {right} right")),
                (Some(left), None) => Some(format!("member {name} is only left, with score {left}")),
                (None, Some(right)) => Some(format!("member {name} is only right, with score {right}")),
                (None, None) => None,
            }
        }
    }
}

#[cfg(test)]
mod tests;
