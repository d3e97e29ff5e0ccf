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
use crate::session::put_back::put_back;
use crate::session::step::Step;
use crate::session::write_marks::WriteMarks;
use bytes::Bytes;
use ensue_resp::request::{Blocking, WaitingPop};
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
        match cx.requests.wait_ms(blocking.timeout_ms) {
            Some(timeout_ms) => cx.begin(2, timeout_ms),
            None => {
                cx.begin_request(2);
                cx.requests.clear_deadline();
            }
        }
        if let Some(failure) = cx.refusal([partition]) {
            return Step::Failed(failure);
        }
        // Of its own: it may wait for long, and is not to keep the client's whole read buffer alive meanwhile.
        let args: Args = args.iter().map(|word| Bytes::copy_from_slice(word)).collect();
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
        match self.is_gone.then(|| put_back(&self.pop, &reply)).flatten() {
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
}

/// The answer to a command that `CLIENT UNBLOCK` has ended with an error.
pub(crate) const UNBLOCKED: Reply = Reply::error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
