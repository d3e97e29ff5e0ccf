//! Who notices a change: test programs and the simulator, the quickest first, until one objects.
//!
//! A judge that needs many times the processor time that it needs without any change, or far more memory than any test,
//! has noticed the change too. Only processor time is asked for: a busy machine must not pass for a judge.

use super::build::{Built, Copy};
use super::{PACKAGES, switch};
use anyhow::{Context, Result, ensure};
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// Seeds of the first look.
const SEEDS_FIRST: u64 = 20;
/// Seeds of each protocol, beside those that are drawn.
const SEEDS_EACH: u64 = 10;
/// Seeds of keyspaces with branches, which have clients of their own.
const SEEDS_BRANCHES: u64 = 20;
/// So many times as long as without a change is endless.
const PATIENCE: u64 = 8;
/// Processor time, as all that follows.
const PATIENCE_SECONDS_MIN: u64 = 20;
/// For the run without a change.
const PATIENCE_SECONDS_FIRST: u64 = 1_800;
/// What ends a program that has used up its time.
const SIGXCPU: i32 = 24;
/// Address space of a judge, in KiB.
const MEMORY_KIB: u64 = 6 << 20;

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Noticed by this judge.
    Noticed(String),
    /// This judge did not end.
    Endless(String),
    Survived,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Noticed(judge) => write!(f, "noticed by {judge}"),
            Verdict::Endless(judge) => write!(f, "endless in {judge}"),
            Verdict::Survived => write!(f, "SURVIVED"),
        }
    }
}

/// One program, and how long it may take.
struct Judge {
    name: String,
    /// Asked only about changes of this package.
    package: Option<String>,
    program: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
    patience_seconds: u64,
}

/// All judges, in their order.
pub(super) struct Bench {
    judges: Vec<Judge>,
}

enum End {
    Passed,
    Failed,
    TooLong,
}

impl Bench {
    /// Sees to it that every judge is content when no change is on, and learns how long each takes.
    pub(super) fn sit(copy: &Copy, built: &Built, seeds: u64, workers: usize) -> Result<Bench> {
        let mut judges = judges(copy, built, seeds);
        let line = Mutex::new(judges.iter_mut());
        let work = || {
            // The guard is gone before the judge runs.
            let next = || line.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            while let Some(judge) = next() {
                judge.try_unchanged()?;
            }
            anyhow::Ok(())
        };
        std::thread::scope(|scope| {
            let hands: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            hands.into_iter().try_for_each(|hand| hand.join().expect("a judge's thread does not panic"))
        })?;
        Ok(Bench { judges })
    }

    /// Asks about the change of this number in this package.
    pub(super) fn judge(&self, number: u32, package: &str) -> Result<Verdict> {
        let asked = |judge: &&Judge| judge.package.as_deref().is_none_or(|only| only == package);
        for judge in self.judges.iter().filter(asked) {
            match judge.run(number)? {
                End::Passed => {}
                End::Failed => return Ok(Verdict::Noticed(judge.name.clone())),
                End::TooLong => return Ok(Verdict::Endless(judge.name.clone())),
            }
        }
        Ok(Verdict::Survived)
    }
}

/// In the order in which they are asked.
fn judges(copy: &Copy, built: &Built, seeds: u64) -> Vec<Judge> {
    let mut judges = Vec::new();
    for package in PACKAGES {
        for program in built.tests.get(package).into_iter().flatten() {
            let last = Some(&package) == PACKAGES.last();
            judges.push(Judge {
                name: format!("the tests of {package}"),
                // What the last package is made of shows in its tests, too.
                package: (!last).then(|| package.to_owned()),
                program: program.clone(),
                arguments: vec!["--test-threads=1".into()],
                folder: copy.tree.join("crates").join(package),
                patience_seconds: PATIENCE_SECONDS_FIRST,
            });
        }
    }
    let more = seeds.saturating_sub(SEEDS_FIRST);
    let each = format!("--protocol each --seeds {SEEDS_EACH}");
    let branches = format!("--protocol tardis --seeds {SEEDS_BRANCHES}");
    for (name, words) in [
        ("the simulator", format!("--seeds {SEEDS_FIRST}")),
        ("the scenarios", "--scenario scenarios".to_owned()),
        ("the simulator, each protocol", each),
        ("the simulator, branches", branches),
        ("the simulator, many seeds", format!("--start {} --seeds {more}", SEEDS_FIRST + 1)),
    ] {
        judges.push(Judge {
            name: name.to_owned(),
            package: None,
            program: built.simulator.clone(),
            arguments: format!("{words} --threads 1 --shrink-seconds 0")
                .split(' ')
                .map(str::to_owned)
                .collect(),
            folder: copy.tree.clone(),
            patience_seconds: PATIENCE_SECONDS_FIRST,
        });
    }
    judges
}

impl Judge {
    fn try_unchanged(&mut self) -> Result<()> {
        let began = Instant::now();
        let end = self.run(0)?;
        ensure!(matches!(end, End::Passed), "{} object to the tree as it is", self.name);
        let seconds = began.elapsed().as_secs_f64();
        println!("{seconds:>6.1} s  {}, without a change", self.name);
        self.patience_seconds = (seconds as u64 * PATIENCE).max(PATIENCE_SECONDS_MIN);
        Ok(())
    }

    /// Runs the program, with all that it starts, to its end.
    fn run(&self, number: u32) -> Result<End> {
        let status = self.command(number).status().with_context(|| format!("starting {}", self.name))?;
        Ok(match status.signal() {
            Some(SIGXCPU) => End::TooLong,
            _ if status.success() => End::Passed,
            _ => End::Failed,
        })
    }

    fn command(&self, number: u32) -> Command {
        let seconds = self.patience_seconds;
        let limits = format!("ulimit -v {MEMORY_KIB}; ulimit -S -t {seconds}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limits, "sh"]);
        command.arg(&self.program).args(&self.arguments).current_dir(&self.folder);
        command.env(switch::VARIABLE, number.to_string()).env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}
