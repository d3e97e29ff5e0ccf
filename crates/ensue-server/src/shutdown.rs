//! How a process is told to end: SIGINT, SIGTERM, or someone inside who asks; a second signal ends it at once. SIGHUP
//! ends it, too, or tells it to read its files again.

use crate::bootstrap::Running;
use crate::bounds::DRAIN_MS_MAX;
use crate::log;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The place where requests to end arrive.
#[derive(Debug)]
pub struct Stop {
    requests: Sender<Request>,
    arriving: Receiver<Request>,
}

/// What is asked of the process.
#[derive(Debug)]
enum Request {
    /// For this reason.
    End(String),
    ReadAgain,
}

/// The right to ask for the end of the process.
#[derive(Clone, Debug)]
pub struct StopRequest {
    requests: Sender<Request>,
}

impl Stop {
    /// From now on signals are requests to end.
    pub fn on_signals() -> io::Result<Stop> {
        Stop::watch(false)
    }

    /// The same; SIGHUP asks to read files again.
    pub fn on_signals_but_hangup() -> io::Result<Stop> {
        Stop::watch(true)
    }

    fn watch(reads_again: bool) -> io::Result<Stop> {
        let (requests, arriving) = channel();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let request = StopRequest { requests: requests.clone() };
        thread::Builder::new().name("ensue-signals".into()).spawn(move || {
            let mut is_ending = false;
            for signal in signals.forever() {
                if signal == SIGHUP && reads_again {
                    request.send(Request::ReadAgain);
                    continue;
                }
                if is_ending {
                    log::warning("a second signal: the process ends without waiting");
                    std::process::exit(128 + signal);
                }
                is_ending = true;
                request.ask(match signal {
                    SIGINT => "SIGINT",
                    SIGHUP => "SIGHUP",
                    _ => "SIGTERM",
                });
            }
        })?;
        Ok(Stop { requests, arriving })
    }

    pub fn request(&self) -> StopRequest {
        StopRequest { requests: self.requests.clone() }
    }

    /// Waits until the process shall end, and says why.
    pub fn wait(&self) -> String {
        self.wait_reading_again(|| {})
    }

    /// The same; what is given is called for each request to read files again until then.
    pub fn wait_reading_again(&self, mut read_again: impl FnMut()) -> String {
        loop {
            match self.arriving.recv().expect("this value holds a sender itself") {
                Request::End(reason) => return reason,
                Request::ReadAgain => read_again(),
            }
        }
    }

    /// Waits at most so long for a request to end; whether there was one.
    pub fn is_asked_within(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        loop {
            match self.arriving.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Request::End(_)) => return true,
                Ok(Request::ReadAgain) => {}
                Err(_) => return false,
            }
        }
    }

    /// Whether somebody has asked for the end; a request is reported once.
    pub fn is_asked(&self) -> bool {
        self.arriving.try_iter().any(|request| matches!(request, Request::End(_)))
    }
}

impl StopRequest {
    /// Asks the process to end; nobody listens if it is ending already.
    pub fn ask(&self, reason: impl Into<String>) {
        self.send(Request::End(reason.into()));
    }

    fn send(&self, request: Request) {
        let _ = self.requests.send(request);
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
