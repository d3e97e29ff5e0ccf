//! A pop that may wait at its owner, alone in its message.
//!
//! - Begin: `Execute` with the command. The owner answers when its row has something, however late.
//! - On the client's timeout, or when the client has disconnected: `Execute` of `CAUSAL WITHDRAW`. The owner first
//!   answers the pop: with nothing, or with the element that it had popped already. If the pop is in transit within the
//!   partition, it is withdrawn again.
//! - On an answer: the client gets it. If the client has disconnected, the popped element is put back at its place.
//! - When its user may not run it any more: it is withdrawn, and the answer is the refusal.
//! - On a broken link: the owner has dropped the pop, or its answer is lost.

use super::Exchange;
use crate::session::cx::Cx;
use crate::session::failure::{Reason, UNANSWERED};
use crate::session::step::Step;
use crate::session::write_marks::WriteMarks;
use bytes::Bytes;
use ensue_resp::number;
use ensue_resp::request::{Blocking, End, WaitingPop};
use ensue_types::{Args, Context, PartitionId, Reply};
use ensue_wire::Message;

/// How often an owner is asked to let a pop go that it does not find.
const WITHDRAWALS_MAX: u32 = 10;

/// Waiting for `Executed`.
#[derive(Clone, Debug)]
pub(crate) struct Blocked {
    partition: PartitionId,
    pop: WaitingPop,
    /// The command as its client sent it.
    args: Args,
    withdrawals: u32,
    is_gone: bool,
    /// It was ended, and answers this error if nothing was popped.
    ends_with: Option<Reply>,
    /// What was popped is being put back.
    puts_back: bool,
}

impl Blocked {
    pub(crate) fn begin(
        cx: &mut Cx<'_>,
        partition: PartitionId,
        blocking: Blocking,
        args: Args,
    ) -> Step<Exchange> {
        cx.requests.ask(1);
        let mut writes = WriteMarks::default();
        writes.mark(0);
        cx.requests.mark_writes(writes);
        match blocking.timeout_ms {
            Some(timeout_ms) => cx.begin(2, timeout_ms),
            None => {
                cx.begin_request(2);
                cx.requests.clear_deadline();
            }
        }
        if let Some(failure) = cx.refusal([partition]) {
            return Step::Failed(failure);
        }
        let blocked = Blocked {
            partition,
            pop: blocking.pop,
            args: args.clone(),
            withdrawals: 0,
            is_gone: false,
            ends_with: None,
            puts_back: false,
        };
        blocked.send(cx, 0, cx.contexts.own().clone(), args);
        Step::Waits(Exchange::Blocked(Box::new(blocked)))
    }

    pub(crate) fn partition(&self) -> PartitionId {
        self.partition
    }

    pub(crate) fn on_answer(
        mut self: Box<Self>,
        cx: &mut Cx<'_>,
        share: usize,
        message: Message,
    ) -> Step<Exchange> {
        let (Message::Executed { context, replies, .. } | Message::TimedOut { context, replies, .. }) =
            message
        else {
            return cx.unexpected(Exchange::Blocked(self));
        };
        if share > 0 {
            // The pop is answered before, or was not found.
            return Step::Waits(Exchange::Blocked(self));
        }
        cx.contexts.replace(cx.keyspace(), context);
        let reply = replies.into_iter().next().unwrap_or(UNANSWERED);
        if self.puts_back {
            return Step::complete(Reply::NilArray);
        }
        match self.is_gone.then(|| self.put_back(&reply)).flatten() {
            Some(args) => {
                self.puts_back = true;
                cx.begin_request(1);
                self.send(cx, 0, cx.contexts.own().clone(), args);
                Step::Waits(Exchange::Blocked(self))
            }
            None => match self.ends_with {
                Some(error) if matches!(reply, Reply::Nil | Reply::NilArray) => Step::complete(error),
                _ => Step::complete(reply),
            },
        }
    }

    /// The command that waits; nothing if it is about to end.
    pub(crate) fn waiting(&self) -> Option<&Args> {
        let ends = self.is_gone || self.withdrawals > 0 || self.puts_back;
        (!ends).then_some(&self.args)
    }

    /// Somebody ends it: it is withdrawn as when its time is over, and answers this error if there is one.
    pub(crate) fn end(&mut self, cx: &mut Cx<'_>, error: Option<Reply>) -> bool {
        if self.waiting().is_none() {
            return false;
        }
        self.ends_with = error;
        self.withdraw(cx);
        true
    }

    /// The client's time is over.
    pub(crate) fn on_timeout(mut self: Box<Self>, cx: &mut Cx<'_>) -> Step<Exchange> {
        if self.withdrawals == WITHDRAWALS_MAX || self.puts_back {
            return Step::Failed(cx.no_answer(self.partition, Reason::Timeout));
        }
        self.withdraw(cx);
        Step::Waits(Exchange::Blocked(self))
    }

    /// The client is gone, or sends nothing any more.
    pub(crate) fn on_gone(&mut self, cx: &mut Cx<'_>) {
        self.is_gone = true;
        self.withdraw(cx);
    }

    fn withdraw(&mut self, cx: &mut Cx<'_>) {
        self.withdrawals += 1;
        cx.go_on_until_timeout();
        let words = [b"causal".as_slice(), b"withdraw"];
        self.send(cx, 1, Context::default(), words.map(Bytes::from_static).to_vec());
    }

    fn send(&self, cx: &mut Cx<'_>, share: usize, context: Context, args: Args) {
        let message = Message::Execute {
            request: cx.request(share),
            keyspace: cx.keyspace(),
            context,
            commands: vec![args],
            together: false,
        };
        cx.send(self.partition, message);
    }

    /// The commands that put back what was popped for nobody.
    fn put_back(&self, reply: &Reply) -> Option<Args> {
        let Reply::Array(answer) = reply else { return None };
        let mut args: Args = vec![Bytes::from_static(b"zadd"), bulk(answer.first()?)?];
        match (&self.pop, &answer[1..]) {
            (WaitingPop::Element { end, .. }, [element]) => {
                args[0] = push_at(*end);
                args.push(bulk(element)?);
            }
            (WaitingPop::Elements { end, .. }, [Reply::Array(elements)]) => {
                args[0] = push_at(*end);
                args.extend(elements.iter().rev().filter_map(bulk));
            }
            (WaitingPop::Member { .. }, [member, score]) => args.extend([bulk(score)?, bulk(member)?]),
            (WaitingPop::Members { .. }, [Reply::Array(members)]) => {
                for member in members {
                    let Reply::Array(pair) = member else { return None };
                    args.extend([bulk(pair.get(1)?)?, bulk(pair.first()?)?]);
                }
            }
            _ => return None,
        }
        Some(args)
    }
}

/// The answer to a command that `CLIENT UNBLOCK` has ended with an error.
pub(crate) const UNBLOCKED: Reply = Reply::error("UNBLOCKED client unblocked via CLIENT UNBLOCK");

fn push_at(end: End) -> Bytes {
    Bytes::from_static(if end == End::Left { b"lpush" } else { b"rpush" })
}

fn bulk(reply: &Reply) -> Option<Bytes> {
    match reply {
        Reply::Bulk(bytes) => Some(bytes.clone()),
        Reply::Double(score) => Some(number::f64_bytes(*score)),
        _ => None,
    }
}
