//! A value that is read, folded into a digest answer by answer: no answer is kept.

use super::answer::{self, unexpected};
use super::digest::{Digest, Secret, Sequence, Sum, slices};
use super::hyperloglog;
use super::kind::Kind;
use bytes::Bytes;
use ensue_client::Reply;

/// What a string begins with in its digest, by what it is taken for.
const PLAIN: [u8; 1] = [0];
const REGISTERS: [u8; 1] = [1];

pub(crate) struct Fold {
    kind: Kind,
    secret: Secret,
    sequence: Sequence,
    sum: Sum,
    /// Elements, or bytes of a string.
    elements: u64,
    is_gone: bool,
    /// The fields of a hash since they were taken.
    names: Vec<Bytes>,
    field_deadlines: Sum,
}

impl Fold {
    pub(crate) fn new(kind: Kind, secret: &Secret) -> Fold {
        let mut sequence = Sequence::new(secret);
        if kind == Kind::String {
            sequence.extend(&PLAIN);
        }
        Fold {
            kind,
            secret: secret.clone(),
            sequence,
            sum: Sum::new(secret),
            elements: 0,
            is_gone: false,
            names: Vec::new(),
            field_deadlines: Sum::new(secret),
        }
    }

    /// Adds a whole value, or the page of one that follows those before it.
    pub(crate) fn add(&mut self, reply: &Reply) -> Result<(), String> {
        match (&self.kind, reply) {
            (_, Reply::Error(words)) => return Err(words.to_string()),
            (_, Reply::Nil | Reply::NilArray) => self.is_gone = true,
            (Kind::String, Reply::Bulk(bytes)) => {
                self.sequence.extend(bytes);
                self.elements += bytes.len() as u64;
            }
            (Kind::String, other) => return Err(unexpected(other)),
            (Kind::Hash, page) => {
                let texts = answer::texts(page)?;
                for pair in texts.chunks_exact(2) {
                    self.sum.add(&slices(pair));
                    self.names.push(pair[0].clone());
                }
                self.elements += texts.len() as u64 / 2;
            }
            (Kind::Set, page) => {
                let members = answer::texts(page)?;
                members.iter().for_each(|member| self.sum.add(&[member]));
                self.elements += members.len() as u64;
            }
            (Kind::SortedSet, page) => {
                for pair in answer::texts(page)?.chunks_exact(2) {
                    let score = answer::score(&pair[1]).ok_or_else(|| unexpected(page))?;
                    self.sum.add(&[&pair[0], &score.to_bits().to_le_bytes()]);
                    self.elements += 1;
                }
            }
            (Kind::List, page) => {
                let elements = answer::texts(page)?;
                elements.iter().for_each(|element| self.sequence.add(&[element]));
                self.elements += elements.len() as u64;
            }
            (Kind::Stream, page) => {
                for reply in answer::list(page)? {
                    let (id, fields) = answer::entry(reply)?;
                    self.sequence.add(&[&id]);
                    self.sequence.add(&slices(&fields));
                    self.elements += 1;
                }
            }
            (Kind::BoundedCounter, reply) => {
                self.sequence.add(&[&answer::text(reply).ok_or_else(|| unexpected(reply))?]);
            }
            (Kind::Other(_), reply) => {
                let dump = answer::text(reply).ok_or_else(|| unexpected(reply))?;
                // The version of the format and a checksum stand at the end.
                self.sequence.add(&[&dump[..dump.len().saturating_sub(DUMP_END_BYTES)]]);
            }
        }
        Ok(())
    }

    /// Adds a string that is read whole: a HyperLogLog by its registers, whatever their layout.
    pub(crate) fn add_whole(&mut self, reply: &Reply) -> Result<(), String> {
        match (&self.kind, reply) {
            (Kind::String, Reply::Bulk(bytes)) => match hyperloglog::registers(bytes) {
                Some(registers) => {
                    self.sequence = Sequence::new(&self.secret);
                    self.sequence.extend(&REGISTERS);
                    self.sequence.extend(&registers);
                    self.elements = bytes.len() as u64;
                    Ok(())
                }
                None => self.add(reply),
            },
            _ => self.add(reply),
        }
    }

    /// Adds what a stream has besides its entries.
    pub(crate) fn add_about(&mut self, about: &Reply) -> Result<(), String> {
        let last = answer::field(about, "last-generated-id").and_then(answer::text);
        self.sequence.add(&[b"last", &last.ok_or_else(|| unexpected(about))?]);
        Ok(())
    }

    /// Adds the groups of a stream, in any order.
    pub(crate) fn add_groups(&mut self, groups: &Reply) -> Result<(), String> {
        for group in answer::list(groups)? {
            let part = |name| answer::field(group, name).and_then(answer::text);
            let parts: Option<Vec<Bytes>> =
                ["name", "last-delivered-id", "pending"].map(part).into_iter().collect();
            self.sum.add(&slices(&parts.ok_or_else(|| unexpected(group))?));
        }
        Ok(())
    }

    /// The fields that were added since this was called last.
    pub(crate) fn take_names(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.names)
    }

    /// Adds the deadlines of these fields.
    pub(crate) fn add_field_deadlines(&mut self, names: &[Bytes], deadlines: &Reply) -> Result<(), String> {
        for (name, deadline) in names.iter().zip(answer::list(deadlines)?) {
            let deadline_ms = answer::integer(deadline)?;
            if deadline_ms >= 0 {
                self.field_deadlines.add(&[name, &deadline_ms.to_le_bytes()]);
            }
        }
        Ok(())
    }

    pub(crate) fn elements(&self) -> u64 {
        self.elements
    }

    /// Whether there is no such key any more: a row without elements is none, but for a stream.
    pub(crate) fn is_gone(&self) -> bool {
        let has_elements = matches!(self.kind, Kind::Hash | Kind::Set | Kind::SortedSet | Kind::List);
        self.is_gone || has_elements && self.elements == 0
    }

    pub(crate) fn field_deadlines(&self) -> Digest {
        self.field_deadlines.digest()
    }

    pub(crate) fn value(mut self) -> Digest {
        match self.kind {
            Kind::Hash | Kind::Set | Kind::SortedSet => self.sum.digest(),
            Kind::Stream => {
                let Digest(groups) = self.sum.digest();
                self.sequence.add(&[b"groups", &groups]);
                self.sequence.digest()
            }
            _ => self.sequence.digest(),
        }
    }
}

const DUMP_END_BYTES: usize = 10;

#[cfg(test)]
mod tests;
