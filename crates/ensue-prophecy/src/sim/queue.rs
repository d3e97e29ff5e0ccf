//! Events in the order of virtual time, the network that delays, loses and doubles them, and the hash over them.

use super::shape::Network;
use crate::random::Random;
use std::collections::BTreeMap;

/// Events `E` to come.
#[derive(Debug)]
pub(super) struct Queue<E> {
    events: BTreeMap<(u64, u64), E>,
    ordinal: u64,
    pub(super) now_us: u64,
    network: Network,
    random: Random,
    hash: u64,
}

impl<E: Clone> Queue<E> {
    pub(super) fn new(network: Network, seed: u64) -> Queue<E> {
        let random = Random::stream(seed, "network");
        Queue { events: BTreeMap::new(), ordinal: 0, now_us: 0, network, random, hash: seed }
    }

    /// This happens so many microseconds from now.
    pub(super) fn after(&mut self, delay_us: u64, event: E) {
        self.ordinal += 1;
        self.events.insert((self.now_us + delay_us, self.ordinal), event);
    }

    /// This is sent over a link that delays and delivers.
    pub(super) fn deliver(&mut self, event: E) {
        let delay_us = self.delay_us();
        self.after(delay_us, event);
    }

    /// This is sent over a link that delays and delivers in order; `last_us` is when the link last delivered.
    pub(super) fn deliver_in_order(&mut self, last_us: &mut u64, event: E) {
        *last_us = (self.now_us + self.delay_us()).max(*last_us);
        self.after(*last_us - self.now_us, event);
    }

    /// This is sent over a link that delays, reorders, loses and doubles.
    pub(super) fn send(&mut self, event: E) {
        if self.random.chance(self.network.loss_per_mille) {
            return;
        }
        if self.random.chance(self.network.double_per_mille) {
            self.deliver(event.clone());
        }
        self.deliver(event);
    }

    fn delay_us(&mut self) -> u64 {
        let is_slow = self.random.chance(self.network.slow_per_mille);
        let max_us = if is_slow { self.network.slow_us_max } else { self.network.delay_us_max };
        self.random.between(20, max_us)
    }

    /// The next event, if it is not after this time; the time is that of the event then.
    pub(super) fn next_until(&mut self, until_us: u64) -> Option<E> {
        let (&(time_us, ordinal), _) = self.events.first_key_value()?;
        if time_us > until_us {
            return None;
        }
        self.now_us = time_us;
        self.note(time_us ^ ordinal.rotate_left(32));
        self.events.pop_first().map(|(_, event)| event)
    }

    /// Nothing happens before this time: it is now.
    pub(super) fn pass_until(&mut self, time_us: u64) {
        self.now_us = self.now_us.max(time_us);
        self.note(time_us);
    }

    /// Mixes something that happened into the hash.
    pub(super) fn note(&mut self, what: u64) {
        self.hash = Random::new(self.hash ^ what).bits();
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }
}
