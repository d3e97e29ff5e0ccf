//! One client: a connection, a session of the history, and what it waits for.

use super::command::Command;
use super::escrows;
use super::model::Model;
use super::streams;
use crate::oracle::history::{OperationIndex, SessionIndex};
use crate::random::Random;
use crate::resp::{Answer, Answers};
use crate::world::event::ConnectionId;
use crate::world::shape::Site;
use std::collections::VecDeque;

/// A key with a deadline, of one client.
#[derive(Clone, Debug)]
pub struct Expiring {
    pub key: String,
    pub value: String,
    pub ms: u64,
    pub invoked_us: u64,
    /// Known when the command is answered.
    pub gone_after_us: u64,
}

/// What a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    Work,
    /// Asks for the token; with it the client goes to this core, or adds its past to the board for others.
    Token {
        to: Option<Site>,
    },
    /// Shows a token: the session's own of before, or another's.
    Merge {
        own: bool,
    },
}

/// One operation on its way.
#[derive(Debug)]
pub struct Request {
    pub operation: OperationIndex,
    pub purpose: Purpose,
    pub commands: Vec<Command>,
    pub multi: bool,
    /// The first command was sent before the `MULTI`, behind a `WATCH`.
    pub watched: bool,
    pub total: Option<(String, i64)>,
    pub expiring: Option<Expiring>,
    pub private: bool,
    pub invoked_us: u64,
    /// Since when no earlier request of its client is unanswered.
    pub first_since_us: u64,
    /// Answers that are still to come, and those that came.
    pub missing: usize,
    pub answers: Vec<Answer>,
}

/// A token and the operation whose past it carries.
#[derive(Clone, Debug)]
pub struct Token {
    pub operation: OperationIndex,
    pub text: Vec<u8>,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    /// Chance of its own, begun anew with every step, so that a step more or less changes no other.
    pub random: Random,
    pub steps: u64,
    /// Operations still to be issued.
    pub budget: u64,
    pub site: Site,
    pub connection: Option<ConnectionId>,
    pub session: SessionIndex,
    pub incoming: Answers,
    pub waiting: VecDeque<Request>,
    /// Shown first on the next connection.
    pub token: Option<Token>,
    /// Keys that begin so are this client's alone.
    pub prefix: String,
    /// How often the session has given up such keys.
    pub given_up: u32,
    pub model: Model,
    /// When the session fell back, if it has been served nothing since.
    pub fell_back_us: Option<u64>,
    /// An operation on private keys has an unknown outcome.
    pub model_uncertain: bool,
    pub expiring: Option<Expiring>,
}

/// Private keys that are no longer used, and their certain content.
#[derive(Clone, Debug)]
pub struct Relic {
    pub prefix: String,
    pub model: Model,
    pub certain: bool,
}

impl Client {
    /// A client of a new session that issues no operation by itself.
    pub fn new(random: Random, site: Site, session: SessionIndex) -> Client {
        Client {
            random,
            steps: 0,
            budget: 0,
            site,
            connection: None,
            session,
            incoming: Answers::default(),
            waiting: VecDeque::new(),
            token: None,
            prefix: format!("k{session}-"),
            given_up: 0,
            model: Model::default(),
            fell_back_us: None,
            model_uncertain: false,
            expiring: None,
        }
    }

    /// What the next step draws depends on the seed, the client and the number of the step alone.
    pub fn next_step(&mut self, seed: u64, index: usize) {
        self.steps += 1;
        self.random = Random::stream(seed, &format!("client {index} step {}", self.steps));
    }
}

impl Request {
    /// Whether a transaction was executed although something before it was refused.
    pub fn is_executed(&self) -> bool {
        self.watched && matches!(self.answers.last(), Some(Answer::Array(_)))
    }

    /// The answers to the commands themselves: the content of `EXEC`'s for a transaction.
    pub fn results(&self) -> Result<Vec<Answer>, Answer> {
        let fails = |answer: &&Answer| {
            answer.error().is_some_and(|words| !streams::is_answer(words) && !escrows::is_answer(words))
        };
        if let Some(error) = self.answers.iter().find(fails) {
            return Err(error.clone());
        }
        if !self.multi {
            return Ok(self.answers.clone());
        }
        if self.watched {
            let after = self.commands.len() - 1;
            return match self.answers.last() {
                Some(Answer::Array(items)) if items.len() == after => {
                    Ok(self.answers[1..2].iter().chain(items).cloned().collect())
                }
                Some(Answer::Nil) => {
                    Ok(self.answers[1..2].iter().cloned().chain(vec![Answer::Nil; after]).collect())
                }
                other => Err(Answer::Error(format!("EXEC answered {other:?}"))),
            };
        }
        match self.answers.last() {
            Some(Answer::Array(items)) if items.len() == self.commands.len() => {
                match items.iter().find(|item| item.error().is_some()) {
                    Some(error) => Err(error.clone()),
                    None => Ok(items.clone()),
                }
            }
            other => Err(Answer::Error(format!("EXEC answered {other:?}"))),
        }
    }
}
