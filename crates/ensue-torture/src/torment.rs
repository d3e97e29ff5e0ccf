//! The run: rounds of work under faults, each followed by rest and judgement.

use crate::Args;
use crate::branches::{BRANCH_CLIENTS, Branches, Treatment};
use crate::cluster::{Cluster, DATACENTERS, Plan};
use crate::fault::{Means, Storm, Weather};
use crate::judge::{self, End};
use crate::namespace::Namespace;
use crate::ports::Ports;
use crate::random::Random;
use crate::recorder::Recorder;
use crate::report::{Report, RoundReport};
use crate::workload::{FLUSHED_CLIENTS, Removals, Round, read_finals};
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Everything must be everywhere this long after everything was mended.
const CONVERGE: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(30);

/// Runs rounds until the time is over or one fails. True if all is well.
pub fn run(args: &Args) -> Result<bool> {
    if args.dir.exists() {
        std::fs::remove_dir_all(&args.dir).with_context(|| format!("emptying {}", args.dir.display()))?;
    }
    std::fs::create_dir_all(&args.dir)?;
    let namespaces = if args.loopback { Vec::new() } else { namespaces() };
    let means = Means {
        strace: Command::new("strace").arg("-V").output().is_ok_and(|done| done.status.success()),
        namespaces: !namespaces.is_empty(),
        small_disk: false,
    };
    let ports = Ports::take(args.port)?;
    let plan = Plan {
        binary: args.binary.clone(),
        directory: std::fs::canonicalize(&args.dir)?,
        port: ports.first,
        protocol: args.protocol.clone(),
        appendfsync: args.appendfsync.clone(),
        branches: Treatment::draw(args.seed),
        broken: args.broken.clone(),
    };
    let mut cluster = Cluster::start(plan, namespaces)?;
    let means = Means { small_disk: cluster.has_small_disk(), namespaces: cluster.has_namespaces(), ..means };
    cluster.wait_for_answers(ANSWER)?;
    let mut report = Report::begin(args, means);
    let end = Instant::now() + Duration::from_secs_f64(args.minutes * 60.0);
    let mut number = 0;
    while Instant::now() < end {
        number += 1;
        let weather = args.weather.unwrap_or(Weather::ALL[(number as usize - 1) % Weather::ALL.len()]);
        let round = play(args, &mut cluster, weather, means, number)?;
        let failed = round.violation.is_some();
        report.add(round);
        if failed {
            break;
        }
    }
    cluster.heal()?;
    cluster.stop()?;
    report.finish(args)
}

/// One namespace a datacenter, or none at all where the machine does not allow them.
fn namespaces() -> Vec<Namespace> {
    let run = std::process::id() % 10_000;
    let made: Result<Vec<Namespace>> =
        (1..=DATACENTERS as u8).map(|number| Namespace::make(run, number)).collect();
    made.unwrap_or_else(|reason| {
        println!("no network namespaces, so packets are not dropped by the kernel: {reason:#}");
        Vec::new()
    })
}

fn play(
    args: &Args,
    cluster: &mut Cluster,
    weather: Weather,
    means: Means,
    number: u64,
) -> Result<RoundReport> {
    let began = Instant::now();
    let mut random = Random::stream(args.seed.wrapping_mul(1_000_003).wrapping_add(number), "round");
    let usual = Duration::from_millis(random.between(0, 30));
    for one in 0..DATACENTERS {
        (0..DATACENTERS).filter(|&other| other != one).for_each(|other| cluster.delay(one, other, usual));
    }
    let round = Round {
        number,
        recorder: Recorder::new(DATACENTERS),
        places: (0..DATACENTERS).map(|datacenter| cluster.client_options(datacenter)).collect(),
        stop: AtomicBool::new(false),
        removals: Removals::default(),
        counters: Default::default(),
        errors: AtomicU64::new(0),
        samples: Mutex::default(),
    };
    let branches = Branches::of(
        number,
        Duration::from_secs(args.round_seconds),
        Treatment::draw(args.seed),
        &mut random,
    );
    cluster.take_started();
    round.initialise().context("the first values of a round")?;
    let mut storm = Storm::new(weather, means, usual, Random::stream(random.bits(), "storm"));
    work(args, cluster, &round, branches.as_ref(), &mut storm, &mut random)?;
    cluster.heal()?;
    let rest = rest(cluster, &round, branches.as_ref());
    let branches = branches.map(|branches| branches.into_recording(cluster.take_started()));
    let errors = round.errors.load(Ordering::Relaxed);
    let samples =
        std::mem::take(&mut *round.samples.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    let history = round.recorder.into_history();
    let end = End { weather, rest, errors, samples };
    let file = args.dir.join(format!("round-{number}.jsonl"));
    let causal = judge::judge(&history, &end, &file)?;
    let file_of_branches = args.dir.join(format!("round-{number}-branches.jsonl"));
    let verdict = branches.as_ref().map(|branches| judge::judge_branches(branches, &file_of_branches));
    let verdict = verdict.transpose()?.unwrap_or_default();
    if args.keep {
        judge::save(&history, &file)?;
        branches.iter().try_for_each(|branches| judge::save_branches(branches, &file_of_branches))?;
    }
    let violations: Vec<String> = causal.into_iter().chain(verdict.violation).collect();
    Ok(RoundReport {
        number,
        weather,
        transactions: history.transactions.len() as u64,
        unknown: judge::unknown(&history),
        errors,
        samples: end.samples,
        faults: storm.counts,
        took: began.elapsed(),
        branches: verdict.counts,
        violation: (!violations.is_empty()).then(|| violations.join("\n")),
    })
}

/// All clients of a round, under its faults.
fn work(
    args: &Args,
    cluster: &mut Cluster,
    round: &Round,
    branches: Option<&Branches>,
    storm: &mut Storm,
    random: &mut Random,
) -> Result<()> {
    thread::scope(|scope| {
        for client in 0..args.clients {
            let random = Random::stream(random.bits(), "client");
            scope.spawn(move || round.live(client, random));
        }
        for client in 0..FLUSHED_CLIENTS {
            let random = Random::stream(random.bits(), "client of what is flushed");
            scope.spawn(move || round.live_in_flushed(client, random));
        }
        for (client, branches) in
            branches.into_iter().flat_map(|one| (0..BRANCH_CLIENTS).map(move |at| (at, one)))
        {
            let random = Random::stream(random.bits(), "client of branches");
            scope.spawn(move || round.live_on_branches(branches, client, random));
        }
        let stormed = rage(args, cluster, storm);
        round.stop.store(true, Ordering::Relaxed);
        stormed
    })
}

/// Faults come and go while clients work.
fn rage(args: &Args, cluster: &mut Cluster, storm: &mut Storm) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(args.round_seconds);
    while Instant::now() < end {
        storm.blow(cluster)?;
        thread::sleep(Duration::from_millis(10));
    }
    storm.calm(cluster)
}

/// Nothing disturbs any more: everything must answer, agree, and be read. The reason if it does not.
fn rest(cluster: &Cluster, round: &Round, branches: Option<&Branches>) -> Result<Duration> {
    cluster.wait_for_answers(ANSWER).context("P15 no progress after everything healed")?;
    let took = cluster.converge(CONVERGE).context("P8 datacenters differ after quiescence")?;
    if let Err(error) = read_finals(round) {
        bail!("P15 the final reads: {error:#}");
    }
    if let Some(branches) = branches {
        round.settle_branches(branches, CONVERGE).context("P8 P15 branches after everything healed")?;
    }
    Ok(took)
}
