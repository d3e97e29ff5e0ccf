//! One seed draws the whole world: shape, bounds, delays, clocks, faults and workload.
//!
//! Bounds are shrunk so that what is rare in production is common here.

mod settings;

use crate::branching::options;
use crate::faults::{
    AddDatacenter, EmptyPartition, Fault, Kill, Kind as _, LearnDatacenter, LoseDatacenter, MoveHome,
    MoveReplica, OF_DIRECTORIES, OF_GROWTH, PowerLoss, RecoverClock, RetireDatacenter,
};
use crate::oracle::folded;
use crate::random::Random;
use crate::rules::Rules;
use crate::workload::mix::{FOLD_KINDS, KINDS, Kind};
use crate::world::options::{ClockOptions, DiskOptions, FaultOptions, LinkOptions, Options, WorkloadOptions};
use crate::world::shape::Shape;
use ensue_node::{AppendFsync, Tuning};
use ensue_protocol::{Availability, Registration};
use ensue_types::DatacenterId;

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
        let append_fsync = draw_append_fsync(random);
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
            handlers: folded::handlers(),
            homes: Vec::new(),
            append_fsync,
            tuning: draw_all_tuning(seed),
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
        // Ways within a datacenter, too, may be long: while the questions of one read are on theirs, others write. Each
        // operation takes long then, so there are fewer of them, and more are sent at once.
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
        if may_draw_directories(&options) && Random::stream(seed, "directories of options").chance(60) {
            options = options.losing_directories();
        }
        let may_refuse = options.promises().availability != Availability::Always;
        if may_refuse && Random::stream(seed, "calm options").chance(CALM) {
            options.become_calm();
        }
        options
    }

    /// A world in which nothing keeps datacenters from hearing of each other: whoever is told that it would have to
    /// wait too long is told something wrong.
    fn become_calm(&mut self) {
        self.faults.intervals_ms.clear();
        self.faults.loses_datacenter = false;
        self.faults.loses_directories = false;
        self.links.tail = 0;
        self.clock.bound_ms = self.clock.bound_ms.min(5);
        self.clock.skew_ms = self.clock.bound_ms;
        self.clock.wild_ms = 0;
        self.clock.recovers = false;
        let tuning = &mut self.tuning;
        tuning.heartbeat_interval_ms = tuning.heartbeat_interval_ms.min(20);
        tuning.stabilization_interval_ms = tuning.stabilization_interval_ms.min(20);
        tuning.stream_window_bytes = tuning.stream_window_bytes.max(64 << 10);
        for limit_ms in [50, 100, 200, 400, 800, 1_600] {
            if self.may_wait(self.tuning.block_ms_max) {
                self.tuning.block_ms_max = self.tuning.block_ms_max.max(limit_ms);
            }
            if self.may_wait(self.tuning.request_timeout_ms) {
                self.tuning.request_timeout_ms = self.tuning.request_timeout_ms.max(limit_ms);
            }
        }
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
        self.faults.loses_directories = false;
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

    /// The same world, in which each partition is on three cores of its datacenter, each of which is a process.
    pub fn replicated(mut self) -> Options {
        self.faults.loses_datacenter = false;
        self.faults.loses_directories = false;
        self.clock.wild_ms = 0;
        self.clock.recovers = false;
        self.make_replicated();
        // Elections take their time, in which more would be refused than is learnt from.
        self.workload.think_us_max = self.workload.think_us_max.max(10_000);
        self.faults = draw_faults(&self);
        let may_strike = |name: &str| {
            OF_REPLICAS.contains(&name) || name == PowerLoss::NAME && self.append_fsync == AppendFsync::Always
        };
        self.faults.intervals_ms.retain(|(name, _)| may_strike(name));
        self.faults.intervals_ms.push((Kill::NAME, self.faults.until_us / 6_000));
        if MoveReplica::possible(&self) {
            self.faults.intervals_ms.retain(|(name, _)| *name != MoveReplica::NAME);
            self.faults.intervals_ms.push((MoveReplica::NAME, self.faults.until_us / 15_000));
        }
        self
    }

    /// Each partition is on three cores; in some worlds there are more, to which replicas move.
    pub fn make_replicated(&mut self) {
        let moves = Random::stream(self.seed, "moves of replicas").chance(400);
        self.shape.cores = self.shape.cores.max(if moves { 4 } else { 3 });
        self.shape.one_process = false;
        self.shape.replicas = 3;
        // Each step of a transaction rests on a majority: over slow links that is several times as long.
        self.tuning.request_timeout_ms = self.tuning.request_timeout_ms.max(2_000);
    }

    /// The same world, of three datacenters at least, of which the last one is added while clients work.
    pub fn joining(mut self) -> Options {
        if self.shape.datacenters < 3 {
            self.set("datacenters=3").expect("so many there may be");
        }
        self.make_one_join();
        self.faults = draw_faults(&self);
        let processes = self.shape.processes() as u64;
        self.faults.intervals_ms.retain(|(name, _)| !OF_GROWTH.contains(name));
        self.faults.intervals_ms.push((LearnDatacenter::NAME, self.faults.until_us / (20_000 * processes)));
        self.faults.intervals_ms.push((AddDatacenter::NAME, self.faults.until_us / 12_000));
        self
    }

    /// The same world, of two datacenters at least, of which the last one is removed while clients work.
    pub fn retiring(mut self) -> Options {
        if self.shape.datacenters < 2 {
            self.set("datacenters=3").expect("so many there may be");
        }
        self.make_one_retire();
        self.faults = draw_faults(&self);
        self.faults.intervals_ms.retain(|(name, _)| !OF_GROWTH.contains(name));
        self.faults.intervals_ms.push((RetireDatacenter::NAME, self.faults.until_us / 2_000));
        self
    }

    /// The same world, of three datacenters at least, in which keys have a home, which moves while clients work.
    pub fn moving_homes(mut self) -> Options {
        if self.shape.datacenters < 3 {
            self.set("datacenters=3").expect("so many there may be");
        }
        self.make_homes_move();
        self.faults = draw_faults(&self);
        draw_power(&mut self);
        self.faults.intervals_ms.retain(|(name, _)| *name != MoveHome::NAME);
        if MoveHome::possible(&self) {
            self.faults.intervals_ms.push((MoveHome::NAME, self.faults.until_us / 30_000));
        }
        self
    }

    /// Keys have a home, which moves.
    pub fn make_homes_move(&mut self) {
        self.faults.moves_homes = true;
        let random = &mut Random::stream(self.seed, "moves of homes of options");
        if self.homes.is_empty() && self.promises().may_have_homes() {
            let home = DatacenterId(random.below(u64::from(self.shape.datacenters)) as u8);
            self.homes.push(("home:*".to_owned(), home));
            self.tuning.home_wait_ms = random.skewed(20, 2_000);
            self.tuning.home_round_ms = random.skewed(20, 2_000);
        }
    }

    /// Whether homes move, which no seed draws by itself.
    pub fn says_moving_homes(&self) -> bool {
        self.faults.moves_homes
    }

    /// The last datacenter is removed.
    pub fn make_one_retire(&mut self) {
        self.faults.retires = true;
        self.spare_the_last();
    }

    /// Whether a datacenter is removed, which no seed draws by itself.
    pub fn says_retiring(&self) -> bool {
        self.faults.retires
    }

    /// The last datacenter is added.
    pub fn make_one_join(&mut self) {
        self.faults.joins = true;
        self.spare_the_last();
    }

    /// The last datacenter is nobody's home, and nothing is lost beside it.
    fn spare_the_last(&mut self) {
        self.faults.loses_datacenter = false;
        self.faults.loses_directories = false;
        let is_last = |datacenter: DatacenterId| datacenter.0 + 1 == self.shape.datacenters;
        for (_, home) in self.homes.iter_mut().filter(|(_, home)| is_last(*home)) {
            *home = DatacenterId(0);
        }
        let merger = &mut self.tuning.branching.merging_datacenter;
        *merger = merger.map(|merger| if is_last(merger) { DatacenterId(0) } else { merger });
    }

    /// Whether a datacenter is added, which no seed draws by itself.
    pub fn says_joining(&self) -> bool {
        self.faults.joins
    }

    /// Whether partitions are replicated, which no seed draws by itself.
    pub fn says_replicated(&self) -> bool {
        self.shape.is_replicated()
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
        self.make_directories_lost();
        self.faults = draw_faults(&self);
        // Transactions over several partitions that lose one of these may leave questions open (docs/limits.md).
        let promises = self.promises();
        let may_lose_one = self.shape.partitions > 1 && !promises.branches && !promises.writes_together();
        let loses_one = may_lose_one
            && Random::stream(self.seed, "single partitions of options").chance(SINGLE_PARTITIONS);
        let names = if loses_one { &[EmptyPartition::NAME][..] } else { &OF_DIRECTORIES };
        self.faults.intervals_ms.retain(|(name, _)| !OF_DIRECTORIES.contains(name));
        for name in names {
            self.faults.intervals_ms.push((*name, self.faults.until_us / 3_000));
        }
        self
    }

    /// Directories may be lost, exchanged, or replaced by old copies.
    pub fn make_directories_lost(&mut self) {
        self.faults.loses_directories = true;
        // Longer than any world: what a shorter wait lets through is a known limit (docs/limits.md).
        self.tuning.proof_wait_ms = 3_600_000;
    }

    /// Whether directories are lost though the seed does not draw that.
    pub fn says_losing_directories(&self) -> bool {
        let drawn = Options::draw_of(self.seed, self.rules, self.protocol);
        self.faults.loses_directories && !drawn.faults.loses_directories
    }

    /// Whether a datacenter is lost for good though the seed does not draw that.
    pub fn says_losing(&self) -> bool {
        let drawn = Options::draw_of(self.seed, self.rules, self.protocol);
        self.faults.loses_datacenter && !drawn.faults.loses_datacenter
    }
}

/// Of a thousand worlds in which directories are lost on request, so many lose those of single partitions, too.
const SINGLE_PARTITIONS: u64 = 400;

/// Of a thousand worlds of protocols that may refuse to wait, so many have no reason to.
const CALM: u64 = 100;

/// What may happen to replicated partitions beside kills. Faults of one disk, of directories and of times beyond belief
/// are judged by what a datacenter had on its only disk.
const OF_REPLICAS: [&str; 20] = [
    "clock-drift",
    "clock-jump",
    "cut",
    "cut-connection",
    "delay-spike",
    "drop-client",
    "drop-clients",
    "flap",
    "flap-datacenters",
    "isolate",
    "kill",
    "move-replica",
    "mute",
    "mute-connection",
    "narrow",
    "pause",
    "restart",
    "slow-core",
    "slow-link",
    "split",
];

/// How many of a thousand seeds draw which protocol. A new one takes its share from the end of `eiger`'s, so that the
/// other seeds keep theirs.
const PROTOCOLS: [(&str, u64); 2] = [("eventual", 200), ("eiger", 800)];

fn protocol_of(seed: u64) -> &'static str {
    let weights = PROTOCOLS.map(|(_, weight)| weight);
    PROTOCOLS[Random::stream(seed, "protocol").weighted(&weights)].0
}

fn draw_append_fsync(random: &mut Random) -> AppendFsync {
    random.pick(&[
        AppendFsync::Always,
        AppendFsync::Always,
        AppendFsync::EverySecond,
        AppendFsync::EverySecond,
        AppendFsync::No,
    ])
}

fn draw_shape(random: &mut Random) -> Shape {
    let datacenters = random.pick(&[1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 5]);
    let cores = random.pick(&[1, 2, 2]);
    let partitions = random.pick(&[1, 2, 2, 3, 3, 4, 4]).max(cores);
    Shape { replicas: 1, datacenters, cores, partitions, one_process: random.chance(400) }
}

/// Enough for every script of the workload that ends, and little for those that do not.
const SCRIPT_STEPS: u64 = 2_000;

fn draw_all_tuning(seed: u64) -> Tuning {
    let tuning = draw_tuning(&mut Random::stream(seed, "tuning"));
    let tuning = draw_turns(&mut Random::stream(seed, "turns of sessions"), tuning);
    let tuning = draw_rows(&mut Random::stream(seed, "rows"), tuning);
    draw_pauses(&mut Random::stream(seed, "pauses of scripts"), tuning)
}

/// A share of the worlds has scripts that pause, some of them after each command. All pauses of one together are short:
/// its partition says nothing meanwhile, and nobody may take it for a link that is down.
fn draw_pauses(random: &mut Random, tuning: Tuning) -> Tuning {
    if !random.chance(600) {
        return tuning;
    }
    let (script_steps_to_pause, script_pause_us) = (random.skewed(20, 400), random.skewed(1, 100));
    Tuning { script_steps_to_pause, script_pause_us, script_paused_steps: SCRIPT_STEPS, ..tuning }
}

/// A share of the worlds has turns so short that most pipelines take several.
fn draw_turns(random: &mut Random, tuning: Tuning) -> Tuning {
    if !random.chance(300) {
        return tuning;
    }
    let (turn_answer_bytes, turn_cells) = (random.skewed(1, 2_000) as usize, random.skewed(1, 50) as usize);
    Tuning { turn_answer_bytes, turn_cells, ..tuning }
}

/// A share of the worlds has large rows of few columns: nobody writes so many as a server needs for one.
fn draw_rows(random: &mut Random, tuning: Tuning) -> Tuning {
    if !random.chance(500) {
        return tuning;
    }
    Tuning { row_columns_max: random.skewed(1, 12) as u16, ..tuning }
}

fn draw_tuning(random: &mut Random) -> Tuning {
    let read_transaction_timeout_ms = random.skewed(50, 2_000);
    let segment_bytes = random.skewed(4 << 10, 64 << 10);
    let tuning = Tuning {
        script_steps: SCRIPT_STEPS,
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
        // A server's thirty seconds would be longer than most runs, and most of their virtual time would be waiting for
        // it.
        relaxed_sync_interval_ms: random.skewed(200, 10_000),
        proof_wait_ms: random.pick(&[0, 0, 20, 200, 2_000]),
        ..Tuning::default()
    };
    // Nothing more is drawn for it.
    Tuning { stream_waiting_bytes: 2 * tuning.stream_window_bytes, ..tuning }
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
        joins: options.faults.joins,
        retires: options.faults.retires,
        moves_homes: options.faults.moves_homes,
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
    let publishing = &mut Random::stream(options.seed, "messages of options");
    if publishing.chance(300) {
        options.workload.publish_rate = publishing.between(20, 200);
        options.tuning.message_waits_ms = publishing.skewed(20, 10_000);
    }
    options.workload.caches = Random::stream(options.seed, "caches of options").chance(300);
    let has_sessions = options.promises().causality && !options.promises().branches;
    options.workload.named = has_sessions && Random::stream(options.seed, "names of options").chance(200);
    let homes = &mut Random::stream(options.seed, "homes of options");
    if homes.chance(200) && options.shape.datacenters > 1 && options.promises().may_have_homes() {
        let home = DatacenterId(homes.below(u64::from(options.shape.datacenters)) as u8);
        options.homes.push(("home:*".to_owned(), home));
        options.tuning.home_wait_ms = homes.skewed(20, 2_000);
        options.tuning.home_round_ms = homes.skewed(20, 2_000);
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

/// Whether a seed may draw lost directories by itself: where there are rows, and no operator gives datacenters other
/// times.
fn may_draw_directories(options: &Options) -> bool {
    options.shape.datacenters > 1 && !options.promises().branches && !options.clock.recovers
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
        publish_rate: 0,
        caches: false,
        named: false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_worlds_give_no_reason_to_refuse_a_read() {
        for protocol in ["pocc", "ha-pocc"] {
            let worlds = (1..=1_000).map(|seed| Options::draw_with(seed, Rules::default(), protocol));
            let is_calm = |options: &Options| {
                let tuning = &options.tuning;
                !options.may_wait(tuning.block_ms_max) && !options.may_wait(tuning.request_timeout_ms)
            };
            let calm = worlds.filter(is_calm).count();
            assert!(calm > 50, "{protocol}: {calm}");
        }
    }
}
