//! A connection before and beside the run: connect, authenticate, choose the version and the database, ask.
//!
//! It blocks. A run takes the socket over when the connection is open.

use crate::error::LoadError;
use crate::target::Target;
use bytes::BytesMut;
use ensue_resp::Decoder;
use ensue_resp::encode::encode_command;
use ensue_types::Reply;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const READ_BYTES: usize = 64 << 10;

/// An open connection that waits for each answer.
#[derive(Debug)]
pub struct Link {
    target: Target,
    stream: TcpStream,
    input: BytesMut,
    decoder: Decoder,
}

impl Link {
    /// `resp` is the version of the protocol: 2 or 3.
    pub fn open(target: &Target, resp: u8) -> Result<Link, LoadError> {
        let failed = |error| LoadError::Connect { target: Box::new(target.clone()), error };
        let stream = connect(target).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(failed)?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT)).map_err(failed)?;
        let mut link =
            Link { target: target.clone(), stream, input: BytesMut::new(), decoder: Decoder::new() };
        if let Some(password) = &target.password {
            match &target.user {
                Some(user) => link.require("AUTH", &[user, password])?,
                None => link.require("AUTH", &[password])?,
            }
        }
        if resp == 3 {
            link.require("HELLO", &["3"])?;
        }
        if target.database > 0 {
            link.require("SELECT", &[&target.database.to_string()])?;
        }
        Ok(link)
    }

    /// The socket, for a run that does not block.
    pub fn into_stream(self) -> Result<TcpStream, LoadError> {
        let Link { target, stream, .. } = self;
        match stream.set_nonblocking(true) {
            Ok(()) => Ok(stream),
            Err(error) => Err(LoadError::Connect { target: Box::new(target), error }),
        }
    }

    /// Sends one command and waits for its answer, which may be an error.
    pub fn call(&mut self, words: &[&[u8]]) -> Result<Reply, LoadError> {
        let mut bytes = Vec::new();
        encode_command(words, &mut bytes);
        self.stream.write_all(&bytes).map_err(|error| self.broken(error))?;
        let mut scratch = vec![0; READ_BYTES];
        loop {
            let next = self.decoder.next(&mut self.input);
            if let Some(reply) =
                next.map_err(|error| LoadError::NotRedis { target: Box::new(self.target.clone()), error })?
            {
                return Ok(reply);
            }
            match self.stream.read(&mut scratch).map_err(|error| self.broken(error))? {
                0 => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
                length => self.input.extend_from_slice(&scratch[..length]),
            }
        }
    }

    /// Sends one command that must not be refused.
    pub fn require(&mut self, command: &'static str, words: &[&str]) -> Result<(), LoadError> {
        let mut all = vec![command.as_bytes()];
        all.extend(words.iter().map(|word| word.as_bytes()));
        match self.call(&all)? {
            Reply::Error(answer) => {
                let answer = answer.into_owned();
                Err(LoadError::Refused { target: Box::new(self.target.clone()), command, answer })
            }
            _ => Ok(()),
        }
    }

    fn broken(&self, error: io::Error) -> LoadError {
        LoadError::Broken { target: Box::new(self.target.clone()), error }
    }
}

fn connect(target: &Target) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (target.host.as_str(), target.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
