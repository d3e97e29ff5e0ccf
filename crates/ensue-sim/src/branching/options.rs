//! What of a world with branches the seed draws beside everything else, and what its oracle must be told of it.

use crate::random::Random;
use ensue_types::DatacenterId;

/// How a world treats its branches.
#[derive(Clone, Debug, Default)]
pub struct BranchOptions {
    pub datacenters: u8,
    /// States are collected without the consent of the other datacenters.
    pub optimistic: bool,
    /// So many states committed by a site until it places ceilings by itself; 0 is never.
    pub ceiling_every: u64,
    /// Sites place ceilings by themselves.
    pub places_ceilings: bool,
    /// Times in a thousand that a client's step places a ceiling.
    pub ceiling_rate: u64,
    pub transaction_timeout_ms: u64,
    /// From this time on clients are gone, and everything is at rest.
    pub final_us: Option<u64>,
    /// Datacenters that were lost for good.
    pub lost: Vec<DatacenterId>,
}

impl BranchOptions {
    pub fn draw(seed: u64, datacenters: u8) -> BranchOptions {
        let random = &mut Random::stream(seed, "branches of options");
        let ceiling_every = random.pick(&[0, 0, 0, 10, 50]);
        BranchOptions {
            datacenters,
            optimistic: random.chance(300),
            ceiling_every,
            places_ceilings: ceiling_every > 0,
            ceiling_rate: random.pick(&[0, 0, 10, 40]),
            transaction_timeout_ms: random.pick(&[200, 2_000, 60_000]),
            final_us: None,
            lost: Vec::new(),
        }
    }

    pub fn is_lost(&self, datacenter: DatacenterId) -> bool {
        self.lost.contains(&datacenter)
    }
}
