//! A partition that starts with an empty directory finds out whether its datacenter has lost an earlier one.
//!
//! It serves nothing and introduces itself to the same partition of every other datacenter. All must answer:
//!
//! - Nobody knows an earlier directory: it is the datacenter's first, and is served.
//! - Some know an earlier one: that directory was lost, or is not where this process looks for it. If every other
//!   datacenter serves, still has its whole log, and has applied all that it received of the lost one, everything can
//!   be sent again: the partition takes over the earlier identity, takes its own stream back (`regain`), receives the
//!   others' from their beginnings (`catch_up`), and serves when all of that is applied.
//! - Otherwise nothing can be served that would be causally complete: sessions are told `REJOIN` and what to do, and
//!   the others are asked again every second, for an operator may put that right.
//!
//! The same happens to a directory that was found to be an old copy which was written to: it is never served again.

use super::recover::Stage;
use super::regain::is_given_up;
use crate::partition::Partition;
use crate::partition::journal::open::Open;
use crate::trace::Trace;
use ensue_types::{DatacenterId, DirectoryId, Incarnation, Rule};
use ensue_wire::{Envelope, Introduction, Message};
use std::collections::BTreeMap;

/// How often the other datacenters are asked.
pub(in crate::partition) const REQUEST_INTERVAL_US: u64 = 1_000_000;

/// The other datacenters are being asked.
#[derive(Clone, Debug, Default)]
pub struct Joining {
    records: u64,
    open: Open,
    pub(in crate::partition) answers: BTreeMap<DatacenterId, Introduction>,
    /// Datacenters that were declared dead meanwhile, one bit each.
    pub(in crate::partition) without: u16,
    /// Why it cannot be served though all have answered.
    refusal: Option<String>,
}

impl Partition {
    /// The log was read, and the superblock says that nobody has admitted this directory yet.
    pub(in crate::partition) fn begin_to_join(&mut self, records: u64, open: Open) {
        self.cx.trace(Trace::Joining { partition: self.cx.id });
        self.enter(Stage::Joining(Box::new(Joining { records, open, ..Joining::default() })));
        self.request_introductions();
        self.take_early();
        self.join_when_all_have_answered();
    }

    /// Introduces this partition to those that have not answered, or whose answer may change.
    pub(in crate::partition) fn request_introductions(&mut self) {
        self.peers.identity.next_request_us = self.cx.now.monotonic_us + REQUEST_INTERVAL_US;
        let others: Vec<DatacenterId> = self.others.living().collect();
        others.into_iter().for_each(|datacenter| self.peering().introduce(datacenter, true));
    }

    pub(in crate::partition) fn on_message_joining(&mut self, envelope: Envelope) {
        let from = envelope.from.datacenter();
        self.others.take_time(&mut self.cx, &envelope);
        match envelope.message {
            Message::Introduce(introduction) if self.others.replication.senders.contains_key(&from) => {
                let asks = introduction.asks;
                self.peers.keep_the_log_for(&mut self.cx, &self.others, from, &introduction);
                if let Stage::Joining(joining) = &mut self.stage {
                    joining.answers.insert(from, introduction);
                }
                if asks {
                    self.peering().introduce(from, false);
                }
                self.join_when_all_have_answered();
            }
            Message::Dead { datacenter, .. } => {
                if let (Stage::Joining(joining), 0..16) = (&mut self.stage, datacenter.0) {
                    joining.without |= 1 << datacenter.0;
                }
                self.keep_early(envelope);
                self.join_when_all_have_answered();
            }
            _ if matches!(envelope.from, ensue_wire::Address::Core { .. }) => {
                let reason = self.joining_words();
                self.refuse(&envelope, &reason);
            }
            // Partitions of this datacenter wait, and those of others send again what they are not answered.
            _ if from == self.cx.datacenter => self.keep_early(envelope),
            _ => {}
        }
    }

    /// What sessions are told, and an operator is to do.
    fn joining_words(&self) -> String {
        let Stage::Joining(joining) = &self.stage else { return String::new() };
        let missing: Vec<String> =
            self.others.awaited(joining).into_iter().map(|d| self.cx.name_of(d)).collect();
        match (&joining.refusal, missing.is_empty()) {
            (Some(reason), true) => format!("REJOIN partition {}: {reason}", self.cx.id),
            _ => format!(
                "LOADING partition {} starts with an empty directory and waits for {} to say that this datacenter has not \
                 lost an earlier one: start them and heal the links, or, if the cluster is new or they are gone for \
                 good, start this process with `--first-start alone`",
                self.cx.id,
                missing.join(", ")
            ),
        }
    }

    fn join_when_all_have_answered(&mut self) {
        let Stage::Joining(joining) = &self.stage else { return };
        let asks = Rule::AskBeforeTheFirstServing.holds();
        if asks && !self.others.awaited(joining).is_empty() {
            return;
        }
        let living = joining.answers.iter().filter(|(d, _)| !is_given_up(joining.without, **d));
        let answers: Vec<(DatacenterId, Introduction)> = living.map(|(d, i)| (*d, i.clone())).collect();
        let is_of_another = |introduction: &Introduction| {
            introduction.known != DirectoryId::UNKNOWN
                && (introduction.known != self.peers.identity.own || introduction.received > self.cx.position)
        };
        if !asks || !answers.iter().any(|(_, introduction)| is_of_another(introduction)) {
            return self.serve_as_first();
        }
        let gone = joining.without;
        match self.peers.lost_directory(&self.cx, &self.others, gone, &answers) {
            Ok(directory) => self.rejoin(directory, &answers),
            Err(reason) => {
                let Stage::Joining(joining) = &mut self.stage else { return };
                if joining.refusal.as_ref() != Some(&reason) {
                    joining.refusal = Some(reason.clone());
                    self.cx.trace(Trace::CannotRejoin { partition: self.cx.id, reason });
                }
            }
        }
    }

    /// Nobody knows an earlier directory.
    fn serve_as_first(&mut self) {
        let Stage::Joining(joining) = &mut self.stage else { return };
        let (records, open, answers) =
            (joining.records, std::mem::take(&mut joining.open), std::mem::take(&mut joining.answers));
        self.serve(records, open, None);
        for (datacenter, introduction) in &answers {
            self.peering().on_introduce(*datacenter, introduction);
            self.halt_if_found();
        }
    }

    /// Goes on under the identity that was lost, and takes everything back.
    fn rejoin(&mut self, directory: DirectoryId, answers: &[(DatacenterId, Introduction)]) {
        let Stage::Joining(joining) = &mut self.stage else { return };
        let (records, open, without) = (joining.records, std::mem::take(&mut joining.open), joining.without);
        self.peers.identity.own = directory;
        self.peers.identity.rejoined = true;
        let of_others = answers.iter().map(|(_, introduction)| introduction.received.incarnation());
        self.cx.incarnation = of_others.fold(self.cx.incarnation, Incarnation::max);
        let boot_id = self.cx.config.boot_id;
        if let Some(superblock) = &mut self.durability.superblock {
            superblock.directory = directory;
            superblock.not_admitted = false;
            // Until it has caught up, another start must catch up too.
            let _ = superblock.mark_tail_lost(boot_id);
        }
        self.cx.trace(Trace::Rejoining { partition: self.cx.id });
        self.begin_to_regain(without, records, open);
    }
}
