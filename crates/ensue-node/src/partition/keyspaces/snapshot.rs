//! Reads at past times, and at cuts.

use super::Keyspaces;
use crate::command;
use crate::evaluate::{Evaluation, Observed, Room};
use crate::partition::cx::Cx;
use crate::partition::others::Others;
use crate::view::{Shown, view_of};
use ensue_protocol::Choice;
use ensue_resp::Request;
use ensue_store::keyspace::Keyspace;
use ensue_store::view::View;
use ensue_types::{Args, KeyspaceId, LogicalTime, OperationId, Reply, RequestId, Source, TimeVector};
use ensue_wire::{Address, AtValues, FirstValues, Message};
use std::collections::BTreeSet;

/// A share of a first round.
#[derive(Clone, Debug)]
pub(in crate::partition) struct FirstRead {
    pub from: Address,
    pub request: RequestId,
    pub keyspace: KeyspaceId,
    pub commands: Vec<Args>,
}

/// A share of a second round.
#[derive(Clone, Debug)]
pub(in crate::partition) struct SecondRead {
    pub from: Address,
    pub request: RequestId,
    pub keyspace: KeyspaceId,
    pub commands: Vec<Args>,
    /// What is shown though it may have come after the time.
    pub with: Vec<OperationId>,
}

impl Keyspaces {
    pub(in crate::partition) fn read_with(
        &mut self,
        read: &SecondRead,
        at: LogicalTime,
    ) -> Option<(Vec<Reply>, Observed)> {
        let named: BTreeSet<OperationId> = read.with.iter().copied().collect();
        let visibility = |source: &Source| named.contains(&source.operation);
        run_all(self.keyspace(read.keyspace), &read.commands, at, View::With(at, &visibility))
    }

    /// Evaluates reads, of what is shown or of a logical time.
    pub(in crate::partition) fn read_all(
        &mut self,
        cx: &Cx,
        keyspace: KeyspaceId,
        commands: &[Args],
        at: LogicalTime,
        choice: &Choice,
    ) -> Option<(Vec<Reply>, Observed)> {
        let number = usize::from(keyspace.0);
        let shown = Shown::of(cx.protocols[number].as_ref(), choice);
        run_all(&mut self.keyspaces[number], commands, at, view_of(&shown, View::At(at)))
    }

    /// Past values of what these commands read are kept for a while: they may be asked for.
    pub(crate) fn mark<'a>(
        &mut self,
        cx: &Cx,
        keyspace: KeyspaceId,
        commands: impl IntoIterator<Item = &'a Args>,
    ) {
        if !cx.protocol(keyspace).needs().second_rounds {
            return;
        }
        let until = cx.now.monotonic_us / 1_000 + cx.config.tuning.read_mark_ms;
        let rows = &mut self.keyspaces[usize::from(keyspace.0)];
        for args in commands {
            let Some(spec) = ensue_resp::lookup(&args[0]) else { continue };
            ensue_resp::keys(spec, args).for_each(|key| rows.mark(key, until));
        }
    }

    /// First round: the values of a time with their validity, or only the promise.
    pub(in crate::partition) fn answer_first(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        read: &FirstRead,
        at: LogicalTime,
        latest_valid: LogicalTime,
    ) {
        let (request, keyspace) = (read.request, read.keyspace);
        let values = self.read_all(cx, keyspace, &read.commands, at, &Choice::Newest);
        let values = values.map(|(replies, observed)| {
            cx.statistics.count_lookups(observed.hits, observed.misses);
            FirstValues {
                replies,
                earliest_valid: observed.earliest_valid,
                seen: others.causes_of(cx, keyspace, observed.sources),
            }
        });
        cx.send(read.from, Message::ReadFirstDone { request, latest_valid, values });
    }
}

/// Evaluates reads; nothing if what they look at is forgotten.
fn run_all(
    rows: &mut Keyspace,
    commands: &[Args],
    at: LogicalTime,
    view: View<'_>,
) -> Option<(Vec<Reply>, Observed)> {
    let mut evaluation = Evaluation::reading(rows, at, view);
    let mut replies = Vec::with_capacity(commands.len());
    let mut room = Room::default();
    for args in commands {
        replies.push(match Request::parse(args) {
            // No node of ours sends one here; a broken peer may.
            Ok(request) if request.is_write() => Reply::error("ERR a write among reads"),
            Ok(request) => room.fit(command::run(&request, &mut evaluation).ok()?, false),
            Err(error) => error.reply(),
        });
    }
    Some((replies, evaluation.observed))
}

impl Keyspaces {
    /// The newest versions within a cut.
    pub(in crate::partition) fn read_snapshot_values(
        &mut self,
        cx: &mut Cx,
        others: &Others,
        keyspace: KeyspaceId,
        snapshot: &TimeVector,
        commands: &[Args],
    ) -> Option<AtValues> {
        let predicate = ensue_protocol::VisibilityPredicate {
            datacenter: cx.datacenter,
            times: snapshot.clone(),
            whole: true,
        };
        let at = cx.promise();
        let (replies, observed) = self.read_all(cx, keyspace, commands, at, &Choice::Shown(predicate))?;
        self.counts.count_reads(commands.len(), observed.stale);
        cx.statistics.count_lookups(observed.hits, observed.misses);
        Some(AtValues { replies, seen: others.causes_of(cx, keyspace, observed.sources) })
    }
}

impl ReadCounts {
    /// Reads since the start, and those of them that were stale.
    pub(in crate::partition) fn get(&self) -> (u64, u64) {
        (self.reads, self.stale)
    }

    /// A session's reads, and whether they were stale: a newer version was here and was not shown.
    pub(in crate::partition) fn count_reads(&mut self, reads: usize, stale: bool) {
        self.reads += reads as u64;
        self.stale += u64::from(stale);
    }
}

/// How many reads there were.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadCounts {
    reads: u64,
    stale: u64,
}
