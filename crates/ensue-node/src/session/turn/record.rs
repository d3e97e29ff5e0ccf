//! The record of operators' commands: an entry when one begins, the record when it is answered or refused.

use super::Turn;
use crate::audit::Audit;
use crate::session::audited::{Audited, Sender};
use crate::session::connection::{Counted, Lifecycle};
use crate::session::exchange::Exchange;
use crate::session::output::SessionOutput;
use crate::session::transactions::multi::Multi;
use ensue_resp::CommandSpec;
use ensue_types::{Args, Reply};

/// What is to be recorded of a command that begins. Steps of a transaction are recorded with it, and what comes from
/// another datacenter is recorded there.
pub(super) fn entry(
    turn: &Turn<'_>,
    spec: &CommandSpec,
    subcommand: Option<&str>,
    args: &Args,
) -> Vec<Audited> {
    let is_own = turn.session.lifecycle == Lifecycle::Open && turn.session.exec.is_none();
    let entry = (is_own && turn.cx.core.config.audits).then(|| Audited::of(spec, subcommand, args, None));
    entry.flatten().into_iter().collect()
}

/// A transaction that begins, with what is to be recorded of its commands.
pub(super) fn exec(turn: &Turn<'_>, spec: &'static CommandSpec, multi: &Multi) -> Counted {
    let is_recorded = turn.session.lifecycle == Lifecycle::Open && turn.cx.core.config.audits;
    let commands = multi.commands().enumerate().filter(|_| is_recorded);
    let entries = commands
        .filter_map(|(place, (spec, args))| Audited::of(spec, spec.subcommand(args), args, Some(place)));
    Counted { inner: multi.specs(), audited: entries.collect(), ..Counted::new(spec) }
}

/// Counts and records a command that is refused.
pub(super) fn refused(turn: &mut Turn<'_>, spec: &'static CommandSpec, args: &Args, answer: &Reply) {
    turn.cx.core.counters.on_rejected(Some(spec));
    let entries = entry(turn, spec, spec.subcommand(args), args);
    record(turn, entries, answer);
}

/// Counts a command that has its answer, and records it if it is an operator's. What an EXEC answers of its commands
/// counts among the errors, too.
pub(super) fn count(turn: &mut Turn<'_>, answer: &Reply) {
    let is_exec = turn.session.counted.front().is_some_and(|counted| counted.spec.name == "exec");
    if let (Reply::Array(replies), true) = (answer, is_exec) {
        replies.iter().for_each(|reply| turn.cx.core.counters.on_reply(reply));
    }
    let entries = turn.session.count(&mut turn.cx.core.counters.statistics, answer);
    record(turn, entries, answer);
}

/// The session waits. While it is for somebody else and not for who works on its command, that is not slow.
pub(super) fn wait(turn: &mut Turn<'_>, exchange: Exchange) {
    if exchange.waiting().is_some() {
        turn.cx.core.slow_log.wait(turn.session.client.id());
    }
    turn.session.exchange = exchange;
}

fn record(turn: &mut Turn<'_>, entries: Vec<Audited>, answer: &Reply) {
    if entries.is_empty() {
        return;
    }
    let client = &turn.session.client;
    let sender = Sender {
        user: client.user().map(|user| user.name().clone()).unwrap_or_default(),
        address: client.address(),
        client: client.id(),
        client_name: client.name(),
        keyspace: turn.cx.keyspace(),
    };
    let records: Vec<Audit> =
        entries.into_iter().filter_map(|entry| entry.into_record(&sender, answer)).collect();
    for record in records {
        turn.cx.core.output(SessionOutput::Audit(Box::new(record)));
    }
}
