//! Results as pictures: lines over clients, and lines over time.

use crate::contest::{Load, Series};
use crate::driver::Sample;
use crate::engine::Control;
use ensue_plot::{COLOURS, Line, Panel, draw};

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
