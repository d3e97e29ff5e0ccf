//! How values that stand beside each other become one: the handlers of convergent conflict handling (COPS, sections 3
//! and 5.3).
//!
//! The siblings of a location arrive, lowest stamp first; what readers see of them leaves. A handler is a function of
//! the set of its siblings and of nothing else: their order and repetition mean nothing. So every datacenter that has
//! the same writes shows the same. A handler decides what is shown, never what is kept: all siblings are folded anew
//! when one comes, so a fold of folds need not be the fold of all; with those that are built in it is.
//!
//! A handler from elsewhere may make nothing of some siblings. What `newest` makes of them is shown then, with the
//! reason: a reason depends on the siblings alone, too.
//!
//! A delete beside a value is no value to any handler but `newest`: what was written concurrently with it survives.

use bytes::Bytes;
use ensue_types::{Decimal, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// One of the writes of a location that nothing has replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    pub stamp: Stamp,
    /// What would be shown if it stood alone: nothing for a delete, unless something was added to a counter since.
    pub value: Option<Bytes>,
    /// It is a delete.
    pub deletes: bool,
}

/// A handler.
pub trait Fold: fmt::Debug + Send + Sync {
    /// The name in the configuration.
    fn name(&self) -> &str;

    /// What two siblings or more are to readers: a value, or nothing; or why it makes nothing of them.
    fn fold(&self, siblings: &[Folded]) -> Result<Option<Bytes>, Failed>;

    /// What must be the same in all datacenters, because it decides what is shown.
    fn identity(&self) -> String {
        self.name().to_owned()
    }

    /// Whether what it makes of numbers is a number, so that it folds scores, too.
    fn keeps_numbers(&self) -> bool {
        false
    }
}

/// Why a handler made nothing of some siblings, in short words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Failed(pub Box<str>);

/// Which handler a key has.
pub trait Handlers: fmt::Debug + Send + Sync {
    fn of(&self, key: &[u8]) -> &dyn Fold;
}

/// The names of the handlers that are built in, the default first.
pub const NAMES: [&str; 5] = ["newest", "union", "max", "min", "concat-sorted"];

/// The handler of this name that is built in.
pub fn by_name(name: &str) -> Option<Arc<dyn Fold>> {
    Some(match name {
        "newest" => Arc::new(Newest),
        "union" => Arc::new(Union),
        "max" => Arc::new(Extreme { greatest: true }),
        "min" => Arc::new(Extreme { greatest: false }),
        "concat-sorted" => Arc::new(ConcatSorted),
        _ => return None,
    })
}

/// The handler of scores where this one is of values: what is made of texts is no score.
pub(crate) fn of_scores(fold: &dyn Fold) -> &dyn Fold {
    if fold.keeps_numbers() { fold } else { &Newest }
}

/// The last writer's, deletes among them: what every other protocol does.
#[derive(Debug)]
pub struct Newest;

impl Newest {
    pub(crate) fn of(siblings: &[Folded]) -> Option<Bytes> {
        siblings.iter().max_by_key(|sibling| sibling.stamp)?.value.clone()
    }
}

impl Fold for Newest {
    fn name(&self) -> &str {
        "newest"
    }

    fn fold(&self, siblings: &[Folded]) -> Result<Option<Bytes>, Failed> {
        Ok(Newest::of(siblings))
    }

    fn keeps_numbers(&self) -> bool {
        true
    }
}

/// A value is a set of elements between commas; a member of a set, or any value that has no comma, is one element.
#[derive(Debug)]
struct Union;

impl Fold for Union {
    fn name(&self) -> &str {
        "union"
    }

    fn fold(&self, siblings: &[Folded]) -> Result<Option<Bytes>, Failed> {
        Ok(join(siblings, |values| {
            let elements: BTreeSet<&[u8]> = values.iter().flat_map(|value| parts(value, b',')).collect();
            elements.into_iter().collect::<Vec<_>>().join(&b',')
        }))
    }
}

/// A value is a list of lines: all of them in the order of their bytes, each as often as in the value that has it most
/// often.
#[derive(Debug)]
struct ConcatSorted;

impl Fold for ConcatSorted {
    fn name(&self) -> &str {
        "concat-sorted"
    }

    fn fold(&self, siblings: &[Folded]) -> Result<Option<Bytes>, Failed> {
        Ok(join(siblings, |values| {
            let mut lines: BTreeMap<&[u8], usize> = BTreeMap::new();
            for value in values {
                let mut here: BTreeMap<&[u8], usize> = BTreeMap::new();
                parts(value, b'\n').for_each(|line| *here.entry(line).or_default() += 1);
                for (line, count) in here {
                    let most = lines.entry(line).or_default();
                    *most = count.max(*most);
                }
            }
            let repeated = lines.into_iter().flat_map(|(line, count)| std::iter::repeat_n(line, count));
            repeated.collect::<Vec<_>>().join(&b'\n')
        }))
    }
}

/// The greatest number, or the least. What is no number gives way to any number, and among its like goes by its bytes.
#[derive(Debug)]
struct Extreme {
    greatest: bool,
}

impl Fold for Extreme {
    fn name(&self) -> &str {
        if self.greatest { "max" } else { "min" }
    }

    fn fold(&self, siblings: &[Folded]) -> Result<Option<Bytes>, Failed> {
        let values = || values_of(siblings);
        let number = |value: &&Bytes| Decimal::parse(value);
        let numbers = values().any(|value| number(&value).is_some());
        let ranked = values().map(|value| (number(&value), value)).filter(|rank| rank.0.is_some() == numbers);
        let chosen = if self.greatest { ranked.max() } else { ranked.min() };
        Ok(chosen.map(|(_, value)| value.clone()))
    }

    fn keeps_numbers(&self) -> bool {
        true
    }
}

/// The one value, as it is, if all are the same; what is made of several otherwise.
fn join(siblings: &[Folded], several: impl Fn(&BTreeSet<&Bytes>) -> Vec<u8>) -> Option<Bytes> {
    let values: BTreeSet<&Bytes> = values_of(siblings).collect();
    match values.len() {
        0 | 1 => values.first().map(|&value| value.clone()),
        _ => Some(Bytes::from(several(&values))),
    }
}

/// The values that count.
fn values_of(siblings: &[Folded]) -> impl Iterator<Item = &Bytes> {
    counted(siblings).filter_map(|(_, value)| value)
}

/// The siblings, each with its value as it counts: beside one that was put, a delete says nothing, whatever has been
/// added since.
pub fn counted(siblings: &[Folded]) -> impl Iterator<Item = (&Folded, Option<&Bytes>)> {
    let all_delete = siblings.iter().all(|sibling| sibling.deletes);
    let value = move |sibling: &Folded| all_delete || !sibling.deletes;
    siblings.iter().map(move |sibling| (sibling, sibling.value.as_ref().filter(|_| value(sibling))))
}

fn parts(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    value.split(move |&byte| byte == separator).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests;
