//! `cargo xtask mutants`: small wrong changes to the code that decides about data, and whether the tests notice.
//!
//! cargo-mutants lists the changes; a seed shuffles them; each worker makes one after the other in a copy of the tree
//! of its own and runs the judges, the quickest first, until one objects. What does not build is replaced by the next
//! in line. A change that nobody objects to is a hole in the tests: the table at the end names it.

mod list;
mod trial;

use anyhow::{Context, Result, bail, ensure};
use list::Mutant;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;
use trial::{Trial, Verdict};

/// The crates whose code is changed.
const PACKAGES: [&str; 3] = ["ensue-protocol", "ensue-store", "ensue-node"];

/// What the command line says.
#[derive(Clone, Debug)]
struct Options {
    sample: usize,
    seed: u64,
    workers: usize,
    /// Seeds of the simulator that a change must survive.
    seeds: u64,
    /// Only changes whose name has this in it.
    only: String,
    scratch: PathBuf,
}

/// The shared part of a run: the line of changes, and what became of those tried.
struct Run {
    next: usize,
    done: Vec<(Mutant, Verdict)>,
    viable: usize,
    /// Being tried now.
    open: usize,
    failure: Option<anyhow::Error>,
}

/// Draws, tries, tells. True if every change of the sample was noticed.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let options = parse(root, arguments)?;
    let mut mutants = list::list(root, &PACKAGES)?;
    mutants.retain(|mutant| mutant.name.contains(&options.only));
    let total = mutants.len();
    shuffle(&mut mutants, options.seed);
    println!("{} of {total} changes, seed {}, {} workers", options.sample, options.seed, options.workers);
    let began = Instant::now();
    let run = Mutex::new(Run { next: 0, done: Vec::new(), viable: 0, open: 0, failure: None });
    std::thread::scope(|scope| {
        for worker in 0..options.workers {
            let (options, mutants, run) = (&options, &mutants, &run);
            scope.spawn(move || {
                if let Err(error) = work(root, options, mutants, run, worker) {
                    lock(run).failure.get_or_insert(error);
                }
            });
        }
    });
    let run = run.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(failure) = run.failure {
        return Err(failure);
    }
    Ok(report(&run.done, began.elapsed().as_secs_f64()))
}

fn work(root: &Path, options: &Options, mutants: &[Mutant], run: &Mutex<Run>, worker: usize) -> Result<()> {
    let scratch = options.scratch.join(format!("worker-{worker}"));
    let trial = Trial::prepare(root, &scratch, options.seeds)?;
    loop {
        let mutant = {
            let mut run = lock(run);
            let enough = run.viable + run.open >= options.sample || run.failure.is_some();
            let Some(mutant) = mutants.get(run.next).filter(|_| !enough) else { return Ok(()) };
            run.next += 1;
            run.open += 1;
            mutant
        };
        let began = Instant::now();
        let verdict = trial.try_one(mutant)?;
        let mut run = lock(run);
        run.open -= 1;
        run.viable += usize::from(verdict != Verdict::DoesNotBuild);
        println!("{:>4} {:>6.1} s  {verdict}: {}", run.viable, began.elapsed().as_secs_f64(), mutant.name);
        run.done.push((mutant.clone(), verdict));
    }
}

fn lock(run: &Mutex<Run>) -> std::sync::MutexGuard<'_, Run> {
    run.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Prints the survivors and one line about all. True if there is none.
fn report(done: &[(Mutant, Verdict)], seconds: f64) -> bool {
    let viable = done.iter().filter(|(_, verdict)| *verdict != Verdict::DoesNotBuild).count();
    let survivors: Vec<&Mutant> =
        done.iter().filter(|(_, verdict)| *verdict == Verdict::Survived).map(|(mutant, _)| mutant).collect();
    if !survivors.is_empty() {
        println!("\n| place | change that nobody noticed |\n|---|---|");
    }
    for mutant in &survivors {
        println!("| {} | {} |", mutant.place(), mutant.change().replace('|', "\\|"));
    }
    let killed = viable - survivors.len();
    let share = 100.0 * killed as f64 / viable.max(1) as f64;
    println!(
        "\n{killed} of {viable} changes noticed ({share:.1} %), {} did not build, {:.1} s a change, {seconds:.0} s",
        done.len() - viable,
        seconds / done.len().max(1) as f64
    );
    survivors.is_empty()
}

fn parse(root: &Path, arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        sample: 200,
        seed: 1,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        seeds: 300,
        only: String::new(),
        scratch: root.join("target/mutants"),
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--sample" => options.sample = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            "--workers" => options.workers = value.parse()?,
            "--seeds" => options.seeds = value.parse()?,
            "--only" => options.only.clone_from(value),
            "--scratch" => options.scratch = value.into(),
            other => bail!("mutants has no option `{other}`"),
        }
    }
    ensure!(options.workers > 0, "at least one worker is needed");
    Ok(options)
}

/// The same order for the same seed, on every machine (Fisher and Yates; numbers by SplitMix64).
fn shuffle(mutants: &mut [Mutant], seed: u64) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    };
    for last in (1..mutants.len()).rev() {
        mutants.swap(last, (next() % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests;
