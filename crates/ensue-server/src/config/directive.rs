//! The directives, one row each: how a value is read, and how it is shown.

use super::cluster::{NodeLine, Replicas};
use super::rewrite::quoted;
use super::{AuditTarget, AuthClients, Config, NamedHandler, NamedHome, TlsVersion};
use crate::bounds::{CORES_MAX, SCRUB_BYTES_PER_SECOND_MIN};
use crate::log::{self, Format, Level};
use ensue_node::{AppendFsync, Collection, FirstStart, Handler, LuaHandler, size};
use ensue_store::fold::{self, Fold};
use ensue_types::{KeyspaceId, limits};
use ensue_wire::handshake::NAME_BYTES_MAX;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many values a directive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One value; a later line replaces an earlier one.
    Word,
    /// Several values on one line; a later line replaces an earlier one.
    Words,
    /// Several values on each of several lines. In a variable, `;` parts the lines.
    Lines,
}

/// One directive.
#[derive(Debug)]
pub(super) struct Directive {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Its value is never printed.
    pub(super) secret: bool,
    pub(super) set: fn(&mut Config, &[String]) -> Result<(), String>,
    /// The values of its lines.
    pub(super) show: fn(&Config) -> Vec<String>,
}

type Set = fn(&mut Config, &[String]) -> Result<(), String>;
type Show = fn(&Config) -> Vec<String>;

const fn word(name: &'static str, set: Set, show: Show) -> Directive {
    Directive { name, kind: Kind::Word, secret: false, set, show }
}

const fn words(name: &'static str, set: Set, show: Show) -> Directive {
    Directive { name, kind: Kind::Words, secret: false, set, show }
}

const fn lines(name: &'static str, set: Set, show: Show) -> Directive {
    Directive { name, kind: Kind::Lines, secret: false, set, show }
}

/// The directive of this name, or the one of all parameters, whose words begin with the name then.
pub(super) fn by_name(name: &str) -> Option<&'static Directive> {
    let parameter = || ensue_node::read_parameter(name, "").map(|_| &PARAMETER);
    DIRECTIVES.iter().find(|directive| directive.name == name).or_else(parameter)
}

/// A parameter of `CONFIG SET` that is no directive, with the value that it begins with.
pub(super) static PARAMETER: Directive = words("parameter", set_parameter, |_| Vec::new());

fn set_parameter(config: &mut Config, words: &[String]) -> Result<(), String> {
    let (name, value) = (&words[0], words[1..].join(" "));
    if words.len() == 1 {
        return Err(format!("a value of `{name}` is missing"));
    }
    let read =
        ensue_node::read_parameter(name, &value).unwrap_or_else(|| Err("there is none of this name".into()));
    let (name, value) = read.map_err(|why| format!("`{name}`: {why}"))?;
    config.parameters.retain(|(known, _)| *known != name);
    config.parameters.push((name, value));
    Ok(())
}

pub(super) static DIRECTIVES: &[Directive] = &[
    word("cluster-name", |c, v| name(&v[0]).map(|n| c.cluster_name = n), |c| one(&c.cluster_name)),
    words("self", set_self, |c| {
        if c.datacenter.is_empty() { Vec::new() } else { one(format!("{} {}", c.datacenter, c.node)) }
    }),
    lines("node", |c, v| NodeLine::parse(v).map(|n| c.nodes.push(n)), |c| shown(&c.nodes)),
    word(
        "partitions",
        |c, v| number(&v[0], 1, limits::PARTITIONS_MAX.into()).map(|n| c.partitions = n as u16),
        |c| one(c.partitions),
    ),
    words("replicas", |c, v| Replicas::parse(v).map(|r| c.replicas = r), |c| one(&c.replicas)),
    word("replica-lease", |c, v| yes_no(&v[0]).map(|y| c.replica_lease = y), |c| said(c.replica_lease)),
    word("cores", |c, v| number(&v[0], 1, CORES_MAX.into()).map(|n| c.cores = n as u16), |c| one(c.cores)),
    word("port", |c, v| number(&v[0], 0, 65_535).map(|n| c.port = n as u16), |c| one(c.port)),
    word("tls-port", |c, v| number(&v[0], 0, 65_535).map(|n| c.tls.port = n as u16), |c| one(c.tls.port)),
    word("tls-cert-file", |c, v| set_file(&mut c.tls.certificate, &v[0]), |c| file(&c.tls.certificate)),
    word("tls-key-file", |c, v| set_file(&mut c.tls.key, &v[0]), |c| file(&c.tls.key)),
    word("tls-ca-cert-file", |c, v| set_file(&mut c.tls.authorities, &v[0]), |c| file(&c.tls.authorities)),
    word("tls-crl-file", |c, v| set_file(&mut c.tls.revocations, &v[0]), |c| file(&c.tls.revocations)),
    word(
        "tls-auth-clients",
        |c, v| AuthClients::parse(&v[0]).map(|a| c.tls.clients = a),
        |c| one(c.tls.clients.name()),
    ),
    word("tls-cluster", |c, v| yes_no(&v[0]).map(|y| c.tls.cluster = y), |c| said(c.tls.cluster)),
    words(
        "tls-protocols",
        |c, v| TlsVersion::parse(&v.join(" ")).map(|all| c.tls.versions = all),
        |c| one(TlsVersion::names(&c.tls.versions)),
    ),
    words("bind", set_bind, |c| one(c.bind.join(" "))),
    word("peer-bind", |c, v| set_option(&mut c.peer_bind, &v[0]), |c| option(&c.peer_bind)),
    word("cluster-secret", |c, v| set_file(&mut c.cluster_secret, &v[0]), |c| file(&c.cluster_secret)),
    word(
        "peer-unauthenticated",
        |c, v| yes_no(&v[0]).map(|y| c.peer_unauthenticated = y),
        |c| said(c.peer_unauthenticated),
    ),
    word(
        "metrics-port",
        |c, v| number(&v[0], 0, 65_535).map(|n| c.metrics_port = n as u16),
        |c| one(c.metrics_port),
    ),
    word("metrics-bind", set_metrics_bind, |c| one(c.metrics_bind)),
    word(
        "metrics-unauthenticated",
        |c, v| yes_no(&v[0]).map(|y| c.metrics_unauthenticated = y),
        |c| said(c.metrics_unauthenticated),
    ),
    word("metrics-tls", |c, v| yes_no(&v[0]).map(|y| c.metrics_tls = y), |c| said(c.metrics_tls)),
    words("metrics-hosts", set_metrics_hosts, |c| one(c.metrics_hosts.join(" "))),
    word("protected-mode", |c, v| yes_no(&v[0]).map(|y| c.protected_mode = y), |c| said(c.protected_mode)),
    Directive {
        name: "requirepass",
        kind: Kind::Word,
        secret: true,
        set: |c, v| set_option(&mut c.requirepass, &v[0]),
        show: |c| option(&c.requirepass),
    },
    Directive {
        name: "user",
        kind: Kind::Lines,
        secret: true,
        set: |c, v| {
            c.users.push(v.join(" "));
            Ok(())
        },
        show: |c| c.users.clone(),
    },
    word("aclfile", |c, v| set_file(&mut c.aclfile, &v[0]), |c| file(&c.aclfile)),
    word("enable-debug-command", set_debug, |c| one(&c.enable_debug_command)),
    word(
        "maxclients",
        |c, v| number(&v[0], 1, 1_000_000).map(|n| c.maxclients = n as usize),
        |c| one(c.maxclients),
    ),
    word("timeout", |c, v| number(&v[0], 0, SECONDS_MAX).map(|n| c.timeout_s = n), |c| one(c.timeout_s)),
    word(
        "tcp-keepalive",
        |c, v| number(&v[0], 0, SECONDS_MAX).map(|n| c.tcp_keepalive_s = n),
        |c| one(c.tcp_keepalive_s),
    ),
    words("client-output-buffer-limit", |c, v| c.output_limits.set(&v.join(" ")), |c| one(c.output_limits)),
    word(
        "pubsub-wait-size-max",
        |c, v| size::parse(&v[0]).map(|n| c.message_wait_bytes = n),
        |c| one(c.message_wait_bytes),
    ),
    word(
        "pubsub-wait-max",
        |c, v| number(&v[0], 0, MESSAGE_WAIT_MS_MAX).map(|n| c.message_wait_ms = n),
        |c| one(c.message_wait_ms),
    ),
    word("dir", |c, v| filled(&v[0]).map(|d| c.dir = PathBuf::from(d)), |c| one(c.dir.display())),
    word("loglevel", set_loglevel, |c| one(c.loglevel.name())),
    word("log-format", set_log_format, |c| one(c.log_format.name())),
    word("audit-log", set_audit_log, |c| match &c.audit_log {
        AuditTarget::No => one("no"),
        AuditTarget::Log => one("log"),
        AuditTarget::File(path) => one(path.display()),
    }),
    word("appendfsync", set_appendfsync, |c| one(fsync_name(c.appendfsync))),
    word("scrub-bytes-per-second", set_scrub, |c| one(c.scrub_bytes_per_second)),
    word("first-start", set_first_start, |c| one(first_start_name(c.first_start))),
    word("maxmemory", |c, v| size::parse(&v[0]).map(|n| c.maxmemory = n), |c| one(c.maxmemory)),
    word(
        "replication-backlog-max",
        |c, v| size::parse(&v[0]).map(|n| c.replication_backlog_max = n),
        |c| one(c.replication_backlog_max),
    ),
    word(
        "heartbeat-interval",
        |c, v| number(&v[0], 1, INTERVAL_MS_MAX).map(|n| c.heartbeat_interval_ms = n),
        |c| one(c.heartbeat_interval_ms),
    ),
    word(
        "stabilization-interval",
        |c, v| number(&v[0], 1, INTERVAL_MS_MAX).map(|n| c.stabilization_interval_ms = n),
        |c| one(c.stabilization_interval_ms),
    ),
    word(
        "request-timeout",
        |c, v| {
            number(&v[0], REQUEST_TIMEOUT_MS_MIN, REQUEST_TIMEOUT_MS_MAX).map(|n| c.request_timeout_ms = n)
        },
        |c| one(c.request_timeout_ms),
    ),
    word(
        "block-threshold",
        |c, v| number(&v[0], 1, BLOCK_THRESHOLD_MS_MAX).map(|n| c.block_threshold_ms = n),
        |c| one(c.block_threshold_ms),
    ),
    word(
        "dependency-cleaning",
        |c, v| yes_no(&v[0]).map(|y| c.dependency_cleaning = y),
        |c| said(c.dependency_cleaning),
    ),
    word(
        "stop-writes-on-clock-ahead",
        |c, v| yes_no(&v[0]).map(|y| c.stop_writes_on_clock_ahead = y),
        |c| said(c.stop_writes_on_clock_ahead),
    ),
    word("branch-collection", set_collection, |c| one(collection_name(c.branching.collection))),
    word(
        "branch-ceiling-every",
        |c, v| number(&v[0], 0, BRANCH_COUNT_MAX).map(|n| c.branching.ceiling_every = n),
        |c| one(c.branching.ceiling_every),
    ),
    word(
        "branch-states-max",
        |c, v| number(&v[0], 2, BRANCH_COUNT_MAX).map(|n| c.branching.states_max = n as usize),
        |c| one(c.branching.states_max),
    ),
    word(
        "branch-leaves-max",
        |c, v| number(&v[0], 1, BRANCH_LEAVES_MAX).map(|n| c.branching.leaves_max = n as usize),
        |c| one(c.branching.leaves_max),
    ),
    word(
        "branch-merging-datacenter",
        |c, v| set_option(&mut c.branch_merging_datacenter, &v[0]),
        |c| option(&c.branch_merging_datacenter),
    ),
    word(
        "branch-transaction-timeout",
        |c, v| {
            let range = number(&v[0], BRANCH_TIMEOUT_MS_MIN, BRANCH_TIMEOUT_MS_MAX);
            range.map(|n| c.branching.transaction_timeout_ms = n)
        },
        |c| one(c.branching.transaction_timeout_ms),
    ),
    word(
        "home-wait-max",
        |c, v| number(&v[0], 0, HOME_WAIT_MS_MAX).map(|n| c.home_wait_ms = n),
        |c| one(c.home_wait_ms),
    ),
    lines("keyspace", set_keyspace, |c| {
        let protocols =
            c.protocols.iter().enumerate().map(|(n, protocol)| format!("{n} protocol {protocol}"));
        let handlers = c.handlers.iter().map(|one| {
            let pattern = quoted(&String::from_utf8_lossy(&one.handler.pattern));
            format!("{} conflicts {pattern} {}", one.handler.keyspace.0, one.words)
        });
        let homes = c.homes.iter().map(|one| {
            let pattern = quoted(&String::from_utf8_lossy(&one.pattern));
            format!("{} home {pattern} {}", one.keyspace.0, one.datacenter)
        });
        let reads = c.home_reads.iter().map(|keyspace| format!("{} home-reads yes", keyspace.0));
        protocols.chain(handlers).chain(homes).chain(reads).collect()
    }),
    word("databases", |_, v| only(&v[0], "16"), |_| one(limits::KEYSPACES)),
    word("appendonly", |_, v| only(&v[0], "yes"), |_| one("yes")),
    words("save", |_, v| only(&v.join(" "), ""), |_| one("")),
    word("maxmemory-policy", set_policy, |c| one(&c.maxmemory_policy)),
    #[cfg(feature = "breakable")]
    word("break-rule", set_broken, |c| c.broken.map(|rule| rule.name()).into_iter().collect()),
    word("daemonize", |_, v| only(&v[0], "no"), |_| one("no")),
];

/// More states than memory holds.
const BRANCH_COUNT_MAX: u64 = 1_000_000_000;
/// The parents of one merge are counted in 16 bits.
const BRANCH_LEAVES_MAX: u64 = 65_000;
/// A transaction is looked after once a tenth of a second.
const BRANCH_TIMEOUT_MS_MIN: u64 = 200;
const BRANCH_TIMEOUT_MS_MAX: u64 = 86_400_000;
const SECONDS_MAX: u64 = 1 << 31;
/// A message is news; whatever must arrive is written.
const MESSAGE_WAIT_MS_MAX: u64 = 3_600_000;
/// A client waits for so long, and then for its answer.
const HOME_WAIT_MS_MAX: u64 = 600_000;
/// Longer, and what others wrote would show a second later for it.
const INTERVAL_MS_MAX: u64 = 1_000;
/// Shorter, and a healthy cluster with long links would look unreachable.
const REQUEST_TIMEOUT_MS_MIN: u64 = 100;
const REQUEST_TIMEOUT_MS_MAX: u64 = 600_000;
const BLOCK_THRESHOLD_MS_MAX: u64 = block_threshold_ms_max(REQUEST_TIMEOUT_MS_MAX);

/// A read that waits may wait once more, for an older cut; both fit into the time of a request, with some to spare.
pub(super) const fn block_threshold_ms_max(request_timeout_ms: u64) -> u64 {
    request_timeout_ms * 2 / 5
}

/// For a torture run that must fail: no build for use has this directive.
#[cfg(feature = "breakable")]
fn set_broken(config: &mut Config, words: &[String]) -> Result<(), String> {
    use ensue_types::Rule;
    let rule = Rule::ALL.into_iter().find(|rule| rule.name() == words[0]);
    config.broken = Some(rule.ok_or("no rule of that name; `ensue sim --break help` lists them")?);
    Ok(())
}

fn set_self(config: &mut Config, words: &[String]) -> Result<(), String> {
    let (datacenter, node) = match words {
        [datacenter] => (datacenter, "0"),
        [datacenter, node] => (datacenter, node.as_str()),
        _ => return Err("the name of a datacenter, and the number of a node in it".into()),
    };
    config.datacenter = name(datacenter)?;
    config.node = number(node, 0, 65_535)? as usize;
    Ok(())
}

fn set_bind(config: &mut Config, words: &[String]) -> Result<(), String> {
    for word in words {
        let address = word.strip_prefix('-').unwrap_or(word);
        if !["*", "::*"].contains(&address) && address.parse::<std::net::IpAddr>().is_err() {
            return Err(format!("'{word}' is no IP address"));
        }
    }
    config.bind = words.to_vec();
    Ok(())
}

fn set_metrics_bind(config: &mut Config, words: &[String]) -> Result<(), String> {
    config.metrics_bind = words[0].parse().map_err(|_| format!("'{}' is no IP address", words[0]))?;
    Ok(())
}

/// An empty value is none; `*` is every name.
fn set_metrics_hosts(config: &mut Config, words: &[String]) -> Result<(), String> {
    let is_host = |word: &String| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        word == "*" || word.bytes().all(is_letter)
    };
    if let Some(word) = words.iter().find(|word| !is_host(word)) {
        return Err(format!("'{word}' is no name of a host"));
    }
    config.metrics_hosts = words.iter().filter(|word| !word.is_empty()).cloned().collect();
    Ok(())
}

fn set_policy(config: &mut Config, words: &[String]) -> Result<(), String> {
    if !ensue_node::POLICIES.contains(&words[0].as_str()) {
        return Err(format!("'{}' is none of {}", words[0], ensue_node::POLICIES.join(", ")));
    }
    config.maxmemory_policy = words[0].clone();
    Ok(())
}

fn set_debug(config: &mut Config, words: &[String]) -> Result<(), String> {
    match words[0].as_str() {
        word @ ("no" | "local" | "yes") => config.enable_debug_command = word.to_owned(),
        other => return Err(format!("'{other}' is none of no, local and yes")),
    }
    Ok(())
}

fn set_loglevel(config: &mut Config, words: &[String]) -> Result<(), String> {
    let level = Level::parse(&words[0]).ok_or("one of debug, verbose, notice, warning")?;
    config.loglevel = level;
    Ok(())
}

fn set_log_format(config: &mut Config, words: &[String]) -> Result<(), String> {
    config.log_format = Format::parse(&words[0]).ok_or("one of text, json")?;
    Ok(())
}

fn set_audit_log(config: &mut Config, words: &[String]) -> Result<(), String> {
    config.audit_log = match words[0].as_str() {
        "no" => AuditTarget::No,
        "log" => AuditTarget::Log,
        "" => return Err("`no`, `log` or a file".into()),
        file => AuditTarget::File(PathBuf::from(file)),
    };
    Ok(())
}

fn set_scrub(config: &mut Config, words: &[String]) -> Result<(), String> {
    config.scrub_bytes_per_second = match size::parse(&words[0])? {
        rate @ 1..SCRUB_BYTES_PER_SECOND_MIN => {
            return Err(format!(
                "{rate} bytes a second are too few: {SCRUB_BYTES_PER_SECOND_MIN} at least, or 0"
            ));
        }
        rate => rate,
    };
    Ok(())
}

fn set_appendfsync(config: &mut Config, words: &[String]) -> Result<(), String> {
    let modes = [AppendFsync::Always, AppendFsync::EverySecond, AppendFsync::No];
    let mode = modes.into_iter().find(|&mode| fsync_name(mode) == words[0]);
    config.appendfsync = mode.ok_or("one of always, everysec, no")?;
    Ok(())
}

fn set_first_start(config: &mut Config, words: &[String]) -> Result<(), String> {
    config.first_start = match words[0].as_str() {
        "ask" => FirstStart::Ask,
        "alone" => FirstStart::Alone,
        other => return Err(format!("'{other}' is neither ask nor alone")),
    };
    Ok(())
}

fn first_start_name(first_start: FirstStart) -> &'static str {
    match first_start {
        FirstStart::Ask => "ask",
        FirstStart::Alone => "alone",
    }
}

pub(crate) fn fsync_name(mode: AppendFsync) -> &'static str {
    match mode {
        AppendFsync::Always => "always",
        AppendFsync::EverySecond => "everysec",
        AppendFsync::No => "no",
    }
}

const PROPERTIES: [&str; 4] = ["protocol", "conflicts", "home", "home-reads"];

fn set_keyspace(config: &mut Config, words: &[String]) -> Result<(), String> {
    let keyspace = |word| number(word, 0, u64::from(limits::KEYSPACES) - 1);
    match words {
        [number, property, name] if property == "protocol" => {
            config.protocols[keyspace(number)? as usize] = super::cluster::known_protocol(name)?;
        }
        [number, property, pattern, words @ ..]
            if property == "conflicts" && matches!(words.len(), 1 | 2) =>
        {
            let keyspace = KeyspaceId(keyspace(number)? as u8);
            let handler = Handler { keyspace, pattern: pattern.clone().into(), fold: fold_of(words)? };
            config.handlers.push(NamedHandler { words: words.join(" "), handler });
        }
        [number, property, pattern, name] if property == "home" => {
            if config.homes.len() >= limits::HOMES_MAX {
                return Err(format!("there are at most {} homes", limits::HOMES_MAX));
            }
            let (keyspace, pattern) = (KeyspaceId(keyspace(number)? as u8), pattern.clone().into());
            config.homes.push(NamedHome { keyspace, pattern, datacenter: name.clone() });
        }
        [number, property, value] if property == "home-reads" => {
            let keyspace = KeyspaceId(keyspace(number)? as u8);
            config.home_reads.retain(|other| *other != keyspace);
            match value.as_str() {
                "yes" => config.home_reads.push(keyspace),
                "no" => {}
                other => return Err(format!("'{other}' is neither yes nor no")),
            }
        }
        [_, property, ..] if !PROPERTIES.contains(&property.as_str()) => {
            return Err(format!(
                "'{property}' is no property of a keyspace; `protocol`, `conflicts`, `home` and `home-reads` are"
            ));
        }
        _ => {
            return Err(
                "a number, then `protocol` and a name, `conflicts`, a pattern and a handler, or `lua` and a file, \
                        `home`, a pattern and a datacenter, or `home-reads` and yes or no"
                    .into(),
            );
        }
    }
    Ok(())
}

/// A handler of conflicts by its name, or the one that is in a file.
fn fold_of(words: &[String]) -> Result<Arc<dyn Fold>, String> {
    match words {
        [lua, file] if lua == "lua" => handler_in(Path::new(file)),
        [name] if name == "lua" => Err("after `lua`, name the file of the handler".into()),
        [name, ..] => fold::by_name(name).filter(|_| words.len() == 1).ok_or_else(|| {
            let words = words.join(" ");
            format!(
                "'{words}' is no handler of conflicts; there are {}, and lua FILE",
                fold::NAMES.join(", ")
            )
        }),
        [] => Err("a handler of conflicts is missing".into()),
    }
}

fn handler_in(path: &Path) -> Result<Arc<dyn Fold>, String> {
    let cannot = |why: &dyn std::fmt::Display| format!("the handler {}: {why}", path.display());
    let bytes = std::fs::metadata(path).map_err(|error| cannot(&error))?.len();
    if bytes > limits::HANDLER_TEXT_BYTES_MAX as u64 {
        return Err(cannot(&format!("it is longer than {} bytes", limits::HANDLER_TEXT_BYTES_MAX)));
    }
    let text = std::fs::read(path).map_err(|error| cannot(&error))?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let (handler, warnings) = LuaHandler::proved(&file, &text).map_err(|refused| cannot(&refused))?;
    for warning in warnings {
        log::warning(format_args!("the handler {}: {warning}", path.display()));
    }
    Ok(Arc::new(handler))
}

fn set_collection(config: &mut Config, words: &[String]) -> Result<(), String> {
    config.branching.collection = match words[0].as_str() {
        "pessimistic" => Collection::Pessimistic,
        "optimistic" => Collection::Optimistic,
        other => return Err(format!("'{other}' is neither pessimistic nor optimistic")),
    };
    Ok(())
}

pub(super) fn collection_name(collection: Collection) -> &'static str {
    match collection {
        Collection::Pessimistic => "pessimistic",
        Collection::Optimistic => "optimistic",
    }
}

fn set_option(slot: &mut Option<String>, word: &str) -> Result<(), String> {
    *slot = (!word.is_empty()).then(|| word.to_string());
    Ok(())
}

fn only(value: &str, fixed: &str) -> Result<(), String> {
    if value == fixed { Ok(()) } else { Err(format!("only '{fixed}' is possible here")) }
}

fn filled(word: &str) -> Result<String, String> {
    if word.is_empty() { Err("it must not be empty".into()) } else { Ok(word.into()) }
}

/// A name that is safe in a path, in a line of `INFO`, and in a handshake.
pub(super) fn name(word: &str) -> Result<String, String> {
    if !ensue_wire::handshake::is_name(word) {
        return Err(format!("'{word}' is no name: up to {NAME_BYTES_MAX} letters, digits, '-' and '_'"));
    }
    Ok(word.into())
}

pub(super) fn number(word: &str, least: u64, most: u64) -> Result<u64, String> {
    match word.parse::<u64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("'{word}' is no number from {least} to {most}")),
    }
}

/// A file, or with an empty value none.
fn set_file(target: &mut Option<PathBuf>, word: &str) -> Result<(), String> {
    *target = (!word.is_empty()).then(|| PathBuf::from(word));
    Ok(())
}

fn file(path: &Option<PathBuf>) -> Vec<String> {
    one(path.as_ref().map(|path| path.display().to_string()).unwrap_or_default())
}

fn yes_no(word: &str) -> Result<bool, String> {
    match word {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("'{word}' is neither yes nor no")),
    }
}

fn said(yes: bool) -> Vec<String> {
    one(if yes { "yes" } else { "no" })
}

fn one(value: impl ToString) -> Vec<String> {
    vec![value.to_string()]
}

fn option(value: &Option<String>) -> Vec<String> {
    vec![value.clone().unwrap_or_default()]
}

fn shown(values: &[impl ToString]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}
