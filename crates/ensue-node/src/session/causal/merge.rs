//! `CAUSAL MERGE`: a session takes over a past that came from elsewhere.
//!
//! - Begin: decode the token, refuse what it may not hold, and ask every partition that it names to say when it has
//!   applied the operations (`CheckDependencies`), or every partition to say when it has received up to the times
//!   (`AwaitTimes`).
//! - What of it is gone a partition says with its answer: `DISCARDED` if it was lost with a dead datacenter,
//!   `NEVERISSUED` if this datacenter itself has never issued it: a position that its partition has not come to, a time
//!   that none of its clocks has.
//! - On the last `DependenciesMet`: the past of the token joins the session's. From here on every answer includes it.
//! - On the timeout: is it so now? Every partition that has not answered is asked again, and then to count where
//!   nothing is (`CountReplicas`), which it answers in any case, after what it was asked before.
//! - When all have answered the one or the other: `NOTYET`, naming what is missing; the session's past is as before
//!   (trap 13).
//! - When it ends otherwise than by the last answer: what is still open is asked for as nothing, under its number, and
//!   so withdrawn.

use super::Exchange;
use super::dependencies::by_partition;
use super::token::Token;
use crate::session::cx::Cx;
use crate::session::failure::Failure;
use crate::session::step::Step;
use ensue_protocol::Past;
use ensue_types::{
    Context, DatacenterId, Dependency, Extent, LogicalTime, OperationId, PartitionId, Position, Reply, Rule,
    TimeVector,
};
use ensue_wire::Message;

/// Waiting for `DependenciesMet` of every group.
#[derive(Clone, Debug)]
pub(crate) struct TokenMerge {
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

impl TokenMerge {
    pub(crate) fn begin(cx: &mut Cx<'_>, text: &[u8], timeout_ms: u64) -> Step<Exchange> {
        let (past, groups) = match admit(cx, text) {
            Ok(admitted) => admitted,
            Err(refusal) => return Step::answer(refusal),
        };
        cx.requests.ask(1);
        if groups.is_empty() || !Rule::MergeWaits.holds() {
            return take_over(cx, past);
        }
        if let Some(failure) = cx.refusal(groups.iter().map(|group| group.partition)) {
            return Step::Failed(failure);
        }
        let first_check = cx.core.begin_checks(cx.requests.session(), groups.len() as u32);
        for (check, group) in (first_check..).zip(&groups) {
            cx.send(group.partition, question(check, group.past.clone()));
        }
        cx.begin(0, timeout_ms);
        let merge = TokenMerge { past, first_check, groups, closing: false };
        Step::Waits(Exchange::Merge(Box::new(merge)))
    }

    /// A partition has applied what it was asked about, or says what of it is gone.
    pub(crate) fn on_dependencies_met(
        mut self: Box<Self>,
        cx: &mut Cx<'_>,
        check: u64,
        unrecoverable: &[Dependency],
    ) -> Step<Exchange> {
        let own = cx.core.config.topology.datacenter;
        let unissued = unrecoverable
            .iter()
            .find(|unrecoverable| unrecoverable.operation.datacenter == own)
            .map(|unrecoverable| unrecoverable.operation);
        let lost = unrecoverable.iter().find(|unrecoverable| unrecoverable.operation.datacenter != own);
        let index = check.checked_sub(self.first_check).map(|index| index as usize);
        let Some(group) = index.and_then(|index| self.groups.get_mut(index)) else {
            return Step::Waits(Exchange::Merge(self));
        };
        group.met = true;
        group.unissued = unissued.is_some();
        let names_position = matches!(group.past, Past::Operations(_));
        let all_met = self.groups.iter().all(|group| group.met);
        if let Some(unrecoverable) = lost {
            return self.fail(cx, lost_past(cx, unrecoverable));
        }
        if unissued.is_some() && names_position {
            return self.fail(cx, never_issued(cx, unissued));
        }
        if all_met && self.names_an_unissued_time(own) {
            return self.fail(cx, never_issued(cx, None));
        }
        if !all_met {
            return Step::Waits(Exchange::Merge(self));
        }
        let past = self.end(cx);
        take_over(cx, past)
    }

    fn fail(self, cx: &mut Cx<'_>, refusal: Reply) -> Step<Exchange> {
        self.end(cx);
        Step::Failed(Failure::Refused(refusal))
    }

    /// Whether no partition's clock has come to the time of this datacenter that the token names.
    fn names_an_unissued_time(&self, own: DatacenterId) -> bool {
        let names_it =
            |group: &&Group| matches!(&group.past, Past::Times(times) if times.at(own) > LogicalTime::ZERO);
        let mut asked = self.groups.iter().filter(names_it).peekable();
        asked.peek().is_some() && asked.all(|group| group.unissued)
    }

    pub(crate) fn unanswered(&self) -> Vec<PartitionId> {
        self.missing().filter(|group| !group.looked).map(|group| group.partition).collect()
    }

    /// Whether the client's time is still running.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.closing
    }

    pub(crate) fn on_timeout(mut self: Box<Self>, cx: &mut Cx<'_>) -> Step<Exchange> {
        self.closing = true;
        cx.begin_request(self.groups.len());
        for (share, group) in self.groups.iter().enumerate().filter(|(_, group)| !group.met) {
            // The first question may have been lost.
            cx.send(group.partition, question(self.first_check + share as u64, group.past.clone()));
            let (request, times) = (cx.request(share), TimeVector::default());
            cx.send(group.partition, Message::CountReplicas { request, dependencies: Vec::new(), times });
        }
        Step::Waits(Exchange::Merge(self))
    }

    /// A partition has answered after the client's time was over.
    pub(crate) fn on_answer(
        mut self: Box<Self>,
        cx: &mut Cx<'_>,
        share: usize,
        message: Message,
    ) -> Step<Exchange> {
        let Message::ReplicasReached { .. } = message else {
            return cx.unexpected(Exchange::Merge(self));
        };
        self.groups[share].looked = true;
        if !self.unanswered().is_empty() {
            return Step::Waits(Exchange::Merge(self));
        }
        let words = format!(
            "NOTYET this datacenter has not received everything the token depends on: waiting for {}",
            self.waited_for()
        );
        self.fail(cx, Reply::Error(words.into()))
    }

    /// Its checks are over, whether they were answered or not.
    pub(crate) fn end(self, cx: &mut Cx<'_>) -> Context {
        for (check, group) in (self.first_check..).zip(&self.groups).filter(|(_, group)| !group.met) {
            cx.send(group.partition, question(check, group.nothing()));
        }
        cx.core.end_checks(self.first_check, self.groups.len());
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

/// Decodes a token and checks everything that it names.
fn admit(cx: &Cx<'_>, text: &[u8]) -> Result<(Context, Vec<Group>), Reply> {
    let invalid = |why: String| Reply::Error(format!("ERR invalid causal token: {why}").into());
    let token = Token::decode(text).map_err(|error| invalid(error.to_string()))?;
    let keyspace = cx.keyspace();
    if token.keyspace != keyspace {
        let why =
            format!("it belongs to keyspace {}, and keyspace {} is selected", token.keyspace.0, keyspace.0);
        return Err(invalid(why));
    }
    let ahead_ms = token.context.time.ms().saturating_sub(cx.now.wall_ms);
    if ahead_ms > cx.core.config.tuning.clock_ahead_ms_max && Rule::RefuseFarTokens.holds() {
        let words = format!(
            "CLOCKAHEAD the token is from {ahead_ms} milliseconds in the future of this node's clock"
        );
        return Err(Reply::Error(words.into()));
    }
    let past = cx
        .protocol()
        .past(&token.context.causes)
        .map_err(|_| invalid("its facts are not of this keyspace's protocol".to_owned()))?;
    if let (Past::Times(times), true) = (&past, Rule::RefuseWhatWasNeverIssued.holds()) {
        let is_later = |time: LogicalTime| time > token.context.time && time < LogicalTime::MAX;
        if times.entries().any(|(_, time)| is_later(time)) {
            return Err(invalid("it names a time after its own: it was not made by this cluster".to_owned()));
        }
    }
    let doubted = cx.protocol().doubted(&token.context.causes);
    let mut groups = owners_of(cx, past).map_err(invalid)?;
    groups.extend(owners_of(cx, Past::Times(doubted)).map_err(invalid)?);
    Ok((token.context, groups))
}

/// Whom to ask about a past, unless it names what is not there.
fn owners_of(cx: &Cx<'_>, past: Past) -> Result<Vec<Group>, String> {
    let topology = &cx.core.config.topology;
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
fn take_over(cx: &mut Cx<'_>, past: Context) -> Step<Exchange> {
    cx.contexts.observe(past.time);
    if !Rule::TokenBecomesPast.holds() {
        return Step::complete(Reply::OK);
    }
    let protocol = cx.core.protocol(cx.contexts.selected());
    match protocol.merge(cx.contexts.causes_mut(), &past.causes) {
        Ok(()) => Step::complete(Reply::OK),
        Err(_) => Step::answer(Reply::error("ERR invalid causal token: its facts cannot be joined")),
    }
}

/// The token's past was lost with a dead datacenter.
fn lost_past(cx: &Cx<'_>, unrecoverable: &Dependency) -> Reply {
    let operation = unrecoverable.operation;
    let name = name_of(cx, operation.datacenter);
    let what = match unrecoverable.extent {
        Extent::Exact => format!("depends on {operation}, which was lost"),
        Extent::Through if operation.position == Position(0) => {
            "may depend on updates that were lost".to_owned()
        }
        Extent::Through => format!("depends on something before {operation}, which was lost"),
    };
    let words = format!("DISCARDED the token {what} with {name}, declared dead; the session is as before");
    Reply::Error(words.into())
}

/// The token names what this datacenter has never issued: an operation, or else a time.
fn never_issued(cx: &Cx<'_>, operation: Option<OperationId>) -> Reply {
    let name = name_of(cx, cx.core.config.topology.datacenter);
    let what = operation.map_or_else(|| format!("a time of {name}"), |operation| operation.to_string());
    let words = format!(
        "NEVERISSUED the token names {what}, which {name} has never issued: the token is forged, or from before \
         {name} was wiped or restored; the session is as before, go on without this token"
    );
    Reply::Error(words.into())
}

fn name_of<'a>(cx: &'a Cx<'_>, datacenter: DatacenterId) -> &'a str {
    let datacenters = &cx.core.config.topology.datacenters;
    datacenters.get(usize::from(datacenter.0)).map_or("", |one| one.name.as_str())
}

fn question(check: u64, past: Past) -> Message {
    match past {
        Past::Operations(dependencies) => Message::CheckDependencies { check, dependencies },
        Past::Times(times) => Message::AwaitTimes { check, times },
    }
}

/// How many missing operations an error names.
const NAMED_MAX: usize = 8;
