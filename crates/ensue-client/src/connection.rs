//! One connection to a server: commands in order, answers in order.

use crate::error::ClientError;
use crate::recorder::{RecordedConnection, Recorder};
use crate::stream::{Stream, Tls};
use bytes::{Bytes, BytesMut};
use ensue_resp::Decoder;
use ensue_types::Reply;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Where and how to connect.
#[derive(Clone, Debug)]
pub struct Options {
    pub host: String,
    pub port: u16,
    /// The user who authenticates; with a password alone it is the default one.
    pub user: Option<String>,
    pub password: Option<String>,
    /// None where the connection is not encrypted.
    pub tls: Option<Tls>,
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
            user: None,
            password: None,
            tls: None,
            keyspace: 0,
            connect_timeout: Duration::from_secs(2),
            answer_timeout: Duration::from_secs(30),
        }
    }
}

/// A connection. After an error other than a refused command it is of no more use.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    input: BytesMut,
    decoder: Decoder,
    keyspace: u8,
    record: Option<RecordedConnection>,
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
        let mut connection = Connection {
            stream: Stream::over(stream, &options.host, options.tls.as_ref())?,
            input: BytesMut::new(),
            decoder: Decoder::new(),
            keyspace: options.keyspace,
            record: None,
        };
        match (&options.user, &options.password) {
            (Some(user), password) => {
                let password = password.as_deref().unwrap_or_default();
                connection.require(&[b"AUTH", user.as_bytes(), password.as_bytes()])?;
            }
            (None, Some(password)) => connection.require(&[b"AUTH", password.as_bytes()])?,
            (None, None) => {}
        }
        if options.keyspace != 0 {
            connection.require(&[b"SELECT", options.keyspace.to_string().as_bytes()])?;
        }
        Ok(connection)
    }

    /// From here on, everything is written down, as a session in this datacenter.
    pub fn record(&mut self, recorder: &Recorder, datacenter: Option<&str>) {
        let mut record = recorder.connection(datacenter);
        record.set_keyspace(self.keyspace);
        self.record = Some(record);
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
        self.send_all(commands)?;
        commands.iter().map(|_| self.receive()).collect()
    }

    /// Sends one command.
    pub fn send(&mut self, words: &[&[u8]]) -> Result<(), ClientError> {
        self.send_all(&[words])
    }

    /// Sends several commands at once, for an answer each.
    pub fn send_all(&mut self, commands: &[&[&[u8]]]) -> Result<(), ClientError> {
        let mut bytes = Vec::new();
        for words in commands {
            self.note_command(words);
            write_command(words, &mut bytes);
        }
        self.write(&bytes)
    }

    /// Waits for the next answer.
    pub fn receive(&mut self) -> Result<Reply, ClientError> {
        let reply = self.next_reply();
        match (&mut self.record, &reply) {
            (Some(record), Ok(reply)) => record.on_reply(reply),
            (Some(record), Err(_)) => record.on_end(),
            (None, _) => {}
        }
        reply
    }

    fn next_reply(&mut self) -> Result<Reply, ClientError> {
        loop {
            if let Some(reply) = self.decoder.next(&mut self.input)? {
                return Ok(reply);
            }
            // Most answers have arrived with the one before them, and need none.
            let mut scratch = vec![0; READ_BYTES];
            match self.stream.read(&mut scratch) {
                Ok(0) => return Err(ClientError::Closed),
                Ok(length) => self.input.extend_from_slice(&scratch[..length]),
                // A signal came that somebody handles.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn note_command(&mut self, words: &[&[u8]]) {
        if let Some(record) = &mut self.record {
            let args: Vec<Bytes> = words.iter().map(|word| Bytes::copy_from_slice(word)).collect();
            record.on_command(&args);
        }
    }

    /// Whatever could not be written whole may have arrived all the same.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        let result = self.stream.write_all(bytes);
        if let (Some(record), Err(_)) = (&mut self.record, &result) {
            record.on_end();
        }
        Ok(result?)
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
