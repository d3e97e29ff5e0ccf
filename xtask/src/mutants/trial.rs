//! One change at a time in a copy of the tree: built, judged, taken back.
//!
//! The judges, quickest first: the scenarios and a few seeds of the simulator, the tests of the changed crate, many
//! seeds. A judge that does not come to an end in many times its usual time, or needs far more memory than any test,
//! has noticed the change too.

use super::list::Mutant;
use crate::steps::cargo;
use anyhow::{Context, Result, ensure};
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Seeds of the first look.
const SEEDS_FIRST: u64 = 30;
/// Every judge of an unchanged tree ends within this time, on a slow and busy machine.
const JUDGE_SECONDS_MAX: u64 = 600;
/// Address space of a judge, in KiB.
const MEMORY_KIB: u64 = 6 << 20;

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Noticed by this judge.
    Noticed(&'static str),
    /// This judge did not end.
    Endless(&'static str),
    DoesNotBuild,
    Survived,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Noticed(judge) => write!(f, "noticed by {judge}"),
            Verdict::Endless(judge) => write!(f, "endless in {judge}"),
            Verdict::DoesNotBuild => write!(f, "does not build"),
            Verdict::Survived => write!(f, "SURVIVED"),
        }
    }
}

/// A copy of the tree with its own build directory.
pub(super) struct Trial {
    tree: PathBuf,
    target: PathBuf,
    seeds: u64,
}

enum End {
    Passed,
    Failed,
    TooLong,
}

impl Trial {
    /// Copies what is tracked, builds it, and sees to it that every judge is content with it as it is.
    pub(super) fn prepare(root: &Path, scratch: &Path, seeds: u64) -> Result<Trial> {
        let trial = Trial { tree: scratch.join("tree"), target: scratch.join("build"), seeds };
        if trial.tree.exists() {
            std::fs::remove_dir_all(&trial.tree).context("clearing the copy of an earlier run")?;
        }
        let listed =
            Command::new("git").current_dir(root).arg("ls-files").output().context("starting git")?;
        for file in String::from_utf8(listed.stdout)?.lines() {
            let to = trial.tree.join(file);
            std::fs::create_dir_all(to.parent().context("a tracked file has a folder")?)?;
            std::fs::copy(root.join(file), to).with_context(|| format!("copying {file}"))?;
        }
        ensure!(trial.build()?, "the tree does not build as it is");
        let verdict = trial.judge(&super::PACKAGES)?;
        ensure!(verdict == Verdict::Survived, "the tree as it is: {verdict}");
        Ok(trial)
    }

    /// Makes a change, asks the judges, takes the change back.
    pub(super) fn try_one(&self, mutant: &Mutant) -> Result<Verdict> {
        let path = self.tree.join(&mutant.file);
        let original = std::fs::read_to_string(&path).with_context(|| mutant.file.clone())?;
        std::fs::write(&path, mutant.apply(&original)?)?;
        let verdict = if self.build()? { self.judge(&[mutant.package()]) } else { Ok(Verdict::DoesNotBuild) };
        std::fs::write(&path, original)?;
        verdict
    }

    fn build(&self) -> Result<bool> {
        let mut command = self.cargo();
        command.args(["build", "--quiet", "--package", "ensue-sim", "--example", "sim"]);
        Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).status().context("starting cargo")?.success())
    }

    fn judge(&self, packages: &[&str]) -> Result<Verdict> {
        let (first, more) = (SEEDS_FIRST.min(self.seeds), self.seeds.saturating_sub(SEEDS_FIRST));
        let judges: [(&str, Command); 4] = [
            ("the scenarios", self.sim(&["--scenario", "scenarios"])),
            ("the simulator", self.sim(&["--threads", "1", "--seeds", &first.to_string()])),
            ("the crate's tests", self.tests(packages)),
            (
                "many seeds",
                self.sim(&["--threads", "1", "--start", &first.to_string(), "--seeds", &more.to_string()]),
            ),
        ];
        for (name, command) in judges {
            match run(command)? {
                End::Passed => {}
                End::Failed => return Ok(Verdict::Noticed(name)),
                End::TooLong => return Ok(Verdict::Endless(name)),
            }
        }
        Ok(Verdict::Survived)
    }

    fn sim(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$@\""), "sh"]);
        command.arg(self.target.join("debug/examples/sim")).args(arguments).current_dir(&self.tree);
        command
    }

    fn tests(&self, packages: &[&str]) -> Command {
        let mut command = self.cargo();
        command.args(["test", "--quiet"]).args(packages.iter().flat_map(|package| ["--package", package]));
        command
    }

    /// The dev profile without what only a debugger needs; one job, as there is a worker for each core.
    fn cargo(&self) -> Command {
        let mut command = cargo(&self.tree);
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_BUILD_JOBS", "1");
        command.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_INCREMENTAL", "1");
        command
    }
}

/// Runs a judge with all that it starts, for so long.
fn run(mut command: Command) -> Result<End> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().context("starting a judge")?;
    let deadline = Instant::now() + Duration::from_secs(JUDGE_SECONDS_MAX);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { End::Passed } else { End::Failed });
        }
        if Instant::now() >= deadline {
            Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status()?;
            child.wait()?;
            return Ok(End::TooLong);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
