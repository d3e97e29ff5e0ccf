//! One connection, one session, as the story needs it: words go out, text comes back, a refusal is an error.

use anyhow::bail;
use ensue_client::{Connection, Options, Reply};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Session {
    connection: Connection,
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
        let options = Options { keyspace, answer_timeout: PATIENCE, ..Options::local(port) };
        Ok(Session { connection: Connection::open(&options)? })
    }

    /// Sends one command and waits for its answer.
    pub(super) fn ask(&mut self, words: &[&str]) -> anyhow::Result<Answer> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        Answer::of(&self.connection.call(&words)?)
    }

    /// Sends commands as one MULTI and returns the answers of all.
    pub(super) fn transaction(&mut self, commands: &[&[&str]]) -> anyhow::Result<Vec<Answer>> {
        let mut all: Vec<Vec<&[u8]>> = vec![vec![b"MULTI"]];
        all.extend(commands.iter().map(|words| words.iter().map(|word| word.as_bytes()).collect()));
        all.push(vec![b"EXEC"]);
        let all: Vec<&[&[u8]]> = all.iter().map(Vec::as_slice).collect();
        let replies = self.connection.pipeline(&all)?;
        let mut answers = replies.iter().map(Answer::of).collect::<anyhow::Result<Vec<_>>>()?;
        match answers.pop() {
            Some(Answer::Many(answers)) if answers.len() == commands.len() => Ok(answers),
            other => bail!("EXEC answered {other:?}"),
        }
    }
}

impl Answer {
    fn of(reply: &Reply) -> anyhow::Result<Answer> {
        let text = |bytes: &[u8]| Answer::Text(String::from_utf8_lossy(bytes).into_owned());
        Ok(match reply {
            Reply::Error(reason) => bail!("refused: {reason}"),
            Reply::Nil | Reply::NilArray => Answer::Nothing,
            Reply::Integer(number) => Answer::Integer(*number),
            Reply::Status(words) => text(words.as_bytes()),
            Reply::Bulk(bytes) | Reply::Verbatim(bytes) | Reply::BigNumber(bytes) => text(bytes),
            Reply::Array(replies) | Reply::Set(replies) => Answer::many(&mut replies.iter())?,
            Reply::Map(pairs) | Reply::Pairs(pairs) | Reply::Keyed(pairs) => {
                Answer::many(&mut pairs.iter().flat_map(|(key, value)| [key, value]))?
            }
            Reply::Double(number) => text(number.to_string().as_bytes()),
            Reply::Boolean(yes) => Answer::Integer(i64::from(*yes)),
        })
    }

    fn many(replies: &mut dyn Iterator<Item = &Reply>) -> anyhow::Result<Answer> {
        Ok(Answer::Many(replies.map(Answer::of).collect::<anyhow::Result<_>>()?))
    }

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
