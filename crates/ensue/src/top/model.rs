//! What `ensue top` knows: of each server its two latest answers to `INFO`, and the rows that follow from them.
//!
//! Text and the time at which it came go in; rates, sums and words come out. It reads no clock and draws nothing, and a
//! field that is missing or no number counts as none.

use crate::nodes;
use std::collections::BTreeMap;
use std::time::Duration;

/// All servers that are watched, and the one that is chosen.
#[derive(Debug)]
pub(super) struct Board {
    servers: Vec<Server>,
    chosen: usize,
}

/// One server.
#[derive(Debug)]
pub(super) struct Server {
    /// As the command line or the dev cluster calls it.
    pub(super) name: String,
    pub(super) condition: Condition,
    figures: Option<Figures>,
    latest: Option<Reading>,
}

/// Whether a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Nothing has come yet.
    Asked,
    Answers,
    /// Why not, and since when.
    Silent {
        reason: String,
        since: Duration,
    },
}

/// One answer.
#[derive(Clone, Debug)]
struct Reading {
    at: Duration,
    fields: BTreeMap<String, String>,
}

/// What a server shows; rates are since the answer before, and nothing if there was none or its counters were reset.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) datacenter: String,
    pub(super) is_serving: bool,
    pub(super) is_ready: bool,
    /// Why it is not ready.
    pub(super) reason: String,
    /// Commands a second.
    pub(super) operations: Option<f64>,
    pub(super) keys: i64,
    pub(super) allocated_bytes: i64,
    pub(super) resident_bytes: i64,
    pub(super) clients: i64,
    pub(super) waiting: Waiting,
    /// Conflicting writes seen since the start, how many a second, and values that stand beside each other.
    pub(super) conflicts: i64,
    pub(super) conflicts_per_s: Option<f64>,
    pub(super) conflicting_values: i64,
    pub(super) links: Vec<Link>,
    pub(super) groups: Vec<Group>,
}

/// What waits, by what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Received entries that wait for their dependencies.
    pub(super) entries: i64,
    /// Reads that wait for a time or for a transaction.
    pub(super) reads: i64,
    /// Keys on which commands wait for their turn.
    pub(super) keys: i64,
    /// Clients in a blocking command.
    pub(super) clients: i64,
}

impl Waiting {
    pub(super) fn all(&self) -> i64 {
        self.entries + self.reads + self.keys + self.clients
    }
}

/// The link to another datacenter, and who lags behind whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) peer: String,
    /// As `INFO` says it, or `dead` if the peer was declared so.
    pub(super) state: String,
    /// How long it has been so; nothing if that is not known.
    pub(super) since: Option<Duration>,
    /// Own entries that the peer has not received, and the age of the first of them.
    pub(super) unreceived_entries: i64,
    pub(super) unreceived: Duration,
    /// Entries of the peer that are not visible here, and how long the first of them has been known.
    pub(super) behind_entries: i64,
    pub(super) behind: Duration,
}

/// Commands of a group of the documentation, by how many there were.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) calls: i64,
    pub(super) calls_per_s: Option<f64>,
    /// Answered with an error, and not executed, together.
    pub(super) errors: i64,
    /// Microseconds that a command took, on average since the answer before; since the start if there was none then.
    pub(super) mean_us: Option<f64>,
}

impl Board {
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Board {
        let server = |name| Server { name, condition: Condition::Asked, figures: None, latest: None };
        Board { servers: names.into_iter().map(server).collect(), chosen: 0 }
    }

    /// A server answered, or did not; `at` is the time since the beginning.
    pub(super) fn on_answer(&mut self, number: usize, at: Duration, info: Result<String, String>) {
        let Some(server) = self.servers.get_mut(number) else { return };
        match info {
            Ok(text) => {
                let now = Reading { at, fields: nodes::fields(&text) };
                server.figures = Some(Figures::between(server.latest.as_ref(), &now));
                server.latest = Some(now);
                server.condition = Condition::Answers;
            }
            Err(reason) => {
                let since = match server.condition {
                    Condition::Silent { since, .. } => since,
                    _ => at,
                };
                server.condition = Condition::Silent { reason, since };
                // What it showed is over, and so are rates across the gap.
                (server.figures, server.latest) = (None, None);
            }
        }
    }

    /// Chooses the server so many further down; the ends hold.
    pub(super) fn choose(&mut self, step: isize) {
        let last = self.servers.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(step).min(last);
    }

    pub(super) fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The number of the server that is chosen.
    pub(super) fn chosen(&self) -> usize {
        self.chosen
    }
}

impl Server {
    /// What it shows, if it answers.
    pub(super) fn figures(&self) -> Option<&Figures> {
        self.figures.as_ref()
    }
}

impl Reading {
    fn word(&self, name: &str) -> String {
        self.fields.get(name).cloned().unwrap_or_default()
    }

    fn number(&self, name: &str) -> i64 {
        self.fields.get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// The sum of `item=` over the fields that are this prefix and a number, as `db0`.
    fn sum_of(&self, prefix: &str, item: &str) -> i64 {
        let is_of = |name: &str| {
            let number = name.strip_prefix(prefix);
            number
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let values = self.fields.iter().filter(|(name, _)| is_of(name));
        values.filter_map(|(_, value)| item_of(value, item)).sum()
    }

    fn milliseconds(&self, name: &str) -> Duration {
        Duration::from_millis(u64::try_from(self.number(name)).unwrap_or(0))
    }

    fn commands(&self) -> BTreeMap<String, Counted> {
        let mut groups: BTreeMap<String, Counted> = BTreeMap::new();
        for (name, value) in &self.fields {
            let Some(command) = name.strip_prefix("cmdstat_") else { continue };
            let container = command.split('|').next().unwrap_or(command);
            let known = ensue_resp::lookup(container.as_bytes()).map_or("", |spec| spec.group);
            let group = groups.entry(if known.is_empty() { "other" } else { known }.to_owned()).or_default();
            let item = |item| item_of(value, item).unwrap_or(0);
            group.calls += item("calls");
            group.us += item("usec");
            group.errors += item("failed_calls") + item("rejected_calls");
        }
        groups
    }
}

/// `keys=3,expires=0`: what stands behind an item.
fn item_of(value: &str, item: &str) -> Option<i64> {
    let mut items = value.split(',').filter_map(|pair| pair.split_once('='));
    items.find(|(name, _)| *name == item)?.1.parse().ok()
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    calls: i64,
    us: i64,
    errors: i64,
}

/// How much a counter has grown a second; nothing without an earlier one, or if it was reset.
fn rate(before: Option<i64>, now: i64, seconds: f64) -> Option<f64> {
    let grown = now.checked_sub(before?).filter(|grown| *grown >= 0)?;
    (seconds > 0.0).then(|| grown as f64 / seconds)
}

impl Figures {
    /// What a server shows now, with the rates since an earlier answer of the same process.
    fn between(before: Option<&Reading>, now: &Reading) -> Figures {
        // Another process counts from the beginning.
        let uptime = "uptime_in_seconds";
        let before = before.filter(|before| before.number(uptime) <= now.number(uptime));
        let seconds = before.map_or(0.0, |before| now.at.saturating_sub(before.at).as_secs_f64());
        let conflicts = |reading: &Reading| reading.sum_of("keyspace", "conflicts");
        let groups = groups(before, now, seconds);
        let all =
            |reading: &Reading| -> i64 { reading.commands().values().map(|counted| counted.calls).sum() };
        Figures {
            datacenter: now.word("ensue_datacenter_name"),
            is_serving: now.number("ensue_serving") == 1,
            is_ready: now.number("ensue_ready") == 1,
            reason: now.word("ensue_ready_reason"),
            operations: rate(before.map(all), all(now), seconds),
            keys: now.sum_of("db", "keys"),
            allocated_bytes: now.number("used_memory"),
            resident_bytes: now.number("used_memory_rss"),
            clients: now.number("connected_clients"),
            waiting: Waiting {
                entries: now.number("ensue_waiting_entries"),
                reads: now.number("ensue_waiting_reads") + now.number("ensue_waiting_for_times"),
                keys: now.number("ensue_waiting_rows"),
                clients: now.number("blocked_clients"),
            },
            conflicts: conflicts(now),
            conflicts_per_s: rate(before.map(conflicts), conflicts(now), seconds),
            conflicting_values: now.number("ensue_conflicting_values"),
            links: links(now),
            groups,
        }
    }
}

/// The groups that have commands, the busiest of now first.
fn groups(before: Option<&Reading>, now: &Reading, seconds: f64) -> Vec<Group> {
    let earlier = before.map(Reading::commands);
    let group = |(name, counted): (String, Counted)| {
        let before = earlier.as_ref().map(|groups| groups.get(&name).copied().unwrap_or_default());
        let calls_per_s = rate(before.map(|before| before.calls), counted.calls, seconds);
        let recent = before.map(|before| (counted.us - before.us, counted.calls - before.calls));
        let (us, calls) =
            recent.filter(|(us, calls)| *us >= 0 && *calls > 0).unwrap_or((counted.us, counted.calls));
        let mean_us = (calls > 0).then(|| us as f64 / calls as f64);
        Group { name, calls: counted.calls, calls_per_s, errors: counted.errors, mean_us }
    };
    let mut groups: Vec<Group> = now.commands().into_iter().map(group).collect();
    groups.sort_by(|one, other| {
        let busy = |group: &Group| group.calls_per_s.unwrap_or(0.0);
        busy(other).total_cmp(&busy(one)).then(other.calls.cmp(&one.calls)).then(one.name.cmp(&other.name))
    });
    groups
}

fn links(now: &Reading) -> Vec<Link> {
    let names = now.word("ensue_other_datacenter_names");
    let now_s = now.number("server_time_usec") / 1_000_000;
    let link = |peer: &str| {
        let is_any = |what: &str| now.number(&format!("ensue_{what}_{peer}_partitions")) > 0;
        let (is_dead, is_retired, is_retiring) = (is_any("dead"), is_any("retired"), is_any("retiring"));
        let told = now.word(&format!("ensue_link_{peer}"));
        let state = if told.is_empty() { "unknown".to_owned() } else { told };
        let since_s: Option<i64> =
            now.fields.get(&format!("ensue_link_{peer}_since")).and_then(|text| text.parse().ok());
        let elapsed_s = since_s.and_then(|since_s| u64::try_from(now_s - since_s).ok());
        Link {
            peer: peer.to_owned(),
            state: match (is_dead, is_retired, is_retiring) {
                (true, ..) => "dead".into(),
                (_, true, _) => "retired".into(),
                (_, _, true) => "retiring".into(),
                _ => state,
            },
            since: elapsed_s.map(Duration::from_secs),
            unreceived_entries: now.number(&format!("ensue_unreceived_{peer}_entries")),
            unreceived: now.milliseconds(&format!("ensue_unreceived_{peer}_ms_max")),
            behind_entries: now.number(&format!("ensue_behind_{peer}_entries")),
            behind: now.milliseconds(&format!("ensue_behind_{peer}_ms_max")),
        }
    };
    names.split(',').filter(|name| !name.is_empty()).map(link).collect()
}

#[cfg(test)]
mod tests;
