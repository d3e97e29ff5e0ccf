//! In what two streams differ: an entry, the last id, or a group.

use super::{Explanation, Trouble, cut};
use crate::diff::answer;
use crate::diff::kind::Kind;
use crate::import::target::words;
use bytes::Bytes;
use ensue_client::Reply;
use std::collections::BTreeMap;

type Entry = (Bytes, Vec<Bytes>);

impl Explanation<'_> {
    pub(super) fn stream(&mut self) -> Result<Option<String>, Trouble> {
        let mut pages = self.two(Kind::Stream);
        loop {
            let (left, right) = self.next_of_two(&mut pages)?;
            let (left, right) = (entries(left)?, entries(right)?);
            let first = (0..left.len().max(right.len())).find(|place| left.get(*place) != right.get(*place));
            if let Some(place) = first {
                return Ok(of_entries(left.get(place), right.get(place)));
            }
            if left.is_empty() {
                break;
            }
        }
        if let Some(words) = self.last_id()? {
            return Ok(Some(words));
        }
        self.groups()
    }

    fn last_id(&mut self) -> Result<Option<String>, Trouble> {
        let question = [words!["XINFO", "STREAM", self.key.clone()]];
        let left = self.left.run(&question)?.pop().unwrap_or(Reply::Nil);
        let right = self.right.run(&question)?.pop().unwrap_or(Reply::Nil);
        let id = |about: &Reply| answer::field(about, "last-generated-id").and_then(answer::text);
        let (left, right) = (id(&left).unwrap_or_default(), id(&right).unwrap_or_default());
        let words = || format!("last id {} left, {} right", left.escape_ascii(), right.escape_ascii());
        Ok((left != right).then(words))
    }

    fn groups(&mut self) -> Result<Option<String>, Trouble> {
        let question = [words!["XINFO", "GROUPS", self.key.clone()]];
        let left = groups(&self.left.run(&question)?.pop().unwrap_or(Reply::Nil))?;
        let right = groups(&self.right.run(&question)?.pop().unwrap_or(Reply::Nil))?;
        let names = left.keys().chain(right.keys());
        let different = names.into_iter().find(|name| left.get(*name) != right.get(*name));
        Ok(different.map(|name| {
            let quoted = cut(name);
            match (left.get(name), right.get(name)) {
                (Some(left), Some(right)) => format!("group {quoted}: {left} left, {right} right"),
                (Some(_), None) => format!("group {quoted} is only left"),
                _ => format!("group {quoted} is only right"),
            }
        }))
    }
}

fn entries(page: Option<Reply>) -> Result<Vec<Entry>, String> {
    let Some(page) = page else { return Ok(Vec::new()) };
    answer::list(&page)?.iter().map(answer::entry).collect()
}

/// Two entries at the first place where two streams differ: if they have two ids, the lower one is missing elsewhere.
fn of_entries(left: Option<&Entry>, right: Option<&Entry>) -> Option<String> {
    let only = |entry: &Entry, side: &str| format!("entry {} is only {side}", entry.0.escape_ascii());
    Some(match (left, right) {
        (Some(left), Some(right)) if left.0 == right.0 => {
            let id = left.0.escape_ascii().to_string();
            format!("entry {id}: {} left, {} right", fields(&left.1), fields(&right.1))
        }
        (Some(left), Some(right)) if id(&left.0) < id(&right.0) => only(left, "left"),
        (_, Some(right)) => only(right, "right"),
        (Some(left), None) => only(left, "left"),
        (None, None) => return None,
    })
}

fn id(text: &[u8]) -> Option<(u64, u64)> {
    let (ms, sequence) = std::str::from_utf8(text).ok()?.split_once('-')?;
    Some((ms.parse().ok()?, sequence.parse().ok()?))
}

/// The first fields of an entry, with their values.
fn fields(fields: &[Bytes]) -> String {
    let some: Vec<String> = fields.iter().take(4).map(|text| cut(text)).collect();
    format!("{}{}", some.join(" "), if fields.len() > 4 { " …" } else { "" })
}

/// Groups by name, each with where it is.
fn groups(reply: &Reply) -> Result<BTreeMap<Bytes, String>, String> {
    let mut groups = BTreeMap::new();
    for group in answer::list(reply)? {
        let part = |name| answer::field(group, name).and_then(answer::text).unwrap_or_default();
        let (last, pending) = (part("last-delivered-id"), part("pending"));
        let words = format!("last id {}, {} pending", last.escape_ascii(), pending.escape_ascii());
        groups.insert(part("name"), words);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests;
