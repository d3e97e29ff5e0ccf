//! The protocols side by side: the same clients in the same calm world, once a protocol, and what it cost them.
//!
//! Everything that is told comes from what happened: messages as they pass, answers as clients get them, figures that
//! nodes keep of themselves. Processor time is the one thing that virtual time does not know; it is measured around
//! each call of a node.

pub mod chart;
pub mod cli;
pub mod cost;
pub mod demand;
mod drawing;
pub mod load;
pub mod outage;
pub mod prices;
mod probes;
pub mod reads;
pub mod sites;
pub mod table;
pub mod trial;

use cost::Cost;
use demand::Demand;
use ensue_sim::stopwatch::Stopwatch;
use ensue_sim::world::World;
use ensue_sim::world::options::Options;
use ensue_sim::world::shape::Shape;
use ensue_sim::world::traffic::Traffic;
use load::Load;

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contestant {
    pub protocol: &'static str,
    pub dependency_cleaning: bool,
}

impl Contestant {
    /// Who is compared: the protocols of these names, all of them if none is named, behind the one that everything is
    /// relative to. Where cleaning is an option, once more without it.
    pub fn of(names: &[String]) -> Result<Vec<Contestant>, String> {
        let known = ensue_protocol::NAMES;
        if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("unknown protocol {unknown}; there are {}", known.join(", ")));
        }
        let wanted = |name: &&str| names.is_empty() || names.iter().any(|wanted| wanted == name);
        let others = known.into_iter().filter(|name| *name != BASE).filter(wanted);
        let mut contestants = Vec::new();
        for protocol in std::iter::once(BASE).chain(others) {
            contestants.push(Contestant { protocol, dependency_cleaning: true });
            if CLEANED.contains(&protocol) {
                contestants.push(Contestant { protocol, dependency_cleaning: false });
            }
        }
        Ok(contestants)
    }

    pub fn name(&self) -> String {
        let cleaning = if self.dependency_cleaning { "" } else { ", no cleaning" };
        format!("{}{cleaning}", self.protocol)
    }

    /// The world that everybody has to live in.
    fn world(&self, seed: u64, demand: Demand) -> World {
        let shape =
            Shape { replicas: 1, datacenters: DATACENTERS, cores: 4, partitions: 4, one_process: false };
        let delay_us = vec![vec![0, 40_000, 80_000], vec![40_000, 0, 60_000], vec![80_000, 60_000, 0]];
        world(self.options(seed, demand, shape, delay_us))
    }

    /// A calm world of this shape, with such delays between its datacenters.
    fn options(&self, seed: u64, demand: Demand, shape: Shape, delay_us: Vec<Vec<u64>>) -> Options {
        let mut options = Options::calm(shape, 0, ensue_sim::rules::Rules::default());
        options.seed = seed;
        options.protocol = ensue_protocol::find(self.protocol).expect("contestants are protocols that exist");
        options.append_fsync = demand.append_fsync;
        options.tuning = ensue_node::Tuning {
            dependency_cleaning: self.dependency_cleaning,
            heartbeat_interval_ms: demand.heartbeat_ms,
            ..ensue_node::Tuning::default()
        };
        options.links.local_us = (50, 150);
        options.links.delay_us = delay_us;
        options.links.jitter_us = 2_000;
        options.clock.skew_ms = 1;
        options.clock.bound_ms = 1;
        options
    }
}

/// A world that may go on for as long as somebody looks.
fn world(options: Options) -> World {
    let mut world = World::new(options);
    world.events_max = u64::MAX;
    world
}

/// What all others are compared with: no causality.
pub const BASE: &str = "eventual";
/// The protocols that run with dependency cleaning and without.
const CLEANED: [&str; 2] = ["orbe-dm", "orbe-clock"];
const DATACENTERS: u8 = 3;

/// How long a run takes, in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Before anything is counted.
    pub warmup_us: u64,
    pub counted_us: u64,
}

/// Probes are still under way.
const REST_US: u64 = 1_000_000;

/// Runs a protocol and looks at everything that passes.
pub fn watch(contestant: &Contestant, seed: u64, demand: Demand, span: Span) -> Result<Cost, String> {
    let mut world = contestant.world(seed, demand);
    world.traffic = Some(Traffic::default());
    let mut load = Load::new(&mut world, demand, true);
    load.run(&mut world, span.warmup_us)?;
    load.begin(&mut world);
    let begun_us = world.now();
    load.run(&mut world, begun_us + span.counted_us)?;
    load.end(&mut world);
    let rest_us = world.now() + REST_US;
    load.run(&mut world, rest_us)?;
    Ok(Cost::of(load, world.traffic.take().unwrap_or_default()))
}

/// Runs a protocol and looks at nothing but the processor time that its nodes take: nanoseconds an operation of a
/// client.
pub fn clock(
    contestant: &Contestant,
    seed: u64,
    demand: Demand,
    span: Span,
    stopwatch: Stopwatch,
) -> Result<f64, String> {
    let mut world = contestant.world(seed, demand);
    let mut load = Load::new(&mut world, demand, false);
    load.run(&mut world, span.warmup_us)?;
    world.stopwatch = Some(stopwatch);
    let before = load.operations();
    let begun_us = world.now();
    load.run(&mut world, begun_us + span.counted_us)?;
    let spent_ns = world.stopwatch.take().map_or(0, |stopwatch| stopwatch.spent_ns());
    Ok(spent_ns as f64 / (load.operations() - before).max(1) as f64)
}

#[cfg(test)]
mod tests;
