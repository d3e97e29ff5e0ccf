//! Prophecy as processes: a replicated service, and a sketcher before it, as a reverse proxy.
//!
//! - [`replica`] is one of 3f+1 replicas, each before an unmodified server of its own. What is agreed is decided in
//!   `ensue-byzantine`.
//! - [`sketch`] takes connections of unmodified clients. What is read fast and what is returned is decided in
//!   `ensue-prophecy`.
//! - [`members`] says who belongs to a group and what each of them knows alone; `link` is how they know
//!   each other.
//!
//! Threads, sockets and files are here, and no decision about a request.

mod application;
mod figures;
mod framing;
mod front;
mod kept;
mod link;
pub mod members;
mod optimized;
pub mod replica;
pub mod sketch;
mod wire;
#[cfg(test)]
mod worlds;

use ensue_prophecy::handler::http::{HttpHandler, IGNORED_REQUEST_HEADERS, REMOVED_RESPONSE_HEADERS};
use ensue_prophecy::handler::redis::RedisHandler;
use ensue_prophecy::handler::{self, Handler, Inspected, RequestError};
use ensue_prophecy::lists::Lists;
use ensue_prophecy::table::List;
use members::Protocol;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What an operator says of requests and responses.
#[derive(Clone, Debug, Default)]
pub struct Handling {
    /// Reads that are always fast, and such that never are.
    pub lists: Lists,
    /// Headers of requests that a response does not depend on, beside those that are ignored anyway.
    pub ignored_headers: Vec<String>,
    /// Headers of responses that correct replicas disagree on, beside those that are removed anyway.
    pub removed_headers: Vec<String>,
}

/// Why headers cannot be ignored or removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlingError {
    /// The group is of the Redis protocol.
    #[error("headers are of HTTP, and this group speaks the Redis protocol")]
    NoHeaders,
    /// It can be no header.
    #[error("`{0}` is no name of a header")]
    NoName(String),
    /// A client would not find the end of the response.
    #[error("`{0}` says where a response ends, and cannot be removed")]
    Framing(String),
}

impl Handling {
    /// Whether it makes sense for a protocol.
    fn check(&self, protocol: Protocol) -> Result<(), HandlingError> {
        let mut names = self.ignored_headers.iter().chain(&self.removed_headers).peekable();
        if protocol == Protocol::Redis && names.peek().is_some() {
            return Err(HandlingError::NoHeaders);
        }
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if let Some(name) = names.find(|name| name.is_empty() || !name.bytes().all(is_of_name)) {
            return Err(HandlingError::NoName(name.clone()));
        }
        let frames = |name: &&String| {
            ["content-length", "transfer-encoding"].iter().any(|known| name.eq_ignore_ascii_case(known))
        };
        match self.removed_headers.iter().find(frames) {
            Some(name) => Err(HandlingError::Framing(name.clone())),
            None => Ok(()),
        }
    }

    fn http(&self) -> HttpHandler {
        fn all<'a>(known: &[&'a str], more: &'a [String]) -> Vec<&'a str> {
            known.iter().copied().chain(more.iter().map(String::as_str)).collect()
        }
        HttpHandler::new(
            &all(&IGNORED_REQUEST_HEADERS, &self.ignored_headers),
            &all(&REMOVED_RESPONSE_HEADERS, &self.removed_headers),
        )
    }
}

/// The handler of a group's protocol.
struct Service {
    protocol: Protocol,
    http: HttpHandler,
    lists: Lists,
    /// Whether reads are treated as writes, which shows what Prophecy saves.
    replicates_all: bool,
}

impl Service {
    fn new(protocol: Protocol, handling: &Handling, replicates_all: bool) -> Service {
        Service { protocol, http: handling.http(), lists: handling.lists.clone(), replicates_all }
    }
}

impl Handler for Service {
    fn inspect(&self, request: &[u8]) -> Result<Inspected, RequestError> {
        let inspected = match self.protocol {
            Protocol::Redis => RedisHandler.inspect(request)?,
            Protocol::Http => self.http.inspect(request)?,
        };
        Ok(if self.replicates_all { Inspected::Write } else { inspected })
    }

    fn listed(&self, canonical: &[u8]) -> List {
        if self.lists.is_empty() {
            return List::Neither;
        }
        let words = match self.protocol {
            Protocol::Redis => usize::MAX,
            // Method and target.
            Protocol::Http => 2,
        };
        self.lists.of(&handler::words(canonical, words))
    }

    fn canonical_response(&self, response: Vec<u8>) -> Vec<u8> {
        match self.protocol {
            Protocol::Redis => RedisHandler.canonical_response(response),
            Protocol::Http => self.http.canonical_response(response),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn micros_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}
