//! The client's side of RESP2, written apart from `ensue-resp` so that the simulator does not trust what it tests.

use bytes::Bytes;
use ensue_types::Args;
use std::fmt;

/// One answer as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Status(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Answer>),
}

impl Answer {
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Answer::Bulk(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        self.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    pub fn error(&self) -> Option<&str> {
        match self {
            Answer::Error(words) => Some(words),
            _ => None,
        }
    }
}

/// A command as a client sends it: words split at blanks.
pub fn args(text: &str) -> Args {
    text.split_whitespace().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

/// Answers of one connection, as their bytes arrive.
#[derive(Debug, Default)]
pub struct Answers {
    bytes: Vec<u8>,
}

impl Answers {
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole answer; an error if the bytes are no RESP2.
    pub fn pop(&mut self) -> Result<Option<Answer>, String> {
        let mut at = 0;
        match parse(&self.bytes, &mut at) {
            Ok(answer) => {
                self.bytes.drain(..at);
                Ok(Some(answer))
            }
            Err(Stop::More) => Ok(None),
            Err(Stop::Bad(why)) => Err(why),
        }
    }
}

enum Stop {
    More,
    Bad(String),
}

fn parse(bytes: &[u8], at: &mut usize) -> Result<Answer, Stop> {
    let line = line(bytes, at)?;
    let Some((&kind, rest)) = line.split_first() else { return Err(Stop::Bad("empty line".to_owned())) };
    let text = String::from_utf8_lossy(rest).into_owned();
    match kind {
        b'+' => Ok(Answer::Status(text)),
        b'-' => Ok(Answer::Error(text)),
        b':' => number(&text).map(Answer::Integer),
        b'$' => match number(&text)? {
            -1 => Ok(Answer::Nil),
            length if length >= 0 => bulk(bytes, at, length as usize),
            length => Err(Stop::Bad(format!("bulk of length {length}"))),
        },
        b'*' => match number(&text)? {
            -1 => Ok(Answer::Nil),
            length => (0..length).map(|_| parse(bytes, at)).collect::<Result<_, _>>().map(Answer::Array),
        },
        _ => Err(Stop::Bad(format!("unexpected {:?}", String::from_utf8_lossy(line)))),
    }
}

fn line<'a>(bytes: &'a [u8], at: &mut usize) -> Result<&'a [u8], Stop> {
    let rest = &bytes[*at..];
    let end = rest.windows(2).position(|pair| pair == b"\r\n").ok_or(Stop::More)?;
    *at += end + 2;
    Ok(&rest[..end])
}

fn bulk(bytes: &[u8], at: &mut usize, length: usize) -> Result<Answer, Stop> {
    let rest = &bytes[*at..];
    if rest.len() < length + 2 {
        return Err(Stop::More);
    }
    if &rest[length..length + 2] != b"\r\n" {
        return Err(Stop::Bad("bulk without its end".to_owned()));
    }
    *at += length + 2;
    Ok(Answer::Bulk(rest[..length].to_vec()))
}

fn number(text: &str) -> Result<i64, Stop> {
    text.parse().map_err(|_| Stop::Bad(format!("no number: {text:?}")))
}

impl fmt::Display for Answer {
    /// As scripts and people write answers: text bare where it can be, nil, arrays in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Status(text) => write!(f, "{text}"),
            Answer::Error(text) => write!(f, "error {text}"),
            Answer::Integer(number) => write!(f, "{number}"),
            Answer::Bulk(bytes) => write!(f, "\"{}\"", String::from_utf8_lossy(bytes)),
            Answer::Nil => write!(f, "nil"),
            Answer::Array(items) => {
                let items: Vec<String> = items.iter().map(Answer::to_string).collect();
                write!(f, "[{}]", items.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Answers};

    #[test]
    fn answers_arrive_in_pieces() {
        let bytes = b"+OK\r\n$3\r\na\r\n\r\n*2\r\n:-4\r\n$-1\r\n-ERR no\r\n";
        for cut in 0..bytes.len() {
            let mut answers = Answers::default();
            let mut seen = Vec::new();
            for piece in [&bytes[..cut], &bytes[cut..]] {
                answers.extend(piece);
                while let Some(answer) = answers.pop().unwrap() {
                    seen.push(answer.to_string());
                }
            }
            assert_eq!(seen, ["OK", "\"a\r\n\"", "[-4 nil]", "error ERR no"]);
        }
    }

    #[test]
    fn bytes_that_are_no_answer() {
        let mut answers = Answers::default();
        answers.extend(b"!x\r\n");
        assert!(answers.pop().is_err());
        assert_eq!(Answer::Bulk(b"a".to_vec()).text(), Some("a"));
    }
}
