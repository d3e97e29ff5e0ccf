//! `cargo xtask mutants`: small wrong changes to the code that decides about data, and whether the tests notice.
//!
//! cargo-mutants lists the changes; a seed shuffles them; the first that can be compiled as switches (`switch.rs`) are
//! all compiled into one copy of the tree. Then each in turn is switched on by its number, and the judges run, the
//! quickest first, until one objects. A change that nobody objects to is a hole in the tests: the table at the end
//! names it.

mod build;
mod figures;
mod judge;
mod list;
mod site;
mod switch;

use anyhow::{Context, Result, bail, ensure};
use build::{Copy, Sample};
use figures::Figures;
use judge::{Bench, Verdict};
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
    /// Only changes whose name has one of these in it; all, if there is none.
    only: Vec<String>,
    scratch: PathBuf,
    /// Where the figures go.
    record: Option<PathBuf>,
    /// Print the sample and what was left out, and judge nothing.
    list: bool,
}

/// Draws, compiles, asks, tells. True if every change of the sample was noticed.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let options = parse(root, arguments)?;
    let mut mutants = list::list(root, &PACKAGES)?;
    let wanted = |mutant: &Mutant| options.only.iter().any(|part| mutant.name.contains(part));
    mutants.retain(|mutant| options.only.is_empty() || wanted(mutant));
    let mutants = shuffled(mutants, options.seed);
    let (began, commit) = (Instant::now(), commit(root)?);
    let mut copy = Copy::make(root, &options.scratch)?;
    let sample = copy.take_sample(&mutants, options.sample)?;
    println!("{} of {} changes, seed {}", sample.mutants.len(), mutants.len(), options.seed);
    for mutant in &sample.left_out {
        println!("left out: {}", mutant.name);
    }
    if options.list {
        sample.mutants.iter().enumerate().for_each(|(at, mutant)| println!("{:>4} {}", at + 1, mutant.name));
        return Ok(true);
    }
    let built = copy.build()?;
    println!("{:>6.1} s  until all was compiled", began.elapsed().as_secs_f64());
    let bench = Bench::sit(&copy, &built, options.seeds, options.workers)?;
    let verdicts = ask(&bench, &sample, options.workers)?;
    let figures = Figures::new(&sample, &verdicts, mutants.len(), options.seed, began.elapsed());
    print!("\n{figures}");
    if let Some(path) = &options.record {
        let text = figures.page(&commit);
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(figures.survivors.is_empty())
}

/// The verdict on each change, in the order of the sample.
fn ask(bench: &Bench, sample: &Sample<'_>, workers: usize) -> Result<Vec<Verdict>> {
    let line = Mutex::new((1u32..).zip(&sample.mutants));
    let work = || {
        let mut done = Vec::new();
        // The guard is gone before the judges run.
        let next = || line.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
        while let Some((number, mutant)) = next() {
            let began = Instant::now();
            let verdict = bench.judge(number, &mutant.package)?;
            println!("{number:>4} {:>6.1} s  {verdict}: {}", began.elapsed().as_secs_f64(), mutant.name);
            done.push((number, verdict));
        }
        anyhow::Ok(done)
    };
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        let hands: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for hand in hands {
            all.extend(hand.join().expect("a worker does not panic")?);
        }
        anyhow::Ok(())
    })?;
    all.sort_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, verdict)| verdict).collect())
}

fn parse(root: &Path, arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        sample: 200,
        seed: 1,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        seeds: 200,
        only: Vec::new(),
        scratch: root.join("target/mutants"),
        record: None,
        list: false,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--record" => options.record = Some(root.join("docs/figures/mutants.md")),
            "--list" => options.list = true,
            _ => {
                let value = words.next().with_context(|| format!("{word} needs a value"))?;
                match word.as_str() {
                    "--sample" => options.sample = value.parse()?,
                    "--seed" => options.seed = value.parse()?,
                    "--workers" => options.workers = value.parse()?,
                    "--seeds" => options.seeds = value.parse()?,
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
    let mut alike: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut placed = Vec::new();
    for mutant in mutants {
        let (file, change) = (mutant.file.clone(), mutant.change().to_owned());
        let bytes = file.bytes().chain(change.bytes());
        let hash = bytes.fold(seed, |hash, byte| mixed(hash ^ u64::from(byte)));
        let before = alike.entry((file, change)).or_default();
        *before += 1;
        placed.push((mixed(hash ^ *before), mutant));
    }
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
