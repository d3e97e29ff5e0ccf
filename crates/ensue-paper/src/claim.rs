//! What a paper says of a figure, and whether what was measured says so, too.
//!
//! A statement is about one number: a value, or the ratio of two. Where the paper gives a number, the direction holds
//! if ours lies on the same side of 1, and the factor if it is at most [`FACTOR`] times more or less. Where it gives
//! words alone, the direction is all there is. A number that depends on the paper's machines is shown and not judged.

use crate::papers;
use crate::record::{FigureRecord, Panel};
use serde::Serialize;

/// A paper's number and ours are alike within this factor.
pub const FACTOR: f64 = 1.5;
/// A ratio this near to 1 is no difference, the paper's and ours.
const ALIKE: f64 = 0.08;
const ALIKE_HERE: f64 = 0.15;

/// A statement of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// In words, close to the paper's.
    pub words: &'static str,
    /// The name of the metric.
    pub metric: &'static str,
    pub ours: Ours,
    pub expected: Expected,
}

/// How the number is made of what was measured.
#[derive(Clone, Copy, Debug)]
pub enum Ours {
    Value(At),
    Ratio(At, At),
    /// The least, and the most, of the ratios of two lines over all points.
    LeastRatio(&'static str, &'static str),
    MostRatio(&'static str, &'static str),
}

/// A line at a point.
#[derive(Clone, Copy, Debug)]
pub struct At(pub &'static str, pub Pick);

#[derive(Clone, Copy, Debug)]
pub enum Pick {
    First,
    Last,
    Named(&'static str),
    Least,
    Most,
}

/// What the paper says the number is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// A ratio that the paper states, or that follows from numbers that it states.
    Ratio(f64),
    /// A number that machines do not change, such as a share or a count.
    Count(f64),
    /// A number of the paper's machines.
    OfTheirMachines(f64, &'static str),
    AtMost(f64),
    AtLeast(f64),
}

/// A statement of the paper beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub words: &'static str,
    pub paper: String,
    pub ours: Option<f64>,
    /// Whether they hold; nothing where they are not judged.
    pub direction: Option<bool>,
    pub factor: Option<bool>,
}

/// What the paper says of a figure today, judged by what was measured whenever that was.
pub fn verdicts(record: &FigureRecord) -> Vec<Verdict> {
    let figures = papers::find(&record.paper, Some(&record.name)).unwrap_or_default();
    let figure = figures.into_iter().find(|(_, figure)| figure.name == record.name);
    let claims = figure.map_or(&[][..], |(_, figure)| figure.claims);
    claims.iter().map(|claim| claim.verdict(&record.panels)).collect()
}

impl Claim {
    /// Judges it by the panels of its figure; nothing is judged where a number is missing.
    pub fn verdict(&self, panels: &[Panel]) -> Verdict {
        let panel = panels.iter().find(|panel| panel.metric == self.metric);
        let ours = panel.and_then(|panel| self.ours.of(panel));
        let paper = match self.expected {
            Expected::Ratio(number) | Expected::Count(number) => number_text(number),
            Expected::OfTheirMachines(number, unit) => format!("{} {unit}", number_text(number)),
            Expected::AtMost(number) => format!("at most {}", number_text(number)),
            Expected::AtLeast(number) => format!("at least {}", number_text(number)),
        };
        let judged = ours.map(|ours| self.expected.judge(ours));
        let (direction, factor) = judged.unwrap_or((None, None));
        Verdict { words: self.words, paper, ours, direction, factor }
    }
}

impl Expected {
    /// Whether direction and factor hold.
    fn judge(self, ours: f64) -> (Option<bool>, Option<bool>) {
        let near = |paper: f64| ours.max(paper) <= FACTOR * ours.min(paper);
        match self {
            Expected::Ratio(paper) => (Some(same_side(paper, ours)), Some(near(paper))),
            Expected::Count(paper) => (None, Some(near(paper) || ours == paper)),
            Expected::OfTheirMachines(..) => (None, None),
            Expected::AtMost(most) => (Some(ours <= most), None),
            Expected::AtLeast(least) => (Some(ours >= least), None),
        }
    }
}

/// A ratio that is no difference, or next to none, holds with one that is none either.
fn same_side(paper: f64, ours: f64) -> bool {
    let both_alike = (paper - 1.0).abs() <= ALIKE && (ours - 1.0).abs() <= ALIKE_HERE;
    both_alike || (paper < 1.0 && ours < 1.0) || (paper > 1.0 && ours > 1.0)
}

impl Ours {
    fn of(&self, panel: &Panel) -> Option<f64> {
        match self {
            Ours::Value(at) => at.value(panel),
            Ours::Ratio(of, to) => {
                Some(of.value(panel)? / to.value(panel)?).filter(|ratio| ratio.is_finite())
            }
            Ours::LeastRatio(of, to) => ratios(panel, of, to).into_iter().reduce(f64::min),
            Ours::MostRatio(of, to) => ratios(panel, of, to).into_iter().reduce(f64::max),
        }
    }
}

/// The ratios of two lines at each point that both have.
fn ratios(panel: &Panel, of: &str, to: &str) -> Vec<f64> {
    let line = |name: &str| panel.lines.iter().find(|line| line.name == name);
    let (Some(of), Some(to)) = (line(of), line(to)) else { return Vec::new() };
    let pairs = of.values.iter().zip(&to.values).filter_map(|(of, to)| Some((of.as_ref()?, to.as_ref()?)));
    pairs.map(|(of, to)| of.median / to.median).filter(|ratio| ratio.is_finite()).collect()
}

impl At {
    fn value(&self, panel: &Panel) -> Option<f64> {
        let line = panel.lines.iter().find(|line| line.name == self.0)?;
        let mut values = line.values.iter().flatten().map(|spread| spread.median);
        match self.1 {
            Pick::First => values.next(),
            Pick::Last => values.next_back(),
            Pick::Least => values.reduce(f64::min),
            Pick::Most => values.reduce(f64::max),
            Pick::Named(name) => {
                let place = panel.points.iter().position(|point| point == name)?;
                Some(line.values.get(place)?.as_ref()?.median)
            }
        }
    }
}

/// With three digits that count.
pub fn number_text(number: f64) -> String {
    match number.abs() {
        0.0 => "0".into(),
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 0.995 => format!("{number:.2}"),
        size if size >= 0.01 => format!("{number:.3}"),
        _ => format!("{number:.1e}"),
    }
}
