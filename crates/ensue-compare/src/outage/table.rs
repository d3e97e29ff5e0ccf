//! The table of an outage: what was served while the links were cut, and what the nodes held before, at most, and at
//! the end.

use super::{Course, Held, QUESTIONS, Question};
use crate::table::aligned;

const COLUMNS: [&str; 13] = [
    "protocol",
    "GET",
    "SET",
    "MGET",
    "MSET",
    "move",
    "news",
    "calm",
    "memory KiB",
    "of it deps",
    "versions",
    "waiting",
    "log MiB",
];

/// A row for each course.
pub fn table(courses: &[Course]) -> String {
    let cells: Vec<[String; 13]> = courses.iter().map(cells).collect();
    aligned(COLUMNS, &cells)
}

fn cells(course: &Course) -> [String; 13] {
    let percent =
        |percent: Option<f64>| percent.map_or("–".to_owned(), |percent| format!("{percent:.1} %"));
    let cut = |question: Question| percent(course.served(&[question], true).percent());
    let [get, set, mget, mset, travel, news] = QUESTIONS.map(cut);
    let before =
        course.held.get((course.outage.before as usize).saturating_sub(1)).copied().unwrap_or_default();
    let end = course.held.last().copied().unwrap_or_default();
    let most = |what: fn(&Held) -> u64| course.held.iter().map(what).max().unwrap_or(0);
    let kib = |what: fn(&Held) -> u64| {
        let stages = [what(&before), most(what), what(&end)].map(|bytes| (bytes as f64 / 1024.0).round());
        format!("{} / {} / {}", stages[0], stages[1], stages[2])
    };
    let stages = |what: fn(&Held) -> u64| format!("{} / {} / {}", what(&before), most(what), what(&end));
    [
        course.name.clone(),
        get,
        set,
        mget,
        mset,
        travel,
        news,
        percent(course.served(&QUESTIONS, false).percent()),
        kib(|held| held.rows),
        kib(|held| held.dependencies),
        stages(|held| held.versions),
        stages(|held| held.waiting),
        format!("{:.1}", most(|held| held.backlog) as f64 / f64::from(1 << 20)),
    ]
}
