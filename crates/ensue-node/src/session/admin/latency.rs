//! `LATENCY`: what the cores of the datacenter have noted of commands that took long, put together.

use super::cluster_query::{ClusterQuery, Purpose};
use super::info::Metrics;
use super::order::{self, Gathering};
use crate::session::cx::Cx;
use crate::session::latency::SPIKES_MAX;
use crate::session::step::Step;
use crate::statistics;
use bytes::Bytes;
use ensue_resp::command;
use ensue_types::{Args, Reply};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What is answered of the events of all cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Latest,
    History(String),
    Graph(String),
    Doctor,
}

/// An event of all cores.
#[derive(Clone, Debug, Default)]
struct Event {
    /// By second, the longest in milliseconds.
    spikes: BTreeMap<i64, i64>,
    max_ms: i64,
}

/// `LATENCY` and its subcommands.
pub(crate) fn on_command(cx: &mut Cx<'_>, args: &Args) -> Step<Box<ClusterQuery>> {
    let text = |word: &Bytes| String::from_utf8_lossy(word).into_owned();
    let show = |cx: &mut Cx<'_>, view| order::latency(cx, Gathering::Spikes(view));
    match (args[1].to_ascii_lowercase().as_slice(), &args[2..]) {
        (b"latest", []) => show(cx, View::Latest),
        (b"doctor", []) => show(cx, View::Doctor),
        (b"history", [event]) => show(cx, View::History(text(event))),
        (b"graph", [event]) => show(cx, View::Graph(text(event))),
        (b"reset", events) => order::reset_latency(cx, events),
        (b"histogram", names) => {
            let names = names.iter().map(|name| text(name).to_ascii_lowercase()).collect();
            ClusterQuery::begin(cx, Purpose::Histogram(names))
        }
        (b"help", []) => {
            Step::answer(Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()))
        }
        _ => Step::answer(command::misused(args).reply()),
    }
}

/// The answer of all cores together, each of which has told its events.
pub(crate) fn gather(view: &View, now_s: i64, replies: &[Reply]) -> Reply {
    let events = events_of(replies);
    match view {
        View::Latest => Reply::Array(events.iter().filter_map(|(name, event)| latest(name, event)).collect()),
        View::History(name) => {
            let spikes = events.get(name).into_iter().flat_map(|event| &event.spikes);
            Reply::Array(spikes.map(|(second, ms)| integers(&[*second, *ms])).collect())
        }
        View::Graph(name) => match events.get(name) {
            Some(event) => Reply::Verbatim(graph(name, event, now_s).into()),
            None => Reply::Error(format!("ERR No samples available for event '{name}'").into()),
        },
        View::Doctor => Reply::Verbatim(advice(&events).into()),
    }
}

/// How many different events were forgotten.
pub(crate) fn count_forgotten(replies: &[Reply]) -> Reply {
    let names: BTreeSet<&Bytes> = replies.iter().flat_map(words).collect();
    Reply::Integer(names.len() as i64)
}

/// Of each command, how many calls took so long: at most so many microseconds as a power of two.
pub(crate) fn histograms(metrics: &Metrics) -> BTreeMap<&str, BTreeMap<u32, i64>> {
    let mut commands: BTreeMap<&str, BTreeMap<u32, i64>> = BTreeMap::new();
    for (metric, count) in metrics {
        let named = metric.strip_prefix(statistics::HISTOGRAM).and_then(|rest| rest.rsplit_once(':'));
        if let Some((name, Ok(power))) = named.map(|(name, power)| (name, power.parse())) {
            commands.entry(name).or_default().insert(power, *count);
        }
    }
    commands
}

/// In how many microseconds so many hundredths of the calls were done, as near as powers of two tell.
pub(crate) fn percentile(counts: &BTreeMap<u32, i64>, hundredths: f64) -> u64 {
    let wanted = counts.values().sum::<i64>() as f64 * hundredths / 100.0;
    let mut calls = 0;
    let enough = counts.iter().find(|(_, count)| {
        calls += **count;
        calls as f64 >= wanted
    });
    enough.or(counts.last_key_value()).map_or(0, |(power, _)| 1 << power)
}

/// How long the calls of commands took, of those that are named, by powers of two of microseconds. A container stands
/// for its subcommands.
pub(crate) fn histogram(metrics: &Metrics, names: &[String]) -> Reply {
    let mut commands = histograms(metrics);
    commands.retain(|name, _| {
        let container = name.split('|').next().unwrap_or(name);
        names.is_empty() || names.iter().any(|wanted| wanted == name || wanted == container)
    });
    let entry = |(name, counts): (&str, BTreeMap<u32, i64>)| {
        let mut calls = 0;
        let mut buckets = Vec::with_capacity(counts.len());
        for (power, count) in counts {
            calls += count;
            buckets.push((Reply::Integer(1 << power), Reply::Integer(calls)));
        }
        let told = vec![
            (Reply::bulk("calls"), Reply::Integer(calls)),
            (Reply::bulk("histogram_usec"), Reply::Map(buckets)),
        ];
        (Reply::bulk(name.to_owned()), Reply::Map(told))
    };
    Reply::Map(commands.into_iter().map(entry).collect())
}

fn events_of(replies: &[Reply]) -> BTreeMap<String, Event> {
    let mut events: BTreeMap<String, Event> = BTreeMap::new();
    for told in replies.iter().flat_map(elements) {
        let [Reply::Bulk(name), Reply::Integer(max_ms), Reply::Array(spikes)] = elements(told) else {
            continue;
        };
        let event = events.entry(String::from_utf8_lossy(name).into_owned()).or_default();
        event.max_ms = event.max_ms.max(*max_ms);
        for spike in spikes {
            let [Reply::Integer(second), Reply::Integer(ms)] = elements(spike) else { continue };
            let longest_ms = event.spikes.entry(*second).or_default();
            *longest_ms = (*longest_ms).max(*ms);
        }
        while event.spikes.len() > SPIKES_MAX {
            event.spikes.pop_first();
        }
    }
    events
}

fn elements(reply: &Reply) -> &[Reply] {
    if let Reply::Array(elements) = reply { elements } else { &[] }
}

fn words(reply: &Reply) -> impl Iterator<Item = &Bytes> {
    elements(reply).iter().filter_map(|word| if let Reply::Bulk(word) = word { Some(word) } else { None })
}

fn integers(values: &[i64]) -> Reply {
    Reply::Array(values.iter().copied().map(Reply::Integer).collect())
}

/// The name, the latest second, its longest, and the longest ever.
fn latest(name: &str, event: &Event) -> Option<Reply> {
    let (second, ms) = event.spikes.last_key_value()?;
    let values = [*second, *ms, event.max_ms].map(Reply::Integer);
    Some(Reply::Array(std::iter::once(Reply::bulk(name.to_owned())).chain(values).collect()))
}

/// A line a second, the oldest first, with a bar as long as its longest is beside the longest of all.
fn graph(name: &str, event: &Event, now_s: i64) -> String {
    let high = event.spikes.values().max().copied().unwrap_or(0);
    let low = event.spikes.values().min().copied().unwrap_or(0);
    let mut text = format!("{name} - high {high} ms, low {low} ms (all time high {} ms)\n", event.max_ms);
    text.push_str(&"-".repeat(BAR_MAX));
    text.push('\n');
    for (second, ms) in &event.spikes {
        let bar = "#".repeat((*ms as usize).saturating_mul(BAR_MAX / 2) / (high.max(1) as usize));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>8} s ago {ms:>8} ms {bar}", now_s.saturating_sub(*second));
    }
    text
}

fn advice(events: &BTreeMap<String, Event>) -> String {
    if events.is_empty() {
        return "No command took longer than latency-monitor-threshold, or that is 0, which notes none.\n"
            .to_owned();
    }
    let mut text = String::new();
    for (name, event) in events {
        let count = event.spikes.len() as i64;
        let average = event.spikes.values().sum::<i64>() / count.max(1);
        let _ = writeln!(
            text,
            "{name}: {count} latency spikes (average {average} ms, worst all time event {} ms).",
            event.max_ms
        );
    }
    text.push_str(
        "SLOWLOG GET has the commands. What takes long is executed by one core, and the others of that core wait: \
         commands on large values, KEYS, scripts of many steps, and appendfsync always on a slow disk.\n",
    );
    text
}

const BAR_MAX: usize = 80;

const HELP: [&str; 17] = [
    "LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR",
    "    Return a human readable latency analysis report.",
    "GRAPH <event>",
    "    Return an ASCII latency graph for the <event> class.",
    "HISTORY <event>",
    "    Return time-latency samples for the <event> class.",
    "LATEST",
    "    Return the latest latency samples for all events.",
    "RESET [<event> ...]",
    "    Reset latency data of one or more <event> classes.",
    "    (default: reset all data for all event classes)",
    "HISTOGRAM [COMMAND ...]",
    "    Return a cumulative distribution of commands in histogram format.",
    "    The time of a command is its share of that of the commands that were executed with it.",
    "HELP",
    "    Print this help.",
];
