//! `CAUSAL MERGE`: a session takes over a past that came from elsewhere.
//!
//! - Begin: decode the token, refuse what it may not hold, and ask every partition that it names to say when it has applied
//!   the operations (`CheckDependencies`), or every partition to say when it has received up to the times (`AwaitTimes`).
//! - What of it is gone a partition says with its answer: `DISCARDED` if it was lost with a dead datacenter,
//!   `NEVERISSUED` if this datacenter
//!   itself has never issued it: a position that its partition has not come to, a time that none of its clocks has.
//! - On the last `DependenciesMet`: the past of the token joins the session's. From here on every answer includes it.
//! - On the timeout: is it so now? Every partition that has not answered is asked again, and then to count where nothing is
//!   (`CountReplicas`), which it answers in any case, after what it was asked before.
//! - When all have answered the one or the other: `NOTYET`, naming what is missing; the session's past is as before (trap 13).
//! - When it ends otherwise than by the last answer: what is still open is asked for as nothing, under its number, and so withdrawn.

use super::exchange::Exchange;
use super::failure::Failure;
use super::token::Token;
use super::turn::Turn;
use ensue_protocol::Past;
use ensue_types::{
    Context, DatacenterId, Dependency, Extent, LogicalTime, OperationId, PartitionId, Position, Reply, Rule,
    TimeVector,
};
use ensue_wire::Message;
use std::collections::BTreeMap;

/// Waiting for `DependenciesMet` of every group.
#[derive(Clone, Debug)]
pub(super) struct TokenMerge {
    past: Context,
    first_check: u64,
    groups: Vec<Group>,
    /// The client's time is over: each answer says what is so now.
    closing: bool,
}

/// What one partition is asked about.
#[derive(Clone, Debug)]
struct Group {
    partition: PartitionId,
    past: Past,
    met: bool,
    /// Its clock has not come to the time of this datacenter.
    unissued: bool,
    /// It was not so when the client's time was over.
    looked: bool,
}

impl Turn<'_> {
    pub(super) fn causal_merge(&mut self, text: &[u8], timeout_ms: u64) {
        let (past, groups) = match self.admit(text) {
            Ok(admitted) => admitted,
            Err(refusal) => return self.reply(&refusal),
        };
        self.ask(1);
        if groups.is_empty() || !self.desk.config.rules.hold(Rule::MergeWaits) {
            return self.take_over(past);
        }
        if self.is_refused(groups.iter().map(|group| group.partition)) {
            return;
        }
        let first_check = self.desk.begin_checks(self.session.id, groups.len() as u32);
        for (check, group) in (first_check..).zip(&groups) {
            self.send(group.partition, question(check, group.past.clone()));
        }
        let merge = TokenMerge { past, first_check, groups, closing: false };
        self.begin_exchange(Exchange::Merge(Box::new(merge)), 0, timeout_ms);
    }

    /// Decodes a token and checks everything that it names.
    fn admit(&self, text: &[u8]) -> Result<(Context, Vec<Group>), Reply> {
        let invalid = |why: String| Reply::Error(format!("ERR invalid causal token: {why}").into());
        let token = Token::decode(text).map_err(|error| invalid(error.to_string()))?;
        let keyspace = self.session.keyspace;
        if token.keyspace != keyspace {
            let why = format!(
                "it belongs to keyspace {}, and keyspace {} is selected",
                token.keyspace.0, keyspace.0
            );
            return Err(invalid(why));
        }
        let ahead_ms = token.context.time.ms().saturating_sub(self.now.wall_ms);
        let rules = self.desk.config.rules;
        if ahead_ms > self.desk.config.tuning.clock_ahead_ms_max && rules.hold(Rule::RefuseFarTokens) {
            let words = format!(
                "CLOCKAHEAD the token is from {ahead_ms} milliseconds in the future of this node's clock"
            );
            return Err(Reply::Error(words.into()));
        }
        let past = self
            .desk
            .protocol(keyspace)
            .past(&token.context.facts)
            .map_err(|_| invalid("its facts are not of this keyspace's protocol".to_owned()))?;
        if let (Past::Times(times), true) = (&past, rules.hold(Rule::RefuseWhatWasNeverIssued)) {
            let is_later = |time: LogicalTime| time > token.context.time && time < LogicalTime::MAX;
            if times.entries().any(|(_, time)| is_later(time)) {
                return Err(invalid(
                    "it names a time after its own: it was not made by this cluster".to_owned(),
                ));
            }
        }
        let doubted = self.desk.protocol(keyspace).doubted(&token.context.facts);
        let mut groups = self.groups(past).map_err(invalid)?;
        groups.extend(self.groups(Past::Times(doubted)).map_err(invalid)?);
        Ok((token.context, groups))
    }

    /// Whom to ask about a past, unless it names what is not there.
    fn groups(&self, past: Past) -> Result<Vec<Group>, String> {
        let topology = &self.desk.config.topology;
        let datacenters = topology.datacenters.len();
        let group = |(partition, past)| Group { partition, past, met: false, unissued: false, looked: false };
        match past {
            Past::Operations(dependencies) => {
                for dependency in &dependencies {
                    let operation = &dependency.operation;
                    let known = usize::from(operation.datacenter.0) < datacenters
                        && operation.partition.0 < topology.partitions;
                    if !known {
                        return Err(format!("it names {operation}, which this cluster does not have"));
                    }
                }
                let groups = by_partition(dependencies).into_iter();
                Ok(groups.map(|(partition, list)| group((partition, Past::Operations(list)))).collect())
            }
            Past::Times(times) if times.len() > datacenters => {
                Err("it names a datacenter that this cluster does not have".to_owned())
            }
            Past::Times(times) if times.is_zero() => Ok(Vec::new()),
            Past::Times(times) => {
                let partitions = (0..topology.partitions).map(PartitionId);
                Ok(partitions.map(|partition| group((partition, Past::Times(times.clone())))).collect())
            }
        }
    }

    /// The past is here: it becomes the session's.
    fn take_over(&mut self, past: Context) {
        self.see(past.time);
        if !self.desk.config.rules.hold(Rule::TokenBecomesPast) {
            return self.complete(vec![Reply::OK]);
        }
        let keyspace = self.session.keyspace;
        let facts = &mut self.session.context_mut().facts;
        match self.desk.protocol(keyspace).join(facts, &past.facts) {
            Ok(()) => self.complete(vec![Reply::OK]),
            Err(_) => self.answer(&[Reply::error("ERR invalid causal token: its facts cannot be joined")]),
        }
    }

    fn lost_past(&self, gone: &Dependency) -> Reply {
        let operation = gone.operation;
        let name = self.name_of(operation.datacenter);
        let what = match gone.extent {
            Extent::Exact => format!("depends on {operation}, which was lost"),
            Extent::Through if operation.position == Position(0) => {
                "may depend on updates that were lost".to_owned()
            }
            Extent::Through => format!("depends on something before {operation}, which was lost"),
        };
        let words =
            format!("DISCARDED the token {what} with {name}, declared dead; the session is as before");
        Reply::Error(words.into())
    }

    /// The token names what this datacenter has never issued: an operation, or else a time.
    fn never_issued(&self, operation: Option<OperationId>) -> Reply {
        let name = self.name_of(self.desk.config.topology.datacenter);
        let what = operation.map_or_else(|| format!("a time of {name}"), |operation| operation.to_string());
        let words = format!(
            "NEVERISSUED the token names {what}, which {name} has never issued: the token is forged, or from before {name} was wiped or \
             restored; the session is as before, go on without this token"
        );
        Reply::Error(words.into())
    }

    fn name_of(&self, datacenter: DatacenterId) -> &str {
        let datacenters = &self.desk.config.topology.datacenters;
        datacenters.get(usize::from(datacenter.0)).map_or("", |one| one.name.as_str())
    }

    /// A partition has applied what it was asked about.
    pub(super) fn on_dependencies_met(&mut self, check: u64, gone: &[Dependency]) {
        let Exchange::Merge(merge) = &mut self.session.exchange else { return };
        let own = self.desk.config.topology.datacenter;
        let unissued = gone.iter().find(|gone| gone.operation.datacenter == own).map(|gone| gone.operation);
        let lost = gone.iter().find(|gone| gone.operation.datacenter != own);
        let Some(index) = check.checked_sub(merge.first_check) else { return };
        let Some(group) = merge.groups.get_mut(index as usize) else { return };
        group.met = true;
        group.unissued = unissued.is_some();
        let names_position = matches!(group.past, Past::Operations(_));
        let all_met = merge.groups.iter().all(|group| group.met);
        let by_no_clock = all_met && merge.names_an_unissued_time(own);
        if let Some(gone) = lost {
            self.fail(&Failure::Refused(self.lost_past(gone)));
        } else if unissued.is_some() && names_position {
            self.fail(&Failure::Refused(self.never_issued(unissued)));
        } else if by_no_clock {
            self.fail(&Failure::Refused(self.never_issued(None)));
        } else if all_met {
            if let Exchange::Merge(merge) = std::mem::take(&mut self.session.exchange) {
                let past = merge.end(self);
                self.take_over(past);
            }
        }
        self.advance();
    }
}

impl TokenMerge {
    /// Whether no partition's clock has come to the time of this datacenter that the token names.
    fn names_an_unissued_time(&self, own: DatacenterId) -> bool {
        let names_it =
            |group: &&Group| matches!(&group.past, Past::Times(times) if times.at(own) > LogicalTime::ZERO);
        let mut asked = self.groups.iter().filter(names_it).peekable();
        asked.peek().is_some() && asked.all(|group| group.unissued)
    }

    pub(super) fn unanswered(&self) -> Vec<PartitionId> {
        self.missing().filter(|group| !group.looked).map(|group| group.partition).collect()
    }

    /// Whether the client's time is still running.
    pub(super) fn is_waiting(&self) -> bool {
        !self.closing
    }

    pub(super) fn on_timeout(mut self: Box<Self>, turn: &mut Turn<'_>) {
        let (groups, first_check) = (self.groups.clone(), self.first_check);
        self.closing = true;
        turn.begin_request(Exchange::Merge(self), groups.len());
        for (share, group) in groups.into_iter().enumerate().filter(|(_, group)| !group.met) {
            // The first question may have been lost.
            turn.send(group.partition, question(first_check + share as u64, group.past));
            let (request, times) = (turn.request(share), TimeVector::default());
            turn.send(group.partition, Message::CountReplicas { request, dependencies: Vec::new(), times });
        }
    }

    /// A partition has answered after the client's time was over.
    pub(super) fn on_answer(mut self: Box<Self>, turn: &mut Turn<'_>, share: usize, message: Message) {
        let Message::ReplicasReached { .. } = message else {
            return turn.unexpected(Exchange::Merge(self));
        };
        self.groups[share].looked = true;
        let words = format!(
            "NOTYET this datacenter has not received everything the token depends on: waiting for {}",
            self.waited_for()
        );
        let is_over = self.unanswered().is_empty();
        turn.session.exchange = Exchange::Merge(self);
        if is_over {
            turn.fail(&Failure::Refused(Reply::Error(words.into())));
        }
    }

    /// Its checks are over, whether they were answered or not.
    pub(super) fn end(self, turn: &mut Turn<'_>) -> Context {
        for (check, group) in (self.first_check..).zip(&self.groups).filter(|(_, group)| !group.met) {
            turn.send(group.partition, question(check, group.nothing()));
        }
        turn.desk.end_checks(self.first_check, self.groups.len());
        self.past
    }

    fn missing(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| !group.met)
    }

    fn waited_for(&self) -> String {
        let mut names = Vec::new();
        for group in self.missing() {
            match &group.past {
                Past::Operations(dependencies) => names.extend(dependencies.iter().map(|dependency| {
                    let extent = match dependency.extent {
                        Extent::Exact => "",
                        Extent::Through => "up to ",
                    };
                    format!("{extent}{}", dependency.operation)
                })),
                Past::Times(times) => names.push(format!("updates up to {times:?} at {}", group.partition)),
            }
        }
        let more = names.len().saturating_sub(NAMED_MAX);
        names.truncate(NAMED_MAX);
        let text = names.join(", ");
        if more > 0 { format!("{text} and {more} more") } else { text }
    }
}

impl Group {
    /// A past of the same kind that is here already.
    fn nothing(&self) -> Past {
        match &self.past {
            Past::Operations(_) => Past::Operations(Vec::new()),
            Past::Times(_) => Past::Times(TimeVector::default()),
        }
    }
}

fn question(check: u64, past: Past) -> Message {
    match past {
        Past::Operations(dependencies) => Message::CheckDependencies { check, dependencies },
        Past::Times(times) => Message::AwaitTimes { check, times },
    }
}

/// Dependencies by the partition that knows of them.
pub(super) fn by_partition(dependencies: Vec<Dependency>) -> BTreeMap<PartitionId, Vec<Dependency>> {
    let mut groups: BTreeMap<PartitionId, Vec<Dependency>> = BTreeMap::new();
    for dependency in dependencies {
        groups.entry(dependency.operation.partition).or_default().push(dependency);
    }
    groups
}

/// How many missing operations an error names.
const NAMED_MAX: usize = 8;
