//! What is counted of commands, put together by the groups of the documentation.
//!
//! The metrics of an observation come in, by command and subcommand; sums a group go out. Nothing is kept.

use std::collections::BTreeMap;

/// What is counted of the commands of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    /// Commands that were executed, and those of them that were answered with an error.
    pub(super) calls: i64,
    pub(super) failed: i64,
    /// Commands that were not executed.
    pub(super) rejected: i64,
    /// Their time, in nanoseconds.
    pub(super) ns: i64,
    /// How many took at most so many microseconds, as a power of two, and more than the power below.
    pub(super) by_power: BTreeMap<usize, u64>,
}

/// The groups that have figures, by name; a command that is in none is in `other`.
pub(super) fn by_group(metrics: &BTreeMap<String, i64>) -> BTreeMap<&'static str, Group> {
    let mut groups: BTreeMap<&'static str, Group> = BTreeMap::new();
    for (name, &figure) in metrics {
        let of_command = name.strip_prefix("cmdstat_").or(name.strip_prefix("histogram_"));
        let Some((command, what)) = of_command.and_then(|rest| rest.rsplit_once(':')) else { continue };
        let container = command.split('|').next().unwrap_or(command);
        let known = ensue_resp::lookup(container.as_bytes()).map_or("", |spec| spec.group);
        let group = groups.entry(if known.is_empty() { "other" } else { known }).or_default();
        match what {
            "calls" => group.calls += figure,
            "failed" => group.failed += figure,
            "rejected" => group.rejected += figure,
            "ns" => group.ns += figure,
            power => {
                if let Ok(power) = power.parse() {
                    *group.by_power.entry(power).or_default() += figure as u64;
                }
            }
        }
    }
    groups
}
