//! How the answers of several owners to one command become one answer.
//!
//! An error among them is the answer, the first one in the order of the pieces.

use bytes::Bytes;
use ensue_resp::Combine;
use ensue_types::Reply;

/// A way of putting answers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combination {
    /// One element a key, in the order of the keys.
    Gather,
    /// The sum of integers.
    Sum,
    AllOk,
    /// The least of integers.
    Least,
    /// The first answer, where all are equal.
    First,
    /// Of a library that partitions know alike, unless one of them was restarted or has another owner: whether all had
    /// lacked it.
    Loaded,
    /// Whether one of them had it.
    Deleted,
    /// The answer of all, if they know the same libraries.
    Same,
    /// For each element 1 if it is 1 in every array, and 0 otherwise.
    Every,
    /// One partition at most has done what all were asked to do, or says why it does not; the others say that they have
    /// nothing to do.
    Kill,
    /// The first answer, or the one that tells of a function that runs.
    Running,
    /// One array after the other.
    Concatenate,
    /// One of the elements, each of which comes with its weight.
    Draw {
        seed: u64,
    },
    /// The wrapping sum of hexadecimal numbers.
    Digest,
    /// The cursor and keys of one partition: the cursor becomes one over all partitions.
    Scan {
        partition: u16,
        partitions: u16,
    },
}

impl From<Combine> for Combination {
    fn from(combine: Combine) -> Combination {
        match combine {
            Combine::Gather => Combination::Gather,
            Combine::Sum => Combination::Sum,
            Combine::AllOk => Combination::AllOk,
        }
    }
}

impl Combination {
    /// The one answer. Each piece comes with the places of its keys among `keys` in all.
    pub(crate) fn combine(self, pieces: Vec<(Vec<usize>, Reply)>, keys: usize) -> Reply {
        match self {
            Combination::Kill => return killed(pieces),
            Combination::Loaded if is_mixed(&pieces) => return LOADED_SOMEWHERE,
            Combination::Deleted if is_mixed(&pieces) => return Reply::OK,
            _ => {}
        }
        if let Some((_, error)) = pieces.iter().find(|(_, reply)| reply.is_error()) {
            return error.clone();
        }
        match self {
            Combination::Gather => gather(pieces, keys),
            Combination::Sum => {
                let sum = pieces.iter().fold(0_i64, |sum, (_, reply)| sum.saturating_add(integer(reply)));
                Reply::Integer(sum)
            }
            Combination::Least => {
                pieces.iter().map(|(_, reply)| integer(reply)).min().map_or(Reply::Nil, Reply::Integer)
            }
            Combination::AllOk | Combination::Deleted => Reply::OK,
            Combination::Same if pieces.windows(2).any(|two| two[0].1 != two[1].1) => LIBRARIES_DIFFER,
            Combination::First | Combination::Loaded | Combination::Same => {
                pieces.into_iter().next().map_or(Reply::Nil, |(_, reply)| reply)
            }
            Combination::Every => every(pieces),
            Combination::Kill => killed(pieces),
            Combination::Running => running(pieces),
            Combination::Concatenate => {
                Reply::Array(pieces.into_iter().flat_map(|(_, r)| items(r)).collect())
            }
            Combination::Draw { seed } => draw(pieces, seed),
            Combination::Digest => {
                let sum = pieces.iter().fold(0_u64, |sum, (_, reply)| sum.wrapping_add(digest(reply)));
                Reply::bulk(format!("{sum:016x}"))
            }
            Combination::Scan { partition, partitions } => {
                let reply = pieces.into_iter().next().map(|(_, reply)| reply);
                scanned(reply, partition, partitions).unwrap_or(CURSOR_TOO_FAR)
            }
        }
    }
}

/// Some did what others say they cannot do, or need not. That an owner was silent is not among it.
fn is_mixed(pieces: &[(Vec<usize>, Reply)]) -> bool {
    let refuses = |reply: &Reply| matches!(reply, Reply::Error(words) if words.starts_with("ERR "));
    pieces.iter().any(|(_, reply)| !reply.is_error())
        && pieces.iter().any(|(_, reply)| refuses(reply))
        && pieces.iter().all(|(_, reply)| !reply.is_error() || refuses(reply))
}

const LOADED_SOMEWHERE: Reply = Reply::error(
    "ERR some partitions had a library of that name and others did not, which have it now: a node was restarted or a \
     partition has another owner. Load it with REPLACE, so that all have the same",
);

const LIBRARIES_DIFFER: Reply = Reply::error(
    "ERR partitions know different libraries, since a node was restarted or a partition has another owner. Load them \
     again with REPLACE",
);

fn gather(pieces: Vec<(Vec<usize>, Reply)>, keys: usize) -> Reply {
    let mut gathered = vec![Reply::Nil; keys];
    for (places, reply) in pieces {
        for (place, item) in places.into_iter().zip(items(reply)) {
            gathered[place] = item;
        }
    }
    Reply::Array(gathered)
}

fn killed(pieces: Vec<(Vec<usize>, Reply)>) -> Reply {
    let rank = |reply: &Reply| match reply {
        Reply::Error(words) if words.starts_with("NOTBUSY ") => 2,
        Reply::Error(_) => 1,
        _ => 0,
    };
    pieces.into_iter().map(|(_, reply)| reply).min_by_key(rank).unwrap_or(Reply::Nil)
}

fn running(pieces: Vec<(Vec<usize>, Reply)>) -> Reply {
    let is_idle = |reply: &Reply| match reply {
        Reply::Map(parts) => parts.first().is_none_or(|(_, running)| *running == Reply::Nil),
        _ => true,
    };
    pieces.into_iter().map(|(_, reply)| reply).min_by_key(is_idle).unwrap_or(Reply::Nil)
}

fn every(pieces: Vec<(Vec<usize>, Reply)>) -> Reply {
    let both = |one: Vec<Reply>, other: Vec<Reply>| {
        one.into_iter()
            .zip(other)
            .map(|(one, other)| Reply::Integer(integer(&one) & integer(&other)))
            .collect()
    };
    Reply::Array(pieces.into_iter().map(|(_, reply)| items(reply)).reduce(both).unwrap_or_default())
}

/// The owner's cursor, times the number of partitions, plus the partition; the next partition when this one is done.
fn scanned(reply: Option<Reply>, partition: u16, partitions: u16) -> Option<Reply> {
    let mut parts = items(reply?).into_iter();
    let local: u64 = match parts.next()? {
        Reply::Bulk(text) => std::str::from_utf8(&text).ok()?.parse().ok()?,
        Reply::Integer(value) => u64::try_from(value).ok()?,
        _ => return None,
    };
    let keys = parts.next()?;
    let cursor = match local {
        0 if partition + 1 == partitions => 0,
        0 => u64::from(partition) + 1,
        local => local.checked_mul(u64::from(partitions))?.checked_add(u64::from(partition))?,
    };
    Some(Reply::Array(vec![Reply::bulk(cursor.to_string()), keys]))
}

/// Each partition has chosen an element, and says how many it has chosen from.
fn draw(pieces: Vec<(Vec<usize>, Reply)>, seed: u64) -> Reply {
    let chosen = pieces.into_iter().filter_map(|(_, reply)| <[Reply; 2]>::try_from(items(reply)).ok());
    let weighed: Vec<(Reply, u64)> =
        chosen.map(|[element, weight]| (element, integer(&weight).max(0) as u64)).collect();
    let total: u64 = weighed.iter().map(|(_, weight)| weight).sum();
    let mut place = seed % total.max(1);
    for (element, weight) in weighed {
        if place < weight {
            return element;
        }
        place -= weight;
    }
    Reply::Nil
}

fn items(reply: Reply) -> Vec<Reply> {
    match reply {
        Reply::Array(items) | Reply::Set(items) => items,
        _ => Vec::new(),
    }
}

fn integer(reply: &Reply) -> i64 {
    match reply {
        Reply::Integer(value) => *value,
        _ => 0,
    }
}

fn digest(reply: &Reply) -> u64 {
    let text: &Bytes = match reply {
        Reply::Bulk(text) => text,
        _ => return 0,
    };
    std::str::from_utf8(text).ok().and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(0)
}

const CURSOR_TOO_FAR: Reply = Reply::error("ERR the cursor of this partition cannot be expressed");
