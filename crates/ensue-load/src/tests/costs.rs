//! Tables of two stores: what stands in them, what is left behind, and what they look like.

use super::fake::{Fake, Habits};
use super::runs::plan;
use crate::costs::{Cell, Costs, Figure, Names, Results, Row, measure};
use crate::error::LoadError;
use crate::report::Spread;
use crate::run::{Bound, Plan};
use std::time::Duration;

const NAMES: Names<'_> = Names { ours: "ensue", theirs: "redis" };

fn costs(fakes: &[Fake; 2], pids: Vec<u32>) -> Costs {
    let plan = Plan {
        against: vec![fakes[1].url().parse().unwrap()],
        pids: pids.clone(),
        against_pids: pids,
        bound: Bound::Time(Duration::from_millis(400)),
        ..plan(&fakes[0], "get")
    };
    let operations = ["get=1,set=1", "hset"].map(|mix| mix.parse().unwrap()).to_vec();
    Costs { plan, operations, pipelines: vec![1, 4], pairs: vec![2] }
}

#[test]
fn every_operation_is_measured_at_every_pipeline_and_leaves_no_key() {
    let fakes = [Fake::start(Habits::default()), Fake::start(Habits::default())];
    let mut told = Vec::new();
    let results = measure(&costs(&fakes, vec![std::process::id()]), |next, done, of| {
        told.push((next.to_owned(), done, of));
    });
    let results = results.expect("the servers behave");
    let names: Vec<&str> = results.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!((names, results.failed()), (vec!["get=1,set=1", "hset"], 0));
    let cells: Vec<&Cell> =
        results.rows.iter().flat_map(|row| &row.cells).chain(&results.hand_overs).collect();
    assert_eq!(cells.len(), 2 * 2 + 1);
    let is_whole = |figure: &Option<Figure>| {
        figure.is_some_and(|figure| figure.ours > 0.0 && figure.theirs > 0.0 && figure.ratio.median > 0.0)
    };
    // The system counts processor time in steps of 10 ms, of which these short runs may show none.
    assert!(cells.iter().all(|cell| cell.processor_us.is_some() && is_whole(&cell.p99_us)), "{cells:?}");
    assert_eq!(told.len(), 5);
    assert_eq!(told[1], ("get=1,set=1, pipeline of 4".into(), 1, 5));
    assert_eq!(told[4], ("handover, 2 pairs".into(), 4, 5));
    assert!(fakes.iter().all(|fake| fake.strings() == 0 && fake.hashes() == 0));
}

#[test]
fn a_server_whose_process_is_not_known_has_no_processor_time() {
    let fakes = [Fake::start(Habits::default()), Fake::start(Habits::default())];
    let error = measure(&costs(&fakes, Vec::new()), |_, _, _| {}).expect_err("INFO names no process");
    let first: String = fakes[0].url();
    assert!(matches!(&error, LoadError::NoProcess { target } if target.to_string() == first), "{error}");
    assert_eq!(fakes[0].strings(), 0, "nothing was written");
}

#[test]
fn tables() {
    let figure = |ours: f64| {
        let ratio = Spread { median: ours / 2.0, min: ours / 4.0, max: ours };
        Some(Figure { ours, theirs: 2.0, ratio })
    };
    let cell = |ours, failed| Cell { processor_us: figure(ours), p50_us: figure(60.4), p99_us: None, failed };
    let rows = vec![Row { name: "zadd".into(), cells: vec![cell(5.0, 0), cell(2.5, 7)] }];
    let results = Results { rows, hand_overs: vec![cell(3.0, 0)] };
    assert_eq!(results.failed(), 7);
    assert_eq!(
        results.processor_table(&[1, 16], NAMES),
        "| operation | P1: ensue | redis | ratio | P16: ensue | redis | ratio |\n\
         |---|--:|--:|--:|--:|--:|--:|\n\
         | `zadd` | 5.00 | 2.00 | 2.50 (1.25 to 5.00) | 2.50 | 2.00 | 1.25 (0.62 to 2.50), 7 failed |\n"
    );
    assert_eq!(
        results.hand_over_table(&[10], NAMES),
        "| pairs | p50: ensue | redis | ratio | p99: ensue | redis | ratio | processor: ensue | redis | ratio |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n\
         | 10 | 60 | 2 | 30.20 (15.10 to 60.40) | - | - | - | 3.00 | 2.00 | 1.50 (0.75 to 3.00) |\n"
    );
}
