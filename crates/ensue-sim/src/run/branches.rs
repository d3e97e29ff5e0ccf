//! Quiescence of a keyspace with branches: all datacenters come to the same leaves, everything is read at them, and
//! what nobody needs any more is collected.

use super::Run;
use super::settle::{LOOK_AGAIN_US, RECONNECT_US, SETTLE_US_MAX, figure};
use crate::branching::clients::BranchClients;
use crate::branching::oracle as branch_oracle;
use crate::branching::property as branch_property;
use crate::branching::rest;
use crate::oracle::history::Outcome;
use crate::oracle::{Violation, property};
use crate::resp::Answer;
use crate::resp::args;
use crate::world::marks::Mark;
use ensue_types::{Args, DatacenterId};

/// What a datacenter is asked when everything is at rest.
const LOOK: [&str; 4] = ["BRANCH LIST", "BRANCH DIGEST LEAVES", "BRANCH INFO", "INFO"];
/// With one leaf and ceilings on it everywhere, so many states may be left: the leaf, and what the last collection left
/// above it.
const STATES_LEFT: u64 = 1;

impl Run {
    /// Waits for convergence, reads everything everywhere, judges, and has everything collected.
    pub(super) fn settle_branches(&mut self, clients: &mut BranchClients) -> Result<(), Violation> {
        clients.go(&mut self.world);
        self.nurse(clients)?;
        self.await_removal(clients)?;
        self.let_owners_settle(clients)?;
        self.idle(clients, RECONNECT_US)?;
        clients.options.lost = self.lost();
        clients.options.restarted = self.world.restarted();
        if !clients.options.lost.is_empty() {
            self.declare_the_lost(clients)?;
        }
        let restless = self.come_to_one(clients)?;
        clients.options.final_us = Some(self.world.now());
        let read = self.read_leaves(clients);
        branch_oracle::judge(&clients.history, &clients.options)?;
        read?;
        restless.map_or(Ok(()), Err)?;
        self.join_and_collect(clients)
    }

    /// Looks again and again until all have the same leaves and nothing waits. What is wrong, if time runs out.
    fn come_to_one(&mut self, clients: &mut BranchClients) -> Result<Option<Violation>, Violation> {
        let deadline = self.world.now() + SETTLE_US_MAX;
        loop {
            let Some(wrong) = self.differ(clients)? else { return Ok(None) };
            if self.world.now() > deadline {
                return Ok(Some(wrong));
            }
            self.idle(clients, LOOK_AGAIN_US)?;
        }
    }

    fn differ(&mut self, clients: &mut BranchClients) -> Result<Option<Violation>, Violation> {
        let mut seen: Vec<String> = Vec::new();
        for datacenter in self.world.survivors() {
            let answers = match self.ask(clients, datacenter, LOOK.map(args).to_vec())? {
                Ok(answers) => answers,
                Err(violation) => return Ok(Some(violation)),
            };
            if let Some(error) = answers.iter().find(|answer| answer.error().is_some()) {
                let words = format!("{datacenter} answers {error}");
                return Ok(Some(Violation::new(property::PROGRESS, words)));
            }
            self.marks.add(Mark::Digest);
            if let Some(what) = rest::unfinished(&answers[2]) {
                let words = format!("{what} for ever in {datacenter}");
                return Ok(Some(Violation::new(property::PROGRESS, words)));
            }
            if figure(&answers[3], "ensue_disk_full") != Some(0) {
                let words = format!("{datacenter} refuses writes though no disk is full");
                return Ok(Some(Violation::new(property::PROGRESS, words)));
            }
            seen.push(format!("{} {}", answers[0], answers[1]));
        }
        if seen.iter().any(|one| *one != seen[0]) {
            return Ok(Some(Violation::new(property::CONVERGENCE, seen.join("\n"))));
        }
        Ok(None)
    }

    /// What a fresh session is told at every leaf, the same in every datacenter.
    fn read_leaves(&mut self, clients: &mut BranchClients) -> Result<(), Violation> {
        let keys = rest::written_keys(&clients.history);
        let mut first: Option<Vec<Answer>> = None;
        for datacenter in self.world.survivors() {
            let found =
                self.ask_told(clients, datacenter, vec![args("BRANCH LIST"), args("BRANCH LOG COUNT 0")])?;
            let commands = rest::questions(&keys, &found[0], clients.options.optimistic);
            let answers = self.ask_told(clients, datacenter, commands.clone())?;
            let first = first.get_or_insert_with(|| answers.clone());
            if let Some(why) = rest::difference(&commands, &answers, first) {
                return Err(Violation::new(property::CONVERGENCE, format!("{datacenter}: {why}")));
            }
        }
        Ok(())
    }

    /// Asks a fresh session, and writes down what it is answered.
    fn ask_told(
        &mut self,
        clients: &mut BranchClients,
        datacenter: DatacenterId,
        commands: Vec<Args>,
    ) -> Result<Vec<Answer>, Violation> {
        let session = clients.history.session();
        let now = self.world.now();
        let operation = clients.history.invoke(session, datacenter, now, commands.clone(), Vec::new());
        let answers = self.ask(clients, datacenter, commands)??;
        let now = self.world.now();
        clients.history.said.insert(operation, answers.iter().map(|answer| (now, answer.clone())).collect());
        let told = &mut clients.history.operations[operation];
        (told.answered_us, told.outcome) = (now, Outcome::Done);
        Ok(answers)
    }

    /// One merge joins all leaves, every datacenter places a ceiling on what is left, and then nothing else is kept.
    fn join_and_collect(&mut self, clients: &mut BranchClients) -> Result<(), Violation> {
        let survivors = self.world.survivors();
        let merging = self.world.options.tuning.branching.merging_datacenter.unwrap_or(survivors[0]);
        if !survivors.contains(&merging) {
            return Ok(());
        }
        let leaves = self.ask(clients, merging, vec![args("BRANCH LIST")])??;
        if matches!(&leaves[0], Answer::Array(leaves) if leaves.len() > 1) {
            self.merge_all(clients, merging)?;
        }
        self.come_to_one(clients)?.map_or(Ok(()), Err)?;
        let digests = self.digests(clients)?;
        for &datacenter in &survivors {
            let answers = self.ask(clients, datacenter, vec![args("BRANCH CEILING")])??;
            if let Some(error) = answers[0].error() {
                let words = format!("{datacenter} answers {error} to a ceiling");
                return Err(Violation::new(property::AVAILABILITY, words));
            }
        }
        let deadline = self.world.now() + SETTLE_US_MAX;
        loop {
            let left = self.left(clients)?;
            let Some(words) = left else { break };
            if self.world.now() > deadline {
                return Err(Violation::new(branch_property::BOUND, words));
            }
            self.idle(clients, LOOK_AGAIN_US)?;
        }
        let after = self.digests(clients)?;
        if after != digests {
            let words = format!("before the last collection {digests:?}, after it {after:?}");
            return Err(Violation::new(property::CONVERGENCE, words));
        }
        Ok(())
    }

    /// A datacenter whose clock was wild takes no writes before the others' time has come as far as its own.
    fn merge_all(&mut self, clients: &mut BranchClients, merging: DatacenterId) -> Result<(), Violation> {
        let merge = ["BRANCH MERGE", "SET tend vend", "BRANCH COMMIT"].map(args);
        let deadline = self.world.now() + 1_000 * self.world.options.clock.wild_ms + LOOK_AGAIN_US;
        loop {
            let answers = self.ask(clients, merging, merge.to_vec())??;
            let mut errors = answers.iter().filter_map(Answer::error);
            let Some(error) = errors.next() else { return Ok(()) };
            if !error.starts_with("CLOCKAHEAD ") || self.world.now() > deadline {
                let words = format!("{merging} answers {error} when all leaves are merged");
                return Err(Violation::new(branch_property::MERGED, words));
            }
            self.idle(clients, LOOK_AGAIN_US)?;
        }
    }

    fn digests(&mut self, clients: &mut BranchClients) -> Result<Vec<String>, Violation> {
        let mut digests = Vec::new();
        for datacenter in self.world.survivors() {
            let answers = self.ask(clients, datacenter, vec![args("BRANCH DIGEST LEAVES")])??;
            digests.push(answers[0].to_string());
        }
        Ok(digests)
    }

    /// What a datacenter keeps beside the last leaf and a version of each key.
    fn left(&mut self, clients: &mut BranchClients) -> Result<Option<String>, Violation> {
        for datacenter in self.world.survivors() {
            let answers = self.ask(clients, datacenter, vec![args("BRANCH INFO")])??;
            let [states, records, keys] =
                ["states", "records", "keys"].map(|name| rest::number(&answers[0], name));
            let is_little = states.is_some_and(|states| states <= STATES_LEFT);
            if !is_little || records.is_none() || records > keys {
                return Ok(Some(format!("{datacenter}: {}", answers[0])));
            }
        }
        Ok(None)
    }
}
