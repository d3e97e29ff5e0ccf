//! Definitions make sense, statements are judged as they should be, and pages show what records have.

use crate::claim::{At, Claim, Expected, Ours, Pick};
use crate::figure::{Experiment, Figure};
use crate::instrument::Effort;
use crate::instrument::simulated::{self, SimulatedSetup};
use crate::page;
use crate::papers::{PAPERS, find};
use crate::record::{FigureRecord, Line, Panel, Records, Spread};
use crate::run;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

fn figures() -> impl Iterator<Item = (&'static str, &'static Figure)> {
    PAPERS.iter().flat_map(|paper| paper.figures.iter().map(|figure| (paper.name, figure)))
}

#[test]
fn the_figures_that_were_promised_are_there() {
    let promised = [
        ("cops", "T2 F9 F10 F11 F12"),
        ("eiger", "T2 T4 F7 F8"),
        ("orbe", "T2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13"),
        ("pocc", "F3 F4 F5 F6 F7"),
        ("tardis", "T3 F9 F10 F11 F12 F13 F14"),
    ];
    for (paper, names) in promised {
        for name in names.split(' ') {
            assert!(find(paper, Some(name)).is_ok(), "{paper} {name}");
        }
    }
    assert!(find("cops", Some("F1")).is_err() && find("nobody", None).is_err());
    assert_eq!(find("cops", Some("f9")).unwrap().len(), 2);
    assert_eq!(find("cops", Some("F9b")).unwrap().len(), 1);
    assert_eq!(find("all", None).unwrap().len(), figures().count());
}

#[test]
fn every_statement_is_about_a_metric_a_line_and_a_point_of_its_figure() {
    for (paper, figure) in figures() {
        let [lines, points, metrics] = figure.experiment.names();
        let mut names = BTreeSet::new();
        assert!(lines.iter().all(|line| names.insert(*line)), "{paper} {}: a line twice", figure.name);
        assert!(!points.is_empty() && !metrics.is_empty());
        for claim in figure.claims {
            let context = format!("{paper} {}: {}", figure.name, claim.words);
            assert!(metrics.contains(&claim.metric), "{context}: no metric {}", claim.metric);
            let places: Vec<At> = match claim.ours {
                Ours::Value(at) => vec![at],
                Ours::Ratio(of, to) => vec![of, to],
                Ours::LeastRatio(of, to) | Ours::MostRatio(of, to) => {
                    vec![At(of, Pick::First), At(to, Pick::First)]
                }
            };
            for At(line, pick) in places {
                assert!(lines.contains(&line), "{context}: no line {line}");
                if let Pick::Named(point) = pick {
                    assert!(points.contains(&point), "{context}: no point {point}");
                }
            }
        }
    }
}

#[test]
fn every_setup_names_a_protocol_and_a_workload() {
    let known: BTreeSet<&str> = ensue_protocol::NAMES.into_iter().collect();
    for (paper, figure) in figures() {
        let [lines, points, _] = figure.experiment.names();
        for (line, point) in
            (0..lines.len()).flat_map(|line| (0..points.len()).map(move |point| (line, point)))
        {
            match &figure.experiment {
                Experiment::Processes(sweep, _) => {
                    let setup = sweep.setup(line, point);
                    assert!(known.contains(setup.protocol), "{paper} {}", figure.name);
                    let workload = setup.workload();
                    assert!(workload.is_ok(), "{paper} {}: {workload:?}", figure.name);
                    assert!(setup.asked <= setup.datacenters);
                }
                Experiment::Simulated(sweep, _) => {
                    let setup = sweep.setup(line, point);
                    assert!(known.contains(setup.protocol), "{paper} {}", figure.name);
                    // A client's own partition has keys.
                    assert!(setup.keys >= 8 * usize::from(setup.partitions), "{paper} {}", figure.name);
                    assert!(setup.gets + setup.sets + setup.mgets > 0);
                }
                Experiment::Branches(sweep, _) => assert!(sweep.setup(line, point).clients > 0),
                Experiment::Sites(sweep, _) => assert!(sweep.setup(line, point).sites > 0),
            }
        }
    }
}

fn panel(values: &[(&str, [f64; 2])]) -> Panel {
    let line = |(name, values): &(&str, [f64; 2])| Line {
        name: (*name).into(),
        values: values.iter().map(|value| Spread::of([*value])).collect(),
    };
    let points = ["few", "many"].map(String::from).into();
    Panel { metric: "rate".into(), unit: "1/s".into(), points, lines: values.iter().map(line).collect() }
}

fn verdict(ours: Ours, expected: Expected, panel: &Panel) -> (Option<bool>, Option<bool>) {
    let claim = Claim { words: "it is so", metric: "rate", ours, expected };
    let verdict = claim.verdict(std::slice::from_ref(panel));
    (verdict.direction, verdict.factor)
}

#[test]
fn a_statement_is_judged_by_direction_and_by_factor() {
    let panel = panel(&[("a", [100.0, 80.0]), ("b", [50.0, 100.0])]);
    let first = Ours::Ratio(At("a", Pick::First), At("b", Pick::First));
    let last = Ours::Ratio(At("a", Pick::Last), At("b", Pick::Named("many")));
    // Ours are 2 and 0.8.
    for (ours, expected, verdict_of_it) in [
        (first, Expected::Ratio(1.5), (Some(true), Some(true))),
        (first, Expected::Ratio(8.0), (Some(true), Some(false))),
        (first, Expected::Ratio(1.0), (Some(false), Some(false))),
        (first, Expected::Ratio(1.05), (Some(true), Some(false))),
        (last, Expected::Ratio(1.35), (Some(false), Some(false))),
        (last, Expected::Ratio(0.9), (Some(true), Some(true))),
        (last, Expected::AtMost(0.8), (Some(true), None)),
        (last, Expected::AtLeast(0.81), (Some(false), None)),
        (last, Expected::OfTheirMachines(3.0, "ms"), (None, None)),
        (last, Expected::Count(1.0), (None, Some(true))),
        (Ours::LeastRatio("a", "b"), Expected::AtMost(0.8), (Some(true), None)),
        (Ours::MostRatio("a", "b"), Expected::AtLeast(2.0), (Some(true), None)),
        (Ours::Value(At("a", Pick::Least)), Expected::Count(80.0), (None, Some(true))),
        (Ours::Value(At("a", Pick::Most)), Expected::Count(160.0), (None, Some(false))),
        (Ours::Value(At("nobody", Pick::Most)), Expected::AtMost(1.0), (None, None)),
    ] {
        assert_eq!(verdict(ours, expected, &panel), verdict_of_it, "{ours:?} {expected:?}");
    }
}

#[test]
fn zero_is_zero() {
    let panel = panel(&[("a", [0.0, 0.0]), ("b", [0.0, 1.0])]);
    assert_eq!(verdict(Ours::Value(At("a", Pick::Most)), Expected::Count(0.0), &panel), (None, Some(true)));
    assert_eq!(verdict(Ours::Value(At("b", Pick::Most)), Expected::Count(0.0), &panel), (None, Some(false)));
    let nothing = Ours::Ratio(At("a", Pick::First), At("b", Pick::First));
    assert_eq!(verdict(nothing, Expected::Ratio(1.0), &panel), (None, None));
}

fn effort() -> Effort {
    Effort {
        program: "ensue".into(),
        directory: std::env::temp_dir(),
        rounds: 2,
        lasts: Duration::from_millis(30),
        hurry: 20,
        ends_only: true,
    }
}

fn ran(paper: &str, name: &str) -> FigureRecord {
    let (paper, figure) = find(paper, Some(name)).unwrap()[0];
    let mut told = Vec::new();
    let record =
        run::run(paper, figure, &effort(), "Made in a test.", |progress| told.push(progress)).unwrap();
    assert_eq!((told[0].done, told.last().unwrap().done + 1), (0, told[0].of));
    record
}

#[test]
fn a_figure_of_simulated_worlds_is_the_same_in_every_run() {
    let (record, again) = (ran("pocc", "F7"), ran("pocc", "F7"));
    assert_eq!(record, again);
    assert_eq!(record.panels[0].points, ["8", "128"], "only the ends in a hurry");
    assert!(record.panels[0].lines[0].values.iter().all(Option::is_some));
}

#[test]
fn work_that_has_a_price_makes_throughput_mean_something() {
    let setup = SimulatedSetup { partitions: 2, ..SimulatedSetup::PRICED };
    let sample = simulated::run(&setup, 1, &effort()).unwrap();
    let busy = (simulated::BUSY.of)(&sample).unwrap();
    // One of two datacenters has clients; the other applies what they write.
    assert!((50.0..=100.5).contains(&busy), "cores work {busy} % of their time");
    let rate = (simulated::RATE.of)(&sample).unwrap();
    let free =
        simulated::run(&SimulatedSetup { priced: false, watches: false, ..setup }, 1, &effort()).unwrap();
    assert!((simulated::BUSY.of)(&free).is_none());
    assert!(rate > 0.0 && (simulated::RATE.of)(&free).unwrap() > rate);
}

/// Of each partition, this share of what one alone does.
fn scaled(share: f64) -> Vec<Panel> {
    let line = |name: &str| Line {
        name: name.into(),
        values: [1.0, share, share].into_iter().map(|rate| Spread::of([rate])).collect(),
    };
    let points = ["1", "16", "128"].map(String::from).into();
    let lines = vec![line("eventual"), line("eiger")];
    vec![Panel { metric: simulated::PER_PARTITION.name.into(), unit: "1/s".into(), points, lines }]
}

/// `UPDATE_GOLDEN=1` makes the page anew.
#[test]
fn the_recorded_page_is_that_of_the_recorded_data() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures");
    let data = std::fs::read_to_string(folder.join("papers.json")).unwrap();
    let page = page::page(&serde_json::from_str(&data).unwrap());
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(folder.join("papers.md"), &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(folder.join("papers.md")).unwrap(), page);
    let is_wide = |line: &&str| line.chars().count() > 120 && !line.starts_with('|');
    assert_eq!(page.lines().find(is_wide), None);
}

#[test]
fn records_outlive_a_run_and_make_a_page() {
    let record = ran("tardis", "F12");
    let order: Vec<(String, String)> =
        figures().map(|(paper, figure)| (paper.to_owned(), figure.name.to_owned())).collect();
    let mut records = Records::default();
    let old = FigureRecord { paper: "tardis".into(), name: "T3".into(), ..record.clone() };
    let gone = FigureRecord { name: "F99".into(), ..record.clone() };
    records.replace(vec![record.clone(), gone, old], &order);
    let again = FigureRecord { made: "Again.".into(), ..record };
    records.replace(vec![again], &order);
    let names: Vec<&str> = records.figures.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, ["T3", "F12"]);
    let text = serde_json::to_string(&records).unwrap();
    assert_eq!(serde_json::from_str::<Records>(&text).unwrap(), records);
    let page = page::page(&records);
    assert!(page.contains("### tardis F12") && page.contains("Again."), "{page}");
    assert!(page.contains("Not run yet: cops T2,") && !page.contains("tardis F12,"), "{page}");
    assert!(page.contains("| it scales linearly with the number of sites"), "{page}");
    // What is judged is what was measured, also if an earlier run was judged otherwise.
    let measured = &mut records.figures[1].panels[0].lines[0].values;
    *measured.last_mut().unwrap() = measured[0];
    let judged = page::page(&records);
    assert!(
        judged.contains("**tardis F12**, direction: it scales linearly") && !page.contains("**tardis F12**"),
        "{judged}"
    );
    let slow = FigureRecord {
        paper: "beyond".into(),
        name: "S2".into(),
        panels: scaled(0.5),
        ..records.figures[1].clone()
    };
    let fast = FigureRecord { panels: scaled(1.0), ..slow.clone() };
    let page_of = |record: FigureRecord| page::page(&Records { figures: vec![record] });
    assert!(page_of(slow).contains("Why, of beyond S2: ") && !page_of(fast).contains("Why, of"));
    assert!(page::picture(&records.figures[1]).ends_with("</svg>\n"));
    assert!(page::figure(&records.figures[1]).contains("transactions a virtual second, 1/s"));
}
