//! One socket that does not block, with the bytes that wait on both sides of it.

use crate::answer::Failure;
use bytes::BytesMut;
use ensue_resp::Decoder;
use ensue_types::Reply;
use mio::net::TcpStream;
use std::io::{ErrorKind, Read, Write};

pub struct Wire {
    stream: TcpStream,
    /// Commands that have not been written yet are at the end.
    pub output: Vec<u8>,
    written: usize,
    input: BytesMut,
    decoder: Decoder,
}

impl Wire {
    pub fn new(stream: TcpStream) -> Wire {
        Wire { stream, output: Vec::new(), written: 0, input: BytesMut::new(), decoder: Decoder::new() }
    }

    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Writes what the socket takes.
    pub fn flush(&mut self) -> Result<(), Failure> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(Failure::Closed),
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Failure::Closed),
            }
        }
        self.output.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads once. Says whether there may be more; if not, what comes later is a new event.
    pub fn read(&mut self, scratch: &mut [u8]) -> Result<bool, Failure> {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err(Failure::Closed),
                Ok(length) => {
                    self.input.extend_from_slice(&scratch[..length]);
                    return Ok(length == scratch.len());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Failure::Closed),
            }
        }
    }

    /// The next answer that has arrived whole. What the server sends unasked is passed over.
    pub fn next(&mut self) -> Result<Option<Reply>, Failure> {
        loop {
            let is_push = self.input.first() == Some(&b'>');
            match self.decoder.next(&mut self.input) {
                Ok(Some(_)) if is_push => {}
                Ok(reply) => return Ok(reply),
                Err(_) => return Err(Failure::Unreadable),
            }
        }
    }
}
