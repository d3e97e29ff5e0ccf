//! A client of a tiny world: a few commands, one after the other, and what it was answered.

use super::case::Command;
use ensue_sim::resp::{Answer, Answers};
use ensue_sim::world::shape::Site;
use ensue_types::SessionId;
use std::sync::Arc;

/// A client and what it has seen.
#[derive(Clone, Debug)]
pub struct Client {
    pub site: Site,
    pub session: SessionId,
    pub program: Arc<Vec<Command>>,
    /// Commands sent so far.
    pub sent: usize,
    pub answers: Vec<Answer>,
    /// Its connection is gone: what is not answered never will be.
    pub gone: bool,
}

impl Client {
    pub fn new(site: Site, session: SessionId, program: Arc<Vec<Command>>) -> Client {
        Client { site, session, program, sent: 0, answers: Vec::new(), gone: false }
    }

    /// The next command, if nothing is in its way.
    pub fn next(&self) -> Option<&Command> {
        if self.gone || self.answers.len() < self.sent { None } else { self.program.get(self.sent) }
    }

    pub fn is_waiting(&self) -> bool {
        !self.gone && self.answers.len() < self.sent
    }

    /// Bytes of whole answers arrive.
    pub fn hear(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut incoming = Answers::default();
        incoming.extend(bytes);
        while let Some(answer) = incoming.pop()? {
            self.answers.push(answer);
        }
        Ok(())
    }
}
