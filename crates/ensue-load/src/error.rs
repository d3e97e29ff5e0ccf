//! What can be wrong before anything is measured: how a load is described, and whether the server can do it.

use crate::target::Target;
use ensue_resp::ParseError;
use std::io;
use thiserror::Error;

/// A part of the description of a load that says nothing known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    #[error(
        "`{0}` is no choice of keys: uniform, zipf[:THETA], scrambled[:THETA], latest[:THETA], hot, \
         groups:KEYS[:VARIANCE]"
    )]
    Access(String),
    #[error("`{0}` are no sizes: BYTES, FROM-TO, or BYTES:WEIGHT,FROM-TO:WEIGHT, of at most 64 MB")]
    Sizes(String),
    #[error("`{0}` is neither a named workload ({1}) nor a mix such as `get=9,set=1`")]
    Workload(String, String),
    #[error("`{0}` is no operation; there are {1}")]
    Operation(String, String),
    #[error("`{0}` is no weight: a whole number, of which at least one in a mix is above zero")]
    Weight(String),
    #[error("`{0}` is no arrival process: poisson or constant")]
    Arrivals(String),
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Why an address is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    #[error("`{0}` does not begin with redis://")]
    Scheme(String),
    #[error("`{0}`: TLS is not supported")]
    Tls(String),
    #[error("`{0}` has no host")]
    Host(String),
    #[error("`{0}` has no port between 1 and 65535")]
    Port(String),
    #[error("`{0}`: the part behind the last slash is no number of a database")]
    Database(String),
    #[error("`{0}`: a percent sign in the user or the password is not followed by two hexadecimal digits")]
    Percent(String),
}

/// Why a run did not begin, or could not go on.
#[derive(Debug, Error)]
pub enum LoadError {
    #[error("{target}: cannot connect: {error}")]
    Connect { target: Box<Target>, error: io::Error },
    #[error("{target}: the connection broke: {error}")]
    Broken { target: Box<Target>, error: io::Error },
    #[error("{target}: what answers there does not speak the Redis protocol: {error}")]
    NotRedis { target: Box<Target>, error: ParseError },
    #[error("{target}: refused {command}: {answer}")]
    Refused { target: Box<Target>, command: &'static str, answer: String },
    #[error("{target}: the server has no command {command}, which `{operation}` needs")]
    Unsupported { target: Box<Target>, command: &'static str, operation: String },
    #[error(
        "{target}: keys written at {first} cannot be read here after {seconds} s; for separate stores use \
         `--preload each`"
    )]
    NotReplicated { target: Box<Target>, first: Box<Target>, seconds: u64 },
    #[error("the keys could not be written before the run: {0}")]
    Preload(String),
    #[error("process {pid} cannot be measured: {error}")]
    Process { pid: u32, error: io::Error },
    #[error(
        "{target}: its process is not known, whose time is to be measured: it is elsewhere, or its INFO hides it"
    )]
    NoProcess { target: Box<Target> },
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error("two stores take turns by time: give seconds, not a number of operations")]
    TurnsOfOperations,
    #[error("the event queue of the operating system failed: {0}")]
    Poll(io::Error),
}
