//! One protocol in a world of any size, whose cores take the time that their work costs.
//!
//! Each partition has a core of its own. With prices, a core executes one input after the other, and a client waits for
//! those before its own: throughput is what the cores can do. A core here executes [`INSTRUCTIONS_PER_US`], about a
//! tenth of one of today, so that a short time suffices; whatever happens at intervals happens [`STRETCH`] times more
//! rarely for the same reason. What is idealised: sockets, kernels, encoding and disks take no processor time, memory
//! is equally near everywhere, and an input costs the mean of its kind, however much it carries.

use super::cost::{Cost, percentile};
use super::demand::Demand;
use super::load::Load;
use super::{Contestant, world};
use ensue_sim::world::shape::Shape;
use ensue_sim::world::traffic::Traffic;
use ensue_sim::world::work::{Prices, Processors, Work};

/// What a core with prices executes in a virtual microsecond.
pub const INSTRUCTIONS_PER_US: u64 = 300;
/// How much longer intervals are in a world with prices.
pub const STRETCH: u64 = 10;
/// Nodes have met, and the keys are written; only then does work take time.
const READY_US: u64 = 505_000;

/// What is run.
#[derive(Clone, Debug)]
pub struct Trial {
    pub contestant: Contestant,
    pub demand: Demand,
    pub datacenters: u8,
    /// Of each datacenter, a core each.
    pub partitions: u16,
    /// Between any two datacenters, one way.
    pub delay_us: u64,
    pub stabilization_ms: u64,
    pub seed: u64,
    /// Before anything is counted: the keys have been written, and there is as much under way as there will be.
    pub warmup_us: u64,
    pub counted_us: u64,
    pub prices: Option<Prices>,
    /// Whether messages, dependencies and stale values are counted, which takes longer than the run itself.
    pub watches: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Findings {
    pub counted_us: u64,
    pub operations: u64,
    /// Ascending: operations on one key, and on several.
    pub single_us: Vec<u64>,
    pub several_us: Vec<u64>,
    pub cost: Option<Cost>,
    /// Units of each kind of work that nodes were given, over the whole run; with prices.
    pub units: Option<[u64; Work::ALL.len()]>,
    /// The share of its time that the busiest core worked, and all cores in the mean; with prices.
    pub busiest: f64,
    pub busy: f64,
}

impl Findings {
    /// Operations in a virtual second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 * 1e6 / self.counted_us.max(1) as f64
    }

    /// Of both kinds together, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        let all = self.single_us.iter().chain(&self.several_us);
        let count = self.single_us.len() + self.several_us.len();
        all.sum::<u64>() as f64 / 1e3 / count.max(1) as f64
    }

    /// So many of a hundred operations on several keys were answered by then, in milliseconds.
    pub fn several_ms(&self, percent: usize) -> f64 {
        percentile(&self.several_us, percent).unwrap_or_default() as f64 / 1e3
    }
}

impl Trial {
    pub fn run(&self) -> Result<Findings, String> {
        let shape = Shape {
            replicas: 1,
            datacenters: self.datacenters,
            cores: self.partitions,
            partitions: self.partitions,
            one_process: false,
        };
        let count = usize::from(self.datacenters);
        let delay = |a: usize, b: usize| if a == b { 0 } else { self.delay_us };
        let delay_us = (0..count).map(|a| (0..count).map(|b| delay(a, b)).collect()).collect();
        let mut options = self.contestant.options(self.seed, self.demand, shape, delay_us);
        let stretch = if self.prices.is_some() { STRETCH } else { 1 };
        let tuning = &mut options.tuning;
        tuning.stabilization_interval_ms = self.stabilization_ms;
        for interval_ms in [
            &mut tuning.stabilization_interval_ms,
            &mut tuning.heartbeat_interval_ms,
            &mut tuning.acknowledge_interval_ms,
        ] {
            *interval_ms *= stretch;
        }
        let mut world = world(options);
        world.traffic = self.watches.then(Traffic::default);
        let mut load = Load::new(&mut world, self.demand, self.watches);
        load.run(&mut world, READY_US)?;
        world.work = self.prices.map(|prices| Processors::new(shape.sites(), prices, INSTRUCTIONS_PER_US));
        load.run(&mut world, READY_US + self.warmup_us)?;
        let (before, busy_before) = (load.operations(), busy_us(&world));
        load.begin(&mut world);
        let begun_us = world.now();
        load.run(&mut world, begun_us + self.counted_us)?;
        load.end(&mut world);
        let operations = load.operations() - before;
        let busy: Vec<f64> = busy_us(&world)
            .iter()
            .zip(&busy_before)
            .map(|(after, before)| (after - before) as f64 / self.counted_us.max(1) as f64)
            .collect();
        let units = world.work.as_ref().map(Processors::units);
        // What is asked of the nodes at the end is answered.
        let rest_us = world.now() + super::REST_US;
        load.run(&mut world, rest_us)?;
        let (mut single_us, mut several_us) =
            (std::mem::take(&mut load.single_us), std::mem::take(&mut load.several_us));
        single_us.sort_unstable();
        several_us.sort_unstable();
        let cost = world.traffic.take().map(|traffic| Cost::of(load, traffic));
        Ok(Findings {
            counted_us: self.counted_us,
            operations,
            single_us,
            several_us,
            cost,
            units,
            busiest: busy.iter().copied().fold(0.0, f64::max),
            busy: busy.iter().sum::<f64>() / busy.len().max(1) as f64,
        })
    }
}

fn busy_us(world: &ensue_sim::world::World) -> Vec<u64> {
    world.work.as_ref().map(Processors::busy_us).unwrap_or_default()
}
