//! One client: a connection, a session of the history, and what it waits for.

use super::command::Command;
use super::escrows;
use super::model::Model;
use super::named::Named;
use super::streams;
use crate::oracle::history::{OperationIndex, PowerLost, SessionIndex};
use crate::random::Random;
use crate::resp::{Answer, Answers};
use crate::world::event::ConnectionId;
use crate::world::shape::Site;
use ensue_types::DatacenterId;
use std::collections::{BTreeMap, VecDeque};

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
    /// Gives the session its name.
    Name,
    /// Asks for the token; with it the client goes to this core, or adds its past to the board for others.
    Token {
        to: Option<Site>,
    },
    /// Shows a token: the session's own of before, or another's. It was made by this operation, or forged of it.
    Merge {
        own: bool,
        of: OperationIndex,
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
    /// What it calls its session, in some worlds.
    pub named: Option<Named>,
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
    /// When it was last in each datacenter.
    pub places: Places,
    pub expiring: Option<Expiring>,
}

/// Private keys that are no longer used, and their certain content.
#[derive(Clone, Debug)]
pub struct Relic {
    pub prefix: String,
    pub model: Model,
    pub certain: bool,
    /// When their client was last in each datacenter.
    pub places: Places,
}

/// When somebody was last in each datacenter.
pub type Places = BTreeMap<DatacenterId, u64>;

/// Whether a power failure may have taken something of a client that was in these places.
pub fn may_have_lost(places: &Places, losses: &[PowerLost]) -> bool {
    losses.iter().any(|loss| places.get(&loss.datacenter).is_some_and(|&at_us| at_us >= loss.since_us))
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
            named: None,
            token: None,
            prefix: format!("k{session}-"),
            given_up: 0,
            model: Model::default(),
            fell_back_us: None,
            model_uncertain: false,
            places: Places::new(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::PartitionId;

    #[test]
    fn a_power_failure_takes_nothing_of_who_was_elsewhere_or_had_left_before_it_was_synced() {
        let loss = |datacenter, since_us| {
            let (datacenter, partition) = (DatacenterId(datacenter), PartitionId(0));
            PowerLost { datacenter, partition, since_us, at_us: 100, is_whole: false }
        };
        let places = Places::from([(DatacenterId(0), 50), (DatacenterId(1), 90)]);
        assert!(may_have_lost(&places, &[loss(0, 40)]));
        assert!(!may_have_lost(&places, &[loss(0, 60)]));
        assert!(!may_have_lost(&places, &[loss(2, 0)]));
        assert!(may_have_lost(&places, &[loss(2, 0), loss(1, 90)]));
    }
}
