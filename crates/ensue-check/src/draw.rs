//! A violation as a picture (SVG): sessions are lanes, transactions boxes in the order of the history, what orders them
//! arrows; the cycle is bold.

use crate::explain::{operation_text, place};
use crate::history::{History, SessionIndex, TransactionIndex};
use crate::report::{RelationKind, Violation};
use std::fmt::Write;

const CHARACTER: f64 = 7.3;
const LINE: f64 = 17.0;
const MARGIN: f64 = 24.0;
const LANE_GAP: f64 = 64.0;
const BOX_GAP: f64 = 84.0;
const HEADER: f64 = 84.0;
/// Most operations of a transaction that are drawn.
const SHOWN_MAX: usize = 8;

/// A transaction with its place on the sheet.
struct Drawn {
    transaction: TransactionIndex,
    title: String,
    lines: Vec<String>,
    lane: usize,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// The picture of a violation.
pub fn svg(history: &History, title: &str, violation: &Violation) -> String {
    let lanes = lanes(history, violation);
    let label_width =
        lanes.iter().map(|lane| lane.name.chars().count()).max().unwrap_or(0) as f64 * CHARACTER + MARGIN;
    let mut boxes = boxes(history, violation, &lanes);
    let mut x = MARGIN + label_width;
    for drawn in &mut boxes {
        drawn.x = x;
        x += drawn.width + BOX_GAP;
    }
    let mut tops = Vec::new();
    let mut y = HEADER;
    for lane in 0..lanes.len() {
        tops.push(y);
        let height = boxes.iter().filter(|of| of.lane == lane).map(|of| of.height).fold(0.0, f64::max);
        for drawn in boxes.iter_mut().filter(|of| of.lane == lane) {
            drawn.y = y + (height - drawn.height) / 2.0;
        }
        y += height + LANE_GAP;
    }
    let headline = format!("{title}: {}", violation.pattern);
    let longest = headline.chars().count().max(violation.summary.chars().count()) as f64 * CHARACTER;
    let width = (x - BOX_GAP).max(longest + MARGIN).max(620.0) + MARGIN;
    let height = y - LANE_GAP + 72.0;
    let mut svg = String::new();
    begin(&mut svg, width, height);
    text(&mut svg, MARGIN, 30.0, "title", &headline);
    text(&mut svg, MARGIN, 52.0, "summary", &violation.summary);
    for (lane, top) in lanes.iter().zip(&tops) {
        let middle = top
            + boxes.iter().filter(|of| of.lane == lane.number).map(|of| of.height).fold(0.0, f64::max) / 2.0;
        let _ = writeln!(
            svg,
            r#"<line class="lane" x1="{:.0}" y1="{middle:.0}" x2="{:.0}" y2="{middle:.0}"/>"#,
            MARGIN + label_width - 12.0,
            width - MARGIN
        );
        text(&mut svg, MARGIN, middle + 4.0, "session", &lane.name);
    }
    // Boxes hide the arrows that pass behind them, and labels lie above all.
    let labels = arrows(&mut svg, history, violation, &boxes);
    for drawn in &boxes {
        draw_box(&mut svg, drawn);
    }
    svg.push_str(&labels);
    draw_legend(&mut svg, height - 22.0, &legend(violation));
    svg.push_str("</svg>\n");
    svg
}

struct Lane {
    number: usize,
    /// Nothing for the initial transaction.
    session: Option<SessionIndex>,
    name: String,
}

fn lanes(history: &History, violation: &Violation) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    if violation.relations.iter().any(|relation| relation.to == TransactionIndex::INITIAL) {
        lanes.push(Lane { number: 0, session: None, name: "(initial)".into() });
    }
    for &transaction in &violation.transactions {
        let session = history.transaction(transaction).session;
        if lanes.iter().all(|lane| lane.session != Some(session)) {
            let name = history.session_name(session).to_string();
            lanes.push(Lane { number: lanes.len(), session: Some(session), name });
        }
    }
    lanes
}

fn boxes(history: &History, violation: &Violation, lanes: &[Lane]) -> Vec<Drawn> {
    let lane_of = |session| lanes.iter().find(|lane| lane.session == session).map_or(0, |lane| lane.number);
    let mut boxes = Vec::new();
    if lanes.first().is_some_and(|lane| lane.session.is_none()) {
        boxes.push(drawn(TransactionIndex::INITIAL, "before all".into(), vec!["every key absent".into()], 0));
    }
    for &transaction in &violation.transactions {
        let of = history.transaction(transaction);
        let mut lines: Vec<String> = of
            .operations
            .iter()
            .take(SHOWN_MAX)
            .map(|&operation| shortened(&operation_text(history, operation)))
            .collect();
        if of.operations.len() > SHOWN_MAX {
            lines.push(format!("and {} more", of.operations.len() - SHOWN_MAX));
        }
        let mut title = place(history, transaction);
        if let Some(datacenter) = of.datacenter {
            let _ = write!(title, " @{}", history.datacenters[usize::from(datacenter)]);
        }
        boxes.push(drawn(transaction, title, lines, lane_of(Some(of.session))));
    }
    boxes
}

fn drawn(transaction: TransactionIndex, title: String, lines: Vec<String>, lane: usize) -> Drawn {
    let longest = lines.iter().chain([&title]).map(|line| line.chars().count()).max().unwrap_or(0);
    let width = longest as f64 * CHARACTER + 20.0;
    let height = (lines.len() + 1) as f64 * LINE + 14.0;
    Drawn { transaction, title, lines, lane, x: 0.0, y: 0.0, width, height }
}

fn shortened(line: &str) -> String {
    const LENGTH_MAX: usize = 40;
    if line.chars().count() <= LENGTH_MAX {
        return line.into();
    }
    let start: String = line.chars().take(LENGTH_MAX - 1).collect();
    format!("{start}…")
}

fn begin(svg: &mut String, width: f64, height: f64) {
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">
<style>
.sheet {{ fill: #ffffff }} .box {{ fill: #f7f8fa; stroke: #57606a }} .lane {{ stroke: #e4e7eb; stroke-width: 2 }}
.title {{ font-size: 15px; font-weight: bold; fill: #1f2328 }} .summary {{ fill: #1f2328 }} .place {{ fill: #6e7781 }}
.session {{ font-weight: bold; fill: #1f2328 }} .operation {{ fill: #1f2328 }}
.arrow {{ fill: none; stroke-width: 1.4 }} .bold {{ stroke-width: 3.2 }} .halo {{ stroke: #ffffff; stroke-width: 4px }}
</style>
<rect class="sheet" width="100%" height="100%"/>"#
    );
    svg.push_str("<defs>\n");
    for (name, colour) in [("so", SO), ("merge", MERGE), ("wr", WR), ("older", OLDER), ("time", TIME)] {
        let _ = writeln!(
            svg,
            r#"<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="{colour}"/></marker>"#
        );
    }
    svg.push_str("</defs>\n");
}

const SO: &str = "#6e7781";
const MERGE: &str = "#8250df";
const WR: &str = "#0969da";
const OLDER: &str = "#cf222e";
const TIME: &str = "#bf8700";

fn text(svg: &mut String, x: f64, y: f64, class: &str, content: &str) {
    let _ = writeln!(svg, r#"<text class="{class}" x="{x:.0}" y="{y:.0}">{}</text>"#, escaped(content));
}

fn draw_box(svg: &mut String, drawn: &Drawn) {
    let Drawn { x, y, width, height, .. } = *drawn;
    let _ = writeln!(
        svg,
        r#"<rect class="box" x="{x:.0}" y="{y:.0}" width="{width:.0}" height="{height:.0}" rx="5"/>"#
    );
    text(svg, x + 10.0, y + LINE + 1.0, "place", &drawn.title);
    for (number, line) in drawn.lines.iter().enumerate() {
        text(svg, x + 10.0, y + (number + 2) as f64 * LINE + 1.0, "operation", line);
    }
}

/// Draws the arrows; their labels come back.
fn arrows(svg: &mut String, history: &History, violation: &Violation, boxes: &[Drawn]) -> String {
    let mut labels = String::new();
    let find = |transaction| boxes.iter().find(|of| of.transaction == transaction);
    for (number, relation) in violation.relations.iter().enumerate() {
        let (Some(from), Some(to)) = (find(relation.from), find(relation.to)) else { continue };
        let (name, colour, label) = match relation.kind {
            RelationKind::Session => ("so", SO, String::new()),
            RelationKind::Merge => ("merge", MERGE, "token".into()),
            RelationKind::ReadsFrom(key) => ("wr", WR, format!("reads {}", history.key_name(key))),
            RelationKind::RealTime => ("time", TIME, "ended before".into()),
            RelationKind::OlderThan { key, .. } => {
                ("older", OLDER, format!("{}: must be older", history.key_name(key)))
            }
        };
        // Arrows of one pair of lanes begin at different heights, so that they do not hide each other.
        let shift = (number % 3) as f64 * 7.0 - 7.0;
        let (path, x, y) =
            if from.lane == to.lane { within_lane(from, to, shift) } else { across(from, to, shift) };
        let bold = if relation.on_cycle { " bold" } else { "" };
        let _ = writeln!(
            svg,
            r#"<path class="arrow{bold}" d="{path}" stroke="{colour}" marker-end="url(#{name})"/>"#
        );
        let label = escaped(&shortened(&label));
        for (class, fill) in [("halo", "#ffffff"), ("label", colour)] {
            let _ = writeln!(
                labels,
                r#"<text class="{class}" x="{x:.0}" y="{y:.0}" fill="{fill}" text-anchor="middle">{label}</text>"#
            );
        }
    }
    labels
}

/// From side to side; in a bow above or below where something may stand between, or where it goes back.
fn within_lane(from: &Drawn, to: &Drawn, shift: f64) -> (String, f64, f64) {
    let y = from.y + from.height / 2.0 + shift;
    if to.x > from.x && to.x - (from.x + from.width) < BOX_GAP + 1.0 {
        let (start, end) = (from.x + from.width, to.x);
        return (format!("M{start:.0} {y:.0} L{end:.0} {y:.0}"), (start + end) / 2.0, y - 6.0);
    }
    let (start, end) = (from.x + from.width / 2.0 + shift, to.x + to.width / 2.0 + shift);
    let (top, end_top) =
        if to.x > from.x { (from.y, to.y) } else { (from.y + from.height, to.y + to.height) };
    let bow = if to.x > from.x { top.min(end_top) - 34.0 } else { top.max(end_top) + 34.0 };
    let path = format!("M{start:.0} {top:.0} C{start:.0} {bow:.0} {end:.0} {bow:.0} {end:.0} {end_top:.0}");
    (path, (start + end) / 2.0, bow + if to.x > from.x { 4.0 } else { 2.0 })
}

/// Between lanes: from the lower or upper edge to the upper or lower.
fn across(from: &Drawn, to: &Drawn, shift: f64) -> (String, f64, f64) {
    let is_down = to.lane > from.lane;
    let (start, end) = (from.x + from.width / 2.0 + shift, to.x + to.width / 2.0 + shift);
    let (top, bottom) = if is_down { (from.y + from.height, to.y) } else { (from.y, to.y + to.height) };
    let bend = (bottom - top) / 2.0;
    let path = format!(
        "M{start:.0} {top:.0} C{start:.0} {:.0} {end:.0} {:.0} {end:.0} {bottom:.0}",
        top + bend,
        bottom - bend
    );
    // Near the beginning, where few other arrows pass.
    let y = top + if is_down { 22.0 } else { -14.0 };
    (path, start + (end - start) * 0.1, y)
}

/// What the colours mean: those of causality, or those of real time.
fn legend(violation: &Violation) -> Vec<(&'static str, &'static str)> {
    let is_timed = violation.relations.iter().any(|relation| relation.kind == RelationKind::RealTime);
    let mut entries = vec![(SO, "session order"), (WR, "read from"), (MERGE, "token shown")];
    entries.push(match is_timed {
        true => (TIME, "ended before the other began"),
        false => (OLDER, "must be older, because of a read"),
    });
    entries
}

fn draw_legend(svg: &mut String, y: f64, entries: &[(&'static str, &'static str)]) {
    let mut x = MARGIN;
    for (colour, name) in entries {
        let _ = writeln!(
            svg,
            r#"<line x1="{x:.0}" y1="{:.0}" x2="{:.0}" y2="{:.0}" stroke="{colour}" stroke-width="3"/>"#,
            y - 4.0,
            x + 22.0,
            y - 4.0
        );
        text(svg, x + 28.0, y, "place", name);
        x += 28.0 + name.len() as f64 * CHARACTER + 22.0;
    }
    text(svg, x, y, "place", "bold: the cycle");
}

/// Text as it may stand in a picture.
pub fn escaped(content: &str) -> String {
    let mut escaped = String::with_capacity(content.len());
    for character in content.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write most control characters.
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
