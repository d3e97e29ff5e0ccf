//! What of a world with branches the seed draws beside everything else, and what its oracle must be told of it.

use crate::random::Random;
use crate::world::options::Options;
use ensue_node::{BranchingOptions, Collection};
use ensue_types::DatacenterId;

/// What an oracle must know of a world.
#[derive(Clone, Debug, Default)]
pub struct BranchOptions {
    pub datacenters: u8,
    /// States are collected without the consent of the other datacenters.
    pub optimistic: bool,
    /// Sites place ceilings by themselves.
    pub places_ceilings: bool,
    /// Times in a thousand that a client's step places a ceiling.
    pub ceiling_rate: u64,
    pub transaction_timeout_ms: u64,
    /// From this time on clients are gone, and everything is at rest.
    pub final_us: Option<u64>,
    /// Datacenters that were lost for good.
    pub lost: Vec<DatacenterId>,
    /// Datacenters of which a process was started again: a ceiling that it had not told the others may be forgotten.
    pub restarted: Vec<DatacenterId>,
}

impl BranchOptions {
    pub fn of(options: &Options) -> BranchOptions {
        let tuning = &options.tuning.branching;
        BranchOptions {
            datacenters: options.shape.datacenters,
            optimistic: tuning.collection == Collection::Optimistic,
            places_ceilings: tuning.ceiling_every > 0,
            ceiling_rate: options.workload.ceiling_rate,
            transaction_timeout_ms: tuning.transaction_timeout_ms,
            final_us: None,
            lost: Vec::new(),
            restarted: Vec::new(),
        }
    }

    pub fn is_lost(&self, datacenter: DatacenterId) -> bool {
        self.lost.contains(&datacenter)
    }
}

/// How a world treats its branches, and how often clients place ceilings.
pub fn draw(seed: u64, datacenters: u8) -> (BranchingOptions, u64) {
    let random = &mut Random::stream(seed, "branches of options");
    let merging = random.chance(150).then(|| DatacenterId(random.below(u64::from(datacenters)) as u8));
    let mut drawn = BranchingOptions {
        collection: Collection::Pessimistic,
        ceiling_every: random.pick(&[0, 0, 0, 10, 50]),
        states_max: 100_000,
        leaves_max: random.pick(&[1_000, 1_000, 6]),
        merging_datacenter: merging,
        transaction_timeout_ms: random.pick(&[200, 2_000, 60_000]),
    };
    let ceiling_rate = random.pick(&[0, 0, 10, 40]);
    if random.chance(300) {
        drawn.collection = Collection::Optimistic;
    }
    (drawn, ceiling_rate)
}
