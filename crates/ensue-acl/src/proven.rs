//! Which passwords have been proven, so that the next connection with the same one costs no Argon2.
//!
//! A user and a password that matched arrive and are remembered, as a keyed hash under a key of this process and never
//! as the password. The hash is also of the user's version: whatever changes the user makes the next attempt slow
//! again. It holds a bounded number of pairs and forgets the oldest. It does not verify anything.

use crate::user::User;
use std::collections::{BTreeSet, VecDeque};

/// Pairs of a user and a password that matched.
#[derive(Clone)]
pub struct Proven {
    key: [u8; 32],
    capacity: usize,
    known: BTreeSet<[u8; 32]>,
    /// Oldest first.
    order: VecDeque<[u8; 32]>,
}

impl Proven {
    /// An empty one. The key is random and leaves the process never; `limits::PROVEN_MAX` is a capacity.
    pub fn new(key: [u8; 32], capacity: usize) -> Proven {
        Proven { key, capacity, known: BTreeSet::new(), order: VecDeque::new() }
    }

    /// Whether the password was proven to be one of this user, as it is now.
    pub fn knows(&self, user: &User, password: &[u8]) -> bool {
        !self.known.is_empty() && self.known.contains(&self.digest(user, password))
    }

    /// Remembers that the password was proven to be one of this user.
    pub fn remember(&mut self, user: &User, password: &[u8]) {
        let digest = self.digest(user, password);
        if self.capacity == 0 || !self.known.insert(digest) {
            return;
        }
        self.order.push_back(digest);
        while self.order.len() > self.capacity {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.known.clear();
        self.order.clear();
    }

    fn digest(&self, user: &User, password: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&user.version().0.to_le_bytes());
        hasher.update(&(user.name().len() as u64).to_le_bytes());
        hasher.update(user.name()).update(password);
        hasher.finalize().into()
    }
}

#[cfg(test)]
mod tests;
