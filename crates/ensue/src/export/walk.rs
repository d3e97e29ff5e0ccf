//! A walk over the keys of a keyspace, and what a key is read by: for whoever carries them elsewhere.

use crate::import::target::{Target, Words, words};
use anyhow::bail;
use bytes::Bytes;
use ensue_client::Reply;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Keys that a step of `SCAN` looks at.
const SCANNED: &str = "500";
/// What keys that are read together take: their dumps wait until all are there.
const PORTION_BYTES: u64 = 16 << 20;
/// What a key takes of which the server does not say it.
const UNKNOWN_BYTES: u64 = 1 << 20;

/// A walk, step by step. It may meet a key twice, and hands it out once.
pub(crate) struct Walk {
    keyspace: u8,
    /// Where the next step begins; nothing at the end.
    cursor: Option<Bytes>,
    hashers: [RandomState; 2],
    seen: HashSet<(u64, u64)>,
}

impl Walk {
    pub(crate) fn new(keyspace: u8) -> Walk {
        let hashers = [RandomState::new(), RandomState::new()];
        Walk { keyspace, cursor: Some(Bytes::from_static(b"0")), hashers, seen: HashSet::new() }
    }

    /// How many keys were handed out.
    pub(crate) fn keys(&self) -> u64 {
        self.seen.len() as u64
    }

    /// The keys of the next step; nothing at the end.
    pub(crate) fn step(&mut self, source: &mut Target) -> anyhow::Result<Option<Vec<Bytes>>> {
        let Some(cursor) = self.cursor.take() else { return Ok(None) };
        let answer = source.run(self.keyspace, &[words!["SCAN", cursor, "COUNT", SCANNED]])?.pop();
        let Some(Reply::Array(parts)) = answer else { bail!("SCAN is answered by {answer:?}") };
        let parts = <[Reply; 2]>::try_from(parts);
        let Ok([Reply::Bulk(next), Reply::Array(keys)]) = parts else {
            bail!("SCAN is answered by {parts:?}")
        };
        self.cursor = (&next[..] != b"0").then_some(next);
        let keys =
            keys.into_iter().filter_map(|key| if let Reply::Bulk(key) = key { Some(key) } else { None });
        Ok(Some(keys.filter(|key| self.is_new(key)).collect()))
    }

    fn is_new(&mut self, key: &Bytes) -> bool {
        let [one, other] = &self.hashers;
        self.seen.insert((one.hash_one(key), other.hash_one(key)))
    }
}

/// What a key is.
pub(crate) struct Dumped {
    pub(crate) kind: String,
    /// In milliseconds since 1970.
    pub(crate) deadline_ms: Option<u64>,
    /// The answer to `DUMP`, which is nothing for a key that is gone.
    pub(crate) dump: Reply,
}

/// Keys in their order, as many together as may be read at once.
pub(crate) fn portions<'k>(
    source: &mut Target,
    keyspace: u8,
    keys: &'k [Bytes],
) -> anyhow::Result<Vec<&'k [Bytes]>> {
    let question = |key: &Bytes| words!["MEMORY", "USAGE", key.clone()];
    let questions: Vec<Words> = keys.iter().map(question).collect();
    let sizes = source.run(keyspace, &questions)?.into_iter().map(|reply| match reply {
        Reply::Integer(bytes) => u64::try_from(bytes).unwrap_or(UNKNOWN_BYTES),
        Reply::Nil => 0,
        _ => UNKNOWN_BYTES,
    });
    Ok(portioned(keys, sizes))
}

fn portioned(keys: &[Bytes], sizes: impl Iterator<Item = u64>) -> Vec<&[Bytes]> {
    let (mut portions, mut begin, mut taken) = (Vec::new(), 0, 0_u64);
    for (at, bytes) in sizes.enumerate() {
        if at > begin && taken.saturating_add(bytes) > PORTION_BYTES {
            portions.push(&keys[begin..at]);
            (begin, taken) = (at, 0);
        }
        taken = taken.saturating_add(bytes);
    }
    portions.extend(Some(&keys[begin..]).filter(|rest| !rest.is_empty()));
    portions
}

/// Reads keys; for each what it is, or what was answered in place of that.
pub(crate) fn read(
    source: &mut Target,
    keyspace: u8,
    keys: &[Bytes],
) -> anyhow::Result<Vec<Result<Dumped, String>>> {
    let questions =
        |key: &Bytes| ["TYPE", "PEXPIRETIME", "DUMP"].map(|question| words![question, key.clone()]);
    let commands: Vec<Words> = keys.iter().flat_map(questions).collect();
    let mut replies = source.run(keyspace, &commands)?.into_iter();
    let mut read = Vec::with_capacity(keys.len());
    while let (Some(kind), Some(deadline), Some(dump)) = (replies.next(), replies.next(), replies.next()) {
        read.push(match (kind, deadline) {
            (Reply::Status(kind), Reply::Integer(deadline)) => {
                Ok(Dumped { kind: kind.into_owned(), deadline_ms: u64::try_from(deadline).ok(), dump })
            }
            other => Err(format!("{other:?} {dump:?}")),
        });
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_together_is_bounded_by_bytes() {
        let keys: Vec<Bytes> = ["a", "b", "c", "d", "e"].map(Bytes::from).into();
        let counts = |sizes: [u64; 5]| -> Vec<usize> {
            let portions = portioned(&keys, sizes.into_iter());
            assert_eq!(portions.concat(), keys, "each of them once, and in order");
            portions.into_iter().map(<[Bytes]>::len).collect()
        };
        assert_eq!(counts([1, 2, 3, 4, 5]), [5]);
        assert_eq!(counts([PORTION_BYTES; 5]), [1; 5]);
        assert_eq!(counts([PORTION_BYTES / 2, PORTION_BYTES / 2, 1, u64::MAX, 0]), [2, 1, 1, 1]);
        assert_eq!(portioned(&[], std::iter::empty()), [] as [&[Bytes]; 0]);
    }
}
