//! One connection to a server: commands in order, answers in order.

use crate::error::ClientError;
use bytes::BytesMut;
use ensue_resp::Decoder;
use ensue_types::Reply;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Where and how to connect.
#[derive(Clone, Debug)]
pub struct Options {
    pub host: String,
    pub port: u16,
    pub password: Option<String>,
    pub keyspace: u8,
    /// For connecting.
    pub connect_timeout: Duration,
    /// For each answer.
    pub answer_timeout: Duration,
}

impl Options {
    /// A server on this machine.
    pub fn local(port: u16) -> Options {
        Options {
            host: "127.0.0.1".into(),
            port,
            password: None,
            keyspace: 0,
            connect_timeout: Duration::from_secs(2),
            answer_timeout: Duration::from_secs(30),
        }
    }
}

/// A connection. After an error other than a refused command it is of no more use.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    input: BytesMut,
    decoder: Decoder,
}

const READ_BYTES: usize = 64 << 10;

impl Connection {
    /// Connects, authenticates if there is a password, and selects the keyspace.
    pub fn open(options: &Options) -> Result<Connection, ClientError> {
        let address = format!("{}:{}", options.host, options.port);
        let unknown = |error| ClientError::Address { address: address.clone(), error };
        let mut failure = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
        let candidates = (options.host.as_str(), options.port).to_socket_addrs().map_err(unknown)?;
        for candidate in candidates {
            match TcpStream::connect_timeout(&candidate, options.connect_timeout) {
                Ok(stream) => return Connection::begin(stream, options),
                Err(error) => failure = error,
            }
        }
        Err(ClientError::Connect { address, error: failure })
    }

    fn begin(stream: TcpStream, options: &Options) -> Result<Connection, ClientError> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(options.answer_timeout))?;
        stream.set_write_timeout(Some(options.answer_timeout))?;
        let mut connection = Connection { stream, input: BytesMut::new(), decoder: Decoder::new() };
        if let Some(password) = &options.password {
            connection.require(&[b"AUTH", password.as_bytes()])?;
        }
        if options.keyspace != 0 {
            connection.require(&[b"SELECT", options.keyspace.to_string().as_bytes()])?;
        }
        Ok(connection)
    }

    fn require(&mut self, words: &[&[u8]]) -> Result<(), ClientError> {
        match self.call(words)? {
            Reply::Error(reason) => Err(ClientError::Refused(reason.into_owned())),
            _ => Ok(()),
        }
    }

    /// Sends one command and waits for its answer.
    pub fn call(&mut self, words: &[&[u8]]) -> Result<Reply, ClientError> {
        self.send(words)?;
        self.receive()
    }

    /// Sends several commands at once and waits for all answers.
    pub fn pipeline(&mut self, commands: &[&[&[u8]]]) -> Result<Vec<Reply>, ClientError> {
        let mut bytes = Vec::new();
        commands.iter().for_each(|words| write_command(words, &mut bytes));
        self.stream.write_all(&bytes)?;
        commands.iter().map(|_| self.receive()).collect()
    }

    /// Sends one command.
    pub fn send(&mut self, words: &[&[u8]]) -> Result<(), ClientError> {
        let mut bytes = Vec::new();
        write_command(words, &mut bytes);
        Ok(self.stream.write_all(&bytes)?)
    }

    /// Waits for the next answer.
    pub fn receive(&mut self) -> Result<Reply, ClientError> {
        let mut scratch = vec![0; READ_BYTES];
        loop {
            if let Some(reply) = self.decoder.next(&mut self.input)? {
                return Ok(reply);
            }
            match self.stream.read(&mut scratch)? {
                0 => return Err(ClientError::Closed),
                length => self.input.extend_from_slice(&scratch[..length]),
            }
        }
    }
}

fn write_command(words: &[&[u8]], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests;
