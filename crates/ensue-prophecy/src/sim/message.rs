//! What travels between callers and replicas, and the commands and replies in it.

use crate::distributed::FastAnswer;
use crate::history::{ObjectId, Value};
use crate::replica_client::{CallNumber, ReplicatedAnswer};
use crate::sketcher::Replica;

/// Who issues replicated requests: a session, an external writer, or a client of D-Prophecy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Caller(pub(super) usize);

/// To a replica.
#[derive(Clone, Debug)]
pub(super) enum ToReplica {
    Fast { caller: Caller, attempt: u64, request: Vec<u8>, executes: bool },
    Call { caller: Caller, number: CallNumber, request: Vec<u8> },
}

/// From a replica.
#[derive(Clone, Debug)]
pub(super) enum FromReplica {
    Fast { caller: Caller, attempt: u64, replica: Replica, answer: FastAnswer },
    Call { caller: Caller, number: CallNumber, replica: Replica, answer: ReplicatedAnswer },
}

/// A command of the modelled service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Get(ObjectId),
    Set(ObjectId, Value),
}

impl Command {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Command::Get(object) => {
                ensue_resp::encode::encode_command(&["GET".to_string(), object.0.to_string()], &mut out);
            }
            Command::Set(object, value) => {
                let words = ["SET".to_string(), object.0.to_string(), value.0.to_string()];
                ensue_resp::encode::encode_command(&words, &mut out);
            }
        }
        out
    }

    pub(super) fn decode(request: &[u8]) -> Command {
        let text = std::str::from_utf8(request).expect("the simulator made it");
        let words: Vec<&str> = text.split("\r\n").skip(2).step_by(2).collect();
        let number = |place: usize| words[place].parse().expect("the simulator made it");
        match words[0] {
            "GET" => Command::Get(ObjectId(number(1))),
            _ => Command::Set(ObjectId(number(1)), Value(number(2))),
        }
    }
}

pub(super) fn reply_of(value: Value) -> Vec<u8> {
    let text = value.0.to_string();
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

/// The value of a reply to a read; whatever a liar made up is a value that nobody wrote.
pub(super) fn value_of(reply: &[u8]) -> Value {
    let text = std::str::from_utf8(reply).unwrap_or_default();
    Value(text.split("\r\n").nth(1).and_then(|number| number.parse().ok()).unwrap_or(u64::MAX))
}

pub(super) const REPLY_OF_WRITE: &[u8] = b"+OK\r\n";
