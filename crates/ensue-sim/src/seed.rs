//! One seed draws the whole world: shape, bounds, delays, clocks, faults and workload.
//!
//! Bounds are shrunk so that what is rare in production is common here; `Display` prints every option.

use crate::branching::options;
use crate::faults::{Fault, Kind as _, LoseDatacenter, OF_DIRECTORIES, PowerLoss, RecoverClock};
use crate::random::Random;
use crate::rules::Rules;
use crate::shape::Shape;
use crate::workload::folds;
use crate::workload::mix::{FOLD_KINDS, KINDS, Kind};
use ensue_node::{AppendFsync, Handler, Tuning};
use ensue_protocol::{Promises, Registration};
use ensue_types::{KeyspaceId, limits};
use std::collections::BTreeMap;
use std::fmt;

/// Delays of connections, in microseconds.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// Least and most within a datacenter.
    pub local_us: (u64, u64),
    /// From one datacenter to another, by their numbers; the way back may take another time.
    pub delay_us: Vec<Vec<u64>>,
    pub jitter_us: u64,
    /// Times in a thousand that a message between datacenters takes twice as long, of these four times, and so on: a heavy
    /// tail, up to 64 times.
    pub tail: u64,
}

/// Least and most times of disk work, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct DiskOptions {
    pub append_us: (u64, u64),
    pub sync_us: (u64, u64),
}

/// How wrong clocks are.
#[derive(Clone, Copy, Debug)]
pub struct ClockOptions {
    /// No clock begins further from true time than this.
    pub skew_ms: u64,
    /// No clock is further from true time than this.
    pub bound_ms: u64,
    pub drift_ppm: u64,
    pub jump_ms: u64,
    /// A wild clock is ahead by this much at most; 0 if there is none.
    pub wild_ms: u64,
    /// A datacenter with a wild clock may be given times that the others believe.
    pub recovers: bool,
}

/// Which kinds of faults there are, and how often.
#[derive(Clone, Debug, Default)]
pub struct FaultOptions {
    /// Mean time between two faults of a kind, by the kind's name.
    pub intervals_ms: Vec<(&'static str, u64)>,
    /// A fault that ends lasts this long at most.
    pub duration_ms_max: u64,
    /// None strikes after this time.
    pub until_us: u64,
    /// A datacenter may be lost for good.
    pub loses_datacenter: bool,
    /// Directories of a datacenter may be lost, exchanged, or replaced by old copies.
    pub loses_directories: bool,
}

/// What clients do.
#[derive(Clone, Debug, Default)]
pub struct WorkloadOptions {
    pub clients: usize,
    pub operations: u64,
    pub think_us_max: u64,
    /// Times in a thousand that a client sends several requests at once.
    pub pipeline: u64,
    /// Times in a thousand that a client moves to another core, with its token.
    pub move_rate: u64,
    pub merge_rate: u64,
    pub merge_timeout_ms: u64,
    /// Times in a thousand that a client of a keyspace with branches places a ceiling.
    pub ceiling_rate: u64,
    /// Keys of each class.
    pub keys: usize,
    /// Weights of the operations, in the order of `workload::mix::KINDS`, then `FOLD_KINDS`.
    pub mix: Vec<u64>,
    /// Only these steps are taken, each not before its time. Nothing: all are taken, after thinking.
    pub kept: Option<Kept>,
}

/// Steps of clients, by the numbers of both, and when they are taken.
pub type Kept = BTreeMap<(usize, u64), u64>;

/// Everything about one run.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    pub protocol: &'static Registration,
    pub rules: Rules,
    pub shape: Shape,
    /// Patterns of keys and their handlers of conflicts, of all keyspaces; only protocols that fold ask for them.
    pub handlers: Vec<(String, String)>,
    pub append_fsync: AppendFsync,
    pub tuning: Tuning,
    pub links: LinkOptions,
    pub disk: DiskOptions,
    pub clock: ClockOptions,
    /// Longest turn: inputs that come within it share one `TurnEnd`.
    pub turn_us_max: u64,
    pub faults: FaultOptions,
    pub workload: WorkloadOptions,
}

impl Options {
    /// The world of a seed.
    pub fn draw(seed: u64, rules: Rules) -> Options {
        Options::draw_with(seed, rules, protocol_of(seed))
    }

    /// Whether the protocol is not the one that the seed draws, so that it must be said.
    pub fn says_protocol(&self) -> bool {
        self.protocol.name != protocol_of(self.seed)
    }

    /// The world of a seed with this protocol, whatever the seed says.
    pub fn draw_with(seed: u64, rules: Rules, protocol: &str) -> Options {
        Options::draw_of(
            seed,
            rules,
            ensue_protocol::find(protocol).expect("callers name protocols that exist"),
        )
    }

    /// The same with any protocol, wherever it is registered.
    pub fn draw_of(seed: u64, rules: Rules, protocol: &'static Registration) -> Options {
        let random = &mut Random::stream(seed, "options");
        let shape = draw_shape(random);
        let append_fsync = random.pick(&[
            AppendFsync::Always,
            AppendFsync::Always,
            AppendFsync::EverySecond,
            AppendFsync::EverySecond,
            AppendFsync::No,
        ]);
        let bound_ms = random.pick(&[0, 5, 50, 500, 500]);
        let mut workload = draw_workload(&mut Random::stream(seed, "workload of options"));
        if protocol.promises.folds {
            draw_folds(&mut Random::stream(seed, "folds of options"), &mut workload.mix);
        }
        let mut options = Options {
            seed,
            protocol,
            rules,
            shape,
            handlers: folds::handlers(),
            append_fsync,
            tuning: draw_turns(
                &mut Random::stream(seed, "turns of sessions"),
                draw_tuning(&mut Random::stream(seed, "tuning")),
            ),
            links: draw_links(&mut Random::stream(seed, "links"), shape),
            disk: draw_disk(random),
            clock: ClockOptions {
                skew_ms: bound_ms,
                bound_ms,
                drift_ppm: random.pick(&[0, 20, 200]),
                jump_ms: random.pick(&[5, 50, 400]),
                wild_ms: 0,
                recovers: false,
            },
            turn_us_max: random.pick(&[0, 0, 10, 100, 500]),
            faults: FaultOptions::default(),
            workload,
        };
        if options.promises().branches {
            let (branching, ceiling_rate) = options::draw(seed, shape.datacenters);
            options.tuning.branching = branching;
            options.workload.ceiling_rate = ceiling_rate;
        }
        let rarities = &mut Random::stream(seed, "rarities");
        if rarities.chance(60) {
            options.clock.wild_ms = options.tuning.clock_ahead_ms_max + rarities.between(100, 20_000);
        }
        options.faults.loses_datacenter = rarities.chance(60);
        // Ways within a datacenter, too, may be long: while the questions of one read are on theirs, others write. Each operation
        // takes long then, so there are fewer of them, and more are sent at once.
        if rarities.chance(120) {
            options.links.local_us.1 = rarities.skewed(1_000, 30_000);
            options.workload.operations /= 4;
            options.workload.pipeline = 300;
        }
        draw_habits(&mut options);
        if options.clock.wild_ms > 0 && rarities.chance(500) {
            options.recover_clocks(rarities);
        }
        options.faults = draw_faults(&options);
        draw_power(&mut options);
        options
    }

    /// Clocks run ahead by many times what is believed, as two hours are many minutes; and are set right by an
    /// operator. The bound is
    /// well above what restarts and unequal clocks come to.
    fn recover_clocks(&mut self, random: &mut Random) {
        self.tuning.clock_persist_ahead_ms = self.tuning.clock_persist_ahead_ms.min(500);
        self.tuning.clock_ahead_ms_max = 2 * self.clock.bound_ms + random.between(2_000, 4_000);
        self.clock.wild_ms = 3 * self.tuning.clock_ahead_ms_max + random.between(1_000, 40_000);
        self.clock.recovers = true;
    }

    /// The same world, of two datacenters at least, in which clocks run far ahead, and operators give their
    /// datacenters other times.
    pub fn wild_clocks(mut self) -> Options {
        if self.shape.datacenters < 2 {
            self.set("datacenters=3").expect("so many there may be");
        }
        self.make_clocks_wild();
        self.faults = draw_faults(&self);
        draw_power(&mut self);
        self.faults.intervals_ms.retain(|(name, _)| *name != RecoverClock::NAME);
        self.faults.intervals_ms.push((RecoverClock::NAME, self.faults.until_us / 5_000));
        self
    }

    /// Clocks may run far ahead, and are recovered, though the seed does not draw that.
    pub fn make_clocks_wild(&mut self) {
        if !self.clock.recovers {
            self.recover_clocks(&mut Random::stream(self.seed, "wild clocks of options"));
        }
    }

    /// Whether clocks run far ahead and are recovered though the seed does not draw that.
    pub fn says_wild_clocks(&self) -> bool {
        let drawn = Options::draw_of(self.seed, self.rules, self.protocol);
        self.clock.recovers && !drawn.clock.recovers
    }

    /// The same world, of two datacenters at least, in which one is lost for good.
    pub fn losing(mut self) -> Options {
        if self.shape.datacenters < 2 {
            self.set("datacenters=3").expect("so many there may be");
        }
        self.faults.loses_datacenter = true;
        self.faults = draw_faults(&self);
        draw_power(&mut self);
        let loss = LoseDatacenter::NAME;
        if self.faults.intervals_ms.iter().all(|(name, _)| *name != loss) {
            self.faults.intervals_ms.push((loss, self.faults.until_us / 2_000));
        }
        self
    }

    /// The same world, of two datacenters at least, in which directories are lost, exchanged, or replaced by old
    /// copies.
    pub fn losing_directories(mut self) -> Options {
        if self.shape.datacenters < 2 {
            self.set("datacenters=3").expect("so many there may be");
        }
        self.faults.loses_datacenter |= !self.may_lose_directories();
        self.faults.loses_directories = true;
        self.faults = draw_faults(&self);
        for name in OF_DIRECTORIES {
            self.faults.intervals_ms.retain(|(other, _)| *other != name);
            self.faults.intervals_ms.push((name, self.faults.until_us / 3_000));
        }
        self
    }

    /// Whether directories are lost though the seed does not draw that.
    pub fn says_losing_directories(&self) -> bool {
        let drawn = Options::draw_of(self.seed, self.rules, self.protocol);
        self.faults.loses_directories && !drawn.faults.loses_directories
    }

    /// A datacenter that does not recover is given up: see `power_may_fail`.
    fn may_lose_directories(&self) -> bool {
        self.append_fsync == AppendFsync::Always || self.faults.loses_datacenter
    }

    /// Whether a datacenter is lost for good though the seed does not draw that.
    pub fn says_losing(&self) -> bool {
        let drawn = Options::draw_of(self.seed, self.rules, self.protocol);
        self.faults.loses_datacenter && !drawn.faults.loses_datacenter
    }

    /// Whether something of another datacenter may come later than this, were it only once in many runs: only a world
    /// without faults, with small delays and good clocks, says no.
    pub fn may_wait(&self, limit_ms: u64) -> bool {
        let most_us = self.links.delay_us.iter().flatten().max().copied().unwrap_or(0);
        let links_us = most_us + self.links.jitter_us + self.links.local_us.1;
        let way_ms = (links_us + self.turn_us_max + self.disk.sync_us.1) / 1_000 + 1;
        let tuning = &self.tuning;
        let rounds_ms = tuning.heartbeat_interval_ms + tuning.stabilization_interval_ms + way_ms;
        let calm = self.faults.intervals_ms.is_empty()
            && !self.faults.loses_datacenter
            && !self.faults.loses_directories
            && self.links.tail == 0
            && self.clock.bound_ms <= 5
            && tuning.stream_window_bytes >= 64 << 10;
        self.shape.datacenters > 1 && !(calm && 3 * rounds_ms + 2 * self.clock.bound_ms < limit_ms)
    }

    /// The handlers of conflicts, as nodes are told.
    pub fn handlers(&self) -> Vec<Handler> {
        let keyspaces = (0..limits::KEYSPACES).map(KeyspaceId);
        let all = keyspaces.flat_map(|keyspace| self.handlers.iter().map(move |one| (keyspace, one)));
        let handler = |(keyspace, (pattern, name)): (KeyspaceId, &(String, String))| {
            let fold = ensue_store::fold::by_name(name)?;
            Some(Handler { keyspace, pattern: pattern.clone().into(), fold })
        };
        all.filter_map(handler).collect()
    }

    /// What the protocol promises.
    pub fn promises(&self) -> Promises {
        self.protocol.promises
    }

    /// Whether the power fails. A partition that may have lost its tail waits for every datacenter, so there is no power
    /// failure under `everysec` and `no` where a datacenter is lost for good: it is the operator who gives that one up.
    pub fn power_may_fail(&self) -> bool {
        self.append_fsync == AppendFsync::Always || !self.faults.loses_datacenter
    }
}

impl Options {
    /// A calm world for scripts: equal delays, true clocks, no faults, the usual bounds with shorter intervals.
    pub fn calm(shape: Shape, delay_us: u64, rules: Rules) -> Options {
        let count = usize::from(shape.datacenters);
        let tuning = Tuning {
            collect_interval_ms: 20,
            acknowledge_interval_ms: 5,
            request_timeout_ms: 2_000,
            ..Tuning::default()
        };
        Options {
            seed: 1,
            protocol: &ensue_protocol::REGISTRY[0],
            rules,
            shape,
            handlers: Vec::new(),
            append_fsync: AppendFsync::EverySecond,
            tuning,
            links: LinkOptions {
                local_us: (20, 20),
                delay_us: vec![vec![delay_us; count]; count],
                jitter_us: 0,
                tail: 0,
            },
            disk: DiskOptions { append_us: (1, 1), sync_us: (200, 200) },
            clock: ClockOptions {
                skew_ms: 0,
                bound_ms: 0,
                drift_ppm: 0,
                jump_ms: 0,
                wild_ms: 0,
                recovers: false,
            },
            turn_us_max: 0,
            faults: FaultOptions::default(),
            workload: WorkloadOptions::default(),
        }
    }
}

/// How many of a thousand seeds draw which protocol. A new one takes its share from the end of `eiger`'s, so that the other
/// seeds keep theirs.
const PROTOCOLS: [(&str, u64); 2] = [("eventual", 200), ("eiger", 800)];

fn protocol_of(seed: u64) -> &'static str {
    let weights = PROTOCOLS.map(|(_, weight)| weight);
    PROTOCOLS[Random::stream(seed, "protocol").weighted(&weights)].0
}

fn draw_shape(random: &mut Random) -> Shape {
    let datacenters = random.pick(&[1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 5]);
    let cores = random.pick(&[1, 2, 2]);
    let partitions = random.pick(&[1, 2, 2, 3, 3, 4, 4]).max(cores);
    Shape { datacenters, cores, partitions, one_process: random.chance(400) }
}

/// A share of the worlds has turns so short that most pipelines take several.
fn draw_turns(random: &mut Random, tuning: Tuning) -> Tuning {
    if !random.chance(300) {
        return tuning;
    }
    let (turn_answer_bytes, turn_cells) = (random.skewed(1, 2_000) as usize, random.skewed(1, 50) as usize);
    Tuning { turn_answer_bytes, turn_cells, ..tuning }
}

fn draw_tuning(random: &mut Random) -> Tuning {
    let read_transaction_timeout_ms = random.skewed(50, 2_000);
    let segment_bytes = random.skewed(4 << 10, 64 << 10);
    Tuning {
        read_transaction_timeout_ms,
        // Shorter than a server has it, so that a second round may find its moment forgotten.
        read_mark_ms: random.skewed(20, 2 * read_transaction_timeout_ms),
        request_timeout_ms: random.between(500, 3_000),
        context_operations_max: random.skewed(2, 64) as usize,
        stream_window_bytes: random.skewed(1 << 10, 256 << 10) as usize,
        stream_batch_entries: random.between(1, 32) as usize,
        stream_memory_bytes: random.skewed(1 << 10, 256 << 10) as usize,
        segment_bytes,
        checkpoint_bytes: random.skewed(segment_bytes, 8 * segment_bytes),
        reserve_bytes: 64 << 10,
        collect_interval_ms: random.between(20, 200),
        acknowledge_interval_ms: random.between(5, 50),
        clock_ahead_ms_max: 60_000,
        stop_writes_on_clock_ahead: true,
        clock_persist_ahead_ms: random.skewed(20, 5_000),
        heartbeat_interval_ms: random.between(1, 150),
        stabilization_interval_ms: random.between(1, 200),
        block_ms_max: random.skewed(10, 400),
        dependency_cleaning: random.chance(500),
        // A server's thirty seconds would be longer than most runs, and most of their virtual time would be waiting for it.
        relaxed_sync_interval_ms: random.skewed(200, 10_000),
        ..Tuning::default()
    }
}

fn draw_links(random: &mut Random, shape: Shape) -> LinkOptions {
    let count = usize::from(shape.datacenters);
    let mut delay_us = vec![vec![0; count]; count];
    let asymmetric = random.chance(400);
    for (a, b) in (0..count).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let most = random.pick(&[3_000, 20_000, 80_000]);
        let delay = random.between(1_000, most);
        delay_us[a][b] = delay;
        delay_us[b][a] = if asymmetric { random.between(1_000, most) } else { delay };
    }
    let low = random.between(5, 40);
    LinkOptions {
        local_us: (low, low + random.skewed(1, 600)),
        delay_us,
        jitter_us: random.pick(&[0, 500, 5_000, 20_000]),
        tail: random.pick(&[0, 0, 20, 150, 350]),
    }
}

fn draw_disk(random: &mut Random) -> DiskOptions {
    let sync = random.skewed(50, 3_000);
    DiskOptions { append_us: (1, random.between(2, 20)), sync_us: (sync, sync + random.skewed(1, 4_000)) }
}

/// A few kinds or many, each in or out by a chance of its own, with one mean time between any two faults. Some worlds
/// have none at all.
fn draw_faults(options: &Options) -> FaultOptions {
    let random = &mut Random::stream(options.seed, "faults of options");
    let pace_ms = random.pick(&[0, 15, 40, 100, 300]);
    let duration_ms_max = random.pick(&[20, 100, 400, 1_500]);
    let share = random.pick(&[150, 350, 650]);
    let drawn = |kind: &(&'static str, u64)| {
        Random::stream(options.seed, &format!("{} of options", kind.0)).chance(share)
    };
    let kinds: Vec<(&'static str, u64)> = Fault::possible(options).into_iter().filter(drawn).collect();
    let total: u64 = kinds.iter().map(|kind| kind.1).sum();
    let intervals_ms =
        kinds.iter().filter(|_| pace_ms > 0).map(|&(name, weight)| (name, pace_ms * total / weight));
    FaultOptions {
        intervals_ms: intervals_ms.collect(),
        duration_ms_max,
        until_us: expected_us(&options.workload),
        loses_datacenter: options.faults.loses_datacenter,
        loses_directories: options.faults.loses_directories,
    }
}

/// Worlds in which something is common that is rare elsewhere. Each draws from a stream of its own.
fn draw_habits(options: &mut Options) {
    let hasty = &mut Random::stream(options.seed, "hasty merges of options");
    if hasty.chance(100) {
        // A token is asked for, given up and asked for again while what it names comes; answers take long.
        options.workload.merge_timeout_ms = hasty.between(5, 80);
        options.workload.merge_rate = 150;
        options.links.local_us.1 = options.links.local_us.1.max(hasty.skewed(1_000, 30_000));
    }
    let flushing = &mut Random::stream(options.seed, "flushes of options");
    if flushing.chance(100) {
        let place = KINDS.iter().position(|(kind, _)| *kind == Kind::Flush).expect("it is one of them");
        options.workload.mix[place] = flushing.between(20, 60);
    }
}

/// Worlds in which the power fails again before all is as it was, and tombstones are collected in between.
fn draw_power(options: &mut Options) {
    let restless = &mut Random::stream(options.seed, "restless power of options");
    let relaxed = options.append_fsync != AppendFsync::Always && options.power_may_fail();
    if !relaxed || options.faults.intervals_ms.is_empty() || !restless.chance(200) {
        return;
    }
    options.tuning.collect_interval_ms = 20;
    options.faults.intervals_ms.retain(|(name, _)| *name != PowerLoss::NAME);
    options.faults.intervals_ms.push((PowerLoss::NAME, restless.between(60, 300)));
}

/// Twice the time that the operations of a workload usually take.
fn expected_us(workload: &WorkloadOptions) -> u64 {
    let each_us = workload.think_us_max / 6 + 20_000;
    2 * workload.operations * each_us / workload.clients.max(1) as u64
}

fn draw_workload(random: &mut Random) -> WorkloadOptions {
    let mix = KINDS
        .iter()
        .map(|(_, weight)| if random.chance(850) { random.between(1, 2 * weight) } else { 0 })
        .chain(FOLD_KINDS.map(|_| 0))
        .collect();
    WorkloadOptions {
        clients: random.between(4, 12) as usize,
        operations: random.between(400, 2_000),
        think_us_max: random.pick(&[2_000, 10_000, 30_000, 80_000]),
        pipeline: random.pick(&[0, 50, 200]),
        move_rate: random.pick(&[0, 5, 20, 50]),
        merge_rate: random.pick(&[0, 10, 30]),
        merge_timeout_ms: random.between(100, 2_000),
        ceiling_rate: 0,
        keys: random.between(2, 6) as usize,
        mix,
        kept: None,
    }
}

/// How often keys with handlers of conflicts are written and read, where there are such.
fn draw_folds(random: &mut Random, mix: &mut [u64]) {
    for (weight, (_, usual)) in mix[KINDS.len()..].iter_mut().zip(FOLD_KINDS) {
        *weight = if random.chance(900) { random.between(1, 2 * usual) } else { 0 };
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed            {}", self.seed)?;
        writeln!(f, "cluster         {}", self.shape)?;
        writeln!(f, "protocol        {}", self.protocol.name)?;
        match self.rules.broken() {
            Some(rule) => writeln!(f, "broken rule     {}", rule.name())?,
            None => writeln!(f, "broken rule     none")?,
        }
        writeln!(f, "appendfsync     {:?}", self.append_fsync)?;
        writeln!(f, "tuning          {:?}", self.tuning)?;
        writeln!(f, "links           {:?}", self.links)?;
        writeln!(f, "disk            {:?}", self.disk)?;
        writeln!(f, "clock           {:?}", self.clock)?;
        writeln!(f, "turn_us_max     {}", self.turn_us_max)?;
        writeln!(f, "faults          {:?}", self.faults)?;
        write!(f, "workload        {:?}", self.workload)
    }
}
