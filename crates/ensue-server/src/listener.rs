//! Accepts clients on core 0 of a node, with TLS or without, and deals them to the node's cores in turn.
//!
//! Who may come in is decided here: at most `maxclients`, and in protected mode nobody from elsewhere while there is
//! no password. Whoever is refused is told why. No byte of a client is read here.

use crate::bounds::{ACCEPT_PAUSE_US, ACCEPTS_PER_TURN, CORES_MAX};
use crate::descriptors;
use crate::log::{self, Throttle};
use crate::tls::Certificates;
use crate::transport::Transport;
use ensue_node::HostParameters;
use ensue_types::{CoreId, SessionId};
use mio::net::{TcpListener, TcpStream};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Who may come in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admittance {
    pub(crate) clients_max: usize,
    /// For more there are no file descriptors.
    pub(crate) room: usize,
    /// Refuse everybody who is not on this machine as long as nobody needs a password.
    pub(crate) is_protected: bool,
    /// Nobody needs one.
    pub(crate) is_open: bool,
    pub(crate) keepalive_s: u64,
}

/// A client that was let in. It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) stream: Transport,
    pub(crate) address: SocketAddr,
    pub(crate) local_address: String,
    pub(crate) seat: Seat,
}

/// One of the places that `maxclients` allows.
#[derive(Debug)]
pub(crate) struct Seat {
    taken: Arc<AtomicUsize>,
}

impl Seat {
    fn take(taken: &Arc<AtomicUsize>) -> Seat {
        taken.fetch_add(1, Ordering::Relaxed);
        Seat { taken: Arc::clone(taken) }
    }
}

#[cfg(test)]
impl Seat {
    pub(crate) fn for_test() -> Seat {
        Seat::take(&Arc::default())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where clients knock.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) socket: TcpListener,
    /// What is presented to whoever comes; none where nothing is encrypted.
    pub(crate) certificates: Option<Certificates>,
}

/// The listening sockets of a node.
#[derive(Debug)]
pub(crate) struct Listener {
    doors: Vec<Door>,
    admittance: Admittance,
    taken: Arc<AtomicUsize>,
    /// A socket may have more connections than were accepted.
    backlog: bool,
    /// No file descriptors are left: rest until then.
    paused_until_us: u64,
    complaints: Throttle,
}

impl Listener {
    pub(crate) fn new(doors: Vec<Door>, admittance: Admittance) -> Listener {
        Listener {
            doors,
            admittance,
            taken: Arc::default(),
            backlog: false,
            paused_until_us: 0,
            complaints: Throttle::default(),
        }
    }

    /// Nobody needs a password from now on, or everybody does.
    pub(crate) fn set_open(&mut self, is_open: bool) {
        self.admittance.is_open = is_open;
    }

    /// Who may come in from now on.
    pub(crate) fn configure(&mut self, parameters: &HostParameters) {
        let wanted = parameters.clients_max;
        self.admittance.clients_max = descriptors::clients_max(self.admittance.room, wanted);
        self.admittance.is_protected = parameters.is_protected;
        self.admittance.keepalive_s = parameters.keepalive_s;
    }

    pub(crate) fn sockets(&mut self) -> impl Iterator<Item = &mut TcpListener> {
        self.doors.iter_mut().map(|door| &mut door.socket)
    }

    /// A socket is ready.
    pub(crate) fn on_ready(&mut self) {
        self.backlog = true;
    }

    /// When [`Listener::accept`] has something to do.
    pub(crate) fn next_us(&self) -> Option<u64> {
        self.backlog.then_some(self.paused_until_us)
    }

    /// Lets some of the waiting clients in. Who was refused comes out too, so that it can read why.
    pub(crate) fn accept(&mut self, now_us: u64, admitted: &mut Vec<Guest>, refused: &mut Vec<TcpStream>) {
        if !self.backlog || now_us < self.paused_until_us {
            return;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            match self.accept_one() {
                Ok(Some((stream, address, door))) => {
                    self.judge(now_us, stream, (address, door), admitted, refused);
                }
                Ok(None) => {
                    self.backlog = false;
                    return;
                }
                // The client gave up before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    self.complaints.warning(now_us, format_args!("cannot accept a client: {error}"));
                    self.paused_until_us = now_us + ACCEPT_PAUSE_US;
                    return;
                }
            }
        }
    }

    /// A connection, and the door that it came by.
    fn accept_one(&self) -> io::Result<Option<(TcpStream, SocketAddr, usize)>> {
        for (index, door) in self.doors.iter().enumerate() {
            match door.socket.accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map(|(stream, address)| Some((stream, address, index))),
            }
        }
        Ok(None)
    }

    fn judge(
        &mut self,
        now_us: u64,
        mut stream: TcpStream,
        (address, door): (SocketAddr, usize),
        admitted: &mut Vec<Guest>,
        refused: &mut Vec<TcpStream>,
    ) {
        let refusal = if self.admittance.is_protected && self.admittance.is_open && !is_loopback(address.ip())
        {
            Some(DENIED)
        } else if self.taken.load(Ordering::Relaxed) >= self.admittance.clients_max {
            Some(TOO_MANY)
        } else {
            None
        };
        if let Some(words) = refusal {
            self.complaints.warning(now_us, format_args!("client {address} was refused: {}", &words[1..]));
            // The socket is new and its buffer empty; a client that is gone already need not be told. One that expects
            // TLS could not read it.
            if self.doors[door].certificates.is_none() {
                let _ = stream.write(format!("{words}\r\n").as_bytes());
            }
            refused.push(stream);
            return;
        }
        if let Err(error) = prepare(&stream, self.admittance.keepalive_s) {
            log::verbose(format_args!("client {address} is gone again: {error}"));
            return;
        }
        let local_address = stream.local_addr().map(|local| local.to_string()).unwrap_or_default();
        let stream = match &self.doors[door].certificates {
            None => Transport::Plain(stream),
            Some(certificates) => match Transport::accept(stream, &certificates.for_clients()) {
                Ok(stream) => stream,
                Err(error) => {
                    let words = format_args!("client {address} cannot be served over TLS: {error}");
                    return self.complaints.warning(now_us, words);
                }
            },
        };
        admitted.push(Guest { stream, address, local_address, seat: Seat::take(&self.taken) });
    }
}

/// A socket that listens for clients there. One for all addresses of IPv6 is for those alone, so that one for all of
/// IPv4 can have the same port.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
    let SocketAddr::V6(address) = address else { return TcpListener::bind(address) };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::INET6, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_ipv6_v6only(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from_std(std::net::TcpListener::from(socket)))
}

/// Connections that wait to be accepted, as many as the standard library allows.
const BACKLOG: i32 = 128;

/// No delay for small answers, and probes for clients that fell silent.
pub(crate) fn prepare(stream: &TcpStream, keepalive_s: u64) -> io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    if keepalive_s > 0 {
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_keepidle(stream, Duration::from_secs(keepalive_s))?;
        sockopt::set_tcp_keepintvl(stream, Duration::from_secs((keepalive_s / 3).max(1)))?;
        sockopt::set_tcp_keepcnt(stream, 3)?;
    }
    Ok(())
}

/// Whether it is this machine.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|address| address.is_loopback())
        }
    }
}

/// The number of the next session, unique in the process and in the datacenter: what is asked of a client by its number
/// is asked of the cores of all nodes, and each node has numbers of its own, by its first core.
pub(crate) fn next_session(first_core: CoreId) -> SessionId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    SessionId(u64::from(first_core.0) * SESSIONS_OF_A_CORE + NEXT.fetch_add(1, Ordering::Relaxed))
}

/// No process has as many in its life.
const SESSIONS_OF_A_CORE: u64 = 1 << 40;

// Clients may keep numbers as floats.
const _: () = assert!(CORES_MAX as u64 * SESSIONS_OF_A_CORE <= 1 << 53);

const TOO_MANY: &str = "-ERR max number of clients reached";
const DENIED: &str = "-DENIED Ensue is running in protected mode because protected mode is enabled and no password \
                      is set for the default user. In this mode connections are only accepted from the loopback \
                      interface. To accept others, set a password with 'requirepass', or, on a network that nobody \
                      else can reach, set 'protected-mode no', and restart the server.";

#[cfg(test)]
mod tests;
