//! The table of a comparison, as markdown that can be read as text.

use super::cost::Cost;

/// One protocol's row.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub cost: Cost,
    /// Processor time of the nodes, in microseconds an operation, and how many operations that makes for each of the
    /// base.
    pub node_us: f64,
    pub throughput: Throughput,
}

/// Over the rounds.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

const COLUMNS: [&str; 15] = [
    "protocol",
    "throughput",
    "of rounds",
    "node µs/op",
    "bytes/upd",
    "deps/upd",
    "checks in",
    "times in",
    "between",
    "visible ms",
    "p99 ms",
    "stale GET",
    "stale MGET",
    "waits",
    "wait ms",
];

impl Row {
    fn cells(&self) -> [String; 15] {
        let cost = &self.cost;
        let [checks, times, between] = cost.messages();
        let maybe = |number: Option<f64>, digits: usize| match number {
            Some(number) => format!("{number:.digits$}"),
            None => "–".to_owned(),
        };
        [
            self.name.clone(),
            format!("{:.2}", self.throughput.median),
            format!("{:.2}–{:.2}", self.throughput.least, self.throughput.most),
            format!("{:.1}", self.node_us),
            format!("{:.1}", cost.bytes().iter().sum::<f64>()),
            maybe(cost.dependencies(), 2),
            format!("{checks:.2}"),
            format!("{times:.2}"),
            format!("{between:.2}"),
            maybe(cost.delay_ms(50), 2),
            maybe(cost.delay_ms(99), 2),
            format!("{:.3} %", cost.single_reads.percent()),
            format!("{:.3} %", cost.values_of_several.percent()),
            format!("{:.3} %", cost.waited_percent()),
            maybe(cost.wait_ms(), 2),
        ]
    }
}

/// The table.
pub fn table(rows: &[Row]) -> String {
    let cells: Vec<[String; 15]> = rows.iter().map(Row::cells).collect();
    aligned(COLUMNS, &cells)
}

/// A table of these cells, each column as wide as it must be; the first one has names, the others numbers.
pub(super) fn aligned<const N: usize>(columns: [&str; N], cells: &[[String; N]]) -> String {
    let width = |column: usize| {
        let widths = cells.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0).max(columns[column].chars().count())
    };
    let line = |row: [&str; N]| {
        let mut line = String::new();
        for (column, cell) in row.into_iter().enumerate() {
            let width = width(column);
            match column {
                0 => line.push_str(&format!("| {cell:<width$} ")),
                _ => line.push_str(&format!("| {cell:>width$} ")),
            }
        }
        line + "|\n"
    };
    let mut text = line(columns);
    for column in 0..N {
        let dashes = "-".repeat(width(column) + 1);
        text.push_str(&if column == 0 { format!("|{dashes}-") } else { format!("|{dashes}:") });
    }
    text.push_str("|\n");
    for row in cells {
        text.push_str(&line(row.each_ref().map(String::as_str)));
    }
    text
}
