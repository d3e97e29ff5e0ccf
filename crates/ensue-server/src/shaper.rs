//! What the network between datacenters is made to look like: a delay and a cut for each ordered pair.
//!
//! One `Shaper` a process, shared by all cores; a dev cluster sets it, a server leaves it as it is. Each core asks
//! before it dials, accepts or sends, and looks at the generation once a turn: a change wakes every core. The shaper
//! moves no bytes itself. A delay holds frames back at the sender, order kept; a cut closes the connections of the
//! pair at both ends and refuses new ones until it is healed.

use ensue_types::DatacenterId;
use ensue_types::limits::DATACENTERS_MAX;
use mio::Waker;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The shape of every pair of datacenters.
#[derive(Debug, Default)]
pub struct Shaper {
    pairs: [[Pair; DATACENTERS_MAX]; DATACENTERS_MAX],
    generation: AtomicU64,
    wakers: Mutex<Vec<Arc<Waker>>>,
}

/// The shape of the way from one datacenter to another.
#[derive(Debug, Default)]
struct Pair {
    delay_ms: AtomicU32,
    cut: AtomicBool,
}

/// A change to the links between two datacenters, both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Cut,
    Heal,
    DelayMs(u32),
}

impl Shaper {
    /// Applies a change to both directions and wakes every core.
    pub fn shape(&self, one: DatacenterId, other: DatacenterId, shape: Shape) {
        for pair in [self.pair(one, other), self.pair(other, one)] {
            match shape {
                Shape::Cut => pair.cut.store(true, Ordering::Release),
                Shape::Heal => pair.cut.store(false, Ordering::Release),
                Shape::DelayMs(delay) => pair.delay_ms.store(delay, Ordering::Release),
            }
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
        for waker in self.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // A core that cannot be woken looks at the generation within its next turn anyway.
            let _ = waker.wake();
        }
    }

    /// Wakes this core at every later change.
    pub fn watch(&self, waker: Arc<Waker>) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
    }

    /// Differs from an earlier answer if there was a change in between.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub fn is_cut(&self, from: DatacenterId, to: DatacenterId) -> bool {
        self.pair(from, to).cut.load(Ordering::Acquire)
    }

    pub fn delay_us(&self, from: DatacenterId, to: DatacenterId) -> u64 {
        u64::from(self.delay_ms(from, to)) * 1_000
    }

    pub fn delay_ms(&self, from: DatacenterId, to: DatacenterId) -> u32 {
        self.pair(from, to).delay_ms.load(Ordering::Acquire)
    }

    fn pair(&self, from: DatacenterId, to: DatacenterId) -> &Pair {
        // Ids come from the configuration, which has at most this many datacenters.
        &self.pairs[usize::from(from.0) % DATACENTERS_MAX][usize::from(to.0) % DATACENTERS_MAX]
    }
}

#[cfg(test)]
mod tests;
