//! Results as pictures: lines over clients, and lines over time.

use crate::contest::{Load, Series};
use crate::driver::Sample;
use crate::engine::Control;
use std::fmt::Write;

const PANEL: (f64, f64) = (380.0, 230.0);
const MARGIN: (f64, f64) = (70.0, 46.0);
const COLOURS: [&str; 4] = ["#1b7837", "#762a83", "#b2182b", "#2166ac"];
const INK: &str = "#333333";

/// One line of a panel.
struct Line<'a> {
    name: &'a str,
    colour: &'a str,
    points: Vec<(f64, f64)>,
}

struct Panel<'a> {
    title: &'a str,
    lines: Vec<Line<'a>>,
    /// Labels below, each at its place.
    below: Vec<(f64, String)>,
}

/// Committed transactions a second over clients, a panel a load.
pub fn contest(all: &[Series]) -> String {
    let panels = Load::ALL.map(|load| {
        let of_load: Vec<&Series> = all.iter().filter(|series| series.load == load).collect();
        let lines = of_load.iter().map(|series| {
            let place = Control::ALL.iter().position(|control| *control == series.control).unwrap_or(0);
            let points =
                series.outcomes.iter().enumerate().map(|(at, outcome)| (at as f64, outcome.throughput()));
            Line { name: series.control.name(), colour: COLOURS[place], points: points.collect() }
        });
        let counts = of_load.first().map(|series| &series.outcomes[..]).unwrap_or_default();
        let below = counts.iter().enumerate().map(|(at, outcome)| (at as f64, outcome.clients.to_string()));
        Panel { title: load.name(), lines: lines.collect(), below: below.collect() }
    });
    draw("committed transactions a second, over clients", &panels)
}

/// What is kept over time, with collection and without.
pub fn soak(collected: &[Sample], kept: &[Sample]) -> String {
    let lines = |figure: fn(&Sample) -> f64| {
        let of = |samples: &[Sample]| samples.iter().map(|s| (s.second as f64, figure(s))).collect();
        vec![
            Line {
                name: "ceilings every 1,000 transactions a client",
                colour: COLOURS[0],
                points: of(collected),
            },
            Line { name: "no ceilings", colour: COLOURS[2], points: of(kept) },
        ]
    };
    let last = collected.iter().chain(kept).map(|sample| sample.second).max().unwrap_or(1);
    let below = || {
        (0..=4).map(|quarter| (last * quarter) as f64 / 4.0).map(|at| (at, format!("{at:.0} s"))).collect()
    };
    let panels = [
        Panel { title: "states", lines: lines(|sample| sample.states as f64), below: below() },
        Panel { title: "versions of keys", lines: lines(|sample| sample.records as f64), below: below() },
    ];
    draw("what is kept, over time", &panels)
}

fn draw(title: &str, panels: &[Panel<'_>]) -> String {
    let rows = panels.len().div_ceil(2);
    let (width, height) = (2.0 * PANEL.0 + 30.0, rows as f64 * PANEL.1 + 70.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"14\" y=\"22\" font-size=\"15\" fill=\"{INK}\">{title}</text>\n"
    );
    let mut x = 14.0;
    for line in panels.first().map(|panel| &panel.lines[..]).unwrap_or_default() {
        let text = format!(
            "<rect x=\"{x}\" y=\"33\" width=\"12\" height=\"4\" fill=\"{}\"/>\
             <text x=\"{}\" y=\"40\" fill=\"{INK}\">{}</text>",
            line.colour,
            x + 17.0,
            line.name
        );
        writeln!(out, "{text}").expect("a string takes all");
        x += 34.0 + 6.4 * line.name.len() as f64;
    }
    for (place, panel) in panels.iter().enumerate() {
        let origin = (15.0 + (place % 2) as f64 * PANEL.0, 52.0 + (place / 2) as f64 * PANEL.1);
        panel.draw(&mut out, origin);
    }
    out.push_str("</svg>\n");
    out
}

impl Panel<'_> {
    fn draw(&self, out: &mut String, origin: (f64, f64)) {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let (x_max, y_max) = (
            most(&mut points().map(|point| point.0)).max(1.0),
            round_up(most(&mut points().map(|point| point.1))),
        );
        let (left, top) = (origin.0 + MARGIN.0, origin.1 + 24.0);
        let (width, height) = (PANEL.0 - MARGIN.0 - 20.0, PANEL.1 - MARGIN.1 - 24.0);
        let x = |value: f64| left + value / x_max * width;
        let y = |value: f64| top + height - value / y_max * height;
        let mut put = |text: String| writeln!(out, "{text}").expect("a string takes all");
        put(format!(
            "<text x=\"{left}\" y=\"{}\" font-size=\"13\" fill=\"{INK}\">{}</text>",
            top - 8.0,
            self.title
        ));
        for step in 0..=4 {
            let value = y_max * f64::from(step) / 4.0;
            let (at, right) = (y(value), left + width);
            put(format!("<line x1=\"{left}\" x2=\"{right}\" y1=\"{at}\" y2=\"{at}\" stroke=\"#dddddd\"/>"));
            let (label_x, label_y, label) = (left - 6.0, at + 4.0, grouped(value));
            put(format!(
                "<text x=\"{label_x}\" y=\"{label_y}\" text-anchor=\"end\" fill=\"{INK}\">{label}</text>"
            ));
        }
        for (at, label) in &self.below {
            let text = format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{INK}\">{label}</text>",
                x(*at),
                top + height + 16.0
            );
            put(text);
        }
        for line in &self.lines {
            let path: Vec<String> =
                line.points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
            put(format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
                path.join(" "),
                line.colour
            ));
        }
    }
}

/// The next figure that an axis may end at.
fn round_up(value: f64) -> f64 {
    let mut step = 1.0;
    loop {
        for factor in [1.0, 2.0, 4.0, 5.0, 8.0] {
            if step * factor >= value {
                return step * factor;
            }
        }
        step *= 10.0;
    }
}

fn grouped(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.1} M", value / 1e6),
        value if value >= 1e4 => format!("{:.0} k", value / 1e3),
        value if value >= 1e3 => format!("{:.1} k", value / 1e3),
        value => format!("{value:.0}"),
    }
}
