//! One connection, one session: commands go out, answers come back, in RESP2.
//!
//! It speaks only as much of the protocol as the story needs.

use anyhow::{bail, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 1 << 20;

pub(super) struct Session {
    reader: BufReader<TcpStream>,
}

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    Integer(i64),
    Text(String),
    Many(Vec<Answer>),
}

impl Session {
    pub(super) fn connect(port: u16, keyspace: u8) -> anyhow::Result<Session> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut session = Session { reader: BufReader::new(stream) };
        session.ask(&["SELECT", &keyspace.to_string()])?;
        Ok(session)
    }

    /// Sends one command and waits for its answer. An error that the server answers is an error here.
    pub(super) fn ask(&mut self, words: &[&str]) -> anyhow::Result<Answer> {
        self.send(&[words])?;
        self.receive(words[0])
    }

    /// Sends commands as one MULTI and returns the answers of all.
    pub(super) fn transaction(&mut self, commands: &[&[&str]]) -> anyhow::Result<Vec<Answer>> {
        let mut all: Vec<&[&str]> = vec![&["MULTI"]];
        all.extend(commands);
        all.push(&["EXEC"]);
        self.send(&all)?;
        for command in &all[..all.len() - 1] {
            self.receive(command[0])?;
        }
        match self.receive("EXEC")? {
            Answer::Many(answers) if answers.len() == commands.len() => Ok(answers),
            other => bail!("EXEC answered {other:?}"),
        }
    }

    fn send(&mut self, commands: &[&[&str]]) -> anyhow::Result<()> {
        let mut bytes = Vec::new();
        for words in commands {
            write!(bytes, "*{}\r\n", words.len())?;
            for word in *words {
                write!(bytes, "${}\r\n{word}\r\n", word.len())?;
            }
        }
        self.reader.get_mut().write_all(&bytes)?;
        Ok(())
    }

    fn receive(&mut self, command: &str) -> anyhow::Result<Answer> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        ensure!(line.ends_with("\r\n"), "the connection was closed");
        let (mark, rest) = line.trim_end().split_at(1);
        Ok(match mark {
            "+" => Answer::Text(rest.into()),
            "-" => bail!("{command} was refused: {rest}"),
            ":" => Answer::Integer(rest.parse()?),
            "$" if rest.starts_with('-') => Answer::Nothing,
            "$" => Answer::Text(self.bulk(rest.parse()?)?),
            "*" if rest.starts_with('-') => Answer::Nothing,
            "*" => {
                let count: usize = rest.parse()?;
                Answer::Many((0..count).map(|_| self.receive(command)).collect::<anyhow::Result<_>>()?)
            }
            _ => bail!("{command} answered what the demo does not understand: {line:?}"),
        })
    }

    fn bulk(&mut self, length: usize) -> anyhow::Result<String> {
        ensure!(length <= ANSWER_BYTES_MAX, "an answer of {length} bytes");
        let mut bytes = vec![0; length + 2];
        self.reader.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Answer {
    /// As a string; nothing is empty.
    pub(super) fn text(&self) -> String {
        match self {
            Answer::Nothing => String::new(),
            Answer::Integer(number) => number.to_string(),
            Answer::Text(text) => text.clone(),
            Answer::Many(answers) => answers.iter().map(Answer::text).collect::<Vec<_>>().join(" "),
        }
    }

    /// For the reader.
    pub(super) fn shown(&self) -> String {
        match self {
            Answer::Nothing => "(nothing)".into(),
            Answer::Many(answers) if answers.is_empty() => "(empty)".into(),
            other => other.text(),
        }
    }

    pub(super) fn contains(&self, wanted: &str) -> bool {
        matches!(self, Answer::Many(answers) if answers.iter().any(|answer| answer.text() == wanted))
    }
}
