//! The client application: it fetches objects over one connection and compares every byte. It is the oracle.

use super::application::{ILL_BODY, ILL_LINE};
use super::content::{Framing, Object};

/// What a client does.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The objects that it fetches, in order.
    pub objects: Vec<Object>,
    /// Whether it asks the server to close after the last one.
    pub close: bool,
    /// Whether it sends all requests at once.
    pub pipelined: bool,
    /// Whether it asks in a way that gateways pass through.
    pub plain: bool,
}

/// What a client notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It does not get all, and can tell.
    Broken(String),
    /// What it gets is not what was sent.
    Wrong(String),
}

/// A client at work.
#[derive(Debug)]
pub struct Client {
    wish: Wish,
    asked: usize,
    done: usize,
    read: Vec<u8>,
    /// All that it received.
    received: Vec<u8>,
    /// The body of the response that is being read.
    expected: Vec<u8>,
}

impl Client {
    pub fn new(wish: Wish) -> Self {
        let mut client =
            Self { wish, asked: 0, done: 0, read: Vec::new(), received: Vec::new(), expected: Vec::new() };
        client.expect();
        client
    }

    fn expect(&mut self) {
        self.expected = match self.wish.objects.get(self.done) {
            Some(object) if object.framing == Framing::Chunked => object.chunked(),
            Some(object) => object.body(),
            None => Vec::new(),
        };
    }

    pub fn is_done(&self) -> bool {
        self.done == self.wish.objects.len()
    }

    /// The object that it fetches, if it is one.
    pub fn only_object(&self) -> Option<&Object> {
        self.wish.objects.first().filter(|_| self.wish.objects.len() == 1)
    }

    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// The requests to send now.
    pub fn requests(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let until = if self.wish.pipelined { self.wish.objects.len() } else { self.done + 1 };
        while self.asked < until.min(self.wish.objects.len()) {
            let last = self.asked + 1 == self.wish.objects.len();
            let connection = if last && self.wish.close { "close" } else { "keep-alive" };
            let path = self.wish.objects[self.asked].path();
            let method = if self.wish.plain { "POST" } else { "GET" };
            let text =
                format!("{method} {path} HTTP/1.1\r\nHost: service\r\nConnection: {connection}\r\n\r\n");
            out.extend_from_slice(text.as_bytes());
            self.asked += 1;
        }
        out
    }

    /// Takes bytes, and whether the server's stream has ended after them.
    pub fn on_bytes(&mut self, bytes: &[u8], ended: bool) -> Result<(), Trouble> {
        self.read.extend_from_slice(bytes);
        self.received.extend_from_slice(bytes);
        while let Some(object) = self.wish.objects.get(self.done) {
            let Some(length) = self.check(object, ended).map_err(Trouble::Wrong)? else { break };
            self.read.drain(..length);
            self.done += 1;
            self.expect();
        }
        if self.is_done() && !self.read.is_empty() {
            return Err(Trouble::Wrong(format!("{} bytes after the last response", self.read.len())));
        }
        if ended && !self.is_done() {
            return Err(Trouble::Broken(format!(
                "the stream ended in response {} of {}",
                self.done + 1,
                self.wish.objects.len()
            )));
        }
        Ok(())
    }

    /// The same for the response of an application that cannot serve.
    fn check_ill(&self) -> Result<Option<usize>, String> {
        let Some(head) = self.read.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Ok(None);
        };
        let body = &self.read[head + 4..];
        let text = String::from_utf8_lossy(&self.read[..head]);
        let length = format!("Content-Length: {}", ILL_BODY.len());
        if !ILL_BODY.starts_with(&body[..body.len().min(ILL_BODY.len())]) || !text.contains(&length) {
            return Err(format!("response {} is a failure and something else", self.done + 1));
        }
        Ok((body.len() >= ILL_BODY.len()).then_some(head + 4 + ILL_BODY.len()))
    }

    /// The length of the response at the start of what was read, if it is complete and right.
    fn check(&self, object: &Object, ended: bool) -> Result<Option<usize>, String> {
        let start = &self.read[..self.read.len().min(12)];
        if start.starts_with(&ILL_LINE.as_bytes()[..start.len().min(10)]) && start.len() > 9 {
            return self.check_ill();
        }
        if !b"HTTP/1.1 200".starts_with(start) {
            return Err(format!(
                "response {} begins with {:?}",
                self.done + 1,
                String::from_utf8_lossy(start)
            ));
        }
        let Some(head) = self.read.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Ok(None);
        };
        let body = &self.read[head + 4..];
        let expected = &self.expected;
        let common = body.len().min(expected.len());
        if body[..common] != expected[..common] {
            let at = (0..common).find(|at| body[*at] != expected[*at]).unwrap_or(common);
            return Err(format!("byte {at} of {} in response {} is wrong", expected.len(), self.done + 1));
        }
        if object.framing == Framing::Length {
            let text = String::from_utf8_lossy(&self.read[..head]);
            if !text.contains(&format!("Content-Length: {}", object.bytes)) {
                return Err(format!("the head of response {} has another length", self.done + 1));
            }
        }
        let complete = body.len() >= expected.len() && (object.framing != Framing::UntilClose || ended);
        Ok(complete.then_some(head + 4 + expected.len()))
    }
}
