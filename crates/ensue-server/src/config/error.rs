//! What can be wrong with a configuration, with the place where it stands.

use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    File { path: PathBuf, line: usize },
    Variable(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Variable(name) => write!(f, "variable {name}"),
            Origin::Flag(name) => write!(f, "flag --{name}"),
        }
    }
}

/// Why there is no configuration.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {path}: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{path} is longer than a configuration file may be")]
    TooLong { path: PathBuf },
    #[error("{origin}: files include each other too deep")]
    IncludedTooDeep { origin: Origin },
    #[error("{origin}: {reason}")]
    Syntax { origin: Origin, reason: &'static str },
    #[error("{origin}: unknown directive '{name}'")]
    Unknown { origin: Origin, name: String },
    #[error("{origin}: '{name}': {reason}")]
    Invalid { origin: Origin, name: &'static str, reason: String },
    #[error("'{word}' stands where a flag such as --port should")]
    NoFlag { word: String },
    #[error("'port' and 'tls-port' are 0: no client could reach this node")]
    NoPort,
    #[error("'port' and 'tls-port' are both {port}")]
    OnePort { port: u16 },
    #[error("'branch-merging-datacenter': there is no datacenter '{datacenter}'")]
    NoMerger { datacenter: String },
    #[error(
        "'block-threshold': a read of {block_ms} ms may wait twice, which does not fit into a 'request-timeout' of \
         {request_ms} ms: at most {most_ms}"
    )]
    BlockThreshold { block_ms: u64, request_ms: u64, most_ms: u64 },
    #[error(
        "'keyspace': keyspace {keyspace} has a handler of conflicts, but its protocol '{protocol}' asks none"
    )]
    NoHandlers { keyspace: u8, protocol: String },
    #[error("'keyspace': keyspace {keyspace} has keys at home in '{datacenter}', which is no datacenter")]
    NoHome { keyspace: u8, datacenter: String },
    #[error(
        "'keyspace': keyspace {keyspace} has keys with a home, which its protocol '{protocol}' cannot have: its \
         sessions do not see all that happened at a key"
    )]
    NoHomes { keyspace: u8, protocol: String },
    #[error("the cluster is not consistent: {reason}")]
    Cluster { reason: String },
}
