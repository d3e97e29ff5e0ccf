//! `ensue gateway study`: which share of the requests in recordings of browsers Prophecy would serve fast.

mod har;

use anyhow::Context;
use ensue_plot::{COLOURS, Line, Panel, draw};
use ensue_prophecy::study::{REQUESTS_MIN, Study, Summary, UrlRatio, share_up_to};
use har::Recording;
use std::path::PathBuf;
use std::process::ExitCode;

/// URLs that the table shows.
const ROWS: usize = 20;
/// Characters of a URL in the table.
const URL_CHARS: usize = 72;

/// Say which share of the requests in HAR recordings of web sites Prophecy would serve fast
///
/// Record a site again and again, caching disabled, and save each recording with its contents. Recordings are read in
/// the order given, requests in the order of each file.
#[derive(Debug, clap::Args)]
pub(crate) struct StudyArgs {
    /// Recordings (HAR, the JSON that browsers save)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// A host that is a visited site's own, and those below it; the hosts of the recorded pages, unless given
    #[arg(long = "first-party", value_name = "HOST")]
    first_party: Vec<String>,
    /// Compare headers, too, but those that the sketcher removes; the paper compared bodies
    #[arg(long)]
    headers: bool,
    /// Plot only URLs with at least so many requests
    #[arg(long, value_name = "N", default_value_t = REQUESTS_MIN)]
    requests_min: usize,
    /// Write the plots into this file (SVG)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(args: &StudyArgs) -> anyhow::Result<ExitCode> {
    let mut study = Study::new();
    for file in &args.files {
        let recording = Recording::read(file).with_context(|| file.display().to_string())?;
        let own = if args.first_party.is_empty() { recording.page_hosts() } else { args.first_party.clone() };
        for exchange in recording.reads() {
            let exchange = exchange.with_context(|| file.display().to_string())?;
            let is_first_party = own.iter().any(|host| exchange.is_of(host));
            study.add(exchange.url, is_first_party, &exchange.sketched(args.headers)?)?;
        }
    }
    let summary = study.summary();
    print!("{}", table(&summary, args.requests_min));
    if let Some(path) = &args.svg {
        std::fs::write(path, svg(&summary, args.requests_min)).with_context(|| path.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn ratios(urls: &[&UrlRatio]) -> Vec<f64> {
    urls.iter().map(|url| url.ratio()).collect()
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

fn table(summary: &Summary, requests_min: usize) -> String {
    let of_requests = |count: usize| percent(count as f64 / summary.requests.max(1) as f64);
    let mut out = format!(
        "{} reads of {} URLs; {} would have been served fast, {} were the first of their URL, {} had changed.\n\n",
        summary.requests,
        summary.urls.len(),
        of_requests(summary.fast_requests()),
        of_requests(summary.first_requests),
        of_requests(summary.transitions),
    );
    out.push_str("| URLs | number | never changed | changed at most 15 times of 100 |\n|---|--:|--:|--:|\n");
    for (name, first_party) in [("all", None), ("first party", Some(true)), ("third party", Some(false))] {
        let urls = summary.repeated(requests_min, first_party);
        let ratios = ratios(&urls);
        out.push_str(&format!(
            "| {name}, requested {requests_min} times or more | {} | {} | {} |\n",
            urls.len(),
            percent(share_up_to(&ratios, 0.0)),
            percent(share_up_to(&ratios, 0.15)),
        ));
    }
    out.push('\n');
    out.push_str(&changes(summary));
    out.push_str("\n| URL | requests | transitions | ratio |\n|---|--:|--:|--:|\n");
    for url in summary.urls.iter().take(ROWS) {
        let name: String = url.url.chars().take(URL_CHARS).collect();
        out.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            name.replace('|', "%7C"),
            url.requests,
            url.transitions,
            percent(url.ratio())
        ));
    }
    if summary.urls.len() > ROWS {
        out.push_str(&format!("\nand {} URLs more.\n", summary.urls.len() - ROWS));
    }
    out
}

fn changes(summary: &Summary) -> String {
    let changes = &summary.changes;
    if changes.is_empty() {
        return "No response changed.\n".into();
    }
    let share = |count: usize| percent(count as f64 / changes.len() as f64);
    let mut edits: Vec<usize> = changes.iter().map(|change| change.edited_chunks).collect();
    edits.sort_unstable();
    format!(
        "Of {} transitions, {} differ in at least 30 % of their chunks, {} in all; {} are one contiguous edit, which \
         keeps half of the chunks. The median edit is {} chunks long.\n",
        changes.len(),
        share(changes.iter().filter(|change| change.differing >= 0.3).count()),
        share(changes.iter().filter(|change| change.differing >= 1.0).count()),
        share(changes.iter().filter(|change| change.is_single_edit).count()),
        edits[edits.len() / 2],
    )
}

/// The plots of figures 14 and 15, and that of the changes in section 8.2.
fn svg(summary: &Summary, requests_min: usize) -> String {
    let lines = [("all", None), ("first party", Some(true)), ("third party", Some(false))];
    let below = || (0..=5).map(|step| (f64::from(step) * 20.0, format!("{} %", step * 20))).collect();
    let parties = lines.iter().zip(COLOURS).map(|((name, first_party), colour)| Line {
        name,
        colour,
        points: shares(&ratios(&summary.repeated(requests_min, *first_party))),
    });
    let differing: Vec<f64> = summary.changes.iter().map(|change| change.differing).collect();
    let title = "URLs with at most this transition ratio, %";
    let panels = [
        Panel { title, lines: parties.collect(), below: below() },
        Panel {
            title: "transitions with at most so many chunks changed, %",
            lines: vec![Line { name: "all", colour: COLOURS[0], points: shares(&differing) }],
            below: below(),
        },
    ];
    draw("how often responses change, and how much", &panels)
}

/// How many of the values are at most each hundredth, in percent; no line for no values.
fn shares(values: &[f64]) -> Vec<(f64, f64)> {
    let steps = if values.is_empty() { 0..0 } else { 0..101 };
    steps.map(|step| (f64::from(step), 100.0 * share_up_to(values, f64::from(step) / 100.0))).collect()
}

#[cfg(test)]
mod tests;
