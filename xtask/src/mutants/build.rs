//! A copy of the tree with a sample of changes in it, compiled once.
//!
//! Which changes cannot be compiled, the compiler says; each is left out and the next in line takes its place. Nothing
//! here touches the tree itself.

use super::list::Mutant;
use super::{PACKAGES, mixed, site, switch};
use crate::steps::cargo;
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Where the switch itself goes.
const LOWEST: &str = "crates/ensue-types/src/lib.rs";
/// More rounds would mean that leaving out does not help.
const ROUNDS_MAX: usize = 100;

/// The copy and its build directory.
pub(super) struct Copy {
    pub(super) tree: PathBuf,
    target: PathBuf,
    /// Texts of the files as they were.
    originals: BTreeMap<String, String>,
    /// Of all that is compiled or played.
    pub(super) digest: u64,
}

/// What was compiled.
pub(super) struct Built {
    /// The test programs of each of the packages, with the folder that they run in.
    pub(super) tests: BTreeMap<String, Vec<PathBuf>>,
    pub(super) simulator: PathBuf,
}

/// The sample: the place in it, from 1 on, is the number of a change.
pub(super) struct Sample<'m> {
    pub(super) mutants: Vec<&'m Mutant>,
    /// What could not be switched or compiled.
    pub(super) left_out: Vec<&'m Mutant>,
}

/// A line of what cargo tells.
#[derive(Deserialize)]
struct Told {
    reason: String,
    message: Option<Message>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Message {
    level: String,
    message: String,
    spans: Vec<Span>,
    children: Vec<Message>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
}

impl Copy {
    /// Copies what is tracked. A file that is in the copy already is not touched, so that it is not compiled again.
    pub(super) fn make(root: &Path, scratch: &Path) -> Result<Copy> {
        let (tree, target) = (scratch.join("tree"), scratch.join("build"));
        let listed =
            Command::new("git").current_dir(root).arg("ls-files").output().context("starting git")?;
        let (mut originals, mut tracked, mut digest) = (BTreeMap::new(), BTreeSet::new(), 0);
        for file in String::from_utf8(listed.stdout)?.lines() {
            let mut bytes = std::fs::read(root.join(file)).with_context(|| format!("reading {file}"))?;
            if file.starts_with("crates/") || file.starts_with("scenarios/") || file.starts_with("Cargo") {
                digest = file
                    .bytes()
                    .chain(bytes.iter().copied())
                    .fold(digest, |digest, byte| mixed(digest ^ u64::from(byte)));
            }
            if file == LOWEST {
                bytes.extend(switch::FUNCTION.as_bytes());
            }
            let source = PACKAGES.iter().any(|package| file.starts_with(&format!("crates/{package}/src/")));
            if source && file.ends_with(".rs") {
                // `write` sees to these.
                originals.insert(file.to_owned(), String::from_utf8(bytes).with_context(|| file.to_owned())?);
            } else {
                write_if_other(&tree.join(file), &bytes)?;
            }
            tracked.insert(tree.join(file));
        }
        for folder in ["crates", "scenarios"] {
            remove_others(&tree.join(folder), &tracked)?;
        }
        Ok(Copy { tree, target, originals, digest })
    }

    /// Writes the first of the line that can be compiled into the copy.
    pub(super) fn take_sample<'m>(&self, line: &'m [Mutant], size: usize) -> Result<Sample<'m>> {
        let mut out = BTreeSet::new();
        for round in 1..=ROUNDS_MAX {
            let taken: Vec<usize> = (0..line.len()).filter(|at| !out.contains(at)).take(size).collect();
            let mut refused = self.write(&taken.iter().map(|&at| &line[at]).collect::<Vec<_>>())?;
            if refused.is_empty() {
                refused = self.check()?;
            }
            if refused.is_empty() {
                // What stands behind the last that was taken was never tried.
                let end = taken.last().map_or(0, |last| last + 1);
                let left_out = out.into_iter().filter(|&at| at < end).map(|at| &line[at]).collect();
                return Ok(Sample { mutants: taken.into_iter().map(|at| &line[at]).collect(), left_out });
            }
            println!("round {round}: {} of {} changes do not compile", refused.len(), taken.len());
            out.extend(refused.into_iter().map(|number| taken[number as usize - 1]));
        }
        bail!("after {ROUNDS_MAX} rounds there are still changes that do not compile");
    }

    /// Writes a sample into the copy that is known to compile.
    pub(super) fn write_sample(&self, mutants: &[&Mutant]) -> Result<()> {
        let refused = self.write(mutants)?;
        ensure!(refused.is_empty(), "changes of a sample that was compiled have no place: {refused:?}");
        Ok(())
    }

    /// Writes these changes, and no others, into the copy; tells the numbers that have no place.
    fn write(&self, mutants: &[&Mutant]) -> Result<BTreeSet<u32>> {
        let mut files: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in (1..).zip(mutants) {
            files.entry(&mutant.file).or_default().push((number, mutant));
        }
        let mut without = BTreeSet::new();
        for (file, original) in &self.originals {
            let wanted = files.get(file.as_str()).map_or(&[][..], Vec::as_slice);
            let text = if wanted.is_empty() {
                original.clone()
            } else {
                let (sites, placeless) = site::find(original, wanted).with_context(|| file.clone())?;
                without.extend(placeless);
                switch::write(original, &sites)
            };
            write_if_other(&self.tree.join(file), text.as_bytes())?;
        }
        Ok(without)
    }

    /// The numbers that the compiler objects to.
    fn check(&self) -> Result<BTreeSet<u32>> {
        let mut command = self.cargo("check");
        let output = command.output().context("starting cargo")?;
        let mut refused = BTreeSet::new();
        for told in told(&output)? {
            let error = told.message.filter(|message| message.level == "error" && !message.spans.is_empty());
            if let Some(error) = error {
                refused.insert(self.culprit(&error)?);
            }
        }
        let fine = output.status.success() || !refused.is_empty();
        ensure!(fine, "cargo check: {}", String::from_utf8_lossy(&output.stderr));
        Ok(refused)
    }

    /// The change that an error comes from: the closest around it, or around something that it points at.
    fn culprit(&self, error: &Message) -> Result<u32> {
        let mut spans: Vec<&Span> = error.spans.iter().collect();
        spans.extend(error.children.iter().flat_map(|child| &child.spans));
        spans.sort_by_key(|span| !span.is_primary);
        for span in &spans {
            // Only members of the workspace have relative names.
            let Ok(text) = std::fs::read_to_string(self.tree.join(&span.file_name)) else { continue };
            if let Some(number) = switch::around(&text, &(span.byte_start..span.byte_end)) {
                return Ok(number);
            }
        }
        let first = spans.first().context("an error has a place")?;
        let text = std::fs::read_to_string(self.tree.join(&first.file_name))?;
        // A match that lacks an arm is told at its head, and where the arm would stand: behind the one that a change
        // may leave out.
        let here = spans.iter().filter(|span| span.file_name == first.file_name);
        let last = here.map(|span| span.byte_start).max().unwrap_or(first.byte_start);
        let number = switch::before(&text, last);
        number.with_context(|| format!("no change explains: {} ({})", error.message, first.file_name))
    }

    /// Compiles the judges.
    pub(super) fn build(&self) -> Result<Built> {
        let mut tests: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        let mut simulator = None;
        for words in [&["test", "--no-run"][..], &["build", "--package", "ensue-sim", "--example", "sim"]] {
            let mut command = self.cargo(words[0]);
            command.args(&words[1..]);
            let output = command.stderr(Stdio::inherit()).output().context("starting cargo")?;
            ensure!(output.status.success(), "the copy does not build");
            for told in told(&output)?.into_iter().filter(|told| told.reason == "compiler-artifact") {
                let Some(program) = told.executable else { continue };
                let folder = told.manifest_path.as_deref().and_then(Path::parent).and_then(Path::file_name);
                let package = folder.context("a package has a folder")?.to_string_lossy().into_owned();
                if told.profile.is_some_and(|profile| profile.test) {
                    tests.entry(package).or_default().push(program);
                } else if told.target.is_some_and(|target| target.name == "sim") {
                    simulator = Some(program);
                }
            }
        }
        let simulator = simulator.context("cargo did not tell where the simulator is")?;
        Ok(Built { tests, simulator })
    }

    /// The dev profile, whose arithmetic is checked, made quick enough for many seeds.
    fn cargo(&self, word: &str) -> Command {
        let mut command = cargo(&self.tree);
        command.args([word, "--message-format=json"]);
        command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_PROFILE_DEV_OPT_LEVEL", "2");
        command.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_INCREMENTAL", "0");
        command.env("RUSTFLAGS", "--cap-lints=allow");
        command
    }
}

fn write_if_other(path: &Path, bytes: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|written| written == bytes) {
        return Ok(());
    }
    std::fs::create_dir_all(path.parent().context("a tracked file has a folder")?)?;
    std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Removes what an earlier tree had and this one has not.
fn remove_others(folder: &Path, tracked: &BTreeSet<PathBuf>) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, tracked)?;
        } else if !tracked.contains(&path) {
            std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}

fn told(output: &Output) -> Result<Vec<Told>> {
    let text = std::str::from_utf8(&output.stdout)?;
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).context("what cargo tells")).collect()
}
