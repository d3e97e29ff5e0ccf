//! A seed draws a whole world: its servers, clients, network, and faults.

use super::client::Wish;
use super::content::{Framing, Object};
use super::random::Random;
use super::tcp::Offer;
use crate::config::Mode;

/// Servers of a world.
pub const HOSTS: usize = 3;

/// What happens to the server that serves the first client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The machine dies for good.
    Die,
    /// The machine's network is cut for so long; it goes on with what it has then.
    Cut {
        /// Microseconds.
        us: u64,
    },
    /// Only the application dies, and comes back after so long.
    Application {
        /// Microseconds.
        us: u64,
        /// Whether its kernel resets connections; otherwise it sends FIN.
        reset: bool,
    },
    /// The monitor takes the server for dead for so long, wrongly.
    Suspect {
        /// Microseconds.
        us: u64,
    },
}

/// The network between clients and servers.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    pub delay_us: u64,
    pub jitter_us: u64,
    pub loss_permille: u64,
    pub duplicate_permille: u64,
    pub store_us_max: u64,
}

/// A world.
#[derive(Clone, Debug)]
pub struct Plan {
    pub mode: Mode,
    pub start_us: u64,
    pub epoch_us: u64,
    pub network: Network,
    pub clients: Vec<(Wish, Offer)>,
    pub servers: Vec<(String, bool, Offer)>,
    pub objects: Vec<Object>,
    /// How many of the objects timestamps can name.
    pub named: usize,
    /// Faults, each before the gateway's packet of this number.
    pub faults: Vec<(u64, Fault)>,
    pub harm: Harm,
}

/// What goes wrong beside the faults of servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Harm {
    /// How often the store has forgotten what it knew of a connection, and how often an operation fails.
    pub forget_permille: u64,
    pub fail_permille: u64,
    /// How often an application answers that it cannot, each time by chance.
    pub ill_permille: u64,
    /// How often a stranger sends a packet in a client's name, which does not know the connection's numbers.
    pub stranger_permille: u64,
    /// The first client's application dies at the client's packet of this number.
    pub abort_at: Option<u64>,
    /// Clients ask in a way that is passed through.
    pub plain: bool,
}

impl Harm {
    fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed, 5);
        let mut harm = Self::default();
        let mut rare = |most: u64| if random.permille(120) { random.between(1, most) } else { 0 };
        harm.forget_permille = rare(300);
        harm.fail_permille = rare(300);
        harm.ill_permille = rare(400) + rare(400);
        harm.abort_at = Some(rare(60)).filter(|at| *at > 0);
        harm.plain = rare(1) > 0;
        harm.stranger_permille = if random.permille(300) { random.between(10, 500) } else { 0 };
        harm
    }

    /// Whether a download may end early or never, beside servers that fail. It may not be wrong.
    pub fn breaks(&self, has_faults: bool, mode: Mode) -> bool {
        let store = self.forget_permille > 0 || self.fail_permille > 0;
        // A stranger's SYN that reaches the next server first has it show the client timestamps without the state.
        let stamps = mode == Mode::Ts && self.stranger_permille > 0;
        has_faults && (store || self.plain || self.ill_permille > 0 || stamps)
    }
}

impl Plan {
    /// The world of a seed.
    pub fn of_seed(seed: u64, mode: Mode) -> Self {
        let mut random = Random::new(seed, 1);
        let stamps = mode == Mode::Ts || random.permille(800);
        let objects = objects(&mut random, mode);
        let mut clients: Vec<(Wish, Offer)> =
            (0..random.between(1, 3)).map(|_| client(&mut random, mode, &objects, stamps)).collect();
        let ranges = random.permille(900);
        let mut server = |index: usize| {
            // Where timestamps hold the head's length, it is padded to one that all have.
            let extra = usize::try_from(random.below(90)).unwrap_or(0);
            (format!("s{index}{}", "x".repeat(extra)), ranges, offer(&mut random, true))
        };
        let mut servers: Vec<(String, bool, Offer)> = (0..HOSTS).map(&mut server).collect();
        // Servers whose first number is the same, and of which only some scale: a client that took the SYN of one may
        // be served by another, which cannot know. With a large scale, the window that is understood holds no head.
        if servers.iter().any(|(_, _, offer)| offer.scale.is_none()) {
            let offers = clients.iter_mut().map(|(_, offer)| offer);
            for offer in offers.chain(servers.iter_mut().map(|(_, _, offer)| offer)) {
                offer.scale = offer.scale.map(|scale| scale % 8);
            }
        }
        let harm = Harm::of_seed(seed);
        let mut segments = Random::new(seed, 6);
        for (wish, offer) in &mut clients {
            offer.segment =
                [1460, 1460, 1380, 1240, 900, 536][usize::try_from(segments.below(6)).unwrap_or(0)];
            wish.plain = harm.plain;
        }
        let epoch_us = 600_000_000;
        let start_us = 7 * epoch_us - random.below(2_000_000);
        let network = network(&mut random);
        let mut faults = faults(&mut random, &objects);
        if harm.forget_permille > 0 {
            // Of two servers that answer one request, only the record that was first tells what the client has.
            faults.retain(|(_, fault)| *fault == Fault::Die);
            // Without these, a client that lacks only the first segment looks like one that has nothing.
            let offers = clients.iter_mut().map(|(_, offer)| offer);
            offers.chain(servers.iter_mut().map(|(_, _, offer)| offer)).for_each(|offer| offer.sack = true);
        }
        Self {
            mode,
            start_us,
            epoch_us,
            network,
            clients,
            servers,
            named: if mode == Mode::Hybrid { objects.len() / 2 } else { objects.len() },
            faults,
            objects,
            harm,
        }
    }
}

fn objects(random: &mut Random, mode: Mode) -> Vec<Object> {
    let bytes_max = [1, 2_000, 20_000, 200_000];
    let object = |number: u64| {
        let bound = bytes_max[usize::try_from(random.below(4)).unwrap_or(0)];
        let framing = match random.below(10) {
            0 | 1 if mode != Mode::Ts => Framing::Chunked,
            2 if mode != Mode::Ts => Framing::UntilClose,
            _ => Framing::Length,
        };
        Object { number, bytes: random.below(bound + 1), framing }
    };
    (0..8).map(object).collect()
}

fn offer(random: &mut Random, stamps: bool) -> Offer {
    let scale = u8::try_from(random.below(15)).unwrap_or(0);
    Offer {
        stamps,
        sack: random.permille(800),
        scale: random.permille(800).then_some(scale),
        segment: 1460,
        clock: u32::try_from(random.next() >> 32).unwrap_or(0),
    }
}

fn client(random: &mut Random, mode: Mode, objects: &[Object], stamps: bool) -> (Wish, Offer) {
    let count = if mode == Mode::Ts || random.permille(500) { 1 } else { random.between(2, 4) };
    let mut pick = || objects[usize::try_from(random.below(objects.len() as u64)).unwrap_or(0)];
    let mut wanted: Vec<Object> = (0..count).map(|_| pick()).collect();
    // Only the last response of a connection can end with it.
    while wanted.len() > 1
        && wanted[..wanted.len() - 1].iter().any(|object| object.framing == Framing::UntilClose)
    {
        wanted.remove(0);
    }
    let close = mode == Mode::Ts || random.permille(500);
    let wish = Wish { objects: wanted, close, pipelined: random.permille(200), plain: false };
    (wish, offer(random, stamps))
}

fn network(random: &mut Random) -> Network {
    let quiet = random.permille(300);
    Network {
        delay_us: random.between(100, 30_000),
        jitter_us: if quiet { 0 } else { random.below(20_000) },
        loss_permille: if quiet { 0 } else { random.below(80) },
        duplicate_permille: if quiet { 0 } else { random.below(50) },
        // A slow store is what lets two servers answer one request, each with its record on the way.
        store_us_max: if random.permille(200) { 900_000 } else { random.between(50, 20_000) },
    }
}

/// At most two machines die, so that one is left.
fn faults(random: &mut Random, objects: &[Object]) -> Vec<(u64, Fault)> {
    let count = [0, 1, 1, 1, 2, 2, 3][usize::try_from(random.below(7)).unwrap_or(0)];
    let range = [12, 40, 400][usize::try_from(random.below(3)).unwrap_or(0)];
    // An early FIN cannot be told from the end of a body that ends with the connection.
    let unclear = objects.iter().any(|object| object.framing == Framing::UntilClose);
    let mut deaths = 0;
    let mut fault = |_| {
        let at = random.between(1, range);
        let us = random.between(10_000, 3_000_000);
        let fault = match random.below(8) {
            0..=2 if deaths < 2 => {
                deaths += 1;
                Fault::Die
            }
            3 | 4 => Fault::Cut { us },
            5 | 6 => Fault::Application { us, reset: unclear || random.permille(500) },
            _ => Fault::Suspect { us },
        };
        (at, fault)
    };
    (0..count).map(&mut fault).collect()
}
