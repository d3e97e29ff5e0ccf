//! `ensue gateway sim trods`: downloads through dying servers, by seed, on this machine's cores.

use anyhow::Context;
use ensue_trods::sim::{Report, run, run_traced};
use ensue_trods::{Counters, Mode, Rules};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

/// How many seeds a thread runs between two lines of progress.
const SEEDS_A_LINE: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ModeName {
    /// State is kept in a key-value store
    Kv,
    /// State is kept in TCP timestamps
    Ts,
    /// Timestamps where they suffice, and otherwise the store
    Hybrid,
}

impl ModeName {
    const ALL: [Self; 3] = [Self::Kv, Self::Ts, Self::Hybrid];

    pub(super) fn mode(self) -> Mode {
        match self {
            Self::Kv => Mode::Kv,
            Self::Ts => Mode::Ts,
            Self::Hybrid => Mode::Hybrid,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Kv => "kv",
            Self::Ts => "ts",
            Self::Hybrid => "hybrid",
        }
    }
}

/// Run TRODS in simulated worlds: packets are lost, servers die, and every client checks every byte
#[derive(Debug, clap::Args)]
pub(crate) struct SimArgs {
    /// Run this many seeds
    #[arg(long, value_name = "N", default_value_t = 1000)]
    seeds: u64,
    /// Run one seed and report it
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// First seed of `--seeds`
    #[arg(long, value_name = "N", default_value_t = 1)]
    start: u64,
    /// Run all seeds, whatever fails, and name each one that fails
    #[arg(long, conflicts_with = "seed")]
    keep_going: bool,
    /// Where state is kept; all three in turn if not given
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,
    /// Break the rule of this name, to see what follows
    #[arg(long = "break", value_name = "RULE", value_parser = Rules::NAMES)]
    broken: Option<String>,
    /// Print every packet, operation and fault of a seed, one a line
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Threads; 0 means one a core
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub(super) fn run_sim(args: &SimArgs) -> anyhow::Result<ExitCode> {
    let rules = match &args.broken {
        Some(name) => Rules::without(name).with_context(|| format!("there is no rule {name}"))?,
        None => Rules::ALL,
    };
    let modes = args.mode.map_or_else(|| ModeName::ALL.to_vec(), |mode| vec![mode]);
    let mut code = ExitCode::SUCCESS;
    for mode in modes {
        let failure = match args.seed {
            Some(seed) => run_one(seed, mode, rules, args.trace),
            None => run_many(args, mode, rules),
        };
        if let Some(report) = failure {
            let seed = report.seed;
            println!("seed {seed}: {}", report.failure.unwrap_or_default());
            let broken = args.broken.as_ref().map_or(String::new(), |rule| format!(" --break {rule}"));
            println!("replay: ensue gateway sim trods --seed {seed} --mode {}{broken} --trace", mode.name());
            code = ExitCode::FAILURE;
            if !args.keep_going {
                break;
            }
        }
    }
    Ok(code)
}

fn run_one(seed: u64, mode: ModeName, rules: Rules, trace: bool) -> Option<Report> {
    let (report, lines) = run_traced(seed, mode.mode(), rules, trace);
    for line in lines {
        println!("{line}");
    }
    println!("{}: seed {seed}, {}", mode.name(), described(report.packets, report.time_us, &report.counters));
    report.failure.is_some().then_some(report)
}

/// Runs seeds on several threads, until one fails unless it is to go on; of those that fail, the lowest is reported.
fn run_many(args: &SimArgs, mode: ModeName, rules: Rules) -> Option<Report> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if args.threads == 0 { cores } else { args.threads };
    let (next, stop) = (AtomicU64::new(args.start), AtomicBool::new(false));
    let end = args.start.saturating_add(args.seeds);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || sender.send(run(seed, mode.mode(), rules)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut done, mut packets, mut time_us) = (0, 0, 0);
        let mut counters = Counters::default();
        let mut failure: Option<Report> = None;
        for report in receiver {
            done += 1;
            packets += report.packets;
            time_us += report.time_us;
            counters.add(&report.counters);
            if let Some(noticed) = &report.failure {
                if args.keep_going {
                    println!("{}: seed {}: {noticed}", mode.name(), report.seed);
                } else {
                    stop.store(true, Ordering::Relaxed);
                }
                if failure.as_ref().is_none_or(|lowest| report.seed < lowest.seed) {
                    failure = Some(report);
                }
            }
            if done % SEEDS_A_LINE == 0 {
                println!("{}: {done} of {} seeds", mode.name(), args.seeds);
            }
        }
        println!("{}: {done} seeds, {}", mode.name(), described(packets, time_us, &counters));
        failure
    })
}

fn described(packets: u64, time_us: u64, counters: &Counters) -> String {
    format!(
        "{packets} packets, {} simulated seconds; exchanges saved {}, stamped {}, unprotected {}; recovered in setup \
         {}, in download {}, found complete {}, came back {}, adopted {}, lost {}",
        time_us / 1_000_000,
        counters.saved,
        counters.stamped,
        counters.unprotected,
        counters.recovered_in_setup,
        counters.recovered_in_download,
        counters.found_complete,
        counters.came_back,
        counters.adopted,
        counters.lost
    )
}
