//! The network between two nodes: a listener that the dialling node takes for its peer, and bytes passed on with a
//! delay.
//!
//! Each direction of a wire can be silenced, so that bytes wait as they would behind lost packets, and a wire can be
//! broken, which closes its connections and refuses new ones. Nothing here knows what the bytes mean.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const CHUNK_BYTES: usize = 64 << 10;
/// How often waiting threads look whether something has changed.
const LOOK: Duration = Duration::from_millis(5);

/// How the bytes of one direction travel.
#[derive(Debug, Default)]
struct Direction {
    delay_us: AtomicU64,
    silent: AtomicBool,
}

/// What both ends of a wire and its operator share.
#[derive(Debug, Default)]
struct State {
    forward: Direction,
    backward: Direction,
    broken: AtomicBool,
    over: AtomicBool,
    /// Both ends of every connection that may be alive.
    connections: Mutex<Vec<(TcpStream, TcpStream)>>,
}

impl State {
    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<(TcpStream, TcpStream)>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_all(&self) {
        for (one, other) in self.connections().drain(..) {
            // They may be closed already, which is what is wanted.
            let _ = one.shutdown(Shutdown::Both);
            let _ = other.shutdown(Shutdown::Both);
        }
    }
}

/// The way from one node, which dials, to another, which accepts.
#[derive(Debug)]
pub struct Wire {
    state: Arc<State>,
}

/// Which way bytes go on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the node that dialled.
    Forward,
    Backward,
}

impl Wire {
    /// Accepts on `listen` and connects to `target` for each connection that comes, until the wire is dropped.
    pub fn lay(listen: SocketAddr, target: SocketAddr) -> io::Result<Wire> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::Builder::new().name("wire".into()).spawn(move || accept(&listener, target, &shared))?;
        Ok(Wire { state })
    }

    fn direction(&self, way: Way) -> &Direction {
        match way {
            Way::Forward => &self.state.forward,
            Way::Backward => &self.state.backward,
        }
    }

    /// Bytes that enter from now on need this long, unless those before them are later.
    pub fn delay(&self, way: Way, delay: Duration) {
        self.direction(way).delay_us.store(delay.as_micros() as u64, Ordering::Relaxed);
    }

    /// A silent direction delivers nothing until it is not silent any more.
    pub fn silence(&self, way: Way, silent: bool) {
        self.direction(way).silent.store(silent, Ordering::Relaxed);
    }

    /// Closes all connections, and new ones at once, until the wire is mended. What was on its way is lost.
    pub fn sever(&self, broken: bool) {
        self.state.broken.store(broken, Ordering::Relaxed);
        if broken {
            self.state.close_all();
        }
    }

    /// Closes all connections; the next ones are welcome.
    pub fn flap(&self) {
        self.state.close_all();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::Relaxed);
        self.state.close_all();
    }
}

fn accept(listener: &TcpListener, target: SocketAddr, state: &Arc<State>) {
    while !state.over.load(Ordering::Relaxed) {
        match listener.accept() {
            // A broken wire hangs up on whoever comes; a target that is down looks the same to the one who dials.
            Ok((near, _)) if !state.broken.load(Ordering::Relaxed) => {
                let _ = join(near, target, state);
            }
            Ok(_) => {}
            Err(_) => thread::sleep(LOOK),
        }
    }
}

fn join(near: TcpStream, target: SocketAddr, state: &Arc<State>) -> io::Result<()> {
    near.set_nonblocking(false)?;
    let far = TcpStream::connect_timeout(&target, Duration::from_secs(1))?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    state.connections().push((near.try_clone()?, far.try_clone()?));
    pass(near.try_clone()?, far.try_clone()?, Way::Forward, state)?;
    pass(far, near, Way::Backward, state)
}

/// Two threads a direction: one takes bytes and notes when they are due, one delivers them.
fn pass(mut from: TcpStream, to: TcpStream, way: Way, state: &Arc<State>) -> io::Result<()> {
    let (sender, receiver): (Sender<(Instant, Vec<u8>)>, _) = channel();
    let shared = Arc::clone(state);
    thread::Builder::new().name("wire-in".into()).spawn(move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length) = from.read(&mut chunk) {
            let due = Instant::now() + delay(&shared, way);
            if length == 0 || sender.send((due, chunk[..length].to_vec())).is_err() {
                break;
            }
        }
    })?;
    let shared = Arc::clone(state);
    thread::Builder::new().name("wire-out".into()).spawn(move || {
        deliver(&receiver, &to, way, &shared);
        let _ = to.shutdown(Shutdown::Both);
    })?;
    Ok(())
}

fn direction_of(state: &State, way: Way) -> &Direction {
    if way == Way::Forward { &state.forward } else { &state.backward }
}

fn delay(state: &State, way: Way) -> Duration {
    Duration::from_micros(direction_of(state, way).delay_us.load(Ordering::Relaxed))
}

fn deliver(receiver: &Receiver<(Instant, Vec<u8>)>, mut to: &TcpStream, way: Way, state: &State) {
    loop {
        let (due, bytes) = match receiver.recv_timeout(Duration::from_millis(100)) {
            Ok(chunk) => chunk,
            Err(RecvTimeoutError::Timeout) if !state.over.load(Ordering::Relaxed) => continue,
            Err(_) => return,
        };
        thread::sleep(due.saturating_duration_since(Instant::now()));
        while direction_of(state, way).silent.load(Ordering::Relaxed) {
            if state.over.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(LOOK);
        }
        if to.write_all(&bytes).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
