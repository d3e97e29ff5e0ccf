//! A connection to the server behind a replica, which is not changed and knows nothing of it.

use super::framing::{HttpResponse, Unreadable, http_response, redis_reply_end};
use super::members::Protocol;
use crate::limits::{CONNECT_PAUSE, GREETING_MAX, START_MAX};
use ensue_byzantine::limits::ANSWER_BYTES_MAX;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const READ_BYTES: usize = 64 << 10;

pub(super) struct Application {
    protocol: Protocol,
    address: SocketAddr,
    patience: Duration,
    stream: Option<TcpStream>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It has more than [`ANSWER_BYTES_MAX`].
    #[error("the response is too long")]
    TooLong,
}

impl From<Unreadable> for CallError {
    fn from(error: Unreadable) -> CallError {
        CallError::Io(io::Error::other(error))
    }
}

impl Application {
    pub(super) fn new(protocol: Protocol, address: SocketAddr, patience: Duration) -> Application {
        Application { protocol, address, patience, stream: None }
    }

    /// Waits until it serves, and answers whether it is certainly in another state than its first one. A server of the
    /// Redis protocol that loads its data answers with errors, and would with other ones than those of the other
    /// replicas.
    pub(super) fn is_used(&mut self) -> Result<bool, CallError> {
        if self.protocol == Protocol::Http {
            self.stream = Some(self.connect()?);
            return Ok(false);
        }
        let until = Instant::now() + START_MAX;
        loop {
            let reply = self.execute(b"*1\r\n$6\r\nDBSIZE\r\n")?;
            if reply.starts_with(b":") {
                return Ok(reply != b":0\r\n");
            }
            if until <= Instant::now() {
                let reply = String::from_utf8_lossy(&reply).trim().to_string();
                return Err(io::Error::other(format!("the answer to DBSIZE is {reply}")).into());
            }
            thread::sleep(CONNECT_PAUSE);
        }
    }

    /// Has a request of the order executed, once. An error, other than of a response that is too long, leaves unknown
    /// whether it was.
    pub(super) fn execute(&mut self, request: &[u8]) -> Result<Vec<u8>, CallError> {
        if self.protocol == Protocol::Http {
            // A server may close a connection that it kept open at any time, also while a request is on its way.
            self.stream = None;
        }
        let stream = self.connect()?;
        self.exchange(stream, request)
    }

    /// Has a read executed; twice, if a connection that was kept open turns out not to be.
    pub(super) fn read(&mut self, request: &[u8]) -> Result<Vec<u8>, CallError> {
        if let Some(stream) = self.stream.take() {
            match self.exchange(stream, request) {
                Err(CallError::Io(_)) => {}
                answered => return answered,
            }
        }
        let stream = self.connect()?;
        self.exchange(stream, request)
    }

    fn connect(&mut self) -> io::Result<TcpStream> {
        if let Some(stream) = self.stream.take() {
            return Ok(stream);
        }
        let stream = TcpStream::connect_timeout(&self.address, GREETING_MAX)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        Ok(stream)
    }

    fn exchange(&mut self, mut stream: TcpStream, request: &[u8]) -> Result<Vec<u8>, CallError> {
        stream.write_all(request)?;
        let to_head = request.starts_with(b"HEAD ");
        let mut response = Vec::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = stream.read(&mut buffer)?;
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
                None if is_closed => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
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
