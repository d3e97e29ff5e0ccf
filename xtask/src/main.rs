//! `cargo xtask <command>`: the one door to everything a developer or a continuous integration machine runs.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use xtask::fuzz;
use xtask::gate::{Gate, target};
use xtask::instructions;
use xtask::mutants;
use xtask::sbom;
use xtask::steps::{Steps, cargo};
use xtask::tidy;

const USAGE: &str = "\
usage: cargo xtask <command>

  test          everything that must pass before a commit: form, lints, tests, simulator, end-to-end tests, torture;
                --verbose shows what the programs print
  full          what must pass before a release: the same on the release build, with ten times as many simulated
                worlds, the instructions an operation, the event hashes of 200 seeds of every protocol, and
                software that people run on Redis
  tidy          only the checks of the tree's form
  parts         which part of a large module names which, and how large its conductor is
  sim [args]    the simulator, release build: `cargo xtask sim --seed 42`
  soak [args]   many seeds of it: `cargo xtask soak --minutes 30`, `--seeds N`, `--keep-going`;
                `--record` adds a row to docs/figures/soak.md
  hashes [..]   the event hashes of 200 seeds of every protocol against docs/figures/hashes.txt; `--record` writes them
  instructions  instructions an operation, under valgrind, against docs/figures/instructions.md; `--record` writes them
  compare [..]  every protocol under the same clients; `--record` writes docs/figures/compare.md and a picture
  mutants [..]  small wrong changes, and whether the tests notice: `cargo xtask mutants --sample 200 --seed 1`
  fuzz [..]     the fuzzers, a nightly compiler: `cargo xtask fuzz --minutes 10 [TARGET]`
  sbom [..]     what a release is made of, as CycloneDX: `cargo xtask sbom --out ensue.cdx.json`
  torture [..]  real servers harmed under recorded clients: `cargo xtask torture --minutes 10`, `--break RULE`
";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let root = root()?;
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match command.as_str() {
        "test" => gate(Gate::quick(root), &rest),
        "full" => gate(Gate::full(root), &rest),
        "tidy" => tidy_only(&root),
        "parts" => parts(&root),
        "sim" => sim(&root, &rest),
        "soak" => soak(&root, &rest),
        "hashes" => hashes(&root, &rest),
        "instructions" => instructions::run(&root, &rest),
        "compare" => compare(&root, &rest),
        "mutants" => mutants::run(&root, &rest),
        "fuzz" => fuzz::run(&root, &rest),
        "sbom" => sbom::run(&root, &rest),
        "torture" => torture(&root, &rest),
        "" | "help" | "-h" | "--help" => {
            print!("{USAGE}");
            Ok(true)
        }
        other => bail!("no command `{other}`\n\n{USAGE}"),
    }
}

fn gate(gate: Gate, arguments: &[String]) -> Result<bool> {
    let logs = match arguments {
        [] => Some(target(&gate.root).join("gate-logs")),
        [word] if word == "--verbose" => None,
        _ => bail!("`test` and `full` take no argument but --verbose"),
    };
    Ok(gate.pass(&mut Steps::new(logs)))
}

fn tidy_only(root: &Path) -> Result<bool> {
    let report = tidy::check_tree_at(root).context("reading the tree")?;
    print!("{report}");
    Ok(report.findings.is_empty())
}

fn parts(root: &Path) -> Result<bool> {
    let tree = tidy::tree::Tree::read(root).context("reading the tree")?;
    print!("{}", tidy::parts::describe(&tree));
    Ok(true)
}

fn sim(root: &Path, arguments: &[String]) -> Result<bool> {
    ensue(root, "sim", arguments)
}

fn ensue(root: &Path, subcommand: &str, arguments: &[String]) -> Result<bool> {
    let mut command = cargo(root);
    command.args(["run", "--release", "-p", "ensue", "--", subcommand]).args(arguments);
    Ok(command.status().context("starting cargo")?.success())
}

/// Runs `ensue-torture` on a fresh build; one that can break a rule is kept apart from the one for use.
fn torture(root: &Path, arguments: &[String]) -> Result<bool> {
    let build = |features: &[&str]| -> Result<bool> {
        let mut command = cargo(root);
        command.args(["build", "--release", "-p", "ensue", "-p", "ensue-torture"]).args(features);
        Ok(command.status().context("starting cargo")?.success())
    };
    let release = root.join(std::env::var("CARGO_TARGET_DIR").unwrap_or("target".into())).join("release");
    let mut binary = release.join("ensue");
    if arguments.iter().any(|word| word.starts_with("--break")) {
        if !build(&["--features", "ensue/breakable"])? {
            return Ok(false);
        }
        let breakable = release.join("ensue-breakable");
        std::fs::copy(&binary, &breakable).context("keeping the breakable server apart")?;
        binary = breakable;
    }
    if !build(&[])? {
        return Ok(false);
    }
    let mut command = Command::new(release.join("ensue-torture"));
    command.arg("--binary").arg(binary).arg("--dir").arg(release.with_file_name("torture")).args(arguments);
    Ok(command.current_dir(root).status().context("starting ensue-torture")?.success())
}

/// A soak starts where the clock says, so that no two soaks repeat each other; `--start` says otherwise.
fn soak(root: &Path, arguments: &[String]) -> Result<bool> {
    let mut arguments: Vec<String> = arguments.to_vec();
    if !arguments.iter().any(|word| word == "--minutes" || word == "--seeds") {
        arguments.extend(["--minutes", "10"].map(String::from));
    }
    if !arguments.iter().any(|word| word == "--start") {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        arguments.extend(["--start".into(), (now.as_secs() * 1_000).to_string()]);
    }
    record_into(root, "soak.md", &mut arguments)?;
    sim(root, &arguments)
}

/// A change of the code that is to change no behaviour leaves these as they are.
fn hashes(root: &Path, arguments: &[String]) -> Result<bool> {
    let recorded = root.join("docs/figures/hashes.txt");
    let mut arguments: Vec<String> = arguments.to_vec();
    let mut file = recorded.clone();
    let records = arguments.iter().position(|word| word == "--record");
    if let Some(at) = records {
        arguments.remove(at);
        file = root.join("target/hashes.txt");
        if file.exists() {
            std::fs::remove_file(&file).context("removing hashes that were left behind")?;
        }
    }
    if !arguments.iter().any(|word| word == "--seeds") {
        arguments.extend(["--seeds", "200"].map(String::from));
    }
    let mut command = cargo(root);
    command.args(["run", "-p", "ensue", "--", "sim", "--hashes"]).arg(&file).args(arguments);
    let passed = command.status().context("starting cargo")?.success();
    if passed && records.is_some() {
        std::fs::copy(&file, &recorded).context("keeping the recorded hashes")?;
    }
    Ok(passed)
}

fn compare(root: &Path, arguments: &[String]) -> Result<bool> {
    let mut arguments: Vec<String> = arguments.to_vec();
    let asks = |flag: &str| arguments.iter().any(|word| word.split('=').next() == Some(flag));
    let file = match (asks("--cut"), asks("--sites")) {
        (true, _) => "cut.md",
        (_, true) => "sites.md",
        _ => "compare.md",
    };
    record_into(root, file, &mut arguments)?;
    ensue(root, "compare", &arguments)
}

/// Says where a record goes, if one is asked for, and of which commit it is.
fn record_into(root: &Path, file: &str, arguments: &mut Vec<String>) -> Result<()> {
    if let Some(at) = arguments.iter().position(|word| word == "--record") {
        let figures = root.join("docs/figures");
        std::fs::create_dir_all(&figures).context("making docs/figures")?;
        arguments.insert(at + 1, figures.join(file).to_string_lossy().into_owned());
        arguments.extend(["--commit".into(), commit(root)?]);
    }
    Ok(())
}

/// The short name of the commit that is checked out, with a sign if the tree differs from it.
fn commit(root: &Path) -> Result<String> {
    let mut git = std::process::Command::new("git");
    git.current_dir(root).args(["describe", "--always", "--dirty", "--exclude=*"]);
    let output = git.output().context("asking git for the commit")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The workspace: the parent of this package's folder, as cargo names it now or as it was when this was built.
fn root() -> Result<PathBuf> {
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&package).parent().context("the xtask package has no parent folder")?;
    Ok(root.to_path_buf())
}
