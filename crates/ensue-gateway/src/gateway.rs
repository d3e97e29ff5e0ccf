//! A gateway at work on one server: two queues of the kernel, a raw socket, a store, and the monitor's questions.
//!
//! Packets to the server stand in one queue and packets of the server in the other, with a thread each. Whatever comes
//! in takes its turn at one [`Trods`]; what it says is carried out before the next input.

use crate::Clock;
use crate::health::Health;
use crate::inject::{Injector, PASSED_MARK};
use crate::limits::TICK;
use crate::queue::{Packets, Waiting};
use crate::rules::{Installed, Rule};
use crate::spawn;
use crate::store::{Place, Store};
use ensue_trods::{Config, Counters, Key, Output, Side, StoreOutcome, Ticket, Trods, Verdict};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

/// How a gateway is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What decides; `None` lets every packet pass, to see what the way through this process costs.
    pub trods: Option<Config>,
    /// The address of the service, which every server has.
    pub address: Ipv4Addr,
    /// Its ports.
    pub ports: Vec<u16>,
    /// The number of the first of two queues.
    pub queue: u16,
    /// Where records are kept.
    pub store: Place,
    /// Where the monitor is answered, if there is one.
    pub heartbeat: Option<SocketAddr>,
}

/// What went through a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Packets that came from the kernel.
    pub packets: u64,
    /// Packets that this gateway sent by itself.
    pub injected: u64,
    /// Packets that the kernel did not take.
    pub refused: u64,
    /// What the core counted.
    pub core: Counters,
    /// Connections that are known.
    pub connections: usize,
}

/// A gateway at work. Its rules are removed when this is dropped; its threads end with the process.
#[derive(Debug)]
pub struct Gateway {
    core: Arc<Mutex<Core>>,
    _rules: Installed,
}

#[derive(Debug)]
struct Core {
    clock: Clock,
    trods: Option<Trods>,
    store: Store,
    injector: Injector,
    health: Option<Arc<Health>>,
    packets: u64,
    injected: u64,
    refused: u64,
}

impl Gateway {
    /// Starts a gateway: the queues first, and then the rules that fill them.
    ///
    /// # Errors
    /// Rights that are missing, a queue or port that is in use, or a command that fails.
    pub fn start(settings: &Settings) -> io::Result<Self> {
        let numbers = [settings.queue, settings.queue.wrapping_add(1)];
        let to_server = Packets::open(numbers[0])?;
        let of_server = Packets::open(numbers[1])?;
        let core = Arc::new(Mutex::new(Core::open(settings)?));
        let waiting = Arc::downgrade(&core);
        let on_outcome = move |key, ticket, outcome| on_outcome(&waiting, key, ticket, outcome);
        locked(&core).store = Store::open(&settings.store, on_outcome)?;
        for (side, packets) in [(Side::Client, to_server), (Side::Server, of_server)] {
            let core = Arc::clone(&core);
            spawn("trods-packets", move || serve(&core, side, packets))?;
        }
        let ticking = Arc::downgrade(&core);
        spawn("trods-tick", move || tick(&ticking))?;
        let rules = Installed::install(rules(settings, numbers))?;
        Ok(Self { core, _rules: rules })
    }

    /// What went through so far.
    #[must_use]
    pub fn passed(&self) -> Passed {
        let core = locked(&self.core);
        Passed {
            packets: core.packets,
            injected: core.injected,
            refused: core.refused,
            core: core.trods.as_ref().map(Trods::counters).unwrap_or_default(),
            connections: core.trods.as_ref().map_or(0, Trods::connections),
        }
    }
}

/// Packets of the service stand in the queues, but for those that the gateway sent itself, and those that stay on this
/// machine: it sends to the server through the loopback interface.
fn rules(settings: &Settings, numbers: [u16; 2]) -> Vec<Rule> {
    let address = settings.address;
    let rule = |port: &u16| {
        let [to_server, of_server] = numbers;
        [
            Rule::new(&format!(
                "INPUT ! -i lo -d {address} -p tcp --dport {port} -j NFQUEUE --queue-num {to_server}"
            )),
            Rule::new(&format!(
                "OUTPUT ! -o lo -s {address} -p tcp --sport {port} -m mark ! --mark {PASSED_MARK:#x} -j NFQUEUE \
                 --queue-num {of_server}"
            )),
        ]
    };
    settings.ports.iter().flat_map(rule).collect()
}

fn locked(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(core: &Mutex<Core>, side: Side, mut packets: Packets) {
    loop {
        let result = packets.next().and_then(|packet| locked(core).on_packet(side, packet, &mut packets));
        if let Err(error) = result {
            eprintln!("a packet is lost: {error}");
        }
    }
}

fn on_outcome(core: &Weak<Mutex<Core>>, key: Key, ticket: Ticket, outcome: StoreOutcome) {
    if let Some(core) = core.upgrade() {
        locked(&core).on_outcome(key, ticket, outcome);
    }
}

fn tick(core: &Weak<Mutex<Core>>) {
    while let Some(core) = core.upgrade() {
        locked(&core).on_tick();
        drop(core);
        thread::sleep(TICK);
    }
}

impl Core {
    fn open(settings: &Settings) -> io::Result<Self> {
        let application = settings.ports.first().map(|port| SocketAddrV4::new(settings.address, *port));
        let health = match (settings.heartbeat, application) {
            (Some(listen), Some(application)) => Some(Health::watch(listen, application)?),
            _ => None,
        };
        Ok(Self {
            clock: Clock::start(),
            trods: settings.trods.clone().map(Trods::new),
            store: Store::Nowhere,
            injector: Injector::open(PASSED_MARK)?,
            health,
            packets: 0,
            injected: 0,
            refused: 0,
        })
    }

    fn on_packet(&mut self, side: Side, packet: Waiting, packets: &mut Packets) -> io::Result<()> {
        self.packets += 1;
        let Some(trods) = &mut self.trods else { return packets.decide(packet, Verdict::Accept) };
        trods.on_packet(self.clock.now(), side, packet.bytes());
        let Some(Output::Verdict(verdict)) = trods.next_output() else {
            unreachable!("the first output of a packet is its verdict")
        };
        // What follows is the answer to this packet, or has waited for it: it must not overtake.
        let decided = packets.decide(packet, verdict);
        self.carry_out();
        decided
    }

    fn on_outcome(&mut self, key: Key, ticket: Ticket, outcome: StoreOutcome) {
        if let Some(trods) = &mut self.trods {
            trods.on_store(self.clock.now(), key, ticket, outcome);
            self.carry_out();
        }
    }

    fn on_tick(&mut self) {
        if let Some(trods) = &mut self.trods {
            trods.on_tick(self.clock.now());
            self.carry_out();
        }
    }

    /// Carries out what the core wants. Outcomes that the store knows at once are the next inputs, when nothing else is
    /// wanted any more.
    fn carry_out(&mut self) {
        let Some(trods) = &mut self.trods else { return };
        loop {
            let mut known = Vec::new();
            while let Some(output) = trods.next_output() {
                match output {
                    Output::Verdict(_) => unreachable!("only a packet has a verdict, and it was taken"),
                    Output::Inject { bytes, .. } => match self.injector.send(&bytes) {
                        Ok(()) => self.injected += 1,
                        // As if the network had lost it: both ends of a connection send again.
                        Err(_) => self.refused += 1,
                    },
                    Output::Store { ticket, op } => {
                        let key = op.key();
                        known.extend(self.store.begin(ticket, op).map(|outcome| (key, ticket, outcome)));
                    }
                    Output::ApplicationFailed => {
                        if let Some(health) = &self.health {
                            health.on_failure();
                        }
                    }
                }
            }
            if known.is_empty() {
                return;
            }
            for (key, ticket, outcome) in known {
                trods.on_store(self.clock.now(), key, ticket, outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests;
