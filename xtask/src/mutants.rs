//! `cargo xtask mutants`: small wrong changes to the code that decides about data, and whether the tests notice.
//!
//! cargo-mutants lists the changes; a seed shuffles them; the first that can be compiled as switches (`switch.rs`) are
//! all compiled into one copy of the tree. Each test, script and seed is run once without a change and writes down
//! which places it comes to (`unit.rs`). Then each change in turn is switched on by its number, and what comes to its
//! place is run, one after the other, until one objects. A change that nobody objects to is a hole in the tests: the
//! table at the end names it.
//!
//! All that is known is written down as it comes (`journal.rs`): a run that was stopped goes on when it is started
//! again on the same tree. With `--again`, on another tree, only those are judged that nobody had noticed.

mod build;
mod figures;
mod journal;
mod judge;
mod list;
mod site;
mod switch;
mod unit;

use anyhow::{Context, Result, bail, ensure};
use build::Copy;
use figures::Figures;
use journal::{Journal, Known};
use judge::{Bench, locked};
use list::Mutant;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// The crates whose code is changed, the highest last.
const PACKAGES: [&str; 3] = ["ensue-protocol", "ensue-store", "ensue-node"];

/// What the command line says.
#[derive(Clone, Debug)]
struct Options {
    sample: usize,
    seed: u64,
    workers: usize,
    /// Drawn seeds of the simulator that a change must survive.
    seeds: u64,
    /// Processor time that scripts, and each kind of seeds, have for a change; without end, if nothing is said.
    limit_seconds: u64,
    /// Only changes whose name has one of these in it; all, if there is none.
    only: Vec<String>,
    scratch: PathBuf,
    /// Where the figures go.
    record: Option<PathBuf>,
    /// Print the sample and what was left out, and judge nothing.
    list: bool,
    /// Judge those that nobody noticed in the last run, on this tree.
    again: bool,
}

/// Draws, compiles, asks, tells. True if every change of the sample was noticed.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let options = parse(root, arguments)?;
    let all = list::list(root, &PACKAGES)?;
    let began = Instant::now();
    let copy = Copy::make(root, &options.scratch)?;
    let journal = open(root, &options, &copy, &all)?;
    let known = journal.known().clone();
    println!("{} of {} changes, seed {}", known.sample.len(), known.total, options.seed);
    if options.list {
        known.left_out.iter().for_each(|name| println!("left out: {name}"));
        known.sample.iter().enumerate().for_each(|(at, name)| println!("{:>4} {name}", at + 1));
        return Ok(true);
    }
    let sample = of_names(&all, &known.sample)?;
    copy.write_sample(&sample)?;
    let built = copy.build()?;
    println!("{:>6.1} s  until all was compiled", began.elapsed().as_secs_f64());
    let journal = Mutex::new(journal);
    let units = unit::all(&copy, &built, options.seeds)?;
    let bench = Bench::sit(units, &journal, &options.scratch, options.workers, options.limit_seconds)?;
    println!("{:>6.1} s  until it was known what comes where", began.elapsed().as_secs_f64());
    ask(&bench, &sample, &journal, options.workers)?;
    let figures = Figures::new(locked(&journal).known());
    print!("\n{figures}");
    if let Some(path) = &options.record {
        let text = figures.page(&options);
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(figures.survivors.is_empty())
}

/// The journal of this run, with a sample that compiles: that of a run that was stopped, or a new one.
fn open(root: &Path, options: &Options, copy: &Copy, all: &[Mutant]) -> Result<Journal> {
    let path = options.scratch.join("journal");
    let known = Known::read(&path)?;
    let Options { sample, seed, only, seeds, limit_seconds, .. } = options;
    let key = format!(
        "tree {:016x} sample {sample} seed {seed} seeds {seeds} limit {limit_seconds} only {only:?}",
        copy.digest
    );
    if known.key == key && !known.sample.is_empty() {
        return Journal::go_on(&path, known);
    }
    let wanted = |mutant: &Mutant| only.is_empty() || only.iter().any(|part| mutant.name.contains(part));
    let line: Vec<Mutant> = all.iter().filter(|mutant| wanted(mutant)).cloned().collect();
    let total = line.len();
    let commits = known.commits.iter().filter(|_| options.again).cloned().chain([commit(root)?]).collect();
    let names = |mutants: &[&Mutant]| mutants.iter().map(|mutant| mutant.identity()).collect();
    if options.again {
        ensure!(!known.sample.is_empty(), "there is no earlier run that could be taken up again");
        let line: Vec<Mutant> =
            all.iter().filter(|mutant| known.is_open(&mutant.identity())).cloned().collect();
        let sample = names(&copy.take_sample(&line, usize::MAX)?.mutants);
        return Journal::begin(&path, Known { key, commits, sample, ..known.noticed() });
    }
    let line = shuffled(line, *seed);
    let drawn = copy.take_sample(&line, *sample)?;
    let (sample, left_out) = (names(&drawn.mutants), names(&drawn.left_out));
    Journal::begin(&path, Known { key, commits, total, sample, left_out, ..Known::default() })
}

/// The changes of these names, in their order.
fn of_names<'m>(all: &'m [Mutant], names: &[String]) -> Result<Vec<&'m Mutant>> {
    let by_name: BTreeMap<String, &Mutant> = all.iter().map(|mutant| (mutant.identity(), mutant)).collect();
    let found = names.iter().map(|name| {
        by_name.get(name).copied().with_context(|| format!("there is no change `{name}` any more"))
    });
    found.collect()
}

/// Finds the verdict on each change that has none.
fn ask(bench: &Bench, sample: &[&Mutant], journal: &Mutex<Journal>, workers: usize) -> Result<()> {
    let line = Mutex::new((1u32..).zip(sample));
    let work = || {
        // The guard is gone before the judges run.
        let next = || locked(&line).next();
        while let Some((number, mutant)) = next() {
            if locked(journal).known().verdicts.contains_key(&mutant.identity()) {
                continue;
            }
            let (verdict, cost_ms) = bench.judge(number, mutant)?;
            println!("{number:>4} {:>6.1} s  {verdict}: {}", cost_ms as f64 / 1_000.0, mutant.name);
            locked(journal).judged(&mutant.identity(), &verdict, cost_ms)?;
        }
        anyhow::Ok(())
    };
    std::thread::scope(|scope| {
        let hands: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        hands.into_iter().try_for_each(|hand| hand.join().expect("a worker does not panic"))
    })
}

fn parse(root: &Path, arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        sample: 200,
        seed: 1,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        seeds: 30,
        limit_seconds: u64::MAX,
        only: Vec::new(),
        scratch: root.join("target/mutants"),
        record: None,
        list: false,
        again: false,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--record" => options.record = Some(root.join("docs/figures/mutants.md")),
            "--list" => options.list = true,
            "--again" => options.again = true,
            _ => {
                let value = words.next().with_context(|| format!("{word} needs a value"))?;
                match word.as_str() {
                    "--sample" => options.sample = value.parse()?,
                    "--seed" => options.seed = value.parse()?,
                    "--workers" => options.workers = value.parse()?,
                    "--seeds" => options.seeds = value.parse()?,
                    "--limit-seconds" => options.limit_seconds = value.parse()?,
                    "--only" => options.only.push(value.clone()),
                    "--scratch" => options.scratch = value.into(),
                    other => bail!("mutants has no option `{other}`"),
                }
            }
        }
    }
    ensure!(options.workers > 0, "at least one worker is needed");
    Ok(options)
}

/// The short name of the commit that is checked out, with a sign if the tree differs from it.
fn commit(root: &Path) -> Result<String> {
    let mut git = std::process::Command::new("git");
    git.current_dir(root).args(["describe", "--always", "--dirty", "--exclude=*"]);
    let output = git.output().context("asking git for the commit")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The same order for the same seed, on every machine. Each change has its place by what it is and not by its line, so
/// that work on the tree leaves most of a sample as it was.
fn shuffled(mutants: Vec<Mutant>, seed: u64) -> Vec<Mutant> {
    let mut placed: Vec<(u64, Mutant)> = mutants
        .into_iter()
        .map(|mutant| {
            let bytes = mutant.file.bytes().chain(mutant.change().bytes());
            let hash = bytes.fold(seed, |hash, byte| mixed(hash ^ u64::from(byte)));
            (mixed(hash ^ (mutant.before as u64 + 1)), mutant)
        })
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, mutant)| mutant).collect()
}

/// SplitMix64.
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests;
