//! A connection to the server behind a replica, which is not changed and knows nothing of it.
//!
//! - A request has one time limit, from its first byte to the last one of its response. What is over without a whole
//!   response that can be read has an outcome as well: there is none.
//! - What was not sent is sent as soon as the server takes connections again, or not at all.
//! - A server of the Redis protocol that was started anew has lost what it executed, and is told by its `run_id`. A web
//!   server cannot be asked.

use super::framing::{HttpRequest, HttpResponse, Unreadable, http_request, http_response, redis_reply_end};
use super::members::Protocol;
use crate::limits::{CONNECT_PAUSE, GREETING_MAX, RECONNECT_MAX, START_MAX};
use ensue_byzantine::limits::ANSWER_BYTES_MAX;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const READ_BYTES: usize = 64 << 10;

pub(super) struct Application {
    protocol: Protocol,
    address: SocketAddr,
    patience: Duration,
    stream: Option<TcpStream>,
    /// Which run of the server executes the order.
    run: Option<Vec<u8>>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The request was not sent.
    #[error("it cannot be reached: {0}")]
    Unreached(io::Error),
    /// The request was not sent.
    #[error("it was started anew, or does not say that it was not: it may have lost what it executed")]
    StartedAnew,
    /// It has more than [`ANSWER_BYTES_MAX`].
    #[error("the response is too long")]
    TooLong,
    /// The request was sent, and its response did not come in time, or ended early, or makes no sense.
    #[error("no response: {0}")]
    NoResponse(io::Error),
}

impl From<Unreadable> for CallError {
    fn from(error: Unreadable) -> CallError {
        CallError::NoResponse(io::Error::other(error))
    }
}

/// A stream until a time: whoever sends a byte now and then would keep its reader for good.
struct Until<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Until<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Application {
    pub(super) fn new(protocol: Protocol, address: SocketAddr, patience: Duration) -> Application {
        Application { protocol, address, patience, stream: None, run: None }
    }

    /// Waits until it serves, and answers whether it is certainly in another state than its first one. A server of the
    /// Redis protocol that loads its data answers with errors, and would with other ones than those of the other
    /// replicas.
    pub(super) fn is_used(&mut self) -> Result<bool, CallError> {
        let stream = self.connect().map_err(CallError::Unreached)?;
        if self.protocol == Protocol::Http {
            return Ok(false);
        }
        self.stream = Some(stream);
        let until = Instant::now() + START_MAX;
        loop {
            self.run = self.run_of_kept()?;
            let reply = self.execute(b"*1\r\n$6\r\nDBSIZE\r\n")?;
            if reply.starts_with(b":") {
                return Ok(reply != b":0\r\n");
            }
            if until <= Instant::now() {
                let reply = String::from_utf8_lossy(&reply).trim().to_string();
                return Err(CallError::NoResponse(io::Error::other(format!(
                    "the answer to DBSIZE is {reply}"
                ))));
            }
            thread::sleep(CONNECT_PAUSE);
        }
    }

    /// Has a request of the order executed, once. Without a response it is unknown whether it was.
    pub(super) fn execute(&mut self, request: &[u8]) -> Result<Vec<u8>, CallError> {
        // A server may close a connection that it kept open at any time, also while a request is on its way. One of
        // HTTP does so as it likes, and one of the Redis protocol after a time in which nothing is asked.
        let is_usable = |stream: &TcpStream| self.protocol == Protocol::Redis && is_quiet(stream);
        let kept = self.stream.take().filter(is_usable);
        let stream = match kept {
            Some(stream) => stream,
            None => self.connect_again()?,
        };
        self.exchange(stream, request, Instant::now() + self.patience)
    }

    /// Has a read executed; twice, if a connection that was kept open turns out not to be.
    pub(super) fn read(&mut self, request: &[u8]) -> Result<Vec<u8>, CallError> {
        let until = Instant::now() + self.patience;
        if let Some(stream) = self.stream.take() {
            match self.exchange(stream, request, until) {
                Err(CallError::NoResponse(_)) => {}
                answered => return answered,
            }
        }
        let stream = self.connect().map_err(CallError::Unreached)?;
        self.exchange(stream, request, until)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, GREETING_MAX)?;
        stream.set_nodelay(true)?;
        // Whoever closes first keeps the port of the connection for a minute, and each request has one.
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        Ok(stream)
    }

    /// A server that is started anew, or has more connections than it takes, is back soon, or the replica is not.
    fn connect_again(&mut self) -> Result<TcpStream, CallError> {
        let until = Instant::now() + RECONNECT_MAX;
        let stream = loop {
            match self.connect() {
                Ok(stream) => break stream,
                Err(error) if until <= Instant::now() => return Err(CallError::Unreached(error)),
                Err(_) => thread::sleep(CONNECT_PAUSE),
            }
        };
        if self.protocol == Protocol::Http {
            return Ok(stream);
        }
        self.stream = Some(stream);
        match self.run_of_kept() {
            Ok(run) if run.is_some() && run == self.run => self.stream.take().ok_or(CallError::StartedAnew),
            _ => Err(CallError::StartedAnew),
        }
    }

    /// What the server at the other end of the connection that is kept calls its run.
    fn run_of_kept(&mut self) -> Result<Option<Vec<u8>>, CallError> {
        let Some(stream) = self.stream.take() else { return Ok(None) };
        let until = Instant::now() + self.patience;
        let info = self.exchange(stream, b"*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n", until)?;
        let mut lines = info.split(|byte| *byte == b'\n');
        Ok(lines.find_map(|line| line.strip_prefix(b"run_id:")).map(|run| run.trim_ascii().to_vec()))
    }

    fn exchange(&mut self, stream: TcpStream, request: &[u8], until: Instant) -> Result<Vec<u8>, CallError> {
        let mut limited = Until { stream: &stream, until };
        // A server may answer without having read all of a request; whether it did, its response tells.
        let _ = limited.write_all(request);
        let to_head = self.protocol == Protocol::Http
            && matches!(http_request(request), Ok(HttpRequest::Whole { is_head: true, .. }));
        let mut response = Vec::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = limited.read(&mut buffer).map_err(CallError::NoResponse)?;
            response.extend_from_slice(&buffer[..count]);
            if response.len() > ANSWER_BYTES_MAX {
                return Err(CallError::TooLong);
            }
            let is_closed = count == 0;
            match self.end(&mut response, to_head, is_closed)? {
                Some((end, keeps)) => {
                    if keeps && end == response.len() && !is_closed {
                        self.stream = Some(stream);
                    }
                    response.truncate(end);
                    return Ok(response);
                }
                None if is_closed => return Err(CallError::NoResponse(io::ErrorKind::UnexpectedEof.into())),
                None => {}
            }
        }
    }

    /// Where the response ends, and whether the connection may be used again.
    fn end(
        &self,
        response: &mut Vec<u8>,
        to_head: bool,
        is_closed: bool,
    ) -> Result<Option<(usize, bool)>, Unreadable> {
        if self.protocol == Protocol::Redis {
            return Ok(redis_reply_end(response)?.map(|end| (end, true)));
        }
        loop {
            match http_response(response, to_head)? {
                HttpResponse::Interim { end } => {
                    response.drain(..end);
                }
                HttpResponse::Whole { end, keeps } => return Ok(Some((end, keeps))),
                HttpResponse::UntilClose if is_closed => return Ok(Some((response.len(), false))),
                HttpResponse::Begun | HttpResponse::UntilClose => return Ok(None),
            }
        }
    }
}

/// Whether a connection is open, and nothing waits to be read that nobody asked for.
fn is_quiet(stream: &TcpStream) -> bool {
    let peeked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    let is_open = matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
    is_open && stream.set_nonblocking(false).is_ok()
}

#[cfg(test)]
mod tests;
