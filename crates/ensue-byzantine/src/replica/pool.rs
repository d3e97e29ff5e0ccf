//! Requests that wait to be in a block: at most one of each session, in the order in which they came.

use crate::block::{Request, Session};
use crate::limits::{BLOCK_BYTES_MAX, BLOCK_REQUESTS_MAX, POOL_BYTES_MAX};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    requests: BTreeMap<Session, (u64, Request)>,
    /// By arrival.
    order: BTreeMap<u64, Session>,
    arrivals: u64,
    bytes: usize,
}

impl Pool {
    /// A later request of a session takes the place of an earlier one, which its client no longer waits for. Without
    /// room it is dropped; the client sends it again.
    pub(crate) fn add(&mut self, request: Request) {
        let waits = self.requests.get(&request.session).map(|(_, waiting)| waiting.number);
        if waits.is_some_and(|number| number >= request.number)
            || self.bytes + request.body.len() > POOL_BYTES_MAX
        {
            return;
        }
        self.remove(request.session);
        self.arrivals += 1;
        self.bytes += request.body.len();
        self.order.insert(self.arrivals, request.session);
        self.requests.insert(request.session, (self.arrivals, request));
    }

    /// Whether this very request waits, whose signature was verified when it came.
    pub(crate) fn has(&self, request: &Request) -> bool {
        self.requests.get(&request.session).is_some_and(|(_, waiting)| waiting == request)
    }

    /// A request has its place in the order, so this one and those before it no longer wait.
    pub(crate) fn on_ordered(&mut self, request: &Request) {
        if self.requests.get(&request.session).is_some_and(|(_, waiting)| waiting.number <= request.number) {
            self.remove(request.session);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// As many as fit into a block.
    pub(crate) fn first(&self) -> Vec<Request> {
        let mut bytes = 0;
        let mut first = Vec::new();
        for session in self.order.values() {
            let Some((_, request)) = self.requests.get(session) else { continue };
            if first.len() == BLOCK_REQUESTS_MAX || bytes >= BLOCK_BYTES_MAX {
                break;
            }
            bytes += request.body.len();
            first.push(request.clone());
        }
        first
    }

    fn remove(&mut self, session: Session) {
        if let Some((arrival, request)) = self.requests.remove(&session) {
            self.order.remove(&arrival);
            self.bytes -= request.body.len();
        }
    }
}
