//! Commands that walk a branch: `KEYS`, `SCAN`, `DBSIZE`, `RANDOMKEY`, and `FLUSHDB`. They read all of it.
//!
//! The cursor of `SCAN` is the hash of the key to go on from: keys have their place whatever is written, so what is
//! there during a whole walk is returned.

use super::{Branching, value};
use crate::partition::cx::Cx;
use ensue_branch::{Abort, Branches, Key, TransactionId};
use ensue_resp::request::ScanOptions;
use ensue_resp::{Request, glob};
use ensue_types::{KeyspaceId, Reply};

struct Walk<'a> {
    branches: &'a mut Branches,
    transaction: TransactionId,
    now_ms: u64,
}

impl Walk<'_> {
    fn keys(&mut self, wanted: impl Fn(&Key) -> bool) -> Result<Vec<Key>, Abort> {
        let now_ms = self.now_ms;
        let mut keys = Vec::new();
        self.branches.scan(self.transaction, 0, |_, key, value| {
            if wanted(key) && value::is_shown(value, now_ms) {
                keys.push(key.clone());
            }
            true
        })?;
        Ok(keys)
    }

    fn random_key(&mut self, seed: u64) -> Result<Reply, Abort> {
        let keys = self.keys(|_| true)?;
        // An odd number far from any power of two spreads times that are close together.
        let place = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let key = keys.get((place % (keys.len().max(1) as u64)) as usize);
        let weight = Reply::Integer(keys.len() as i64);
        Ok(key.map_or(Reply::Nil, |key| Reply::Array(vec![Reply::Bulk(key.clone()), weight])))
    }

    fn scan(&mut self, options: &ScanOptions, type_name: Option<&Key>) -> Result<Reply, Abort> {
        let now_ms = self.now_ms;
        let mut next = 0;
        let mut looked = 0;
        let mut last = None;
        let mut keys = Vec::new();
        let from = u32::try_from(options.cursor).unwrap_or(u32::MAX);
        self.branches.scan(self.transaction, from, |hash, key, value| {
            // Keys of one hash stay together.
            if looked >= options.count.max(1) && last != Some(hash) {
                next = hash;
                return false;
            }
            looked += 1;
            last = Some(hash);
            let of_kind =
                type_name.is_none_or(|name| name.eq_ignore_ascii_case(value::kind_word(value).as_bytes()));
            let matches = options.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, key));
            if of_kind && matches && value::is_shown(value, now_ms) {
                keys.push(Reply::Bulk(key.clone()));
            }
            true
        })?;
        Ok(Reply::Array(vec![Reply::bulk(next.to_string()), Reply::Array(keys)]))
    }

    fn flush(&mut self) -> Result<Reply, Abort> {
        let mut keys = Vec::new();
        self.branches.scan(self.transaction, 0, |_, key, _| {
            keys.push(key.clone());
            true
        })?;
        let deletions = keys.into_iter().map(|key| (key, None));
        self.branches.put_all(self.transaction, deletions.collect())?;
        Ok(Reply::OK)
    }
}

impl Branching {
    /// The answer to one of these.
    pub(in crate::partition) fn walk_branch(
        &mut self,
        cx: &mut Cx,
        keyspace: KeyspaceId,
        transaction: TransactionId,
        request: &Request,
    ) -> Result<Reply, Abort> {
        let now_ms = cx.tick().ms();
        let seed = cx.clock.latest().0;
        let branches = self.branches(keyspace);
        let mut walk = Walk { branches, transaction, now_ms };
        match request {
            Request::Size => walk.keys(|_| true).map(|keys| Reply::Integer(keys.len() as i64)),
            Request::Keys { pattern } => {
                let found = walk.keys(|key| glob::matches(pattern, key));
                found.map(|keys| Reply::Array(keys.into_iter().map(Reply::Bulk).collect()))
            }
            Request::RandomKey => walk.random_key(seed),
            Request::Scan { options, type_name } => walk.scan(options, type_name.as_ref()),
            Request::Flush { .. } => walk.flush(),
            _ => unreachable!("`evaluate_on_branch` sends walks only"),
        }
    }
}
