//! `CAUSAL MERGE`: a session takes over a past that came from elsewhere.
//!
//! - Begin: decode the token, refuse what it may not hold, and ask the partitions about its past (`inquiry`).
//! - What of it is gone a partition says with its answer: `DISCARDED` if it was lost with a dead datacenter,
//!   `NEVERISSUED` if this datacenter itself has never issued it: a position that its partition has not come to, a time
//!   that none of its clocks has.
//! - On the last `DependenciesMet`: the past of the token joins the session's. From here on every answer includes it.
//! - On the timeout: is it so now? Every partition that has not answered is asked again, and then to count where
//!   nothing is (`CountReplicas`), which it answers in any case, after what it was asked before.
//! - When all have answered the one or the other: `NOTYET`, naming what is missing; the session's past is as before
//!   (trap 13).
//! - What a session did at the home of keys is awaited in the same way before its next command here, and so is, at a
//!   home, the past of a session elsewhere (`of_awaited`).
//! - When it ends otherwise than by the last answer: what is still open is asked for as nothing, under its number, and
//!   so withdrawn.

use super::Exchange;
use super::token::{Sealing, Token};
use crate::Trace;
use crate::session::cx::Cx;
use crate::session::failure::Failure;
use crate::session::inquiry::{Found, Inquiry};
use crate::session::step::Step;
use ensue_protocol::Past;
use ensue_types::{
    Context, DatacenterId, Dependency, Extent, KeyspaceId, LogicalTime, OperationId, PartitionId, Position,
    Reply, Rule, TimeVector,
};
use ensue_wire::Message;

/// Waiting for `DependenciesMet` of every partition that is asked.
#[derive(Clone, Debug)]
pub(crate) struct TokenMerge {
    keyspace: KeyspaceId,
    /// It is what the session did at a home, and its next command waits for it.
    is_awaited: bool,
    past: Context,
    inquiry: Inquiry,
    /// Of which partitions, by their places, it was not so when the client's time was over.
    looked: Vec<bool>,
    /// The client's time is over: each answer says what is so now.
    closing: bool,
}

impl TokenMerge {
    pub(crate) fn begin(cx: &mut Cx<'_>, text: &[u8], timeout_ms: u64) -> Step<Exchange> {
        let (past, mut inquiry) = match admit(cx, text) {
            Ok(admitted) => admitted,
            Err(refusal) => return Step::answer(refusal),
        };
        cx.requests.ask(1);
        let keyspace = cx.keyspace();
        if inquiry.is_empty() || !Rule::MergeWaits.holds() {
            return take_over(cx, keyspace, past, false);
        }
        if let Some(failure) = cx.refusal(inquiry.partitions()) {
            return Step::Failed(failure);
        }
        inquiry.begin(cx.core, cx.requests.session(), cx.contexts.own().time);
        cx.begin_waiting(0, timeout_ms);
        let looked = vec![false; inquiry.len()];
        let merge = TokenMerge { keyspace, is_awaited: false, past, inquiry, looked, closing: false };
        Step::Waits(Exchange::Merge(Box::new(merge)))
    }

    /// The next command of the queue waits for what the session has in a keyspace from elsewhere: what it did at a home
    /// of keys, or, at a home, its whole past.
    pub(crate) fn of_awaited(cx: &mut Cx<'_>, keyspace: KeyspaceId, waits: bool) -> Step<Exchange> {
        let Some(past) = cx.contexts.awaited(keyspace).cloned() else { return Step::Ready };
        if let Some(ahead_ms) = far_ahead_ms(cx, &past) {
            // A clock is wrong. The past stays the session's: the next command must not read without it, either.
            let words = format!(
                "CLOCKAHEAD what this session has seen or done elsewhere is from {ahead_ms} milliseconds in the \
                 future of this node's clock; this command was not executed"
            );
            return Step::Failed(Failure::Refused(Reply::Error(words.into())));
        }
        let mut inquiry = match admit_past(cx, keyspace, &past) {
            Ok(inquiry) => inquiry,
            Err(refusal) => {
                cx.contexts.end_awaiting(keyspace);
                return Step::Failed(Failure::Refused(refusal));
            }
        };
        if inquiry.is_empty() || !waits {
            return take_over(cx, keyspace, past, true);
        }
        if let Some(failure) = cx.refusal(inquiry.partitions()) {
            return Step::Failed(failure);
        }
        inquiry.begin(cx.core, cx.requests.session(), cx.contexts.of(keyspace).time);
        cx.begin(0, cx.core.config.tuning.home_wait_ms);
        let looked = vec![false; inquiry.len()];
        let merge = TokenMerge { keyspace, is_awaited: true, past, inquiry, looked, closing: false };
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
        match self.inquiry.on_met(own, check, unrecoverable) {
            Found::Waits => Step::Waits(Exchange::Merge(self)),
            Found::Met => {
                let (keyspace, is_awaited) = (self.keyspace, self.is_awaited);
                let past = self.end(cx);
                take_over(cx, keyspace, past, is_awaited)
            }
            Found::Lost(lost) => {
                let refusal = lost_past(cx, &lost, self.is_awaited);
                self.fail_for_good(cx, refusal)
            }
            Found::NeverIssued(operation) => {
                let refusal = never_issued(cx, operation);
                self.fail_for_good(cx, refusal)
            }
        }
    }

    fn fail(self, cx: &mut Cx<'_>, refusal: Reply) -> Step<Exchange> {
        self.end(cx);
        Step::Failed(Failure::Refused(refusal))
    }

    /// What is awaited will never be visible here: the session goes on without it.
    fn fail_for_good(self, cx: &mut Cx<'_>, refusal: Reply) -> Step<Exchange> {
        if self.is_awaited {
            cx.contexts.end_awaiting(self.keyspace);
        }
        self.fail(cx, refusal)
    }

    pub(crate) fn unanswered(&self) -> Vec<PartitionId> {
        let missing = self.inquiry.missing().filter(|(index, _)| !self.looked[*index]);
        missing.map(|(_, group)| group.partition).collect()
    }

    /// Whether the client's time is still running.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.closing
    }

    pub(crate) fn on_timeout(mut self: Box<Self>, cx: &mut Cx<'_>) -> Step<Exchange> {
        self.closing = true;
        cx.begin_request(self.inquiry.len());
        for (share, group) in self.inquiry.missing() {
            // The first question may have been lost.
            self.inquiry.ask(cx.core, share, cx.contexts.own().time);
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
        self.looked[share] = true;
        if !self.unanswered().is_empty() {
            return Step::Waits(Exchange::Merge(self));
        }
        let (name, waited_for) = (name_of(cx, cx.core.config.topology.datacenter), self.waited_for(cx));
        let words = match self.is_awaited {
            true => format!(
                "NOTYET {name} has not received everything that this session has seen or done elsewhere: waiting for \
                 {waited_for}; this command was not executed"
            ),
            false => format!(
                "NOTYET this datacenter has not received everything the token depends on: waiting for {waited_for}"
            ),
        };
        self.fail(cx, Reply::Error(words.into()))
    }

    /// Its checks are over, whether they were answered or not.
    pub(crate) fn end(self, cx: &mut Cx<'_>) -> Context {
        self.inquiry.end(cx.core, cx.contexts.own().time);
        self.past
    }

    fn waited_for(&self, cx: &Cx<'_>) -> String {
        let mut names = Vec::new();
        for (_, group) in self.inquiry.missing() {
            match &group.past {
                Past::Operations(dependencies) => names.extend(dependencies.iter().map(|dependency| {
                    let extent = match dependency.extent {
                        Extent::Exact => "",
                        Extent::Through => "up to ",
                    };
                    format!("{extent}{}", operation_name(cx, &dependency.operation))
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

/// Decodes a token and checks everything that it names.
fn admit(cx: &Cx<'_>, text: &[u8]) -> Result<(Context, Inquiry), Reply> {
    let invalid = |why: String| Reply::Error(format!("ERR invalid causal token: {why}").into());
    let token =
        Token::decode(text, Sealing::of(&cx.core.config)).map_err(|error| invalid(error.to_string()))?;
    let keyspace = cx.keyspace();
    if token.keyspace != keyspace {
        let why =
            format!("it belongs to keyspace {}, and keyspace {} is selected", token.keyspace.0, keyspace.0);
        return Err(invalid(why));
    }
    if let Some(ahead_ms) = far_ahead_ms(cx, &token.context) {
        let words = format!(
            "CLOCKAHEAD the token is from {ahead_ms} milliseconds in the future of this node's clock"
        );
        return Err(Reply::Error(words.into()));
    }
    let inquiry = admit_past(cx, keyspace, &token.context)?;
    Ok((token.context, inquiry))
}

/// How far a past lies in the future of this node's clock, if that is further than clocks may differ.
fn far_ahead_ms(cx: &Cx<'_>, past: &Context) -> Option<u64> {
    let ahead_ms = past.time.ms().saturating_sub(cx.now.wall_ms);
    let is_far = ahead_ms > cx.core.config.tuning.clock_ahead_ms_max;
    (is_far && Rule::RefuseFarTokens.holds()).then_some(ahead_ms)
}

/// Checks everything that a past names.
fn admit_past(cx: &Cx<'_>, keyspace: KeyspaceId, past: &Context) -> Result<Inquiry, Reply> {
    let invalid = |why: String| Reply::Error(format!("ERR invalid causal token: {why}").into());
    let protocol = cx.core.protocol(keyspace);
    let named = protocol
        .past(&past.causes)
        .map_err(|_| invalid("its facts are not of this keyspace's protocol".to_owned()))?;
    if let (Past::Times(times), true) = (&named, Rule::RefuseWhatWasNeverIssued.holds()) {
        let is_later = |time: LogicalTime| time > past.time && time < LogicalTime::MAX;
        if times.entries().any(|(_, time)| is_later(time)) {
            return Err(invalid("it names a time after its own: it was not made by this cluster".to_owned()));
        }
    }
    Inquiry::about(cx.core, protocol, &past.causes).map_err(invalid)
}

/// The past is here: it becomes the session's.
fn take_over(cx: &mut Cx<'_>, keyspace: KeyspaceId, past: Context, is_awaited: bool) -> Step<Exchange> {
    cx.contexts.observe_in(keyspace, past.time);
    if !Rule::TokenBecomesPast.holds() && !is_awaited {
        return Step::complete(Reply::OK);
    }
    let protocol = cx.core.protocol(keyspace);
    if let (Ok(own), Ok(more)) = (cx.contexts.causes_of_mut(keyspace).states(), past.causes.states()) {
        if !is_awaited && !own.has_room_for(more) {
            return Step::answer(TOO_MANY_BRANCHES);
        }
    }
    let merged = protocol.merge(cx.contexts.causes_of_mut(keyspace), &past.causes);
    if is_awaited {
        cx.contexts.end_awaiting(keyspace);
        cx.requests.clear_deadline();
        if merged.is_err() {
            cx.core.trace(Trace::Refused { what: "a past that is not the protocol's" });
        }
        return Step::Ready;
    }
    match merged {
        Ok(()) => Step::complete(Reply::OK),
        Err(_) => Step::answer(Reply::error("ERR invalid causal token: its facts cannot be joined")),
    }
}

/// Which of its states come from others only their owner knows, which has not been asked since.
const TOO_MANY_BRANCHES: Reply = Reply::error(
    "BRANCHFULL a session goes on from 64 states at most: execute a command or merge branches, then merge this token \
     again; the session is as before",
);

/// The token's past was lost with a dead datacenter.
fn lost_past(cx: &Cx<'_>, unrecoverable: &Dependency, is_awaited: bool) -> Reply {
    let operation = unrecoverable.operation;
    let name = name_of(cx, operation.datacenter);
    let named = operation_name(cx, &operation);
    let what = match unrecoverable.extent {
        Extent::Exact => format!("depends on {named}, which was lost"),
        Extent::Through if operation.position == Position(0) => {
            "may depend on updates that were lost".to_owned()
        }
        Extent::Through => format!("depends on something before {named}, which was lost"),
    };
    let words = match is_awaited {
        true => format!(
            "DISCARDED what this session has seen or done elsewhere {what} with {name}, declared dead; it goes on \
             without that, and this command was not executed"
        ),
        false => format!("DISCARDED the token {what} with {name}, declared dead; the session is as before"),
    };
    Reply::Error(words.into())
}

/// The token names what this datacenter has never issued: an operation, or else a time.
fn never_issued(cx: &Cx<'_>, operation: Option<OperationId>) -> Reply {
    let name = name_of(cx, cx.core.config.topology.datacenter);
    let what =
        operation.map_or_else(|| format!("a time of {name}"), |operation| operation_name(cx, &operation));
    let words = format!(
        "NEVERISSUED the token names {what}, which {name} has never issued: the token is forged, or from before \
         {name} was wiped or restored; the session is as before, go on without this token"
    );
    Reply::Error(words.into())
}

fn name_of(cx: &Cx<'_>, datacenter: DatacenterId) -> String {
    cx.core.config.topology.name_of(datacenter)
}

/// An operation with its datacenter's name, its partition, incarnation and number.
fn operation_name(cx: &Cx<'_>, operation: &OperationId) -> String {
    let OperationId { datacenter, incarnation, partition, position } = operation;
    format!("{}/{partition}/{}.{}", name_of(cx, *datacenter), incarnation.0, position.number())
}

/// How many missing operations an error names.
const NAMED_MAX: usize = 8;
