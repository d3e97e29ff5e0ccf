//! Lines over an axis, in panels beside each other, as an SVG picture.
//!
//! The caller gives points, names, colours and the labels below; the axis on the left begins at zero and ends at a
//! round number. Names must not hold characters that mean something in XML.

use std::fmt::Write;

const PANEL: (f64, f64) = (380.0, 230.0);
const MARGIN: (f64, f64) = (70.0, 46.0);
const INK: &str = "#333333";

/// Colours that stay apart for most eyes, in the order in which lines take them.
pub const COLOURS: [&str; 6] = ["#1b7837", "#762a83", "#b2182b", "#2166ac", "#d8a200", "#4d4d4d"];

/// One line of a panel.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    pub name: &'a str,
    pub colour: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// A plane with lines that share their axes.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    pub title: &'a str,
    pub lines: Vec<Line<'a>>,
    /// Labels below, each at its place.
    pub below: Vec<(f64, String)>,
}

/// The panels, two in a row. The legend is that of the first, so all name the same lines in the same colours.
pub fn draw(title: &str, panels: &[Panel<'_>]) -> String {
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
