//! How a process is told to end: SIGINT, SIGTERM, or someone inside who asks; a second signal ends it at once.

use crate::bootstrap::Running;
use crate::bounds::DRAIN_MS_MAX;
use crate::log;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The place where requests to end arrive.
#[derive(Debug)]
pub struct Stop {
    requests: Sender<String>,
    arriving: Receiver<String>,
}

/// The right to ask for the end of the process.
#[derive(Clone, Debug)]
pub struct StopRequest {
    requests: Sender<String>,
}

impl Stop {
    /// From now on signals are requests.
    pub fn on_signals() -> io::Result<Stop> {
        let (requests, arriving) = channel();
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let request = StopRequest { requests: requests.clone() };
        thread::Builder::new().name("ensue-signals".into()).spawn(move || {
            for (count, signal) in signals.forever().enumerate() {
                if count > 0 {
                    log::warning("a second signal: the process ends without waiting");
                    std::process::exit(128 + signal);
                }
                request.ask(if signal == SIGINT { "SIGINT" } else { "SIGTERM" });
            }
        })?;
        Ok(Stop { requests, arriving })
    }

    pub fn request(&self) -> StopRequest {
        StopRequest { requests: self.requests.clone() }
    }

    /// Waits for a request and says why it was made.
    pub fn wait(&self) -> String {
        self.arriving.recv().expect("this value holds a sender itself")
    }

    /// Waits at most so long for a request; whether there was one.
    pub fn is_asked_within(&self, patience: Duration) -> bool {
        self.arriving.recv_timeout(patience).is_ok()
    }

    /// Whether somebody has asked; a request is reported once.
    pub fn is_asked(&self) -> bool {
        self.arriving.try_recv().is_ok()
    }
}

impl StopRequest {
    /// Asks the process to end; nobody listens if it is ending already.
    pub fn ask(&self, reason: impl Into<String>) {
        let _ = self.requests.send(reason.into());
    }
}

/// Stops nodes cleanly: what clients have sent is answered first, as far as that takes no longer than its bound. False
/// if one did not stop in time.
pub fn stop(nodes: Vec<Running>) -> bool {
    nodes.iter().for_each(Running::drain);
    let until = Instant::now() + Duration::from_millis(DRAIN_MS_MAX);
    while !nodes.iter().all(Running::is_drained) && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    nodes.iter().for_each(Running::shutdown);
    let mut clean = true;
    for node in nodes {
        clean &= node.join();
    }
    if !clean {
        log::warning("not every core stopped in time; the next start recovers from the log");
    }
    clean
}
