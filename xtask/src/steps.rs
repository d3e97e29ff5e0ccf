//! Steps that run one after the other, or two lists of them at once: a line before each, the time it took after it, and
//! a summary at the end.
//!
//! What the programs of a step say goes to a file, and its end is shown if the step fails. The first failure stops
//! everything that follows. Beside the time stands the processor time of a step's programs, which does not depend on
//! what else the machine does.

use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Of the step's programs; unknown where steps ran at once, or the system does not say.
    processor: Option<Duration>,
}

impl Done {
    fn times(&self) -> String {
        match self.processor {
            Some(processor) => format!("{} ({} of processor)", seconds(self.elapsed), seconds(processor)),
            None => seconds(self.elapsed),
        }
    }
}

/// A step to be run.
pub struct Step<'w> {
    name: String,
    work: Box<dyn FnOnce(&mut Log) -> Outcome + Send + 'w>,
}

impl<'w> Step<'w> {
    pub fn new(name: &str, work: impl FnOnce(&mut Log) -> Outcome + Send + 'w) -> Step<'w> {
        Step { name: name.into(), work: Box::new(work) }
    }
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
        let before = processor_time();
        let mut done = self.take(name, work);
        done.processor = processor_time().and_then(|after| after.checked_sub(before?));
        self.done.push(done);
    }

    /// Runs two lists of steps at once, each in its order: one whose programs mostly wait, and one that computes. A
    /// failure in one lets the step that runs in the other come to its end, and no further one begin.
    pub fn at_once(&mut self, waiting: Vec<Step<'_>>, computing: Vec<Step<'_>>) {
        if self.failed() {
            return;
        }
        let has_failed = AtomicBool::new(false);
        let this = &*self;
        let run = |steps: Vec<Step<'_>>| -> Vec<Done> {
            let mut done = Vec::new();
            for Step { name, work } in steps {
                if has_failed.load(Ordering::Relaxed) {
                    break;
                }
                let one = this.take(&name, work);
                has_failed.fetch_or(matches!(one.outcome, Outcome::Failed(_)), Ordering::Relaxed);
                done.push(one);
            }
            done
        };
        let (first, second) = std::thread::scope(|scope| {
            let beside = scope.spawn(|| run(waiting));
            let own = run(computing);
            (beside.join().expect("a step of the gate panicked"), own)
        });
        self.done.extend(first.into_iter().chain(second));
    }

    fn take(&self, name: &str, work: impl FnOnce(&mut Log) -> Outcome) -> Done {
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
        Done { name: name.into(), outcome, elapsed, processor: None }
    }

    /// A step that is one program.
    pub fn program(&mut self, name: &str, command: &mut Command) {
        self.step(name, |log| log.run(command));
    }

    /// Prints what happened; true if nothing failed.
    pub fn summary(&self) -> bool {
        println!();
        for done in &self.done {
            let Done { name, outcome, .. } = done;
            let (colour, word, note) = match outcome {
                Outcome::Passed => ("32", "passed ", done.times()),
                Outcome::PassedWithout(_) => ("33", "passed ", done.times()),
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

/// Runs a program for its answer alone; true if it ran and succeeded.
pub fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn spelled(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// What all programs that this one has waited for have used of the processors, as Linux says it.
fn processor_time() -> Option<Duration> {
    /// Linux counts these in hundredths of a second on every machine.
    const TICKS_A_SECOND: u32 = 100;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name in parentheses that may hold anything. The times of children are fields 16 and 17.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u32>().ok();
    Some(Duration::from_secs(1) * (ticks(16)? + ticks(17)?) / TICKS_A_SECOND)
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests;
