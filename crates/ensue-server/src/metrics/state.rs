//! What a node shows, as one JSON object: what the page for people is drawn from, and small programs read.
//!
//! Figures are those of `/metrics` under the same names without `ensue_`, and in the same units: they come from the
//! same tables. An observation comes in, text that `serde_json` has escaped goes out; nothing is kept between two.

use super::buckets::{DELAY_POWERS, buckets};
use super::commands;
use super::families::{Kind, LABELLED, Labelled, OF_KEYSPACES, OF_PEERS, OF_ROLES, PLAIN, ROLES, Row, Shown};
use super::page::Title;
use ensue_node::{Observation, ObservedLink};
use serde_json::{Map, Value, json};

pub(super) const JSON: &str = "application/json";

/// The object, of an observation that was made so many seconds after the port began.
///
/// `draining` says that the node shuts down, which no observation knows.
pub(super) fn state(title: &Title, observation: &Observation, observed_s: f64, draining: bool) -> Value {
    let mut reasons = observation.not_ready.clone();
    if draining {
        reasons.push("this node is shutting down".into());
    }
    let mut state = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "datacenter": title.datacenter,
        "node": title.node,
        "start_time_seconds": title.started_s,
        "observed_seconds": observed_s,
        "serving": observation.not_serving.is_empty(),
        "ready": reasons.is_empty(),
        "reasons": reasons,
        "figures": figures(observation, PLAIN, ""),
        "commands": commands_of(observation),
        "error_replies_total": errors(observation),
        "keyspaces": keyspaces(title, observation),
        "peers": title.peers.iter().map(|peer| of_peer(observation, peer)).collect::<Vec<_>>(),
    });
    for labelled in LABELLED {
        state[full_name(labelled.name, labelled.shown, labelled.kind)] = of_labels(observation, labelled);
    }
    let roles = roles(observation);
    if !roles.is_empty() {
        state["replica_partitions"] = roles.into();
    }
    state
}

/// Replicas by role, where partitions have replicas.
fn roles(observation: &Observation) -> Map<String, Value> {
    let of_role = |role: &str| {
        let mut figures = figures(observation, OF_ROLES, role).into_iter();
        Some((role.to_owned(), figures.next()?.1))
    };
    ROLES.into_iter().filter_map(of_role).collect()
}

/// As `/metrics` has it, without `ensue_`.
fn full_name(name: &str, shown: Shown, kind: Kind) -> String {
    format!("{name}{}{}", shown.suffix(), kind.suffix())
}

fn in_unit(shown: Shown, figure: i64) -> Value {
    match shown {
        Shown::Count | Shown::Bytes => figure.into(),
        Shown::Ms => (figure as f64 / 1e3).into(),
        Shown::Us => (figure as f64 / 1e6).into(),
    }
}

/// Those of the figures of these rows that there are; `of` is the peer or the keyspace.
fn figures(observation: &Observation, rows: &[Row], of: &str) -> Map<String, Value> {
    let figure = |row: &Row| {
        let figure = *observation.metrics.get(&row.from.replace("{}", of))?;
        Some((full_name(row.name, row.shown, row.kind), in_unit(row.shown, figure)))
    };
    rows.iter().filter_map(figure).collect()
}

fn of_labels(observation: &Observation, labelled: &Labelled) -> Value {
    let figure = |(label, from): &(&str, &str)| {
        ((*label).to_owned(), in_unit(labelled.shown, observation.metric(from)))
    };
    labelled.values.iter().map(figure).collect::<Map<_, _>>().into()
}

fn commands_of(observation: &Observation) -> Map<String, Value> {
    let groups = commands::by_group(&observation.metrics);
    let shown = groups.into_iter().map(|(name, group)| {
        let figures = json!({
            "executed": group.calls,
            "failed": group.failed,
            "rejected": group.rejected,
            "duration_seconds": group.ns as f64 * 1e-9,
        });
        (name.to_owned(), figures)
    });
    shown.collect()
}

fn errors(observation: &Observation) -> Map<String, Value> {
    let from_first = observation.metrics.range(ERROR_PREFIX.to_owned()..);
    let words = from_first.map_while(|(name, count)| Some((name.strip_prefix(ERROR_PREFIX)?, count)));
    words.map(|(word, count)| (word.to_owned(), Value::from(*count))).collect()
}

/// What the metrics of errors begin with, before the first word of the error.
const ERROR_PREFIX: &str = "errorstat_";

/// Keyspaces that have figures.
fn keyspaces(title: &Title, observation: &Observation) -> Vec<Value> {
    let numbers = 0..title.keyspaces;
    let of_each = numbers.map(|number| (number, figures(observation, OF_KEYSPACES, &number.to_string())));
    let used = of_each.filter(|(_, figures)| !figures.is_empty());
    used.map(|(number, figures)| json!({ "keyspace": number, "figures": figures })).collect()
}

fn of_peer(observation: &Observation, peer: &str) -> Value {
    let link = observation.links.iter().find(|link| link.datacenter == peer);
    json!({
        "name": peer,
        "link": link.map_or("unknown", link_state),
        "links": link.map_or(0, |link| link.links),
        "links_up": link.map_or(0, |link| link.up),
        "links_refused": link.map_or(0, |link| link.refused),
        "figures": figures(observation, OF_PEERS, peer),
        "visibility_delay_seconds": delays(observation, peer),
    })
}

/// The words of `INFO`.
fn link_state(link: &ObservedLink) -> &'static str {
    match (link.up, link.refused) {
        (up, _) if up == link.links => "up",
        (0, 0) => "down",
        (0, _) => "refused",
        _ => "partial",
    }
}

/// How long entries of a peer took until they were visible: the bound of each bucket, null for the last one, with what
/// is in this bucket alone.
fn delays(observation: &Observation, peer: &str) -> Value {
    let count = |power| observation.metric(&format!("visible_after_{peer}:{power}")).max(0) as u64;
    let buckets = buckets(DELAY_POWERS, 1e-3, count);
    let sum_ms = observation.metric(&format!("visible_{peer}_delay_ms"));
    json!({
        "sum": sum_ms as f64 / 1e3,
        "count": buckets.iter().map(|(_, count)| count).sum::<u64>(),
        "buckets": buckets.iter().map(|(bound, count)| json!([bound, count])).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;
