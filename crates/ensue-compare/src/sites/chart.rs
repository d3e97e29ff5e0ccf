//! The same as a picture: bars a number of datacenters.

use super::Scale;
use crate::drawing::{rectangle, sheet, text};

const LEFT: f64 = 120.0;
const PANEL: f64 = 230.0;
const BARS: f64 = 150.0;
const LINE: f64 = 30.0;
const HEADER: f64 = 84.0;
const COLOURS: [&str; 2] = ["#1f7a6d", "#8cc0b6"];

struct Panel {
    title: &'static str,
    unit: &'static str,
    /// The bars of a line, the widest last.
    values: fn(&Scale) -> Vec<f64>,
}

const PANELS: [Panel; 3] = [
    Panel {
        title: "a transaction in the first",
        unit: "ms, median and p99",
        values: |scale| [50, 99].map(|percent| scale.transaction_ms(percent)).into(),
    },
    Panel {
        title: "transactions of all",
        unit: "a second, as many clients each",
        values: |scale| vec![scale.rate()],
    },
    Panel {
        title: "what their nodes could do",
        unit: "a second, one core each",
        values: |scale| vec![scale.capacity()],
    },
];

pub fn svg(title: &str, scales: &[Scale]) -> String {
    let width = LEFT + PANEL * PANELS.len() as f64;
    let height = HEADER + LINE * scales.len() as f64 + 8.0;
    let mut svg = sheet((width, height), title);
    for (row, scale) in scales.iter().enumerate() {
        let name =
            if scale.sites == 1 { "1 datacenter".to_owned() } else { format!("{} datacenters", scale.sites) };
        let at = (LEFT - 12.0, HEADER + LINE * row as f64 + 14.0);
        text(&mut svg, at, "text-anchor=\"end\" fill=\"#1b1f24\"", &name);
    }
    for (index, panel) in PANELS.iter().enumerate() {
        let x = LEFT + PANEL * index as f64;
        text(&mut svg, (x, 54.0), "font-weight=\"600\" fill=\"#1b1f24\"", panel.title);
        text(&mut svg, (x, 69.0), "font-size=\"10\" fill=\"#5b636d\"", panel.unit);
        let most = scales.iter().flat_map(panel.values).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        for (row, scale) in scales.iter().enumerate() {
            bars(&mut svg, (x, HEADER + LINE * row as f64), &(panel.values)(scale), most);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn bars(svg: &mut String, (x, top): (f64, f64), values: &[f64], most: f64) {
    for (value, colour) in values.iter().zip(COLOURS).rev() {
        rectangle(svg, (x, top), (BARS * value / most, 20.0), colour);
    }
    let digits = if most < 100.0 { 1 } else { 0 };
    let words: Vec<String> = values.iter().map(|value| format!("{value:.digits$}")).collect();
    let at = (x + BARS * values.iter().copied().fold(0.0, f64::max) / most + 6.0, top + 14.0);
    text(svg, at, "font-size=\"11\" fill=\"#1b1f24\"", &words.join(" / "));
}
