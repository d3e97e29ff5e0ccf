//! Records as people read them: a figure as text, all of them as one page, each as a picture.

use crate::claim::{Verdict, number_text, verdicts};
use crate::papers::{CAUSES, PAPERS};
use crate::record::{FigureRecord, Line, Panel, Records};
use ensue_plot::{COLOURS, draw};
use std::fmt::Write;

/// A spread of rounds wider than this is shown beside the median.
const NOISE_SHOWN: f64 = 0.1;

/// A figure with its tables and its statements, as markdown that can be read as text.
pub fn figure(record: &FigureRecord) -> String {
    let title = PAPERS.iter().find(|paper| paper.name == record.paper).map_or("", |paper| paper.title);
    let mut out = format!("{} {} (section {}): {}\n\n", title, record.name, record.section, record.title);
    body(record, &mut out);
    out
}

/// Statements first, because they are what a reader asks for; then the tables.
fn body(record: &FigureRecord, out: &mut String) {
    let here = if record.here.is_empty() { String::new() } else { format!(" Here: {}.", record.here) };
    put(out, &format!("By {}.{here} {}\n", record.instrument, record.made));
    let rows: Vec<Vec<String>> = verdicts(record).iter().map(Verdict::cells).collect();
    if !rows.is_empty() {
        put(out, &table(&["the paper says", "paper", "ours", "direction", "factor"], &rows));
    }
    for panel in &record.panels {
        let unit = if panel.unit.is_empty() { String::new() } else { format!(", {}", panel.unit) };
        put(out, &format!("{}{unit}\n", panel.metric));
        let mut head = vec![record.axis.as_str()];
        head.extend(panel.lines.iter().map(|line| line.name.as_str()));
        put(out, &table(&head, &panel.rows()));
    }
}

/// The page of all records.
pub fn page(records: &Records) -> String {
    let mut out = format!(
        "# The papers' figures, repeated\n\n    ensue bench paper all --record docs/figures\n\n{HEAD}\n"
    );
    let judged: Vec<Verdict> = records.figures.iter().flat_map(verdicts).collect();
    let count = |of: fn(&Verdict) -> Option<bool>, is: bool| {
        judged.iter().filter(|verdict| of(verdict) == Some(is)).count()
    };
    let (held, not) = (count(|verdict| verdict.direction, true), count(|verdict| verdict.direction, false));
    let (near, far) = (count(|verdict| verdict.factor, true), count(|verdict| verdict.factor, false));
    put(
        &mut out,
        &format!(
            "{} figures and {} statements: the direction holds for {held} and not for {not}, the factor for {near} and not \
             for {far}.\n",
            records.figures.len(),
            judged.len()
        ),
    );
    let missing = missing(records);
    if !missing.is_empty() {
        put(&mut out, &format!("Not run yet: {}.\n", missing.join(", ")));
    }
    put(&mut out, "## What does not hold\n");
    for record in &records.figures {
        for verdict in verdicts(record).iter().filter(|verdict| verdict.fails()) {
            let ours = verdict.ours.map_or("-".into(), number_text);
            let (figure, words) = (format!("{} {}", record.paper, record.name), verdict.words);
            let what = if verdict.direction == Some(false) { "direction" } else { "factor" };
            put(&mut out, &format!("- **{figure}**, {what}: {words}: paper {}, ours {ours}", verdict.paper));
        }
    }
    put(&mut out, &causes(records));
    for paper in PAPERS {
        let mut figures = records.figures.iter().filter(|record| record.paper == paper.name).peekable();
        if figures.peek().is_none() {
            continue;
        }
        put(&mut out, &format!("\n## {}", paper.title));
        for record in figures {
            put(
                &mut out,
                &format!(
                    "\n### {} {} (section {}): {}\n",
                    paper.name, record.name, record.section, record.title
                ),
            );
            body(record, &mut out);
            put(&mut out, &format!("![{}](papers/{})", record.name, picture_name(record)));
        }
    }
    narrow(&out)
}

/// A page with no line of prose wider than [`WIDTH`]; the rows of a table lose their padding where that helps.
fn narrow(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    for line in page.lines() {
        match (line.chars().count() > WIDTH, line.starts_with('|')) {
            (false, _) => put(&mut out, line),
            (true, true) => put(&mut out, &unpadded(line)),
            (true, false) => wrap(&mut out, line),
        }
    }
    out
}

/// A row of a table, a space beside each cell.
fn unpadded(row: &str) -> String {
    let cells = row.trim_matches('|').split('|').map(str::trim);
    let cells = cells.map(|cell| match cell.strip_prefix("---").map(|rest| rest.ends_with(':')) {
        Some(true) => " --: |".to_owned(),
        Some(false) => " --- |".to_owned(),
        None => format!(" {cell} |"),
    });
    std::iter::once("|".to_owned()).chain(cells).collect()
}

/// Breaks a line between words; what follows in an item of a list is indented.
fn wrap(out: &mut String, line: &str) {
    let indent = if line.starts_with("- ") { "  " } else { "" };
    let mut width = 0;
    for word in line.split(' ') {
        let wide = word.chars().count();
        if width > 0 && width + 1 + wide > WIDTH {
            out.push('\n');
            out.push_str(indent);
            width = indent.len();
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += wide;
    }
    out.push('\n');
}

/// Columns of a page.
const WIDTH: usize = 120;

/// What experiments have shown of why statements about the recorded figures fail.
fn causes(records: &Records) -> String {
    let fails = |record: &&FigureRecord| verdicts(record).iter().any(Verdict::fails);
    let mut out = String::new();
    for record in records.figures.iter().filter(fails) {
        let of_it =
            CAUSES.iter().filter(|(paper, figure, _)| (*paper, *figure) == (&record.paper, &record.name));
        of_it.for_each(|(paper, figure, why)| put(&mut out, &format!("Why, of {paper} {figure}: {why}\n")));
    }
    if out.is_empty() { out } else { format!("\n{}", out.trim_end()) }
}

/// Figures of which there is no record.
fn missing(records: &Records) -> Vec<String> {
    let is_there = |paper: &str, name: &str| {
        records.figures.iter().any(|record| record.paper == paper && record.name == name)
    };
    let all =
        PAPERS.iter().flat_map(|paper| paper.figures.iter().map(move |figure| (paper.name, figure.name)));
    all.filter(|(paper, name)| !is_there(paper, name))
        .map(|(paper, name)| format!("{paper} {name}"))
        .collect()
}

const HEAD: &str = "\
Each figure and table is run again at this machine's scale, and what the paper says of it stands beside what was measured.
**Direction**: our ratio lies on the paper's side of 1 (or both are near it); **factor**: both are within 1.5 times of each
other; a number of the paper's machines is shown and not judged. Where a paper has a curve without numbers, its words are
what is judged. In the tables, `a (b-c)` is the median of the rounds with the least and the most, where these lie more than a
tenth apart. [benchmarking.md](../benchmarking.md) describes the instruments.
";

/// The file of a figure's picture.
pub fn picture_name(record: &FigureRecord) -> String {
    format!("{}-{}.svg", record.paper, record.name.to_ascii_lowercase())
}

/// Lines over the points, a panel a metric.
pub fn picture(record: &FigureRecord) -> String {
    let panels: Vec<ensue_plot::Panel<'_>> = record.panels.iter().map(Panel::drawn).collect();
    draw(&format!("{} {}: {}", record.paper, record.name, plain(&record.title)), &panels)
}

/// Without what means something in a picture's file.
fn plain(text: &str) -> String {
    text.replace('&', "and").replace(['<', '>'], "")
}

impl Panel {
    /// A row a point.
    fn rows(&self) -> Vec<Vec<String>> {
        let row = |(place, point): (usize, &String)| {
            let mut cells = vec![point.clone()];
            cells.extend(self.lines.iter().map(|line| line.cell(place)));
            cells
        };
        self.points.iter().enumerate().map(row).collect()
    }

    fn drawn(&self) -> ensue_plot::Panel<'_> {
        let line = |(number, line): (usize, &'_ Line)| ensue_plot::Line {
            name: "",
            colour: COLOURS[number % COLOURS.len()],
            points: line.points(),
        };
        let lines = self.lines.iter().enumerate().map(line).zip(&self.lines);
        let lines = lines.map(|(drawn, line)| ensue_plot::Line { name: &line.name, ..drawn }).collect();
        let below = self.points.iter().enumerate().map(|(at, point)| (at as f64, plain(point))).collect();
        ensue_plot::Panel { title: &self.metric, lines, below }
    }
}

impl Line {
    fn cell(&self, place: usize) -> String {
        match self.values.get(place).copied().flatten() {
            None => String::new(),
            Some(spread) if spread.noise() > NOISE_SHOWN => {
                let [median, least, most] = [spread.median, spread.least, spread.most].map(number_text);
                format!("{median} ({least}-{most})")
            }
            Some(spread) => number_text(spread.median),
        }
    }

    fn points(&self) -> Vec<(f64, f64)> {
        let there = self.values.iter().enumerate();
        there.filter_map(|(at, value)| Some((at as f64, value.as_ref()?.median))).collect()
    }
}

impl Verdict {
    /// Whether something of it was judged and does not hold.
    pub fn fails(&self) -> bool {
        self.direction == Some(false) || self.factor == Some(false)
    }

    fn cells(&self) -> Vec<String> {
        let mark = |held: Option<bool>| match held {
            Some(true) => "holds",
            Some(false) => "**no**",
            None => "",
        };
        vec![
            self.words.into(),
            self.paper.clone(),
            self.ours.map(number_text).unwrap_or_default(),
            mark(self.direction).into(),
            mark(self.factor).into(),
        ]
    }
}

/// Cells in columns that are as wide as they must be; the first has names, the others numbers.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| cell(row, column).chars().count());
        widths.max().unwrap_or(0).max(head[column].chars().count())
    };
    let mut out = String::new();
    let mut line = |cells: &dyn Fn(usize) -> String| {
        for column in 0..head.len() {
            let (text, width) = (cells(column), width(column));
            let padded =
                if column == 0 { format!("| {text:<width$} ") } else { format!("| {text:>width$} ") };
            out.push_str(&padded);
        }
        out.push_str("|\n");
    };
    line(&|column| head[column].to_owned());
    line(&|column| {
        let dashes = "-".repeat(width(column).max(3) - 1);
        if column == 0 { format!("{dashes}-") } else { format!("{dashes}:") }
    });
    for row in rows {
        line(&|column| cell(row, column));
    }
    out
}

fn put(out: &mut String, line: &str) {
    writeln!(out, "{line}").expect("a string takes all");
}
