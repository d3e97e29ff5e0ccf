//! A hash, a set, a sorted set or a list, read part by part: one whose dump is too long for an answer.
//!
//! If nobody writes meanwhile it is what the key holds. Otherwise each member that is there throughout is in it, once.
//! A set of few members, which together are too long for an answer, cannot be read: all of them come at once.

use super::streams::{Reading, Trouble, list, text, unexpected};
use crate::import::target::{Target, Words, words};
use bytes::Bytes;
use ensue_client::Reply;
use ensue_rdb::Value;
use ensue_types::Score;
use std::collections::HashSet;

/// Members that are asked for at once, and bytes of their names where these are sent.
const PART: usize = 1_000;
const PART_BYTES: usize = 1 << 20;

/// Whether a key of this type can be read so.
pub(crate) fn has_parts(kind: &str) -> bool {
    matches!(kind, "hash" | "list" | "set" | "zset")
}

/// Reads the value of a key; the words of the server, or what it answered, where that cannot be.
pub(crate) fn read(
    target: &mut Target,
    keyspace: u8,
    key: &Bytes,
    kind: &str,
) -> anyhow::Result<Result<Value, String>> {
    let mut reading = Reading { target, keyspace, key };
    let value = match kind {
        "hash" => reading.hash(),
        "set" => reading.scanned("SSCAN").map(|members| Value::Set(distinct(members, 1))),
        "zset" => reading.sorted(),
        _ => reading.ranged("LRANGE", None).map(Value::List),
    };
    match value {
        Ok(value) => Ok(Ok(value)),
        Err(Trouble::Answer(answer)) => Ok(Err(answer)),
        Err(Trouble::Target(error)) => Err(error),
    }
}

impl Reading<'_> {
    fn hash(&mut self) -> Result<Value, Trouble> {
        let pairs = match self.scanned("HSCAN") {
            Err(Trouble::Answer(_)) => self.by_names()?,
            pairs => pairs?,
        };
        let pairs: Vec<(Bytes, Bytes)> = pairs_of(distinct(pairs, 2)).collect();
        let mut deadlines = Vec::with_capacity(pairs.len());
        let mut names = pairs.iter().map(|(name, _)| name.clone()).peekable();
        while names.peek().is_some() {
            let (mut part, mut bytes) = (Vec::new(), 0);
            while let Some(name) = names.next_if(|_| part.len() < PART && bytes < PART_BYTES) {
                bytes += name.len();
                part.push(name);
            }
            deadlines.extend(self.deadlines(part)?);
        }
        // A field that is gone since it was read has none.
        let deadline_ms = |answer: &i64| u64::try_from(*answer).ok();
        Ok(match deadlines.iter().any(|answer| *answer >= 0) {
            true => {
                let dated =
                    |((name, value), answer): ((Bytes, Bytes), &i64)| (name, value, deadline_ms(answer));
                Value::DatedHash(pairs.into_iter().zip(&deadlines).map(dated).collect())
            }
            false => Value::Hash(pairs),
        })
    }

    /// Fields and values one by one: some values are long.
    fn by_names(&mut self) -> Result<Vec<Bytes>, Trouble> {
        let names = texts(self.ask(words!["HKEYS", self.key.clone()])?)?;
        let mut pairs = Vec::with_capacity(2 * names.len());
        for name in names {
            match self.ask(words!["HGET", self.key.clone(), name.clone()])? {
                Reply::Bulk(value) => pairs.extend([name, value]),
                Reply::Nil => {}
                other => return Err(unexpected(&other)),
            }
        }
        Ok(pairs)
    }

    /// The deadlines of these fields in milliseconds since 1970, negative where there is none.
    fn deadlines(&mut self, names: Vec<Bytes>) -> Result<Vec<i64>, Trouble> {
        let count = names.len();
        let mut command = words!["HPEXPIRETIME", self.key.clone(), "FIELDS", count.to_string()];
        command.extend(names);
        let reply = self.ask(command)?;
        match &reply {
            // All of it is gone.
            Reply::Nil => Ok(vec![-1; count]),
            Reply::Array(answers) if answers.len() == count => {
                let number = |answer: &Reply| if let Reply::Integer(ms) = answer { Some(*ms) } else { None };
                answers.iter().map(number).collect::<Option<_>>().ok_or_else(|| unexpected(&reply))
            }
            _ => Err(unexpected(&reply)),
        }
    }

    fn sorted(&mut self) -> Result<Value, Trouble> {
        let pairs = match self.scanned("ZSCAN") {
            Err(Trouble::Answer(_)) => self.ranged("ZRANGE", Some("WITHSCORES"))?,
            pairs => pairs?,
        };
        let scored = |(name, score): (Bytes, Bytes)| Some((Score::from_text(&score)?, name));
        let members: Option<Vec<(Score, Bytes)>> = pairs_of(distinct(pairs, 2)).map(scored).collect();
        members.map(Value::Sorted).ok_or_else(|| Trouble::Answer("a score that is none".into()))
    }

    /// What a walk over the members answers, some of them perhaps twice.
    fn scanned(&mut self, command: &'static str) -> Result<Vec<Bytes>, Trouble> {
        let (mut cursor, mut found) = (Bytes::from_static(b"0"), Vec::new());
        loop {
            let step = words![command, self.key.clone(), cursor, "COUNT", PART.to_string()];
            let mut parts = list(self.ask(step)?);
            let (Some(items), Some(Reply::Bulk(next)), true) = (parts.pop(), parts.pop(), parts.is_empty())
            else {
                return Err(Trouble::Answer(format!("{command} has another answer")));
            };
            found.extend(texts(items)?);
            if &next[..] == b"0" {
                return Ok(found);
            }
            cursor = next;
        }
    }

    /// Members by their places, fewer at once where they are long.
    fn ranged(&mut self, command: &'static str, option: Option<&'static str>) -> Result<Vec<Bytes>, Trouble> {
        let (mut from, mut count, mut found) = (0, PART, Vec::new());
        loop {
            let mut step: Words = words![command, self.key.clone(), from.to_string()];
            step.extend(words![(from + count - 1).to_string()]);
            step.extend(option.map(Bytes::from));
            match self.ask(step) {
                Err(Trouble::Answer(_)) if count > 1 => count = (count / 8).max(1),
                reply => {
                    let items = texts(reply?)?;
                    if items.is_empty() {
                        return Ok(found);
                    }
                    from += count;
                    found.extend(items);
                }
            }
        }
    }
}

fn texts(reply: Reply) -> Result<Vec<Bytes>, Trouble> {
    let items = list(reply);
    items.iter().map(|item| text(item).ok_or_else(|| unexpected(item))).collect()
}

/// Of those with the same name the first; what belongs to a name follows it.
fn distinct(items: Vec<Bytes>, width: usize) -> Vec<Bytes> {
    let mut seen = HashSet::with_capacity(items.len() / width);
    let groups = items.chunks_exact(width).filter(|group| seen.insert(&group[0]));
    groups.flatten().cloned().collect()
}

fn pairs_of(items: Vec<Bytes>) -> impl Iterator<Item = (Bytes, Bytes)> {
    let mut items = items.into_iter();
    std::iter::from_fn(move || Some((items.next()?, items.next()?)))
}

#[cfg(test)]
mod tests;
