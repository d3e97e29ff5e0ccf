//! What a figure has shown, as data that is kept: pages are made of records, also of those of earlier runs. What the
//! paper says of it is not kept: statements are judged whenever a page is made (`claim.rs`).

use serde::{Deserialize, Serialize};

/// Everything that was ever run, in the order of the papers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Records {
    pub figures: Vec<FigureRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureRecord {
    /// The paper as the command line has it, and the figure.
    pub paper: String,
    pub name: String,
    pub section: String,
    pub title: String,
    pub here: String,
    pub instrument: String,
    /// What was run and on what, in words: build, machine, rounds.
    pub made: String,
    pub axis: String,
    pub panels: Vec<Panel>,
}

/// One metric over the points, a line each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    pub metric: String,
    pub unit: String,
    pub points: Vec<String>,
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub name: String,
    /// One a point.
    pub values: Vec<Option<Spread>>,
}

/// Of the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    /// Nothing if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        Some(Spread { median: sorted[sorted.len() / 2], least, most })
    }

    /// How far the rounds lie apart, as a share of the median.
    pub fn noise(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.most - self.least) / self.median.abs() }
    }
}

impl Records {
    /// Takes what was run in place of earlier records of the same figures; `order` names all figures in theirs.
    pub fn replace(&mut self, new: Vec<FigureRecord>, order: &[(String, String)]) {
        for record in new {
            self.figures.retain(|old| (&old.paper, &old.name) != (&record.paper, &record.name));
            self.figures.push(record);
        }
        let place = |record: &FigureRecord| {
            order.iter().position(|(paper, name)| (paper, name) == (&record.paper, &record.name))
        };
        self.figures.retain(|record| place(record).is_some());
        self.figures.sort_by_key(place);
    }
}
