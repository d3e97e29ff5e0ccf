//! `ensue bench paper`: the figures of the papers, run again, with what the papers say beside what was measured.
//!
//! Tables go to standard output, progress to standard error. The process ends with 0 if everything ran, whatever it
//! showed, and with 2 if nothing could be measured.

use crate::paint::Paint;
use anyhow::{Context, ensure};
use ensue_paper::claim::verdicts;
use ensue_paper::figure::Figure;
use ensue_paper::instrument::Effort;
use ensue_paper::page;
use ensue_paper::papers::{self, PAPERS, Paper};
use ensue_paper::record::{FigureRecord, Records};
use ensue_paper::run::{self, Progress};
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Repeat figures and tables of the papers, and say whether what they say holds here
#[derive(Debug, clap::Args)]
pub(super) struct PaperArgs {
    /// cops, eiger, orbe, pocc, tardis, beyond (what no paper measured), or all
    #[arg(value_name = "PAPER", required_unless_present = "list")]
    paper: Option<String>,
    /// A figure or a table, such as F9, F9a or T2; all of them if none is named
    #[arg(value_name = "FIGURE")]
    figure: Option<String>,
    /// List the figures
    #[arg(long)]
    list: bool,
    /// Runs of each point, the lines taking turns; simulated worlds run once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=99))]
    rounds: u16,
    /// Seconds of each run under real load
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    seconds: Duration,
    /// Divide the virtual time of simulated worlds by this
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    hurry: u16,
    /// Only the ends of each sweep, one short round: whether it works, and not what it shows
    #[arg(long)]
    quick: bool,
    /// Write the page papers.md, the data papers.json and the pictures papers/*.svg into this folder; figures that are
    /// not run keep what they were
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Write the results as JSON; `-` is standard output, in place of the tables
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Write the pictures into this folder
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    /// The commit that is measured, for the record
    #[arg(long, value_name = "NAME", hide = true)]
    commit: Option<String>,
}

const QUICK: Duration = Duration::from_millis(200);
/// Virtual time is so much shorter in a hurry.
const HURRY: u64 = 8;
const SECONDS_MAX: f64 = 600.0;
const PAGE: &str = "papers.md";
const DATA: &str = "papers.json";
const PICTURES: &str = "papers";
/// Characters of the bar.
const BAR: usize = 20;

pub(super) fn run(args: &PaperArgs) -> anyhow::Result<ExitCode> {
    if args.list {
        return Ok(list());
    }
    let paper = args.paper.as_deref().unwrap_or_default();
    let wanted = match papers::find(paper, args.figure.as_deref()) {
        Ok(wanted) => wanted,
        Err(why) => {
            eprintln!("ensue: {why}");
            return Ok(ExitCode::from(2));
        }
    };
    let directory = Scratch::new()?;
    let effort = Effort {
        program: std::env::current_exe().context("cannot find this program")?,
        directory: directory.0.clone(),
        rounds: if args.quick { 1 } else { usize::from(args.rounds) },
        lasts: if args.quick { QUICK } else { args.seconds },
        hurry: if args.quick { HURRY } else { u64::from(args.hurry) },
        ends_only: args.quick,
    };
    let to_stdout = args.json.as_ref().is_some_and(|file| file.as_os_str() == "-");
    let mut records = Vec::new();
    for (number, (paper, figure)) in wanted.iter().enumerate() {
        let place = format!("{}/{}", number + 1, wanted.len());
        let record = one(paper, figure, &effort, &made(args, figure), &place)
            .with_context(|| format!("{} {}", paper.name, figure.name))?;
        if !to_stdout {
            println!("{}", page::figure(&record));
        }
        // What has taken an hour is not lost with what comes after it.
        if let Some(folder) = &args.record {
            write_record(folder, record.clone())?;
        }
        records.push(record);
    }
    if let Some(file) = &args.json {
        let judged = |record: &FigureRecord| {
            let mut figure = serde_json::to_value(record)?;
            figure["verdicts"] = serde_json::to_value(verdicts(record))?;
            Ok(figure)
        };
        let figures = records.iter().map(judged).collect::<anyhow::Result<Vec<_>>>()?;
        let text = serde_json::to_string_pretty(&serde_json::json!({ "figures": figures }))? + "\n";
        match to_stdout {
            true => std::io::stdout().write_all(text.as_bytes())?,
            false => write(file, &text)?,
        }
    }
    if let Some(folder) = &args.svg {
        write_pictures(folder, &records)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> ExitCode {
    for paper in &PAPERS {
        println!("{:<8} {}", paper.name, paper.title);
        for figure in paper.figures {
            println!("  {:<5} {}", figure.name, figure.title);
        }
    }
    ExitCode::SUCCESS
}

fn one(
    paper: &Paper,
    figure: &Figure,
    effort: &Effort,
    made: &str,
    place: &str,
) -> anyhow::Result<FigureRecord> {
    let (is_terminal, paint) = (std::io::stderr().is_terminal(), Paint::for_stdout());
    let show = |line: &str| {
        if is_terminal {
            eprint!("\r\x1b[2K{line}");
            // A terminal that is gone shows nothing.
            let _ = std::io::stderr().flush();
        }
    };
    let name = format!("{place} {} {}", paper.name, figure.name);
    let record = run::run(paper, figure, effort, made, |Progress { done, of, next }| {
        let full = BAR * done / of.max(1);
        let bar = format!("[{}{}]", "#".repeat(full), "-".repeat(BAR - full));
        show(&paint.dim(&format!("{name} {bar} {done}/{of}  {next}")));
    });
    show("");
    Ok(record?)
}

/// On what the measurement was made, in words.
fn made(args: &PaperArgs, figure: &Figure) -> String {
    let build = if cfg!(debug_assertions) { "development build" } else { "release build" };
    let commit = args.commit.as_deref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let runs = match (args.quick, figure.experiment.is_simulated()) {
        (true, _) => "one short round, the ends only: not to be trusted".to_owned(),
        (false, true) if args.hurry > 1 => format!("virtual time divided by {}", args.hurry),
        (false, true) => "one run of each point".to_owned(),
        (false, false) => format!("{} rounds of {} s", args.rounds, args.seconds.as_secs_f64()),
    };
    format!("(Ensue {}{commit}, {build}; {cores} cores; {runs}.)", env!("CARGO_PKG_VERSION"))
}

/// Adds a record to those of the folder, and makes the page anew.
fn write_record(folder: &Path, record: FigureRecord) -> anyhow::Result<()> {
    let data = folder.join(DATA);
    let mut records = match fs::read_to_string(&data) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("cannot read {}", data.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Records::default(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", data.display())),
    };
    let pictures = folder.join(PICTURES);
    write_pictures(&pictures, std::slice::from_ref(&record))?;
    let order: Vec<(String, String)> = PAPERS
        .iter()
        .flat_map(|paper| paper.figures.iter().map(|figure| (paper.name.into(), figure.name.into())))
        .collect();
    records.replace(vec![record], &order);
    write(&data, &(serde_json::to_string_pretty(&records)? + "\n"))?;
    write(&folder.join(PAGE), &page::page(&records))
}

fn write_pictures(folder: &Path, records: &[FigureRecord]) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    records
        .iter()
        .try_for_each(|record| write(&folder.join(page::picture_name(record)), &page::picture(record)))
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn seconds(text: &str) -> anyhow::Result<Duration> {
    let seconds: f64 = text.parse().context("no number")?;
    ensure!((0.05..=SECONDS_MAX).contains(&seconds), "from 0.05 to {SECONDS_MAX}");
    Ok(Duration::from_secs_f64(seconds))
}

/// Where clusters keep what they write; removed with everything in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("ensue-paper-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaning.
        let _ = fs::remove_dir_all(&self.0);
    }
}
