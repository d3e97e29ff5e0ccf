//! Steps that run one after the other: a line before each, the time it took after it, and a summary at the end.
//!
//! What the programs of a step say goes to a file, and its end is shown if the step fails. The first failure stops
//! everything that follows.

use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How one step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    /// It passed, and left out what this machine cannot run: what that needs.
    PassedWithout(Vec<String>),
    Failed(String),
    /// It did not run, and why.
    Skipped(String),
}

impl Outcome {
    /// How much did not run.
    fn left_out(&self) -> usize {
        match self {
            Outcome::Passed | Outcome::Failed(_) => 0,
            Outcome::PassedWithout(left_out) => left_out.len(),
            Outcome::Skipped(_) => 1,
        }
    }
}

struct Done {
    name: String,
    outcome: Outcome,
    elapsed: Duration,
}

/// Lines of a failed program that are shown.
const LINES_SHOWN: usize = 80;

/// The steps taken so far.
pub struct Steps {
    /// Where the output of the programs goes, one file a step; straight through if nothing.
    logs: Option<PathBuf>,
    done: Vec<Done>,
    started: Instant,
    colour: bool,
}

impl Steps {
    pub fn new(logs: Option<PathBuf>) -> Steps {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Steps { logs, done: Vec::new(), started: Instant::now(), colour }
    }

    /// Runs one step, unless an earlier one failed.
    pub fn step(&mut self, name: &str, work: impl FnOnce(&mut Log) -> Outcome) {
        if self.failed() {
            return;
        }
        println!("{} {name}", self.paint("1;36", "==>"));
        let started = Instant::now();
        let mut log =
            self.logs.as_deref().map_or(Log::Through, |folder| Log::File(folder.join(file_name(name))));
        let outcome =
            log.begin().map_or_else(|error| Outcome::Failed(error.to_string()), |()| work(&mut log));
        if let Outcome::Failed(_) = outcome {
            log.show_end();
        }
        let elapsed = started.elapsed();
        match &outcome {
            Outcome::Passed | Outcome::PassedWithout(_) => {
                println!("{} {name}: {}", self.paint("32", "  passed"), seconds(elapsed));
            }
            Outcome::Failed(why) => println!("{} {name}: {why}", self.paint("31", "  failed")),
            Outcome::Skipped(why) => println!("{} {name}: {why}", self.paint("33", "  skipped")),
        }
        self.done.push(Done { name: name.into(), outcome, elapsed });
    }

    /// A step that is one program.
    pub fn program(&mut self, name: &str, command: &mut Command) {
        self.step(name, |log| log.run(command));
    }

    /// Prints what happened; true if nothing failed.
    pub fn summary(&self) -> bool {
        println!();
        for Done { name, outcome, elapsed } in &self.done {
            let (colour, word, note) = match outcome {
                Outcome::Passed => ("32", "passed ", seconds(*elapsed)),
                Outcome::PassedWithout(_) => ("33", "passed ", seconds(*elapsed)),
                Outcome::Failed(why) => ("31", "FAILED ", why.clone()),
                Outcome::Skipped(why) => ("33", "skipped", why.clone()),
            };
            println!("  {} {name}: {note}", self.paint(colour, word));
            if let Outcome::PassedWithout(left_out) = outcome {
                left_out.iter().for_each(|what| println!("          left out: {what}"));
            }
        }
        let total = seconds(self.started.elapsed());
        if self.failed() {
            println!(
                "{} after {total}; the steps after the failed one did not run",
                self.paint("1;31", "FAILED")
            );
        } else {
            let left_out: usize = self.done.iter().map(|done| done.outcome.left_out()).sum();
            let verdict =
                if left_out == 0 { "all passed".into() } else { format!("passed, {left_out} left out") };
            println!("{} in {total}", self.paint("1;32", &verdict));
        }
        !self.failed()
    }

    fn failed(&self) -> bool {
        self.done.iter().any(|done| matches!(done.outcome, Outcome::Failed(_)))
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }
}

/// Where the output of one step goes.
pub enum Log {
    Through,
    File(PathBuf),
}

impl Log {
    fn begin(&self) -> io::Result<()> {
        let Log::File(path) = self else { return Ok(()) };
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        File::create(path).map(drop)
    }

    /// Runs a program to its end.
    pub fn run(&mut self, command: &mut Command) -> Outcome {
        if let Log::File(path) = self {
            let files =
                File::options().append(true).open(&path).and_then(|file| Ok((file.try_clone()?, file)));
            match files {
                Ok((output, errors)) => command.stdout(output).stderr(errors),
                Err(error) => return Outcome::Failed(format!("{}: {error}", path.display())),
            };
        }
        match command.status() {
            Ok(status) if status.success() => Outcome::Passed,
            Ok(status) => Outcome::Failed(format!("`{}` ended with {status}", spelled(command))),
            Err(error) => Outcome::Failed(format!("`{}` did not start: {error}", spelled(command))),
        }
    }

    /// The lines that contain a word, of what the programs of this step said.
    pub fn lines_with(&self, word: &str) -> Vec<String> {
        let Log::File(path) = self else { return Vec::new() };
        let text = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().filter(|line| line.contains(word)).map(|line| line.trim().to_owned()).collect()
    }

    /// The last lines of a step that failed.
    fn show_end(&self) {
        let Log::File(path) = self else { return };
        let text = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let hidden = lines.len().saturating_sub(LINES_SHOWN);
        lines[hidden..].iter().for_each(|line| println!("{line}"));
        if hidden > 0 {
            println!("({hidden} lines before these: {})", path.display());
        }
    }
}

/// A step's name as the name of a file.
fn file_name(step: &str) -> String {
    let letter = |letter: char| if letter.is_alphanumeric() { letter } else { '-' };
    step.chars().map(letter).collect::<String>() + ".log"
}

/// The cargo that runs this program, in the workspace.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn spelled(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests;
