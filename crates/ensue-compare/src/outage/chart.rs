//! Outages as a picture: a line a protocol, a panel a question, time from left to right, the cut in grey.

use super::{Course, Question};
use crate::drawing::{rectangle, sheet, text};
use std::fmt::Write;

const LEFT: f64 = 176.0;
const PANEL: f64 = 180.0;
const GAP: f64 = 20.0;
const LINE: f64 = 64.0;
const PLOT: f64 = 42.0;
const HEADER: f64 = 78.0;
const COLOUR: &str = "#1f7a6d";

struct Panel {
    title: &'static str,
    unit: &'static str,
    /// The value of each second.
    values: fn(&Course) -> Vec<f64>,
    /// The upper end is the same for all protocols; else each has its own.
    most: Option<f64>,
}

const PANELS: [Panel; 5] = [
    Panel {
        title: "answered in a second",
        unit: "%, GET SET MGET MSET",
        values: |course| served(course, &[Question::Get, Question::Set, Question::Mget, Question::Mset]),
        most: Some(100.0),
    },
    Panel {
        title: "news is seen",
        unit: "%, where links hold",
        values: |course| served(course, &[Question::News]),
        most: Some(100.0),
    },
    Panel { title: "bytes of dependencies", unit: "KiB", values: dependencies, most: None },
    Panel {
        title: "versions not settled",
        unit: "",
        values: |course| all(course, |held| held.versions),
        most: None,
    },
    Panel {
        title: "entries that wait",
        unit: "",
        values: |course| all(course, |held| held.waiting),
        most: None,
    },
];

fn served(course: &Course, questions: &[Question]) -> Vec<f64> {
    let percent = |second| course.served_at(questions, second).percent().unwrap_or(100.0);
    (0..course.outage.seconds()).map(percent).collect()
}

fn dependencies(course: &Course) -> Vec<f64> {
    course.held.iter().map(|held| held.dependencies as f64 / 1024.0).collect()
}

fn all(course: &Course, what: fn(&super::Held) -> u64) -> Vec<f64> {
    course.held.iter().map(|held| what(held) as f64).collect()
}

/// The picture of these courses, which have one outage in common.
pub fn svg(title: &str, courses: &[Course]) -> String {
    let width = LEFT + (PANEL + GAP) * PANELS.len() as f64;
    let height = HEADER + LINE * courses.len() as f64 + 8.0;
    let mut svg = sheet((width, height), title);
    let most: Vec<f64> = PANELS.iter().map(|panel| most(panel, courses)).collect();
    for (index, panel) in PANELS.iter().enumerate() {
        let x = LEFT + (PANEL + GAP) * index as f64;
        text(&mut svg, (x, 54.0), "font-weight=\"600\" fill=\"#1b1f24\"", panel.title);
        let scale = format!("0 to {:.0} {}", most[index], panel.unit);
        text(&mut svg, (x, 69.0), "font-size=\"10\" fill=\"#5b636d\"", &scale);
    }
    for (row, course) in courses.iter().enumerate() {
        let top = HEADER + LINE * row as f64;
        text(&mut svg, (LEFT - 12.0, top + 26.0), "text-anchor=\"end\" fill=\"#1b1f24\"", &course.name);
        for (index, panel) in PANELS.iter().enumerate() {
            let x = LEFT + (PANEL + GAP) * index as f64;
            plot(&mut svg, (x, top), course, &(panel.values)(course), most[index]);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn most(panel: &Panel, courses: &[Course]) -> f64 {
    let highest = || courses.iter().flat_map(panel.values).fold(0.0, f64::max);
    panel.most.unwrap_or_else(highest).max(1.0)
}

fn plot(svg: &mut String, (x, top): (f64, f64), course: &Course, values: &[f64], most: f64) {
    let outage = course.outage;
    let at = |second: f64| x + PANEL * second / outage.seconds().max(1) as f64;
    let (from, to) = (at(outage.before as f64), at((outage.before + outage.cut) as f64));
    rectangle(svg, (from, top), (to - from, PLOT), "#eceef0");
    let bottom = top + PLOT;
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" y1=\"{bottom:.1}\" x2=\"{:.1}\" y2=\"{bottom:.1}\" stroke=\"#c9ccd1\"/>",
        x + PANEL
    );
    let points: Vec<String> = (0..)
        .zip(values)
        .map(|(second, value)| {
            format!("{:.1},{:.1}", at(f64::from(second) + 0.5), bottom - PLOT * value / most)
        })
        .collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{COLOUR}\" stroke-width=\"1.5\"/>",
        points.join(" ")
    );
}
