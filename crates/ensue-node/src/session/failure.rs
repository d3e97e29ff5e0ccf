//! Why an exchange ended without its answer, and the words for it.
//!
//! A read that got no answer changed nothing: `UNAVAILABLE`. A write that got none may have been made: `UNKNOWN`. A
//! client that retries must be able to tell them apart.

use ensue_types::{PartitionId, Reply};

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Timeout,
    LinkDown,
    /// There was no link when it was to be asked, so nothing was asked of anybody.
    Away,
}

/// An exchange that ended without its answer.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// This partition of the datacenter of this name did not answer.
    NoAnswer { datacenter: String, partition: PartitionId, reason: Reason },
    /// The home of its keys has not answered, for this reason.
    NoAnswerAtHome { home: String, what: &'static str },
    /// It said why not.
    Refused(Reply),
}

impl Failure {
    /// The answer to one command of the exchange.
    pub(super) fn reply(&self, may_have_written: bool) -> Reply {
        let (datacenter, partition, reason) = match self {
            Failure::Refused(reply) => return reply.clone(),
            Failure::NoAnswerAtHome { home, what } => return at_home(home, what, may_have_written),
            Failure::NoAnswer { datacenter, partition, reason } => (datacenter, partition, reason),
        };
        let what = match reason {
            Reason::Timeout => "did not answer in time",
            Reason::LinkDown => "became unreachable before it answered",
            Reason::Away => {
                let words = format!(
                    "UNAVAILABLE partition {partition} of {datacenter} is on a node that is down or cannot be reached: \
                     nothing was executed, try again when it is back"
                );
                return Reply::Error(words.into());
            }
        };
        let words = if may_have_written {
            format!(
                "UNKNOWN partition {partition} of {datacenter} {what}: the write may or may not have been made"
            )
        } else {
            format!("UNAVAILABLE partition {partition} of {datacenter} {what}")
        };
        Reply::Error(words.into())
    }
}

fn at_home(home: &str, what: &str, may_have_written: bool) -> Reply {
    let (word, rest) = match may_have_written {
        true => ("UNKNOWN", "it may or may not have been executed"),
        false => ("HOMEAWAY", "nothing was changed"),
    };
    Reply::Error(format!("{word} {home}, the home of these keys, {what}: {rest}").into())
}

/// An owner answered something else than what was asked.
pub(super) const UNANSWERED: Reply = Reply::error("ERR internal error: an owner left a command unanswered");

/// A write transaction was made, and not every command of it has an answer.
pub(super) const ANSWER_LOST: Reply =
    Reply::error("UNKNOWN the write was made, but an owner's answer was lost with a connection");
