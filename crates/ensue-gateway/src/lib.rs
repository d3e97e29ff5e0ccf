//! The shell of TRODS on Linux: packets of a service come from the kernel through NFQUEUE, and a raw socket sends what
//! the gateway says. What is done with a packet is decided in `ensue-trods`, and nowhere here.
//!
//! - [`gateway`] stands on each server, below its TCP stack; [`balance`] stands before the servers.
//! - Whoever runs it needs root's rights over the network (CAP_NET_ADMIN, CAP_NET_RAW) and the command `iptables`.
//! - A gateway that ends unexpectedly leaves its rules in the kernel. No packet of the service passes then, so no
//!   client sees what TRODS would have hidden, and the monitor sends its clients to another server. A thread that
//!   panics ends the process.
//!
//! It handles IPv4, and one thread decides at a time.
//!
//! Beside it, with the feature `byzantine`, are the processes of Prophecy (`prophecy`), which need no
//! rights.

pub mod balance;
pub mod gateway;
mod health;
mod inject;
#[cfg_attr(not(feature = "byzantine"), expect(dead_code, reason = "bounds of Prophecy are among them"))]
mod limits;
#[cfg(feature = "byzantine")]
pub mod prophecy;
mod queue;
mod rules;
pub mod store;

use ensue_trods::Now;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{io, panic, process, thread};

/// Starts a thread without which a gateway would look healthy and pass nothing: if it panics, the process ends.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let work = AssertUnwindSafe(work);
    let run = move || {
        // What it said is on standard error.
        if panic::catch_unwind(work).is_err() {
            process::abort();
        }
    };
    thread::Builder::new().name(name.into()).spawn(run).map(|_| ())
}

/// A clock that starts at the time of day, so that servers agree on epochs, and never goes back.
#[derive(Clone, Copy, Debug)]
struct Clock {
    began: Instant,
    before: Duration,
}

impl Clock {
    fn start() -> Self {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began: Instant::now(), before }
    }

    fn now(&self) -> Now {
        let passed = self.before + self.began.elapsed();
        Now(u64::try_from(passed.as_micros()).unwrap_or(u64::MAX))
    }
}
