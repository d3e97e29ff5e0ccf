//! `ensue check`: judges a history that clients recorded.

mod branches;

use crate::paint::Paint;
use crate::record::RecordArgs;
use anyhow::Context;
use clap::ValueEnum;
use ensue_check::format::Format;
use ensue_check::generate::{self, Shape};
use ensue_check::report::{Overall, Violation};
use ensue_check::{History, Options, Property, Report, Verdict, draw, explain};
use ensue_sim::branching::record::{FIRST, Recording};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Decide whether a history of client operations keeps the promises of causal consistency
///
/// Exit status: 0 if everything that was asked for holds, 1 if something is violated, 2 if the history cannot be read,
/// 3 if something could not be decided.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The history; `-` is standard input
    #[arg(value_name = "HISTORY", required_unless_present_any = ["generate", "record"], conflicts_with = "record")]
    history: Option<PathBuf>,
    /// The form of the history; found out by its first line unless given
    #[arg(long, value_name = "FORM")]
    from: Option<Form>,
    /// Write the history in this form to standard output, and judge nothing
    #[arg(long, value_name = "FORM")]
    to: Option<Form>,
    /// Judge these properties only, and read integrity, on which they rest
    #[arg(long = "property", value_name = "NAME", value_parser = property)]
    properties: Vec<Property>,
    /// Draw the first violation
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    /// Write a causal history of so many operations to standard output, to measure with
    #[arg(long, value_name = "OPERATIONS", hide = true, conflicts_with = "history")]
    generate: Option<u64>,
    #[arg(long, value_name = "N", hide = true, default_value_t = 24)]
    sessions: u32,
    #[arg(long, value_name = "N", hide = true, default_value_t = 1000)]
    keys: u32,
    #[arg(long, value_name = "N", hide = true, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    recording: RecordArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Jsonl,
    Plume,
}

impl From<Form> for Format {
    fn from(form: Form) -> Format {
        match form {
            Form::Jsonl => Format::Jsonl,
            Form::Plume => Format::Plume,
        }
    }
}

fn property(name: &str) -> Result<Property, String> {
    Property::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Property::ALL.iter().map(|property| property.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

const CANNOT_READ: u8 = 2;

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    // Status 1 says "violated", so whatever else goes wrong must not.
    try_run(args).or_else(|error| {
        eprintln!("ensue: {error:#}");
        Ok(ExitCode::from(CANNOT_READ))
    })
}

fn try_run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.recording.record {
        return crate::record::run(&args.recording, file);
    }
    let history = match (&args.history, args.generate) {
        (_, Some(operations)) => {
            let &CheckArgs { sessions, keys, seed, .. } = args;
            generate::history(Shape { operations, sessions, keys, seed })
        }
        (Some(path), None) => {
            match read(path, args.from).with_context(|| format!("{} is no history", path.display()))? {
                Recorded::Causal(history) => history,
                Recorded::OnBranches(recording) => return branches::run(args, &recording),
            }
        }
        (None, None) => unreachable!("clap asks for one of the two"),
    };
    if let Some(form) = args.to.or(args.generate.map(|_| Form::Jsonl)) {
        let mut output = BufWriter::new(io::stdout().lock());
        Format::from(form).write(&history, &mut output)?;
        output.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut options = Options::default();
    if !args.properties.is_empty() {
        options.properties.clone_from(&args.properties);
        options.properties.push(Property::ReadIntegrity);
    }
    let report = ensue_check::check(&history, &options);
    tell(&history, &report, args.json)?;
    if let Some(path) = &args.svg {
        match clearest(&report) {
            Some((property, violation)) => {
                let drawing = draw::svg(&history, property.title(), violation);
                std::fs::write(path, drawing).with_context(|| format!("cannot write {}", path.display()))?;
            }
            None => eprintln!("ensue: nothing is violated, so {} is not drawn", path.display()),
        }
    }
    Ok(ExitCode::from(match report.overall() {
        Overall::Holds => 0,
        Overall::Violated => 1,
        Overall::Undecided => 3,
    }))
}

/// The violation that takes the fewest transactions to show.
fn clearest(report: &Report) -> Option<(Property, &Violation)> {
    report.violations().min_by_key(|(_, violation)| violation.transactions.len())
}

/// What a file holds.
enum Recorded {
    Causal(History),
    OnBranches(Box<Recording>),
}

fn read(path: &Path, form: Option<Form>) -> anyhow::Result<Recorded> {
    if path == Path::new("-") {
        return read_from(&mut io::stdin().lock(), form);
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let is_watched = io::stderr().is_terminal();
    let progress = Progress { file, read: 0, length, shown: 0, is_watched };
    read_from(&mut BufReader::with_capacity(1 << 20, progress), form)
}

fn read_from(input: &mut dyn BufRead, form: Option<Form>) -> anyhow::Result<Recorded> {
    if form.is_none() && input.fill_buf()?.starts_with(FIRST.as_bytes()) {
        return Ok(Recorded::OnBranches(Box::new(Recording::read(input)?)));
    }
    let format = match form {
        Some(form) => Format::from(form),
        None => match input.fill_buf()?.trim_ascii_start().first() {
            Some(b'r' | b'w') => Format::Plume,
            _ => Format::Jsonl,
        },
    };
    Ok(Recorded::Causal(format.read(input)?))
}

/// A file that says on a terminal how far it has been read, once it takes long.
struct Progress {
    file: File,
    read: u64,
    length: u64,
    shown: u64,
    is_watched: bool,
}

/// Shorter files are read before anybody could see how far.
const WATCHED_BYTES_MIN: u64 = 32 << 20;

impl Read for Progress {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read += count as u64;
        if self.is_watched && self.length >= WATCHED_BYTES_MIN {
            let percent = self.read * 100 / self.length;
            if count == 0 {
                eprint!("\r\x1b[K");
            } else if percent != self.shown {
                self.shown = percent;
                eprint!("\rreading {percent} %");
            }
        }
        Ok(count)
    }
}

/// Prints the report. A reader that goes away early, such as `head`, has read enough.
fn tell(history: &History, report: &Report, as_json: bool) -> io::Result<()> {
    let mut output = BufWriter::new(io::stdout().lock());
    let told = match as_json {
        true => writeln!(output, "{}", ensue_check::report::json(history, report)),
        false => print(history, report, Paint::for_stdout(), &mut output),
    };
    match told.and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        told => told,
    }
}

fn print(history: &History, report: &Report, paint: Paint, output: &mut impl Write) -> io::Result<()> {
    let width = report.verdicts.iter().map(|(property, _)| property.title().len()).max().unwrap_or(0);
    writeln!(
        output,
        "{} operations, {} transactions, {} sessions",
        history.operation_count(),
        history.transactions.len(),
        history.sessions.len()
    )?;
    writeln!(output)?;
    for (property, verdict) in &report.verdicts {
        let title = format!("{:width$}", property.title());
        match verdict {
            Verdict::Holds => writeln!(output, "  {title}  {}", paint.good("holds"))?,
            Verdict::Violated(violation) => {
                writeln!(output, "  {title}  {} {}", paint.bad("violated"), violation.pattern)?;
            }
            Verdict::Undecided(reason) => {
                writeln!(output, "  {title}  {}: {reason}", paint.notable("undecided"))?
            }
            Verdict::NotApplicable(why) => {
                writeln!(output, "  {title}  {}", paint.dim(&format!("not applicable: {why}")))?
            }
        }
    }
    for note in &report.notes {
        writeln!(output, "\n{} {note}", paint.notable("note:"))?;
    }
    let mut told: Vec<&Violation> = Vec::new();
    for (property, violation) in report.violations() {
        writeln!(output, "\n{} {}", paint.bad(property.title()), paint.bold(&violation.pattern.to_string()))?;
        if told.iter().any(|earlier| is_told(earlier, violation)) {
            writeln!(output, "  by the same operations: {}", violation.summary)?;
            continue;
        }
        writeln!(output, "  {}\n", violation.summary)?;
        for line in explain::lines(history, violation) {
            writeln!(output, "{}", format!("    {line}").trim_end())?;
        }
        told.push(violation);
    }
    Ok(())
}

fn is_told(earlier: &Violation, violation: &Violation) -> bool {
    earlier.transactions == violation.transactions && earlier.relations == violation.relations
}
