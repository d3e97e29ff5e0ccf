//! What a change must pass, in the order in which a failure is cheapest: form, lints, tests, simulator, end to end, torture.
//!
//! A step whose subject is not in the tree, or whose interpreter is not on the machine, is skipped and says so.

use crate::steps::{Log, Outcome, Steps, cargo};
use crate::tidy;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Worlds of each protocol beside those that are drawn.
const SEEDS_EACH: u32 = 40;
/// Worlds of each protocol in which a datacenter is lost for good.
const SEEDS_LOSING: u32 = 20;
/// Of keyspaces with branches.
const SEEDS_BRANCHES: u32 = 60;
const REDIS_CLIENT: &str = "redis==5.*";

/// Where to run, and how much of the simulator.
pub struct Gate {
    pub root: PathBuf,
    /// Worlds the simulator draws.
    pub seeds: u32,
    /// The build that is simulated, served from and tortured.
    pub profile: &'static str,
}

impl Gate {
    /// Runs every step; true if none failed.
    pub fn pass(&self, steps: &mut Steps) -> bool {
        let root = &self.root;
        steps.program("fmt", cargo(root).args(["fmt", "--all", "--check"]));
        steps.step("tidy", |_| tidy_step(root));
        let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        steps.program("clippy", cargo(root).args(clippy));
        steps.program("cargo test", cargo(root).args(["test", "--workspace"]));
        let build = ["build", "--profile", self.profile, "-p", "ensue", "-p", "ensue-torture"];
        steps.program(&format!("{} build", self.profile), cargo(root).args(build));
        steps.step(&format!("simulator, {} seeds", self.seeds), |log| self.simulator(log));
        steps.step(&format!("simulator, {SEEDS_EACH} seeds of each protocol"), |log| {
            self.each_protocol(log, SEEDS_EACH, &[])
        });
        steps.step(
            &format!("simulator, {SEEDS_LOSING} seeds of each protocol that lose a datacenter"),
            |log| self.each_protocol(log, SEEDS_LOSING, &["--losing"]),
        );
        steps.step(
            &format!("simulator, {SEEDS_LOSING} seeds of each protocol that lose directories"),
            |log| self.each_protocol(log, SEEDS_LOSING, &["--losing-directories"]),
        );
        steps.step(&format!("simulator, {SEEDS_BRANCHES} seeds of keyspaces with branches"), |log| {
            self.branches(log)
        });
        steps.step("end-to-end tests", |log| self.end_to_end(log));
        steps.step("torture, one round of each kind of faults", |log| self.torture(log));
        steps.summary()
    }

    fn simulator(&self, log: &mut Log) -> Outcome {
        let manifest = std::fs::read_to_string(self.root.join("crates/ensue/Cargo.toml")).unwrap_or_default();
        if !manifest.contains("ensue-sim") {
            return Outcome::Skipped(
                "the `ensue` binary has no simulator: no dependency on ensue-sim".into(),
            );
        }
        log.run(self.ensue().args(["sim", "--seeds", &self.seeds.to_string()]))
    }

    /// The seeds of `simulator` are of the protocols that most worlds are drawn with.
    fn each_protocol(&self, log: &mut Log, seeds: u32, more: &[&str]) -> Outcome {
        log.run(self.ensue().args(["sim", "--protocol", "each", "--seeds", &seeds.to_string()]).args(more))
    }

    /// Other clients and another oracle than those of all other protocols.
    fn branches(&self, log: &mut Log) -> Outcome {
        log.run(self.ensue().args(["sim", "--protocol", "tardis", "--seeds", &SEEDS_BRANCHES.to_string()]))
    }

    /// Real processes, harmed for half a minute. What this machine does not allow, it says and leaves out.
    fn torture(&self, log: &mut Log) -> Outcome {
        let binary = self.binary();
        let mut command = Command::new(binary.with_file_name("ensue-torture"));
        command.arg("--binary").arg(&binary).arg("--dir").arg(binary.with_file_name("torture-data"));
        log.run(command.current_dir(&self.root).args(["--minutes", "0.4", "--round-seconds", "5"]))
    }

    /// Python scripts that start `ENSUE_BIN` and talk to it with the Redis client that people use.
    fn end_to_end(&self, log: &mut Log) -> Outcome {
        let root = &self.root;
        if !root.join("tests/e2e").is_dir() {
            return Outcome::Skipped("there is no folder tests/e2e".into());
        }
        if !quiet(Command::new("python3").arg("--version")) {
            return Outcome::Skipped("python3 is not installed".into());
        }
        let venv = target(root).join("venv");
        if let Outcome::Failed(why) = install(root, &venv, log) {
            return Outcome::Failed(why);
        }
        let mut pytest = Command::new(venv.join("bin/pytest"));
        log.run(pytest.current_dir(root).args(["-q", "tests/e2e"]).env("ENSUE_BIN", self.binary()))
    }

    fn ensue(&self) -> Command {
        let mut command = Command::new(self.binary());
        command.current_dir(&self.root);
        command
    }

    fn binary(&self) -> PathBuf {
        target(&self.root).join(self.profile).join("ensue")
    }
}

fn tidy_step(root: &Path) -> Outcome {
    match tidy::check_tree_at(root) {
        Err(error) => Outcome::Failed(format!("the tree could not be read: {error}")),
        Ok(report) => {
            print!("{report}");
            match report.findings.len() {
                0 => Outcome::Passed,
                count => Outcome::Failed(format!("{count} findings, listed above")),
            }
        }
    }
}

/// Makes the virtual environment, unless a complete one is there.
fn install(root: &Path, venv: &Path, log: &mut Log) -> Outcome {
    if quiet(Command::new(venv.join("bin/python")).args(["-c", "import redis, pytest"])) {
        return Outcome::Passed;
    }
    let made = log.run(Command::new("python3").current_dir(root).args(["-m", "venv"]).arg(venv));
    if made != Outcome::Passed {
        return made;
    }
    let mut pip = Command::new(venv.join("bin/pip"));
    log.run(pip.current_dir(root).args(["install", "-q", REDIS_CLIENT, "pytest"]))
}

/// Where cargo builds: its variable, relative to the workspace, or `target`.
pub fn target(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
