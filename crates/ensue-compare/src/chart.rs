//! A comparison as a picture: a block a load, a line a protocol, a panel a question, all drawn from the rows of the
//! tables.

use super::drawing::{rectangle, sheet, text};
use super::table::Row;

const LEFT: f64 = 176.0;
const PANEL: f64 = 176.0;
/// What is left of a panel for the bars; the rest is for their numbers.
const BARS: f64 = 92.0;
const LINE: f64 = 20.0;
const BLOCK_HEADER: f64 = 62.0;
const HEADER: f64 = 44.0;
const COLOURS: [&str; 3] = ["#1f7a6d", "#8cc0b6", "#c9ccd1"];

/// A question: for each row a bar of parts, one after the other or one over the other, and the numbers beside it.
struct Panel {
    title: &'static str,
    /// What the parts are, by colour.
    parts: &'static [&'static str],
    stacked: bool,
    values: fn(&Row) -> Vec<f64>,
    text: fn(&Row) -> String,
}

const PANELS: [Panel; 6] = [
    Panel {
        title: "throughput",
        parts: &["of eventual's"],
        stacked: false,
        values: |row| vec![row.throughput.median],
        text: |row| format!("{:.2}", row.throughput.median),
    },
    Panel {
        title: "bytes an update",
        parts: &["dependencies", "replaced"],
        stacked: true,
        values: |row| row.cost.bytes().to_vec(),
        text: |row| format!("{:.0}", row.cost.bytes().iter().sum::<f64>()),
    },
    Panel {
        title: "messages an update",
        parts: &["checks", "times", "between"],
        stacked: true,
        values: |row| row.cost.messages().to_vec(),
        text: |row| format!("{:.1}", row.cost.messages().iter().sum::<f64>()),
    },
    Panel {
        title: "visible after, ms",
        parts: &["median", "99th percentile"],
        stacked: false,
        values: |row| vec![milliseconds(row, 50), milliseconds(row, 99)],
        text: |row| format!("{:.1} / {:.1}", milliseconds(row, 50), milliseconds(row, 99)),
    },
    Panel {
        title: "stale values, %",
        parts: &["GET", "MGET"],
        stacked: false,
        values: |row| vec![row.cost.single_reads.percent(), row.cost.values_of_several.percent()],
        text: |row| {
            let (single, several) = (row.cost.single_reads.percent(), row.cost.values_of_several.percent());
            format!("{single:.2} / {several:.2}")
        },
    },
    Panel {
        title: "waits, %, and their length",
        parts: &["requests"],
        stacked: false,
        values: |row| vec![row.cost.waited_percent()],
        text: |row| match row.cost.wait_ms() {
            Some(ms) => format!("{:.1}: {ms:.0} ms", row.cost.waited_percent()),
            None => "none".to_owned(),
        },
    },
];

fn milliseconds(row: &Row, percent: usize) -> f64 {
    row.cost.delay_ms(percent).unwrap_or(0.0)
}

/// The picture of these loads, each with its name and rows.
pub fn svg(title: &str, loads: &[(&str, Vec<Row>)]) -> String {
    let width = LEFT + PANEL * PANELS.len() as f64 + 16.0;
    let blocks: f64 = loads.iter().map(|(_, rows)| BLOCK_HEADER + LINE * rows.len() as f64 + 16.0).sum();
    let height = HEADER + blocks + 8.0;
    let mut svg = sheet((width, height), title);
    let mut top = HEADER;
    for (name, rows) in loads {
        block(&mut svg, top, name, rows);
        top += BLOCK_HEADER + LINE * rows.len() as f64 + 16.0;
    }
    svg.push_str("</svg>\n");
    svg
}

fn block(svg: &mut String, top: f64, name: &str, rows: &[Row]) {
    text(svg, (16.0, top + 20.0), "font-weight=\"600\" fill=\"#1b1f24\"", name);
    let line_of = |index: usize| top + BLOCK_HEADER + LINE * index as f64;
    for (index, row) in rows.iter().enumerate() {
        let at = (LEFT - 10.0, line_of(index) + 11.0);
        text(svg, at, "text-anchor=\"end\" fill=\"#1b1f24\"", &row.name);
    }
    for (index, panel) in PANELS.iter().enumerate() {
        let x = LEFT + PANEL * index as f64;
        text(svg, (x, top + 20.0), "font-weight=\"600\" fill=\"#1b1f24\"", panel.title);
        let mut legend_x = x;
        for (part, colour) in panel.parts.iter().zip(COLOURS) {
            rectangle(svg, (legend_x, top + 31.0), (8.0, 8.0), colour);
            text(svg, (legend_x + 11.0, top + 39.0), "font-size=\"10\" fill=\"#5b636d\"", part);
            legend_x += 20.0 + 5.4 * part.len() as f64;
        }
        let all: Vec<Vec<f64>> = rows.iter().map(panel.values).collect();
        let length = |values: &Vec<f64>| match panel.stacked {
            true => values.iter().sum(),
            false => values.iter().copied().fold(0.0, f64::max),
        };
        let most = all.iter().map(length).fold(0.0, f64::max);
        for (index, (row, values)) in rows.iter().zip(&all).enumerate() {
            bars(svg, (x, line_of(index)), values, panel.stacked, most);
            let end = x + scaled(length(values), most) + 5.0;
            let numbers = (panel.text)(row);
            text(svg, (end, line_of(index) + 11.0), "font-size=\"11\" fill=\"#444b54\"", &numbers);
        }
    }
}

/// Parts stand behind each other if they are stacked, and below each other if they are not.
fn bars(svg: &mut String, (x, y): (f64, f64), values: &[f64], stacked: bool, most: f64) {
    let height = if stacked { 14.0 } else { 14.0 / values.len() as f64 };
    let mut left = x;
    for (index, (value, colour)) in values.iter().zip(COLOURS).enumerate() {
        let length = scaled(*value, most);
        if stacked {
            rectangle(svg, (left, y), (length, height), colour);
            left += length;
        } else {
            rectangle(svg, (x, y + height * index as f64), (length.max(1.0), height), colour);
        }
    }
}

fn scaled(value: f64, most: f64) -> f64 {
    if most > 0.0 { BARS * value / most } else { 0.0 }
}
