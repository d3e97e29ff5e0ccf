//! The load balancer and the liveness monitor before the servers: packets of clients pass a queue of the kernel, which
//! marks each with the server that it is for; a routing table for each mark leads there. Packets of servers go to their
//! clients without it.
//!
//! Which server it is follows from the client's end and from who is believed to live. When a server is suspected, the
//! last packet of each of its clients is repeated to the client's next server, if that is asked for.

use crate::Clock;
use crate::health::read_answer;
use crate::inject::Injector;
use crate::limits::{HEARTBEAT_BYTES_MAX, SERVERS_MAX};
use crate::queue::{Packets, Waiting};
use crate::rules::{Installed, Rule, run};
use crate::spawn;
use ensue_trods::Verdict;
use ensue_trods::balance::{Balancer, HEARTBEAT_US, Monitor, Reminders};
use ensue_trods::packet;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The mark and the routing table of the first server.
const FIRST_MARK: u32 = 0x7d00_0100;
const FIRST_TABLE: u32 = 32_000;
/// Every second.
const BEATS_A_TICK: u64 = 40;

/// A server of the service.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// The next hop to it.
    pub address: Ipv4Addr,
    /// Where its gateway answers the monitor.
    pub heartbeat: SocketAddr,
}

/// How a balancer is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of the service.
    pub address: Ipv4Addr,
    /// Its ports.
    pub ports: Vec<u16>,
    /// Its servers.
    pub servers: Vec<Server>,
    /// The number of its queue.
    pub queue: u16,
    /// A server that is silent for so long is suspected.
    pub suspect_after: Duration,
    /// Whether clients of a suspected server are reminded of.
    pub remind: bool,
}

/// A balancer at work. Its rules and routes are removed when this is dropped; its threads end with the process.
#[derive(Debug)]
pub struct Balance {
    _rules: Installed,
    _routes: Routes,
}

#[derive(Debug)]
struct State {
    clock: Clock,
    servers: Vec<Server>,
    monitor: Monitor,
    balancer: Balancer,
    live: Vec<bool>,
    reminders: Option<Reminders>,
}

/// A packet of a client that is repeated to a server.
type Reminder = (usize, Vec<u8>);

impl Balance {
    /// Starts a balancer. Every server is dead until it answers.
    ///
    /// # Errors
    /// Rights that are missing, a queue that is in use, or a command that fails.
    pub fn start(settings: &Settings) -> io::Result<Self> {
        let count = settings.servers.len();
        if count == 0 || count > SERVERS_MAX {
            return Err(io::Error::other(format!("{count} servers, and a balancer has 1 to {SERVERS_MAX}")));
        }
        let packets = Packets::open(settings.queue)?;
        let suspect_us = u64::try_from(settings.suspect_after.as_micros()).unwrap_or(u64::MAX);
        let mut balancer = Balancer::new(count, 0);
        (0..count).for_each(|host| balancer.set(host, false));
        let injectors = (0..count).map(|host| Injector::open(FIRST_MARK + number(host)));
        let injectors = Arc::new(injectors.collect::<io::Result<Vec<Injector>>>()?);
        let state = Arc::new(Mutex::new(State {
            clock: Clock::start(),
            servers: settings.servers.clone(),
            monitor: Monitor::new(count, suspect_us),
            balancer,
            live: vec![false; count],
            reminders: settings.remind.then(Reminders::default),
        }));
        let routes = Routes::install(&settings.servers)?;
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?);
        let (listening, heard, injecting) = (Arc::clone(&state), Arc::clone(&socket), Arc::clone(&injectors));
        spawn("balance-hear", move || hear(&listening, &heard, &injecting))?;
        let asking = Arc::clone(&state);
        spawn("balance-ask", move || ask(&asking, &socket, &injectors))?;
        spawn("balance-packets", move || serve(&state, packets))?;
        let rule = |port: &u16| {
            let (address, queue) = (settings.address, settings.queue);
            Rule::new(&format!(
                "PREROUTING -d {address} -p tcp --dport {port} -j NFQUEUE --queue-num {queue}"
            ))
        };
        let rules = Installed::install(settings.ports.iter().map(rule).collect())?;
        Ok(Self { _rules: rules, _routes: routes })
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(state: &Mutex<State>, mut packets: Packets) {
    loop {
        let result = packets.next().and_then(|packet| route(state, packet, &mut packets));
        if let Err(error) = result {
            eprintln!("a packet is lost: {error}");
        }
    }
}

fn route(state: &Mutex<State>, packet: Waiting, packets: &mut Packets) -> io::Result<()> {
    let host = locked(state).pick(packet.bytes());
    match host {
        Some(host) => packets.route(packet, FIRST_MARK + number(host)),
        None => packets.decide(packet, Verdict::Drop),
    }
}

fn number(host: usize) -> u32 {
    u32::try_from(host).expect("at most SERVERS_MAX")
}

/// Asks every server in turn, and judges who is silent.
fn ask(state: &Mutex<State>, socket: &UdpSocket, injectors: &[Injector]) {
    let mut before = Instant::now();
    for beat in 1_u64.. {
        // When this thread itself was held up, answers wait that were not looked at: nobody is suspected for that.
        let is_late = before.elapsed() > 2 * Duration::from_micros(HEARTBEAT_US);
        before = Instant::now();
        let servers = locked(state).servers.clone();
        for server in servers {
            // A server that cannot be reached is silent, which is what counts.
            let _ = socket.send_to(beat.to_string().as_bytes(), server.heartbeat);
        }
        if !is_late {
            let reminders = locked(state).judge();
            remind(injectors, &reminders);
        }
        if beat % BEATS_A_TICK == 0 {
            locked(state).tick();
        }
        thread::sleep(Duration::from_micros(HEARTBEAT_US));
    }
}

fn hear(state: &Mutex<State>, socket: &UdpSocket, injectors: &[Injector]) {
    let mut buffer = [0; HEARTBEAT_BYTES_MAX];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let Some((_, healthy)) = read_answer(&buffer[..length]) else { continue };
        let reminders = locked(state).on_answer(from, healthy);
        remind(injectors, &reminders);
    }
}

/// Sends what clients of a suspected server said last to others. It is done without the state: they may be many.
fn remind(injectors: &[Injector], reminders: &[Reminder]) {
    for (host, bytes) in reminders {
        // If it is lost, the client repeats its request some time later.
        let _ = injectors[*host].send(bytes);
    }
}

impl State {
    /// The server that a packet of a client goes to.
    fn pick(&mut self, bytes: &[u8]) -> Option<usize> {
        let (client, _) = packet::ends(bytes)?;
        let host = self.balancer.pick(client)?;
        if let Some(reminders) = &mut self.reminders {
            reminders.on_packet(self.clock.now(), host, bytes);
        }
        Some(host)
    }

    fn tick(&mut self) {
        if let Some(reminders) = &mut self.reminders {
            reminders.on_tick(self.clock.now());
        }
    }

    fn on_answer(&mut self, from: SocketAddr, healthy: bool) -> Vec<Reminder> {
        let host = self.servers.iter().position(|server| server.heartbeat == from);
        let Some(host) = host else { return Vec::new() };
        self.monitor.on_answer(self.clock.now(), host, healthy);
        self.judge()
    }

    /// Who is suspected since, and who is not any more. Answers what their clients are to be reminded of.
    fn judge(&mut self) -> Vec<Reminder> {
        let now = self.clock.now();
        let mut reminders = Vec::new();
        for host in 0..self.servers.len() {
            let live = self.monitor.is_live(now, host);
            if live != self.live[host] {
                self.live[host] = live;
                self.balancer.set(host, live);
                let word = if live { "serves" } else { "is suspected" };
                // Nobody may be reading any more.
                let _ = writeln!(io::stdout(), "server {} ({}) {word}", host + 1, self.servers[host].address);
                if !live {
                    reminders.extend(self.reminders_of(host));
                }
            }
        }
        reminders
    }

    fn reminders_of(&mut self, suspected: usize) -> Vec<Reminder> {
        let now = self.clock.now();
        let Some(kept) = &mut self.reminders else { return Vec::new() };
        let mut reminders = Vec::new();
        for (client, bytes) in kept.on_suspicion(suspected) {
            let Some(host) = self.balancer.pick(client) else { continue };
            kept.on_packet(now, host, &bytes);
            reminders.push((host, bytes));
        }
        reminders
    }
}

/// Routes of marked packets, in the kernel until this is dropped.
#[derive(Debug)]
struct Routes {
    count: usize,
}

impl Routes {
    fn install(servers: &[Server]) -> io::Result<Self> {
        let mut routes = Self { count: 0 };
        for (host, server) in servers.iter().enumerate() {
            let (mark, table) = (FIRST_MARK + number(host), FIRST_TABLE + number(host));
            // What a predecessor left behind; usually there is nothing.
            let _ = ip(&format!("rule del fwmark {mark} lookup {table}"));
            ip(&format!("route replace default via {} table {table}", server.address))?;
            ip(&format!("rule add fwmark {mark} lookup {table}"))?;
            routes.count = host + 1;
        }
        Ok(routes)
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        for host in 0..self.count {
            let (mark, table) = (FIRST_MARK + number(host), FIRST_TABLE + number(host));
            let removed = ip(&format!("rule del fwmark {mark} lookup {table}"))
                .and_then(|()| ip(&format!("route flush table {table}")));
            if let Err(error) = removed {
                eprintln!("a route is still there: {error}");
            }
        }
    }
}

fn ip(words: &str) -> io::Result<()> {
    run("ip", &words.split_whitespace().map(str::to_string).collect::<Vec<_>>())
}
