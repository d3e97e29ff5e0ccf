//! What a change must pass, in the order in which a failure is cheapest: form, lints, tests, simulator, end to end, torture.
//!
//! A step whose subject is not in the tree, or whose interpreter is not on the machine, is skipped and says so.

use crate::steps::{Outcome, Steps, cargo, run};
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
}

impl Gate {
    /// Runs every step; true if none failed.
    pub fn pass(&self, steps: &mut Steps) -> bool {
        let root = &self.root;
        steps.program("fmt", cargo(root).args(["fmt", "--all", "--check"]));
        steps.step("tidy", || tidy_step(root));
        let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        steps.program("clippy", cargo(root).args(clippy));
        steps.program("cargo test", cargo(root).args(["test", "--workspace"]));
        let build = ["build", "--release", "-p", "ensue", "-p", "ensue-torture"];
        steps.program("release build", cargo(root).args(build));
        steps.step(&format!("simulator, {} seeds", self.seeds), || simulator(root, self.seeds));
        steps.step(&format!("simulator, {SEEDS_EACH} seeds of each protocol"), || {
            each_protocol(root, SEEDS_EACH, &[])
        });
        let losing = || each_protocol(root, SEEDS_LOSING, &["--losing"]);
        steps.step(
            &format!("simulator, {SEEDS_LOSING} seeds of each protocol that lose a datacenter"),
            losing,
        );
        steps.step(&format!("simulator, {SEEDS_BRANCHES} seeds of keyspaces with branches"), || {
            branches(root, SEEDS_BRANCHES)
        });
        steps.step("end-to-end tests", || end_to_end(root));
        steps.step("torture, one round of each kind of faults", || torture(root));
        steps.summary()
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

fn simulator(root: &Path, seeds: u32) -> Outcome {
    let manifest = std::fs::read_to_string(root.join("crates/ensue/Cargo.toml")).unwrap_or_default();
    if !manifest.contains("ensue-sim") {
        return Outcome::Skipped("the `ensue` binary has no simulator: no dependency on ensue-sim".into());
    }
    run(Command::new(binary(root)).current_dir(root).args(["sim", "--seeds", &seeds.to_string()]))
}

/// The seeds of `simulator` are of the protocols that most worlds are drawn with.
fn each_protocol(root: &Path, seeds: u32, more: &[&str]) -> Outcome {
    let mut command = Command::new(binary(root));
    command.args(["sim", "--protocol", "each", "--seeds", &seeds.to_string()]).args(more);
    run(command.current_dir(root))
}

/// Other clients and another oracle than those of all other protocols.
fn branches(root: &Path, seeds: u32) -> Outcome {
    let mut command = Command::new(binary(root));
    command.args(["sim", "--protocol", "tardis", "--seeds", &seeds.to_string()]);
    run(command.current_dir(root))
}

/// Real processes, harmed for half a minute. What this machine does not allow, it says and leaves out.
fn torture(root: &Path) -> Outcome {
    let binary = binary(root);
    let mut command = Command::new(binary.with_file_name("ensue-torture"));
    command.arg("--binary").arg(&binary).arg("--dir").arg(binary.with_file_name("torture-data"));
    run(command.current_dir(root).args(["--minutes", "0.4", "--round-seconds", "5"]))
}

/// Python scripts that start `ENSUE_BIN` and talk to it with the Redis client that people use.
fn end_to_end(root: &Path) -> Outcome {
    if !root.join("tests/e2e").is_dir() {
        return Outcome::Skipped("there is no folder tests/e2e".into());
    }
    if !quiet(Command::new("python3").arg("--version")) {
        return Outcome::Skipped("python3 is not installed".into());
    }
    let venv = target(root).join("venv");
    if let Outcome::Failed(why) = install(root, &venv) {
        return Outcome::Failed(why);
    }
    let mut pytest = Command::new(venv.join("bin/pytest"));
    run(pytest.current_dir(root).args(["-q", "tests/e2e"]).env("ENSUE_BIN", binary(root)))
}

/// Makes the virtual environment, unless a complete one is there.
fn install(root: &Path, venv: &Path) -> Outcome {
    if quiet(Command::new(venv.join("bin/python")).args(["-c", "import redis, pytest"])) {
        return Outcome::Passed;
    }
    let made = run(Command::new("python3").current_dir(root).args(["-m", "venv"]).arg(venv));
    if made != Outcome::Passed {
        return made;
    }
    let mut pip = Command::new(venv.join("bin/pip"));
    run(pip.current_dir(root).args(["install", "-q", REDIS_CLIENT, "pytest"]))
}

fn binary(root: &Path) -> PathBuf {
    target(root).join("release/ensue")
}

/// Where cargo builds: its variable, relative to the workspace, or `target`.
fn target(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
