//! What a seed draws: how large the world is, how bad its network, and how its liars lie.

use super::liar::Lie;
use super::{Options, System};
use crate::random::Random;
use crate::replica_client::faults_max;

/// How messages fare.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Messages lost, of a thousand.
    pub loss_per_mille: u64,
    /// Messages that arrive twice.
    pub double_per_mille: u64,
    /// Messages that are slow.
    pub slow_per_mille: u64,
    /// The longest delay of a message.
    pub delay_us_max: u64,
    /// The longest delay of a slow one.
    pub slow_us_max: u64,
}

/// The shape of a world.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The seed itself.
    pub seed: u64,
    /// Which system.
    pub system: System,
    /// 3f+1.
    pub replicas: usize,
    /// How many of them lie, the first ones.
    pub liars: usize,
    /// How they lie.
    pub lie: Lie,
    /// Sketchers beside each other, of Prophecy.
    pub sketchers: usize,
    /// Sessions of each sketcher.
    pub sessions: usize,
    /// Entries of each history table.
    pub table_entries: usize,
    /// Clients, each with one operation at a time.
    pub clients: usize,
    /// Writers that no sketcher sees.
    pub external_writers: usize,
    /// Operations of each client and writer.
    pub operations: usize,
    /// Objects.
    pub objects: u64,
    /// Writes of clients, of a thousand operations.
    pub writes_per_mille: u64,
    /// The longest pause of a client between two operations.
    pub think_us_max: u64,
    /// Times that a correct replica stops to execute for a while, of a thousand executions.
    pub pause_per_mille: u64,
    /// The longest such time.
    pub pause_us_max: u64,
    /// Times that a sketcher joins or leaves.
    pub changes: usize,
    /// The network.
    pub network: Network,
}

impl Shape {
    /// The shape of a seed.
    pub fn draw(seed: u64, options: &Options) -> Shape {
        let mut random = Random::stream(seed, "shape");
        let drawn = if random.chance(700) { System::Prophecy } else { System::DProphecy };
        let system = options.system.unwrap_or(drawn);
        let replicas = random.pick(&[4, 4, 4, 7, 7, 10]);
        let faults = faults_max(replicas);
        let drawn = if random.chance(800) { faults } else { random.index(faults + 1) };
        let liars = options.liars.unwrap_or(drawn).min(replicas);
        let lie = if liars > faults { random.pick(&Lie::TOGETHER) } else { random.pick(&Lie::ALL) };
        let sketchers = if random.chance(300) { random.between(2, 3) as usize } else { 1 };
        let network = Network {
            loss_per_mille: random.pick(&[0, 0, 20, 100, 200]),
            double_per_mille: random.pick(&[0, 30, 100]),
            slow_per_mille: random.pick(&[0, 50, 200]),
            delay_us_max: random.pick(&[200, 500, 2_000]),
            slow_us_max: random.pick(&[5_000, 20_000, 100_000]),
        };
        let shape = Shape {
            seed,
            system,
            replicas,
            liars,
            lie,
            sketchers,
            sessions: random.between(1, 6) as usize,
            table_entries: random.pick(&[1, 1, 2, 8, 64]),
            clients: random.between(2, 6) as usize,
            external_writers: random.index(3),
            operations: random.between(10, 50) as usize,
            objects: random.between(1, 3),
            writes_per_mille: random.pick(&[20, 100, 300, 600]),
            think_us_max: random.pick(&[200, 2_000, 20_000]),
            pause_per_mille: random.pick(&[0, 50, 200]),
            pause_us_max: random.pick(&[5_000, 50_000, 500_000]),
            changes: if sketchers > 1 { random.between(1, 20) as usize } else { 0 },
            network,
        };
        if random.chance(80) { shape.with_a_busy_object() } else { shape }
    }

    /// One object that changes before nearly every read, so that its reads come onto the blacklist.
    fn with_a_busy_object(self) -> Shape {
        let (objects, operations, writes_per_mille) = (1, 150, 850);
        Shape { objects, operations, writes_per_mille, think_us_max: 200, table_entries: 64, ..self }
    }
}
