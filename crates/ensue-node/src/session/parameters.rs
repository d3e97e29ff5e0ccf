//! The parameters that `CONFIG SET` changes while the server runs, and how their values are read.
//!
//! Names and values of a command arrive; checked values leave, or Redis' error. What is set holds in every core of the
//! datacenter until the node is started again. Some parameters of Redis mean nothing here, such as the sizes at which
//! it keeps a value in another way: they are kept and told, because tools set them, and do nothing. Directives that
//! are not in this table are read once, at the start.

use crate::config::POLICIES;
use crate::errand::Rewritten;
use crate::host_parameters::{HostParameters, OUTPUT_LIMITS, OutputLimits};
use crate::size;
use bytes::Bytes;
use ensue_resp::number;
use ensue_types::Reply;
use std::collections::{BTreeMap, BTreeSet};

/// How a value is read.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// `yes` or `no`.
    Switch,
    /// From the one to the other, both included.
    Integer(i64, i64),
    /// A number of bytes, with a unit or without.
    Memory,
    /// The same, or so many hundredths of `maxmemory`.
    MemoryOrShare,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Classes of keyspace events.
    Events,
    /// Numbers from 0 to 100, with blanks between.
    Percentiles,
    /// Seconds and changes, in pairs; nothing is ever saved.
    Saves,
    /// Limits of classes of clients, of which only those that are named change.
    OutputLimits,
    /// Anything.
    Text,
}

struct Parameter {
    name: &'static str,
    /// The name that older versions of Redis had for it.
    alias: Option<&'static str>,
    kind: Kind,
    default: &'static str,
}

const fn parameter(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
    Parameter { name, alias: None, kind, default }
}

const fn renamed(name: &'static str, alias: &'static str, kind: Kind, default: &'static str) -> Parameter {
    Parameter { name, alias: Some(alias), kind, default }
}

/// Sizes and counts that are kept and do nothing.
const COUNT: Kind = Kind::Integer(0, i64::MAX);

static PARAMETERS: [Parameter; 63] = [
    parameter("active-expire-effort", Kind::Integer(1, 10), "1"),
    parameter("acl-pubsub-default", Kind::Word(&["allchannels", "resetchannels"]), "resetchannels"),
    parameter("acllog-max-len", COUNT, "128"),
    parameter("activedefrag", Kind::Word(&["no"]), "no"),
    parameter("aof-use-rdb-preamble", Kind::Switch, "yes"),
    renamed(BUSY_AFTER_MS, "lua-time-limit", COUNT, "5000"),
    parameter(OUTPUT_LIMITS, Kind::OutputLimits, OUTPUT_LIMITS_DEFAULT),
    parameter("client-query-buffer-limit", Kind::Memory, "1073741824"),
    parameter("dynamic-hz", Kind::Switch, "yes"),
    renamed("hash-max-listpack-entries", "hash-max-ziplist-entries", COUNT, "128"),
    renamed("hash-max-listpack-value", "hash-max-ziplist-value", Kind::Memory, "64"),
    parameter("hll-sparse-max-bytes", Kind::Memory, "3000"),
    parameter("hz", Kind::Integer(0, 500), "10"),
    parameter("jemalloc-bg-thread", Kind::Switch, "yes"),
    parameter("key-load-delay", Kind::Integer(i64::MIN, i64::MAX), "0"),
    parameter("latency-monitor-threshold", COUNT, "0"),
    parameter("latency-tracking", Kind::Switch, "yes"),
    parameter("latency-tracking-info-percentiles", Kind::Percentiles, "50 99 99.9"),
    parameter("lazyfree-lazy-eviction", Kind::Switch, "no"),
    parameter("lazyfree-lazy-expire", Kind::Switch, "no"),
    parameter("lazyfree-lazy-server-del", Kind::Switch, "no"),
    parameter("lazyfree-lazy-user-del", Kind::Switch, "no"),
    parameter("lazyfree-lazy-user-flush", Kind::Switch, "no"),
    parameter("lfu-decay-time", COUNT, "1"),
    parameter("lfu-log-factor", COUNT, "10"),
    parameter("list-compress-depth", COUNT, "0"),
    renamed(
        "list-max-listpack-size",
        "list-max-ziplist-size",
        Kind::Integer(i32::MIN as i64, i32::MAX as i64),
        "-2",
    ),
    parameter("loglevel", Kind::Word(&["debug", "verbose", "notice", "warning"]), "notice"),
    parameter("maxclients", Kind::Integer(1, CLIENTS_MAX), "10000"),
    parameter("maxmemory", Kind::Memory, "0"),
    parameter("maxmemory-clients", Kind::MemoryOrShare, "0"),
    parameter("maxmemory-eviction-tenacity", Kind::Integer(0, 100), "10"),
    parameter("maxmemory-policy", Kind::Word(&POLICIES), "noeviction"),
    parameter("maxmemory-samples", Kind::Integer(1, 64), "5"),
    renamed(REPLICAS_MIN, "min-slaves-to-write", Kind::Integer(0, i32::MAX as i64), "0"),
    renamed(REPLICAS_LAG_MAX, "min-slaves-max-lag", Kind::Integer(0, i32::MAX as i64), "10"),
    parameter("notify-keyspace-events", Kind::Events, ""),
    parameter("protected-mode", Kind::Switch, "yes"),
    parameter("rdb-key-save-delay", Kind::Integer(i64::MIN, i64::MAX), "0"),
    parameter("rdbcompression", Kind::Switch, "yes"),
    parameter("repl-backlog-size", Kind::Memory, "1048576"),
    parameter("repl-ping-replica-period", Kind::Integer(1, i64::MAX), "10"),
    parameter("repl-timeout", Kind::Integer(1, i64::MAX), "60"),
    parameter(PASSWORD, Kind::Text, ""),
    parameter("save", Kind::Saves, ""),
    parameter("set-max-intset-entries", COUNT, "512"),
    parameter("set-max-listpack-entries", COUNT, "128"),
    parameter("set-max-listpack-value", Kind::Memory, "64"),
    parameter("slowlog-log-slower-than", Kind::Integer(-1, i64::MAX), "10000"),
    parameter("slowlog-max-len", Kind::Integer(0, SLOW_ENTRIES_MAX), "128"),
    parameter("stop-writes-on-bgsave-error", Kind::Switch, "yes"),
    parameter("stream-node-max-bytes", Kind::Memory, "4096"),
    parameter("stream-node-max-entries", COUNT, "100"),
    parameter("tcp-keepalive", Kind::Integer(0, SECONDS_MAX), "300"),
    parameter("timeout", Kind::Integer(0, SECONDS_MAX), "0"),
    parameter("tracking-table-max-keys", Kind::Integer(0, TRACKED_KEYS_MAX), "1000000"),
    parameter(CERTIFICATE_FILES[0], Kind::Text, ""),
    parameter(CERTIFICATE_FILES[1], Kind::Text, ""),
    parameter(CERTIFICATE_FILES[2], Kind::Text, ""),
    parameter(CERTIFICATE_FILES[3], Kind::Text, ""),
    renamed("zset-max-listpack-entries", "zset-max-ziplist-entries", COUNT, "128"),
    renamed("zset-max-listpack-value", "zset-max-ziplist-value", Kind::Memory, "64"),
    parameter("lua-enable-deprecated-api", Kind::Switch, "no"),
];

/// Parameters of whoever owns the sockets and the log.
const OF_HOST: [&str; 6] =
    [OUTPUT_LIMITS, "loglevel", "maxclients", "protected-mode", "tcp-keepalive", "timeout"];

/// After so many milliseconds of a script commands are refused.
pub(crate) const BUSY_AFTER_MS: &str = "busy-reply-threshold";
/// How many other datacenters must have what was written here before the last so many seconds, for writes to be taken.
pub(crate) const REPLICAS_MIN: &str = "min-replicas-to-write";
pub(crate) const REPLICAS_LAG_MAX: &str = "min-replicas-max-lag";
/// The password of the user `default`. Its value is never kept here, only whether there is one.
pub(crate) const PASSWORD: &str = "requirepass";
/// Files of a node: its certificate, its key, the authorities that it trusts, and what these have revoked.
pub(crate) const CERTIFICATE_FILES: [&str; 4] =
    ["tls-cert-file", "tls-key-file", "tls-ca-cert-file", "tls-crl-file"];

const SLOW_ENTRIES_MAX: i64 = 100_000;
const TRACKED_KEYS_MAX: i64 = 10_000_000;
const CLIENTS_MAX: i64 = 1_000_000;
const SECONDS_MAX: i64 = 1 << 31;
const OUTPUT_LIMITS_DEFAULT: &str =
    "normal 268435456 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60";

/// The values that are not those of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    changed: BTreeMap<&'static str, String>,
    /// Those that were set while the server runs.
    set: BTreeSet<&'static str>,
}

/// A checked value and its parameter.
pub(crate) type Setting = (&'static str, String);

impl Parameters {
    /// What the server was started with; directives that are no parameters are passed over.
    pub(crate) fn of_directives(directives: &[(String, String)]) -> Parameters {
        let mut parameters = Parameters::default();
        for (name, value) in directives {
            if let Some(Ok(value)) = find(name.as_bytes()).map(|found| found.kind.read(value)) {
                parameters.begin_with(find(name.as_bytes()).map_or("", |found| found.name), value);
            }
        }
        parameters
    }

    /// The server was started with this value.
    pub(crate) fn begin_with(&mut self, name: &'static str, value: String) {
        self.changed.insert(name, value);
    }

    pub(crate) fn set(&mut self, settings: &[Setting]) {
        for (name, value) in settings {
            let value = match *name {
                OUTPUT_LIMITS => with_output_limits(self.value(name), value),
                _ => value.clone(),
            };
            self.set.insert(name);
            self.changed.insert(name, value);
        }
    }

    /// What whoever owns the sockets and the log has to know, if some of that is among these.
    pub(crate) fn of_host(&self, settings: &[Setting]) -> Option<HostParameters> {
        let number = |name| u64::try_from(self.number(name)).unwrap_or(0);
        settings.iter().any(|(name, _)| OF_HOST.contains(name)).then(|| HostParameters {
            clients_max: usize::try_from(number("maxclients")).unwrap_or(usize::MAX),
            is_protected: self.value("protected-mode") == "yes",
            keepalive_s: number("tcp-keepalive"),
            timeout_s: number("timeout"),
            output_limits: output_limits(self.value(OUTPUT_LIMITS)),
            log_level: self.value("loglevel").to_owned(),
        })
    }

    /// Those that were set while the server runs, for `CONFIG REWRITE`; not the password, which is told by a user.
    pub(crate) fn rewritten(&self) -> Vec<Rewritten> {
        let known = PARAMETERS.iter().filter(|one| one.name != PASSWORD && self.set.contains(one.name));
        let rewritten = |one: &Parameter| {
            let value = self.value(one.name).to_owned();
            let is_default = value == one.default;
            Rewritten { name: one.name, alias: one.alias, value, is_default }
        };
        known.map(rewritten).collect()
    }

    /// The value of a parameter, as `CONFIG GET` tells it.
    pub(crate) fn value(&self, name: &str) -> &str {
        let default = || find(name.as_bytes()).map_or("", |found| found.default);
        self.changed.get(name).map_or_else(default, String::as_str)
    }

    /// The value of one that is a number.
    pub(crate) fn number(&self, name: &str) -> i64 {
        self.value(name).parse().unwrap_or(0)
    }

    /// All of them by name, with those that older versions of Redis had.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = PARAMETERS
            .iter()
            .flat_map(|one| [Some((one.name, one.name)), one.alias.map(|alias| (alias, one.name))]);
        names.flatten().map(|(shown, name)| (shown, self.value(name)))
    }
}

/// Reads the value of a parameter by its name, or by the one that older versions of Redis had: the present name and the
/// value as `CONFIG GET` tells it, or what is wrong with it. Nothing if there is no such parameter.
pub fn read_parameter(name: &str, value: &str) -> Option<Result<(&'static str, String), String>> {
    let parameter = find(name.as_bytes())?;
    Some(parameter.kind.read(value).map(|value| (parameter.name, value)))
}

/// Whether a name is one of a parameter.
pub(crate) fn is_known(name: &str) -> bool {
    find(name.as_bytes()).is_some()
}

fn find(name: &[u8]) -> Option<&'static Parameter> {
    let is_called = |called: &str| called.as_bytes().eq_ignore_ascii_case(name);
    PARAMETERS.iter().find(|one| is_called(one.name) || one.alias.is_some_and(is_called))
}

/// The pairs of `CONFIG SET`, checked all together: nothing is set if one is wrong. A directive that is read at the
/// start can be set to what it is.
pub(crate) fn check(words: &[Bytes], directives: &[(String, String)]) -> Result<Vec<Setting>, Reply> {
    let mut settings: Vec<Setting> = Vec::new();
    for pair in words.chunks(2) {
        let [name, value] = pair else {
            return Err(ensue_resp::CommandError::wrong_arity("config|set").reply());
        };
        let shown = String::from_utf8_lossy(name).into_owned();
        let failed = |why: &str| {
            let words = format!("ERR CONFIG SET failed (possibly related to argument '{shown}') - {why}");
            Err(Reply::Error(words.into()))
        };
        let text = String::from_utf8_lossy(value);
        let Some(parameter) = find(name) else {
            let is_meant = |(known, _): &&(String, String)| known.as_bytes().eq_ignore_ascii_case(name);
            // One that has several lines is told line by line.
            let mut fixed = directives.iter().filter(is_meant).map(|(_, is)| *is == text).peekable();
            match fixed.peek().copied() {
                None => {
                    let words =
                        format!("ERR Unknown option or number of arguments for CONFIG SET - '{shown}'");
                    return Err(Reply::Error(words.into()));
                }
                Some(_) if fixed.any(|is_same| is_same) => continue,
                Some(_) => return failed("can't set immutable config"),
            }
        };
        if settings.iter().any(|(known, _)| *known == parameter.name) {
            return failed("duplicate parameter");
        }
        match parameter.kind.read(&text) {
            Ok(value) => settings.push((parameter.name, value)),
            Err(why) => return failed(&why),
        }
    }
    Ok(settings)
}

impl Kind {
    /// The value as it is told, or what is wrong with it.
    fn read(self, text: &str) -> Result<String, String> {
        match self {
            Kind::Text => Ok(text.to_owned()),
            Kind::Switch if text.eq_ignore_ascii_case("yes") || text.eq_ignore_ascii_case("no") => {
                Ok(text.to_ascii_lowercase())
            }
            Kind::Switch => Err("argument must be 'yes' or 'no'".to_owned()),
            Kind::Integer(least, most) => match number::parse_i64(text.as_bytes()) {
                Some(number) if (least..=most).contains(&number) => Ok(number.to_string()),
                Some(_) => Err(format!("argument must be between {least} and {most} inclusive")),
                None => Err("argument couldn't be parsed into an integer".to_owned()),
            },
            Kind::MemoryOrShare if text.ends_with('%') => {
                match number::parse_i64(text.trim_end_matches('%').as_bytes()) {
                    Some(share @ 0..=100) => Ok(format!("{share}%")),
                    Some(101..) => Err("percentage argument must be less or equal to 100".to_owned()),
                    _ => Err("argument must be a memory or percent value".to_owned()),
                }
            }
            Kind::MemoryOrShare | Kind::Memory => size::parse(text)
                .map(|bytes| bytes.to_string())
                .map_err(|_| "argument must be a memory value".to_owned()),
            Kind::Word(words) => match words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
                Some(word) => Ok((*word).to_owned()),
                None => Err(format!("argument(s) must be one of the following: {}", words.join(", "))),
            },
            Kind::Events => {
                events(text).ok_or_else(|| "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned())
            }
            Kind::Percentiles => percentiles(text),
            Kind::OutputLimits => OutputLimits::default().set(text).map(|()| text.to_owned()),
            Kind::Saves => {
                let words: Vec<&str> = text.split_ascii_whitespace().collect();
                let is_good = |pair: &[&str]| {
                    let number =
                        |word: Option<&&str>| word.and_then(|word| number::parse_i64(word.as_bytes()));
                    number(pair.first()).is_some_and(|seconds| seconds >= 1)
                        && number(pair.get(1)).is_some_and(|changes| changes >= 0)
                };
                match words.chunks(2).all(is_good) {
                    true => Ok(words.join(" ")),
                    false => Err("Invalid save parameters".to_owned()),
                }
            }
        }
    }
}

/// The value of the parameter when some of the classes are set.
fn with_output_limits(present: &str, set: &str) -> String {
    let mut limits = output_limits(present);
    // It was checked before.
    let _ = limits.set(set);
    limits.to_string()
}

fn output_limits(text: &str) -> OutputLimits {
    let mut limits = OutputLimits::default();
    let _ = limits.set(text);
    limits
}

/// Classes of events in Redis' order; `A` stands for all of data.
fn events(text: &str) -> Option<String> {
    const DATA: &str = "g$lshzxetd";
    if !text.chars().all(|class| class == 'A' || DATA.contains(class) || "KEmn".contains(class)) {
        return None;
    }
    let has = |class| text.contains(class);
    let mut shown = String::new();
    match has('A') || DATA.chars().all(has) {
        true => shown.push('A'),
        false => shown.extend("g$lshzxetd".chars().filter(|&class| has(class))),
    }
    shown.extend("KEmn".chars().filter(|&class| has(class)));
    Some(shown)
}

fn percentiles(text: &str) -> Result<String, String> {
    let mut shown = Vec::new();
    for word in text.split_ascii_whitespace() {
        match word.parse::<f64>() {
            Ok(number) if (0.0..=100.0).contains(&number) => shown.push(number.to_string()),
            Ok(_) => {
                return Err("latency-tracking-info-percentiles should be between 0.0 and 100.0".to_owned());
            }
            Err(_) => return Err("Invalid latency-tracking-info-percentiles parameters".to_owned()),
        }
    }
    Ok(shown.join(" "))
}

#[cfg(test)]
mod tests;
