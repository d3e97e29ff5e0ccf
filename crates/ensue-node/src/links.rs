//! The links of the datacenter's cores to other cores, for `INFO`: who is reached, since when, and if not, why not.
//!
//! Whoever owns the sockets reports what changes; a core's report travels as one line with its metrics and is put
//! together with those of the other cores by whoever was asked. Nothing in a node goes by it.

use crate::config::Topology;
use ensue_types::DatacenterId;
use std::collections::BTreeMap;

/// What one core says of its links to one datacenter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinkReport {
    pub datacenter: DatacenterId,
    /// Links that there should be.
    pub links: u32,
    pub up: u32,
    /// Links that one side refuses: they come up when somebody has changed a configuration.
    pub refused: u32,
    /// Since when it is so, in seconds since 1970.
    pub since_s: u64,
    /// Why a link is not up; empty if all are.
    pub reason: String,
}

/// The same of several cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Linked {
    pub(crate) links: u32,
    pub(crate) up: u32,
    pub(crate) refused: u32,
    pub(crate) since_s: u64,
    pub(crate) reason: String,
}

impl Linked {
    pub(crate) fn state(&self) -> &'static str {
        if self.up == self.links {
            "up"
        } else if self.up > 0 {
            "partial"
        } else if self.refused > 0 {
            "refused"
        } else {
            "down"
        }
    }

    fn is_up(&self) -> bool {
        self.up == self.links
    }

    /// Links that are not up tell since when the first of them is not; if all are, since when the last of them is.
    fn add(&mut self, report: LinkReport) {
        let is_up = report.up == report.links;
        let is_first = self.links == 0;
        self.since_s = match (is_first || self.is_up(), is_up) {
            (true, false) => report.since_s,
            (true, true) => self.since_s.max(report.since_s),
            (false, false) => self.since_s.min(report.since_s),
            (false, true) => self.since_s,
        };
        // What is refused needs somebody; what is only down may come back by itself.
        if !is_up && (self.reason.is_empty() || report.refused > 0 && self.refused == 0) {
            self.reason = report.reason;
        }
        self.links = self.links.saturating_add(report.links);
        self.up = self.up.saturating_add(report.up);
        self.refused = self.refused.saturating_add(report.refused);
    }
}

/// What is reported by other cores goes by line; the reason is its last field.
pub(crate) fn line(report: &LinkReport) -> String {
    let LinkReport { datacenter, links, up, refused, since_s, reason } = report;
    let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{}\t{links}\t{up}\t{refused}\t{since_s}\t{reason}\n", datacenter.0)
}

/// Puts together what the cores said, by datacenter.
pub(crate) fn gather<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeMap<DatacenterId, Linked> {
    let mut linked: BTreeMap<DatacenterId, Linked> = BTreeMap::new();
    for report in texts.into_iter().flat_map(str::lines).filter_map(parse) {
        linked.entry(report.datacenter).or_default().add(report);
    }
    linked
}

fn parse(line: &str) -> Option<LinkReport> {
    let mut fields = line.splitn(6, '\t');
    let mut field = || fields.next();
    Some(LinkReport {
        datacenter: DatacenterId(field()?.parse().ok()?),
        links: field()?.parse().ok()?,
        up: field()?.parse().ok()?,
        refused: field()?.parse().ok()?,
        since_s: field()?.parse().ok()?,
        reason: field()?.to_owned(),
    })
}

/// Why a datacenter does not answer for all keys; empty if it does.
pub(crate) fn not_serving(metric: impl Fn(&str) -> i64) -> Vec<String> {
    let counts = [
        ("stopped", "partitions do not serve"),
        ("declared_dead", "partitions were declared dead"),
        ("retired", "partitions have retired"),
        ("rejoin", "partitions lost their data"),
        ("joining", "partitions wait for the other datacenters"),
        ("catching_up", "partitions wait for the lost end of their log"),
        ("loading", "partitions read their log"),
        ("silent_peers", "cores and partitions do not answer"),
    ];
    let found = counts.into_iter().filter(|(name, _)| metric(name) > 0);
    found.map(|(name, what)| format!("{} {what}", metric(name))).collect()
}

/// What stands between so many partitions of a datacenter and serving as they should, for its readiness; empty if
/// nothing does.
pub(crate) fn shortcomings(
    topology: &Topology,
    linked: &BTreeMap<DatacenterId, Linked>,
    partitions: usize,
    metric: impl Fn(&str) -> i64,
) -> Vec<String> {
    let mut words = not_serving(&metric);
    for (number, datacenter) in topology.datacenters.iter().enumerate() {
        let (id, name) = (DatacenterId(number as u8), &datacenter.name);
        let has_ended = |how: &str| metric(&format!("{how}_{name}_partitions")) > 0;
        let is_dead = has_ended("dead") || has_ended("retired");
        match linked.get(&id) {
            Some(linked) if !is_dead && !linked.is_up() => {
                words.push(format!("the link to {name} is {}: {}", linked.state(), linked.reason));
            }
            _ if is_dead || id == topology.datacenter => {}
            _ if metric(&format!("refused_{name}_partitions")) > 0 => {
                let count = metric(&format!("refused_{name}_partitions"));
                words
                    .push(format!("{count} partitions refuse {name}: the log and `CAUSAL READMIT` say more"));
            }
            _ if metric(&format!("linked_{name}")) < partitions as i64 => {
                words.push(format!("not every partition replicates to {name} yet"));
            }
            _ => {}
        }
    }
    words
}

#[cfg(test)]
mod tests;
