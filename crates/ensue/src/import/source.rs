//! The server that is imported from: its address, and the conversation of a replica with it.

use anyhow::{Context, anyhow, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// `redis://[user:pass@]HOST:PORT[/db]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: Option<u64>,
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Source, String> {
        let wrong = || "expected redis://[USER:PASSWORD@]HOST:PORT[/DB]".to_string();
        let rest = text.strip_prefix("redis://").ok_or_else(wrong)?;
        let (authority, database) = match rest.split_once('/') {
            Some((authority, "")) => (authority, None),
            Some((authority, database)) => (authority, Some(database.parse().map_err(|_| wrong())?)),
            None => (rest, None),
        };
        let (credentials, address) = match authority.rsplit_once('@') {
            Some((credentials, address)) => (Some(credentials), address),
            None => (None, authority),
        };
        let (user, password) = match credentials.map(|text| text.split_once(':').unwrap_or((text, ""))) {
            Some((user, password)) => {
                (Some(decoded(user).ok_or_else(wrong)?), Some(decoded(password).ok_or_else(wrong)?))
            }
            None => (None, None),
        };
        let (host, port) = address.rsplit_once(':').unwrap_or((address, "6379"));
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong());
        }
        let port = port.parse().map_err(|_| wrong())?;
        Ok(Source { host: host.into(), port, user: user.filter(|user| !user.is_empty()), password, database })
    }
}

/// A text in which `%40` stands for `@`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(others.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &others[2..];
        } else {
            bytes.push(*first);
            rest = others;
        }
    }
    String::from_utf8(bytes).ok()
}

/// A connection to it, on which it sends what a replica gets.
pub(crate) struct Link {
    stream: TcpStream,
    /// What has arrived and was not read yet.
    input: Vec<u8>,
}

/// How the source begins to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// A snapshot, and then the stream from its offset on.
    Snapshot { id: String, offset: u64 },
    /// The stream from where it was left, under this name.
    Stream { id: Option<String> },
}

/// How a snapshot ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    Length(u64),
    /// These bytes stand behind it.
    Mark(Vec<u8>),
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one waits for bytes before it looks at the rest of the world.
const TICK: Duration = Duration::from_millis(100);
/// How long an answer may take: the source may have to write a snapshot first, and sends line feeds meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 64 << 10;
const LINE_BYTES_MAX: usize = 64 << 10;

impl Link {
    /// Connects as a replica that can do without a file.
    pub(crate) fn open(source: &Source) -> anyhow::Result<Link> {
        let address = format!("{}:{}", source.host, source.port);
        let mut failure = anyhow!("{address} has no address");
        for candidate in
            (source.host.as_str(), source.port).to_socket_addrs().with_context(|| address.clone())?
        {
            match TcpStream::connect_timeout(&candidate, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(TICK))?;
                    stream.set_write_timeout(Some(CONNECT_TIMEOUT))?;
                    let mut link = Link { stream, input: Vec::new() };
                    link.introduce(source)?;
                    return Ok(link);
                }
                Err(error) => {
                    failure = anyhow::Error::new(error).context(format!("cannot connect to {address}"))
                }
            }
        }
        Err(failure)
    }

    fn introduce(&mut self, source: &Source) -> anyhow::Result<()> {
        match (&source.user, &source.password) {
            (Some(user), Some(password)) => self.require(&["AUTH", user, password])?,
            (None, Some(password)) => self.require(&["AUTH", password])?,
            _ => {}
        }
        self.require(&["PING"])?;
        let port = self.stream.local_addr()?.port().to_string();
        self.require(&["REPLCONF", "listening-port", &port])?;
        self.require(&["REPLCONF", "capa", "eof", "capa", "psync2"])
    }

    fn require(&mut self, words: &[&str]) -> anyhow::Result<()> {
        self.send(words)?;
        let line = self.line()?;
        match line.strip_prefix('-') {
            Some(error) => bail!("the source answers to {}: {error}", words[0]),
            None => Ok(()),
        }
    }

    pub(crate) fn send(&mut self, words: &[&str]) -> anyhow::Result<()> {
        let mut bytes = format!("*{}\r\n", words.len());
        for word in words {
            bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.write_all(bytes.as_bytes()).context("the source")
    }

    /// Asks for the stream behind what was received, or for everything.
    pub(crate) fn begin(&mut self, received: Option<(&str, u64)>) -> anyhow::Result<Beginning> {
        match received {
            Some((id, offset)) => self.send(&["PSYNC", id, &(offset + 1).to_string()])?,
            None => self.send(&["PSYNC", "?", "-1"])?,
        }
        let line = self.line()?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["+FULLRESYNC", id, offset] => {
                let offset = offset.parse().map_err(|_| anyhow!("the source answers to PSYNC: {line}"))?;
                Ok(Beginning::Snapshot { id: id.into(), offset })
            }
            ["+CONTINUE"] => Ok(Beginning::Stream { id: None }),
            ["+CONTINUE", id] => Ok(Beginning::Stream { id: Some(id.into()) }),
            _ => bail!("the source answers to PSYNC: {line}"),
        }
    }

    /// Reads what a snapshot begins with.
    pub(crate) fn payload(&mut self) -> anyhow::Result<Payload> {
        let line = self.line()?;
        let told = line.strip_prefix('$').with_context(|| format!("the source sends no snapshot: {line}"))?;
        match told.strip_prefix("EOF:") {
            Some(mark) if !mark.is_empty() => Ok(Payload::Mark(mark.as_bytes().to_vec())),
            Some(_) => bail!("the source sends a snapshot without an end"),
            None => Ok(Payload::Length(
                told.parse().with_context(|| format!("the source sends no snapshot: {line}"))?,
            )),
        }
    }

    /// The next line that is not empty.
    fn line(&mut self) -> anyhow::Result<String> {
        let mut since = Instant::now();
        loop {
            if let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.input.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line).trim_end().to_string();
                if !line.is_empty() {
                    return Ok(line);
                }
                since = Instant::now();
                continue;
            }
            if self.input.len() > LINE_BYTES_MAX {
                bail!("the source sends a line without an end");
            }
            if since.elapsed() > ANSWER_TIMEOUT {
                bail!("the source does not answer");
            }
            let bytes = self.read()?;
            self.input.extend(bytes);
        }
    }

    /// What has arrived; nothing if nothing came for a moment. The end of the connection is an error.
    pub(crate) fn read(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut buffer = vec![0; READ_BYTES];
        match self.stream.read(&mut buffer) {
            Ok(0) => bail!("the source has closed the connection"),
            Ok(count) => {
                buffer.truncate(count);
                Ok(buffer)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                Ok(Vec::new())
            }
            Err(error) => Err(error).context("the source"),
        }
    }

    /// What is to be read again.
    pub(crate) fn put_back(&mut self, input: Vec<u8>) {
        self.input = input;
    }

    /// What had arrived behind the lines that were read.
    pub(crate) fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }
}

#[cfg(test)]
mod tests;
