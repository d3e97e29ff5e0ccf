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

use ensue_prophecy::handler::http::HttpHandler;
use ensue_prophecy::handler::redis::RedisHandler;
use ensue_prophecy::handler::{Handler, Inspected, RequestError};
use members::Protocol;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The handler of a group's protocol.
struct Service {
    protocol: Protocol,
    http: HttpHandler,
    /// Whether reads are treated as writes, which shows what Prophecy saves.
    replicates_all: bool,
}

impl Service {
    fn new(protocol: Protocol, replicates_all: bool) -> Service {
        Service { protocol, http: HttpHandler::default(), replicates_all }
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
