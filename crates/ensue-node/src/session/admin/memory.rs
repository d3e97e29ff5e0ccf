//! `MEMORY DOCTOR`, `STATS`, `MALLOC-STATS` and `PURGE`: what the memory of the datacenter's nodes looks like, in words
//! and figures, and giving free memory back to the machine. `MEMORY USAGE` is about a key, and is executed where the
//! key is.

use super::acl::send_for;
use super::cluster_query::{ClusterQuery, Purpose};
use super::errand::{Outcome, Then};
use super::info::Metrics;
use crate::errand::Errand;
use crate::memory::{ALLOCATED, PEAK, RESIDENT};
use crate::session::cx::Cx;
use crate::session::step::Step;
use ensue_resp::{CommandError, CommandSpec};
use ensue_types::{Args, Reply, limits};

/// What is asked of the memory of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// What is worth an operator's attention.
    Doctor,
    /// Figures by the names that Redis has for them.
    Stats,
    /// What the allocator says of itself.
    MallocStats,
}

/// Whether a command is one of these.
pub(crate) fn is_about_the_process(spec: &CommandSpec, args: &Args) -> bool {
    let is = |word: &str| args[1].eq_ignore_ascii_case(word.as_bytes());
    spec.name == "memory" && ["doctor", "malloc-stats", "purge", "stats"].into_iter().any(is)
}

/// One of these.
pub(crate) fn on_command(cx: &mut Cx<'_>, args: &Args) -> Step<Outcome> {
    let (name, question) = match args[1].to_ascii_lowercase().as_slice() {
        b"purge" => ("memory|purge", None),
        b"stats" => ("memory|stats", Some(Question::Stats)),
        b"malloc-stats" => ("memory|malloc-stats", Some(Question::MallocStats)),
        _ => ("memory|doctor", Some(Question::Doctor)),
    };
    match question {
        _ if args.len() > 2 => Step::answer(CommandError::wrong_arity(name).reply()),
        None => send_for(cx, Errand::Purge, Then::Purge),
        Some(question) => ClusterQuery::begin(cx, Purpose::Memory(question)).map(Outcome::from),
    }
}

/// The answer, of what the nodes of the datacenter have told.
pub(super) fn answer(question: Question, metrics: &Metrics, bound: i64) -> Reply {
    match question {
        Question::Doctor => Reply::Verbatim(advice(metrics, bound).into()),
        Question::Stats => stats(metrics),
        Question::MallocStats => Reply::Verbatim(malloc_stats(metrics).into()),
    }
}

/// `MEMORY STATS`: of Redis' names those that mean something here.
fn stats(metrics: &Metrics) -> Reply {
    let metric = |name: &str| metrics.get(name).copied().unwrap_or(0);
    let keyspaces = (0..limits::KEYSPACES).map(|number| metric(&format!("keys_{number}")));
    let (allocated, resident, rows) = (metric(ALLOCATED), metric(RESIDENT), metric("memory_bytes"));
    let share = |part: i64, whole: i64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
    let keys: i64 = keyspaces.sum();
    let integers = [
        ("peak.allocated", metric(PEAK)),
        ("total.allocated", allocated),
        ("replication.backlog", metric("backlog_bytes")),
        ("keys.count", keys),
        ("keys.bytes-per-key", if keys > 0 { rows / keys } else { 0 }),
        ("dataset.bytes", rows),
    ];
    let shares = [
        ("dataset.percentage", 100.0 * share(rows, allocated)),
        ("peak.percentage", 100.0 * share(allocated, metric(PEAK))),
        ("fragmentation", share(resident, allocated)),
    ];
    let integers = integers.into_iter().map(|(name, value)| (Reply::bulk(name), Reply::Integer(value)));
    let shares = shares.into_iter().map(|(name, value)| (Reply::bulk(name), Reply::Double(value)));
    let last = [
        ("allocator.allocated", Reply::Integer(allocated)),
        ("allocator.resident", Reply::Integer(resident)),
    ];
    let last = last.into_iter().map(|(name, value)| (Reply::bulk(name), value));
    Reply::Map(integers.chain(shares).chain(last).collect())
}

/// `MEMORY MALLOC-STATS`.
fn malloc_stats(metrics: &Metrics) -> String {
    let metric = |name: &str| metrics.get(name).copied().unwrap_or(0);
    match metric(ALLOCATED) {
        0 => "The allocator says nothing of itself.".to_owned(),
        allocated => {
            format!(
                "jemalloc: allocated {allocated} bytes, at most {}, resident {}",
                metric(PEAK),
                metric(RESIDENT)
            )
        }
    }
}

/// What is worth an operator's attention: one line each, or that nothing is. `bound` is `maxmemory` of a node, 0 if
/// there is none.
fn advice(metrics: &Metrics, bound: i64) -> String {
    let metric = |name: &str| metrics.get(name).copied().unwrap_or(0);
    let (allocated, resident, peak) = (metric(ALLOCATED), metric(RESIDENT), metric(PEAK));
    let rows = metric("memory_bytes");
    let mut lines = Vec::new();
    if metric("silent_peers") > 0 {
        lines.push("Not all cores and partitions have answered: these figures lack theirs.".to_owned());
    }
    if allocated == 0 {
        lines.push("The allocator says nothing of itself, so only what the rows take is known.".to_owned());
    } else if allocated < SMALL_BYTES {
        lines.push("Hardly any memory is in use: there is nothing to say of it yet.".to_owned());
        return lines.join("\n");
    }
    if is_above(peak, allocated, 150) {
        let peak_mb = peak >> 20;
        lines.push(format!(
            "Peak: {peak_mb} MiB were in use at once, half as much again as now ({} MiB). Such a load needs that much \
             memory when it comes again.",
            allocated >> 20
        ));
    }
    if is_above(resident, allocated, 140) {
        lines.push(format!(
            "Fragmentation: the process holds {} MiB for {} MiB that are in use. If that lasts, MEMORY PURGE gives \
             back what is wholly free; a restart gives back the rest.",
            resident >> 20,
            allocated >> 20
        ));
    }
    if is_above(allocated, rows, 200) {
        lines.push(format!(
            "Other than rows: of {} MiB in use rows take {} MiB. The rest are logs that other datacenters lack, \
             messages, connections and their buffers; INFO shows which are many.",
            allocated >> 20,
            rows >> 20
        ));
    }
    if bound == 0 {
        lines.push(
            "No bound: maxmemory is 0, so rows may grow until the machine ends the process. Set maxmemory, and \
             maxmemory-policy if rows may be evicted."
                .to_owned(),
        );
    }
    match lines.is_empty() {
        true => "Nothing is remarkable about the memory of this datacenter.".to_owned(),
        false => lines.join("\n"),
    }
}

/// Whether something is more than so many hundredths of something else.
fn is_above(bytes: i64, of: i64, hundredths: i64) -> bool {
    bytes.saturating_mul(100) > of.saturating_mul(hundredths)
}

/// Less in use than this says nothing.
const SMALL_BYTES: i64 = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn advised(allocated: i64, resident: i64, peak: i64, rows: i64, bound: i64) -> Vec<String> {
        let mib = |count: i64| count << 20;
        let metrics = [
            (ALLOCATED, mib(allocated)),
            (RESIDENT, mib(resident)),
            (PEAK, mib(peak)),
            ("memory_bytes", mib(rows)),
        ];
        let metrics: Metrics = metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let first = |line: &str| line.split([':', '.']).next().unwrap_or_default().to_owned();
        advice(&metrics, bound).lines().map(first).collect()
    }

    #[test]
    fn what_is_remarkable_is_said_and_nothing_else() {
        let nothing = "Nothing is remarkable about the memory of this datacenter";
        assert_eq!(advised(100, 110, 120, 80, 1), [nothing]);
        assert_eq!(advised(100, 141, 120, 80, 1), ["Fragmentation"]);
        assert_eq!(advised(100, 110, 151, 80, 1), ["Peak"]);
        assert_eq!(advised(100, 110, 120, 49, 1), ["Other than rows"]);
        assert_eq!(advised(100, 110, 120, 80, 0), ["No bound"]);
        assert_eq!(advised(100, 200, 200, 10, 0), ["Peak", "Fragmentation", "Other than rows", "No bound"]);
        assert_eq!(advised(31, 200, 200, 10, 0), ["Hardly any memory is in use"]);
        assert!(advised(0, 0, 0, 10, 1)[0].starts_with("The allocator says nothing"));
    }
}
