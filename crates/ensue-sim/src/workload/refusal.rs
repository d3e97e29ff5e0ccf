//! Answers by which a protocol says that it would have had to wait too long: `BLOCKED` and `FALLBACK`.
//!
//! What was asked had no effect. After `BLOCKED` the session goes on. After `FALLBACK` it is a new one, which knows
//! nothing of its past, on the same connection: what was sent behind the refused request belongs to the new session.

use super::client::{Purpose, Request};
use super::command::Expect;
use super::{Workload, names_several};
use crate::oracle::history::{OperationIndex, Outcome};
use crate::oracle::{Violation, property};
use crate::resp::Answer;
use crate::world::World;
use crate::world::marks::{Mark, Marks};
use ensue_protocol::{Availability, Promises, Recency};
use ensue_types::Args;

/// What such an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Blocked,
    FellBack,
    /// What the session had seen was discarded with a dead datacenter.
    Parted,
    /// A script that does not end by itself.
    Stopped,
}

impl Refusal {
    /// Nothing if the error is another one, or none that the protocol may give.
    pub(super) fn of(error: &Answer, request: &Request, promises: Promises) -> Option<Refusal> {
        let text = error.error()?;
        // Who shows a token and fails begins anew, whatever the error is.
        if matches!(request.purpose, Purpose::Merge { .. }) {
            return None;
        }
        let is_endless = |expect: &Expect| matches!(expect, Expect::Stopped);
        if text.starts_with("SCRIPTSTOPPED ") && request.commands.iter().any(|one| is_endless(&one.expect)) {
            return Some(Refusal::Stopped);
        }
        let is_of_counter = text.starts_with("BLOCKED ") && text.contains(" the counter");
        match promises.availability {
            Availability::Blocks if text.starts_with("BLOCKED ") => Some(Refusal::Blocked),
            Availability::FallsBack if text.starts_with("FALLBACK ") => Some(Refusal::FellBack),
            // Of a bounded counter, of which the session does not see all.
            Availability::FallsBack if text.starts_with("BLOCKED ") => Some(Refusal::Blocked),
            _ if promises.recency == Recency::OwnPast && is_of_counter => Some(Refusal::Blocked),
            _ if text.starts_with("DISCARDED ") => Some(Refusal::Parted),
            _ => None,
        }
    }
}

impl Workload {
    /// How long a request may wait for other datacenters before it must be answered.
    pub fn waits_us(&self, world: &World) -> u64 {
        let tuning = &world.options.tuning;
        1_000
            * match self.history.promises.availability {
                Availability::Always => 0,
                Availability::Blocks => tuning.request_timeout_ms,
                Availability::FallsBack => 2 * tuning.block_ms_max,
            }
    }

    pub(super) fn refuse(
        &mut self,
        world: &mut World,
        marks: &mut Marks,
        index: usize,
        request: Request,
        refusal: Refusal,
    ) -> Result<(), Violation> {
        let (mark, limit_ms) = match refusal {
            Refusal::Blocked => (Mark::Blocked, world.options.tuning.request_timeout_ms),
            Refusal::FellBack => (Mark::FellBack, world.options.tuning.block_ms_max),
            Refusal::Parted => (Mark::Parted, 0),
            Refusal::Stopped => (Mark::ScriptStopped, 0),
        };
        marks.add(mark);
        let operation = &mut self.history.operations[request.operation];
        operation.outcome = Outcome::Refused;
        operation.answered_us = world.now();
        if refusal == Refusal::Stopped {
            return Ok(());
        }
        let all = usize::from(world.options.shape.datacenters);
        // Nothing is lost with one that is removed.
        let is_lost = world.survivors().len() < all && !world.options.faults.retires;
        let parted_too_soon = refusal == Refusal::Parted && !is_lost;
        if !world.options.may_wait(limit_ms) || parted_too_soon {
            let words = format!(
                "refused though nothing keeps other datacenters from being heard: {}",
                self.history.describe(request.operation)
            );
            return Err(Violation::new(property::AVAILABILITY, words));
        }
        if refusal == Refusal::FellBack {
            self.falls_back_once(world, index, &request)?;
        }
        if matches!(refusal, Refusal::FellBack | Refusal::Parted) {
            self.fall_back(index, &request);
        } else if request.private {
            self.give_up_private(index, true);
        }
        Ok(())
    }

    /// Who fell back knows nothing that one owner alone would have to wait for, in the keyspace in which it did: each
    /// has a past of its own. What changes the keyspace is asked in the other one.
    fn falls_back_once(
        &mut self,
        world: &mut World,
        index: usize,
        request: &Request,
    ) -> Result<(), Violation> {
        if request.commands.iter().any(|command| &command.args[0][..] == b"SELECT") {
            return Ok(());
        }
        let operation = &self.history.operations[request.operation];
        let healthy = world.healthy_since(operation.datacenter);
        let before = self.clients[index].fell_back_us.replace(world.now());
        let one_owner = request.commands.len() == 1 && !names_several(&request.commands[0]);
        let again = before.is_some_and(|at| {
            at <= request.invoked_us && one_owner && healthy.is_some_and(|since| since <= at)
        });
        if again {
            let words = format!(
                "falls back a second time, and was served nothing since the first: {}",
                self.history.describe(request.operation)
            );
            return Err(Violation::new(property::AVAILABILITY, words));
        }
        Ok(())
    }

    fn fall_back(&mut self, index: usize, request: &Request) {
        let datacenter = self.history.operations[request.operation].datacenter;
        let behind: Vec<OperationIndex> =
            self.clients[index].waiting.iter().map(|request| request.operation).collect();
        let session = self.history.begin_with(&behind);
        self.give_up_private(index, request.private);
        self.part_from_name(datacenter, index);
        let client = &mut self.clients[index];
        client.session = session;
        client.expiring = None;
        for request in &mut client.waiting {
            for command in &mut request.commands {
                if matches!(command.expect, Expect::Expiring { .. }) {
                    command.expect = Expect::Anything;
                }
            }
        }
    }

    /// The client takes new private keys, since what the old ones hold is uncertain, or may not be shown to it.
    pub(super) fn give_up_private(&mut self, index: usize, mut uncertain: bool) {
        let client = &mut self.clients[index];
        client.given_up += 1;
        for request in client.waiting.iter_mut().filter(|request| request.private) {
            request.private = false;
            uncertain = true;
            request.commands.iter_mut().for_each(|command| command.expect = Expect::Anything);
        }
        client.model_uncertain |= uncertain;
        self.bury(index);
        let client = &mut self.clients[index];
        client.prefix = format!("k{}.{}-", client.session, client.given_up);
    }
}

/// How many of a request's commands may wait, one after the other: those of a `MULTI` wait together, at its `EXEC`.
pub(super) fn waiting_commands(commands: &[Args]) -> u64 {
    let mut is_queued = false;
    let waits = |args: &&Args| {
        match &args[0][..] {
            b"MULTI" => is_queued = true,
            b"EXEC" => is_queued = false,
            _ => {}
        }
        !is_queued && args[0] != b"SELECT"[..]
    };
    commands.iter().filter(waits).count() as u64
}

#[cfg(test)]
mod tests;
