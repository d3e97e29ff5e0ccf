//! What was seen of each node, as a table for people. It knows some fields of `INFO` and shows those that are there.

use crate::paint::Paint;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Everything that was seen.
pub(super) struct Report {
    pub(super) rows: Vec<Row>,
    /// `dc1-dc2=whole,40ms`, as the admin port says.
    pub(super) links: Vec<String>,
}

/// One node.
pub(super) struct Row {
    /// `dc1/0`, or empty if nobody told.
    pub(super) name: String,
    pub(super) port: u16,
    pub(super) seen: Result<Seen, String>,
}

/// What a node that answers says.
pub(super) struct Seen {
    pub(super) fields: BTreeMap<String, String>,
    pub(super) digest: String,
}

const HEADINGS: [&str; 8] =
    ["NODE", "ADDRESS", "STATE", "KEYS", "LAG OF THE OTHERS", "QUEUES", "BACKLOG", "DIGEST"];

/// Fields that count what waits, and what to call them.
const QUEUES: [(&str, &str); 6] = [
    ("ensue_waiting_dependencies", "dependencies"),
    ("ensue_waiting_entries", "entries"),
    ("ensue_waiting_reads", "reads"),
    ("ensue_waiting_rows", "rows"),
    ("ensue_transactions", "transactions"),
    ("blocked_clients", "clients"),
];

impl Report {
    pub(super) fn text(&self, paint: Paint) -> String {
        let digests: Vec<&str> =
            self.rows.iter().filter_map(|row| Some(row.seen.as_ref().ok()?.digest.as_str())).collect();
        let agree = digests.windows(2).all(|pair| pair[0] == pair[1]);
        let table: Vec<[Cell; 8]> = self.rows.iter().map(|row| row.cells(agree)).collect();
        let mut widths = HEADINGS.map(str::len);
        for row in &table {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        let mut text = String::new();
        let headings = HEADINGS.map(|heading| Cell::of(heading, Tone::Title));
        for row in std::iter::once(&headings).chain(&table) {
            let cells = row.iter().zip(widths).map(|(cell, width)| cell.shown(width, paint));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        if !self.links.is_empty() {
            let links = self.links.iter().map(|link| shown_link(link, paint));
            let _ = writeln!(text, "\nlinks  {}", links.collect::<Vec<_>>().join("  "));
        }
        let troubles: Vec<String> = self.rows.iter().flat_map(Row::troubles).collect();
        if !troubles.is_empty() {
            let _ = writeln!(text);
        }
        for trouble in troubles {
            let _ = writeln!(text, "{}", paint.bad(&trouble));
        }
        if digests.len() > 1 {
            let words = if agree {
                paint.good("all digests are equal")
            } else {
                paint.notable("digests differ: writes are on their way, or a link is cut")
            };
            let _ = writeln!(text, "\n{words}");
        }
        text
    }
}

fn shown_link(link: &str, paint: Paint) -> String {
    let (name, state) = link.split_once('=').unwrap_or((link, ""));
    match state.split_once(',') {
        Some(("cut", _)) => format!("{name} {}", paint.bad("cut")),
        Some((_, delay)) => format!("{name} {}", paint.good(delay)),
        None => link.into(),
    }
}

/// What `ensue status --ready` exits with.
const READY: u8 = 0;
const NOT_SERVING: u8 = 1;
const NOT_REPLICATING: u8 = 2;

impl Row {
    /// What is wrong with a node that answers, a line each.
    fn troubles(&self) -> Vec<String> {
        let Ok(seen) = &self.seen else { return Vec::new() };
        let name = self.shown_name(seen);
        let mut lines: Vec<String> = Vec::new();
        if let Some(trust) =
            seen.fields.get("ensue_peer_authentication").filter(|trust| trust.starts_with("NONE"))
        {
            lines.push(format!("{name}: peers prove nothing: {trust}"));
        }
        for (field, files) in &seen.fields {
            if let Some(partition) = field.strip_prefix("ensue_damaged_files_of_p") {
                lines.push(format!(
                    "{name}: DAMAGE on the disk of partition {partition}, in {files} files: the log of the node names them, \
                     and docs/failures.md what to do"
                ));
            }
        }
        for (peer, state) in seen.links().filter(|(_, state)| *state != "up") {
            let field = |what: &str| seen.field(&format!("ensue_link_{peer}_{what}"));
            let reason = field("reason");
            lines.push(format!(
                "{name}: the link to {peer} is {state}{}: {reason}",
                ago(&field("since"), seen)
            ));
        }
        lines
    }

    /// The exit status and the line of `ensue status --ready`.
    pub(super) fn readiness(&self) -> (u8, String) {
        let seen = match &self.seen {
            Ok(seen) => seen,
            Err(reason) => return (NOT_SERVING, format!("{}: not ready: {reason}", self.address())),
        };
        let name = self.shown_name(seen);
        if seen.number("ensue_ready") == 1 {
            return (READY, format!("{name}: ready"));
        }
        let reason = seen.field("ensue_ready_reason");
        (
            if seen.number("ensue_serving") == 1 { NOT_REPLICATING } else { NOT_SERVING },
            format!("{name}: not ready: {reason}"),
        )
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn shown_name(&self, seen: &Seen) -> String {
        if self.name.is_empty() { seen.field("ensue_datacenter_name") } else { self.name.clone() }
    }

    fn cells(&self, agree: bool) -> [Cell; 8] {
        let address = Cell::of(self.address(), Tone::Plain);
        let seen = match &self.seen {
            Ok(seen) => seen,
            Err(reason) => {
                let empty = || Cell::of("", Tone::Plain);
                let state = Cell::of(format!("unreachable: {reason}"), Tone::Bad);
                return [
                    Cell::of(&self.name, Tone::Title),
                    address,
                    state,
                    empty(),
                    empty(),
                    empty(),
                    empty(),
                    empty(),
                ];
            }
        };
        let name = self.shown_name(seen);
        let digest = Cell::of(&seen.digest, if agree { Tone::Good } else { Tone::Notable });
        [
            Cell::of(name, Tone::Title),
            address,
            seen.state(),
            seen.keys(),
            seen.lag(),
            seen.queues(),
            seen.backlog(),
            digest,
        ]
    }
}

impl Seen {
    fn field(&self, name: &str) -> String {
        self.fields.get(name).cloned().unwrap_or_default()
    }

    fn number(&self, name: &str) -> i64 {
        self.fields.get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// Other datacenters, and how the links to them are. Nobody needs one to a datacenter that was removed.
    fn links(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().filter_map(|(name, state)| {
            let peer = name.strip_prefix("ensue_link_")?;
            let is_retired = self.number(&format!("ensue_retired_{peer}_partitions")) > 0;
            (!is_retired).then_some(())?;
            matches!(state.as_str(), "up" | "partial" | "down" | "refused").then_some((peer, state.as_str()))
        })
    }

    fn state(&self) -> Cell {
        let count = |name| self.number(name);
        if count("ensue_declared_dead") > 0 {
            return Cell::of("declared dead: serves nothing", Tone::Bad);
        }
        if count("ensue_retired") > 0 {
            return Cell::of("retired: its nodes may be stopped", Tone::Notable);
        }
        match (count("ensue_rejoin"), count("ensue_joining"), count("ensue_stopped")) {
            (0, 0, 0) if count("ensue_clock_ahead") > 0 => {
                Cell::of(format!("CLOCKAHEAD: {}", self.refusals().join(", ")), Tone::Bad)
            }
            (0, 0, 0) if !self.refusals().is_empty() => {
                Cell::of(format!("serving, {}", self.refusals().join(", ")), Tone::Bad)
            }
            (0, 0, 0) if count("loading") > 0 => Cell::of("loading", Tone::Notable),
            (0, 0, 0) if count("ensue_catching_up") > 0 => {
                let partitions = count("ensue_catching_up");
                Cell::of(
                    format!("TAILLOST: {partitions} partitions wait for the lost end of their log"),
                    Tone::Bad,
                )
            }
            (0, 0, 0) if count("ensue_retiring") > 0 => Cell::of("retiring: takes no writes", Tone::Notable),
            (0, 0, 0) if self.links().any(|(_, state)| state != "up") => {
                let lacking: Vec<&str> =
                    self.links().filter(|(_, state)| *state != "up").map(|(peer, _)| peer).collect();
                match lacking.len() == self.links().count() {
                    true => Cell::of("serving UNREPLICATED", Tone::Bad),
                    false => Cell::of(format!("serving, no link to {}", lacking.join(", ")), Tone::Bad),
                }
            }
            (0, 0, 0) => match self.removals().join(", ") {
                removals if removals.is_empty() => Cell::of("serving", Tone::Good),
                removals => Cell::of(format!("serving, {removals}"), Tone::Good),
            },
            (0, 0, stopped) => Cell::of(format!("{stopped} partitions not serving"), Tone::Bad),
            (0, joining, _) => Cell::of(format!("{joining} partitions wait for the others"), Tone::Notable),
            (rejoin, ..) => Cell::of(format!("REJOIN: {rejoin} partitions lost their data"), Tone::Bad),
        }
    }

    /// Other datacenters that are being removed, or were.
    fn removals(&self) -> Vec<String> {
        let named = |prefix: &str, what: &str| {
            let name = |field: &String| {
                let name = field.strip_prefix(prefix)?.strip_suffix("_partitions")?;
                Some(format!("{name} {what}"))
            };
            self.fields.keys().filter_map(name).collect::<Vec<_>>()
        };
        [named("ensue_retiring_", "retiring"), named("ensue_retired_", "retired")].concat()
    }

    /// Whose time is not believed, and by whom this datacenter's.
    fn refusals(&self) -> Vec<String> {
        let named = |prefix: &str| {
            let name =
                |field: &String| Some(field.strip_prefix(prefix)?.strip_suffix("_partitions")?.to_owned());
            self.fields.keys().filter_map(name).collect::<Vec<_>>()
        };
        let by = named("ensue_refused_by_").into_iter().map(|name| format!("time refused by {name}"));
        let of = named("ensue_refuses_").into_iter().map(|name| format!("refuses the time of {name}"));
        by.chain(of).collect()
    }

    fn keys(&self) -> Cell {
        let keyspaces = self.fields.iter().filter(|(name, _)| {
            name.strip_prefix("db").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        });
        let counts = keyspaces
            .filter_map(|(_, value)| value.strip_prefix("keys=")?.split(',').next()?.parse::<i64>().ok());
        Cell::of(counts.sum::<i64>().to_string(), Tone::Plain)
    }

    /// Entries of this datacenter that each other one has not received yet; of an older server, not synced yet.
    fn lag(&self) -> Cell {
        let mut parts = Vec::new();
        let mut behind = false;
        for (name, unsynced) in &self.fields {
            let peer = name.strip_prefix("ensue_lag_").and_then(|rest| rest.strip_suffix("_entries"));
            let Some(peer) = peer else { continue };
            if self.number(&format!("ensue_refused_{peer}_partitions")) > 0 {
                behind = true;
                parts.push(format!("{peer}:REFUSED"));
                continue;
            }
            let lag = self.fields.get(&format!("ensue_unreceived_{peer}_entries")).unwrap_or(unsynced);
            let cut_off =
                self.fields.get(&format!("ensue_linked_{peer}")).is_some_and(|linked| linked == "0");
            behind |= cut_off || lag != "0";
            parts.push(if cut_off { format!("{peer}:{lag}(no link)") } else { format!("{peer}:{lag}") });
        }
        Cell::of(parts.join(" "), if behind { Tone::Notable } else { Tone::Good })
    }

    fn queues(&self) -> Cell {
        let full = QUEUES.iter().filter(|(name, _)| self.number(name) > 0);
        let mut parts: Vec<String> =
            full.map(|(name, word)| format!("{word}:{}", self.number(name))).collect();
        // Entries that have waited for long, and for whose writes.
        for (name, count) in &self.fields {
            let peer = name.strip_prefix("ensue_overdue_for_").and_then(|rest| rest.strip_suffix("_entries"));
            parts.extend(peer.map(|peer| format!("overdue({peer}):{count}")));
        }
        if parts.is_empty() {
            Cell::of("empty", Tone::Good)
        } else {
            Cell::of(parts.join(" "), Tone::Notable)
        }
    }

    fn backlog(&self) -> Cell {
        let bytes = self.number("ensue_backlog_bytes");
        let text = match bytes {
            0..10_240 => format!("{bytes} B"),
            10_240..10_485_760 => format!("{} kB", bytes >> 10),
            _ => format!("{} MB", bytes >> 20),
        };
        Cell::of(text, Tone::Plain)
    }
}

/// ` for 5 min`, or nothing if that is not known.
fn ago(since_s: &str, seen: &Seen) -> String {
    let now_s = seen.number("server_time_usec") / 1_000_000;
    match since_s.parse::<i64>().ok().map(|since_s| now_s - since_s).filter(|seconds| *seconds >= 0) {
        Some(seconds @ 0..120) => format!(" for {seconds} s"),
        Some(seconds @ 120..7_200) => format!(" for {} min", seconds / 60),
        Some(seconds) => format!(" for {} h", seconds / 3_600),
        None => String::new(),
    }
}

/// Text and how it is meant.
struct Cell {
    text: String,
    tone: Tone,
}

#[derive(Clone, Copy)]
enum Tone {
    Plain,
    Title,
    Good,
    Notable,
    Bad,
}

impl Cell {
    fn of(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone }
    }

    fn shown(&self, width: usize, paint: Paint) -> String {
        let padded = format!("{:<width$}", self.text);
        match self.tone {
            Tone::Plain => padded,
            Tone::Title => paint.bold(&padded),
            Tone::Good => paint.good(&padded),
            Tone::Notable => paint.notable(&padded),
            Tone::Bad => paint.bad(&padded),
        }
    }
}

#[cfg(test)]
mod tests;
