//! The states as a picture (SVG): a lane a column, newest at the top, each state in the colour of its datacenter.

use super::layout::Layout;
use super::state::State;
use super::text::shortened;
use ensue_check::draw::escaped;
use std::collections::BTreeSet;
use std::fmt::Write;

const LANE: f64 = 22.0;
const ROW: f64 = 26.0;
const MARGIN: f64 = 20.0;
const HEADER: f64 = 62.0;
const FOOTER: f64 = 44.0;
const RADIUS: f64 = 5.5;
const CHARACTER: f64 = 7.3;
const WIDTH_MIN: f64 = 560.0;
/// Characters of a label that are shown.
const LABEL_MAX: usize = 72;
const ROOT: &str = "#8c959f";
/// One a datacenter, again from the first after the last.
const SITES: [&str; 8] =
    ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#9a6700", "#1b7c83", "#57606a"];

/// Where a lane crosses a row.
fn at(lane: usize, row: usize) -> (f64, f64) {
    (MARGIN + LANE * lane as f64 + RADIUS, HEADER + ROW * row as f64 + ROW / 2.0)
}

/// The picture of these states.
pub(super) fn svg(title: &str, below: &str, states: &[State], layout: &Layout) -> String {
    let labels: Vec<String> = states.iter().map(label).collect();
    let longest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0) as f64;
    let label_left = MARGIN + LANE * layout.width() as f64 + 14.0;
    let width = (label_left + longest * CHARACTER + MARGIN).max(WIDTH_MIN);
    let bottom = HEADER + ROW * (states.len() + usize::from(goes_on(layout))) as f64;
    let mut svg = String::new();
    begin(&mut svg, title, below, width, bottom + FOOTER);
    strands(&mut svg, states, layout);
    for (number, (state, label)) in states.iter().zip(&labels).enumerate() {
        let row = &layout.rows[number];
        let (x, y) = at(row.lane, number);
        mark(&mut svg, state, x, y);
        let class = if state.has("above") { "past" } else { "label" };
        text(&mut svg, label_left, y + 4.0, class, label);
    }
    if goes_on(layout) {
        text(&mut svg, label_left, bottom - ROW / 2.0 + 4.0, "past", "older states are not shown");
    }
    legend(&mut svg, states, bottom + FOOTER - 16.0);
    svg.push_str("</svg>\n");
    svg
}

/// Whether the oldest state that is shown is not the oldest that there is.
fn goes_on(layout: &Layout) -> bool {
    layout.rows.last().is_some_and(|row| !row.strands.is_empty())
}

fn colour(state: &State) -> &'static str {
    if state.id.is_root() { ROOT } else { SITES[usize::from(state.id.site) % SITES.len()] }
}

fn label(state: &State) -> String {
    let shown = ["leaf", "ceiling"].into_iter().filter(|flag| state.has(flag));
    let flags = shown.collect::<Vec<_>>().join(", ");
    let flags = if flags.is_empty() { flags } else { format!("({flags}) ") };
    let keys = shortened(&state.keys, LABEL_MAX);
    format!("{}  {flags}{keys}", state.id).trim_end().into()
}

fn begin(svg: &mut String, title: &str, below: &str, width: f64, height: f64) {
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12" role="img">
<title>{}</title>
<style>
.sheet {{ fill: #ffffff }} .title {{ font-size: 15px; font-weight: bold; fill: #1f2328 }}
.label {{ fill: #1f2328 }} .past {{ fill: #8c959f }} .strand {{ fill: none; stroke-width: 2 }}
.further {{ stroke-dasharray: 2 4 }} .leaf {{ fill: none; stroke-width: 1.5 }} .ceiling {{ stroke: #1f2328; stroke-width: 2.5 }}
</style>
<rect class="sheet" width="100%" height="100%"/>"#,
        escaped(title)
    );
    text(svg, MARGIN, 28.0, "title", title);
    text(svg, MARGIN, 47.0, "past", below);
}

/// The lines between states, each in the colour of the state from which it came last.
fn strands(svg: &mut String, states: &[State], layout: &Layout) {
    let mut colours: Vec<&str> = Vec::new();
    for (number, (state, row)) in states.iter().zip(&layout.rows).enumerate() {
        colours.resize(colours.len().max(layout.width()), ROOT);
        colours[row.lane] = colour(state);
        let is_last = number + 1 == states.len();
        let mut below = colours.clone();
        for strand in &row.strands {
            let (x, y) = at(strand.from, number);
            let (end, bottom) = at(strand.to, number + 1);
            let path = if strand.from == strand.to {
                format!("M{x:.1} {y:.1} V{bottom:.1}")
            } else {
                let middle = (y + bottom) / 2.0;
                format!("M{x:.1} {y:.1} C{x:.1} {middle:.1} {end:.1} {middle:.1} {end:.1} {bottom:.1}")
            };
            let class = if is_last { "strand further" } else { "strand" };
            let _ = writeln!(svg, r#"<path class="{class}" d="{path}" stroke="{}"/>"#, colours[strand.from]);
            below[strand.to] = colours[strand.from];
        }
        colours = below;
    }
}

fn mark(svg: &mut String, state: &State, x: f64, y: f64) {
    let colour = colour(state);
    let _ =
        writeln!(svg, r##"<circle cx="{x:.1}" cy="{y:.1}" r="{RADIUS}" fill="{colour}" stroke="#ffffff"/>"##);
    if state.is_leaf() {
        let _ = writeln!(
            svg,
            r#"<circle class="leaf" cx="{x:.1}" cy="{y:.1}" r="{}" stroke="{colour}"/>"#,
            RADIUS + 3.0
        );
    }
    if state.has("ceiling") {
        let (left, right, top) = (x - RADIUS - 3.0, x + RADIUS + 3.0, y - RADIUS - 4.5);
        let _ = writeln!(
            svg,
            r#"<line class="ceiling" x1="{left:.1}" y1="{top:.1}" x2="{right:.1}" y2="{top:.1}"/>"#
        );
    }
}

/// The datacenters that committed something, and the marks that occur.
fn legend(svg: &mut String, states: &[State], y: f64) {
    let mut x = MARGIN;
    let sites: BTreeSet<u8> =
        states.iter().filter(|state| !state.id.is_root()).map(|state| state.id.site).collect();
    let first_of = |site| states.iter().find(|state| !state.id.is_root() && state.id.site == site);
    let mut entry = |svg: &mut String, mark: String, name: &str| {
        let _ = writeln!(svg, r#"<g transform="translate({:.1} {:.1})">{mark}</g>"#, x + RADIUS, y - 4.0);
        text(svg, x + 2.0 * RADIUS + 8.0, y, "label", name);
        x += 2.0 * RADIUS + 8.0 + name.chars().count() as f64 * CHARACTER + 22.0;
    };
    for state in sites.into_iter().filter_map(first_of) {
        let mark = format!(r#"<circle r="{RADIUS}" fill="{}"/>"#, colour(state));
        entry(svg, mark, &state.id.site_name());
    }
    entry(svg, format!(r#"<circle class="leaf" r="{}" stroke="{ROOT}"/>"#, RADIUS + 1.5), "leaf");
    if states.iter().any(|state| state.has("ceiling")) {
        entry(svg, r#"<line class="ceiling" x1="-8" x2="8"/>"#.into(), "ceiling of this datacenter");
    }
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, content: &str) {
    let _ = writeln!(svg, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{}</text>"#, escaped(content));
}

#[cfg(test)]
mod tests;
