//! Messages delivered to the subscribers of this core, but for those that their publisher's core hands out at once.
//!
//! - A message that carries no past is delivered at once.
//! - Another one is delivered when every new session here can read everything that the publisher had written or read,
//!   in every keyspace. The partitions answer that as they do for `CAUSAL MERGE` (`inquiry`).
//! - Messages of one publisher are delivered in the order in which they were published: they wait in a queue, with one
//!   inquiry about the past of the first. A message with the same past as its predecessor does not wait again.
//! - A message is dropped and counted if it waits too long, if waiting messages take too many bytes, or if its past is
//!   unrecoverable. No message is delivered early.

use crate::session::core_state::{CoreState, Publisher, Waiter};
use crate::session::inquiry::{Found, Inquiry};
use bytes::Bytes;
use ensue_types::{Context, Dependency, KeyspaceId, LogicalTime, Now, Rule};
use ensue_wire::ChannelKind;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What waits at a core.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deliveries {
    queues: BTreeMap<Publisher, Queue>,
    bytes: usize,
    /// When each queue is looked at.
    due: BTreeSet<(u64, Publisher)>,
}

/// The messages of one publisher, the first of which waits.
#[derive(Clone, Debug)]
struct Queue {
    messages: VecDeque<Waiting>,
    /// What is open of the first one's past, a keyspace each.
    inquiries: Vec<Inquiry>,
    due_us: u64,
}

#[derive(Clone, Debug)]
struct Waiting {
    message: Published,
    until_us: u64,
}

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) kind: ChannelKind,
    pub(crate) channel: Bytes,
    pub(crate) payload: Bytes,
    pub(crate) past: Vec<(KeyspaceId, Context)>,
}

/// What the first message of a queue comes to.
enum Begun {
    Ready,
    Waits(Vec<Inquiry>),
    Never,
}

impl Deliveries {
    /// A message of another core, or one of this core that may have to wait.
    pub(crate) fn on_message(
        &mut self,
        now: Now,
        core: &mut CoreState,
        publisher: Publisher,
        message: Published,
    ) {
        core.counters.messages.received += 1;
        let queue = self.queues.get_mut(&publisher);
        if queue.is_none() && (message.past.is_empty() || !Rule::MessagesWaitForTheirPast.holds()) {
            return hand_out(core, &message);
        }
        let bytes = message.bytes();
        if self.bytes + bytes > core.config.tuning.messages_waiting_bytes {
            core.counters.messages.dropped_full += 1;
            return;
        }
        let until_us = now.monotonic_us.saturating_add(1_000 * core.config.tuning.message_waits_ms);
        // The frame that brought it would stay in memory as a whole.
        let message = message.compact();
        self.bytes += bytes;
        let waiting = Waiting { message, until_us };
        if let Some(queue) = queue {
            return queue.messages.push_back(waiting);
        }
        let queue = Queue { messages: VecDeque::from([waiting]), inquiries: Vec::new(), due_us: 0 };
        self.queues.insert(publisher, queue);
        self.go_on(now, core, publisher, None);
    }

    /// A partition has answered.
    pub(crate) fn on_dependencies_met(
        &mut self,
        now: Now,
        core: &mut CoreState,
        publisher: Publisher,
        check: u64,
        unrecoverable: &[Dependency],
    ) {
        let Some(queue) = self.queues.get_mut(&publisher) else { return };
        let Some(index) = queue.inquiries.iter().position(|inquiry| inquiry.has(check)) else { return };
        let own = core.config.topology.datacenter;
        match queue.inquiries[index].on_met(own, check, unrecoverable) {
            Found::Waits => {}
            Found::Met => {
                queue.inquiries.remove(index).end(core, LogicalTime::ZERO);
                if queue.inquiries.is_empty() {
                    if let Some(message) = self.pop(publisher) {
                        hand_out(core, &message);
                        self.go_on(now, core, publisher, Some(message.past));
                    }
                }
            }
            Found::Lost(_) | Found::NeverIssued(_) => {
                core.counters.messages.dropped_lost += 1;
                self.abandon(now, core, publisher);
            }
        }
    }

    /// What has waited for too long is dropped; the partitions may have lost the questions about the rest.
    pub(crate) fn on_timer(&mut self, now: Now, core: &mut CoreState) {
        while let Some((due_us, publisher)) = self.due.first().copied() {
            if due_us > now.monotonic_us {
                break;
            }
            self.due.remove(&(due_us, publisher));
            let Some(queue) = self.queues.get_mut(&publisher) else { continue };
            let first = queue.messages.front().map(|waiting| waiting.until_us);
            match first {
                Some(until_us) if until_us > now.monotonic_us => {
                    for inquiry in &queue.inquiries {
                        for (index, _) in inquiry.missing() {
                            inquiry.ask(core, index, LogicalTime::ZERO);
                        }
                    }
                    self.watch(now, publisher);
                }
                _ => {
                    core.counters.messages.dropped_late += 1;
                    self.abandon(now, core, publisher);
                }
            }
        }
    }

    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.due.first().map(|(due_us, _)| *due_us)
    }

    /// Panics if a queue would never be looked at again, or the bytes are counted wrong.
    pub(crate) fn check_invariants(&self) {
        let messages = self.queues.values().flat_map(|queue| &queue.messages);
        let bytes: usize = messages.map(|waiting| waiting.message.bytes()).sum();
        assert_eq!(bytes, self.bytes, "the bytes of waiting messages are counted wrong");
        for (publisher, queue) in &self.queues {
            assert!(!queue.messages.is_empty(), "nothing of {publisher:?} waits");
            let is_due = self.due.contains(&(queue.due_us, *publisher));
            assert!(is_due, "messages of {publisher:?} wait, and nobody looks at them");
        }
    }

    /// How many messages wait, and how many bytes they take.
    pub(crate) fn metrics(&self) -> Vec<(String, i64)> {
        let messages: usize = self.queues.values().map(|queue| queue.messages.len()).sum();
        let metrics = [("pubsub_waiting", messages), ("pubsub_waiting_bytes", self.bytes)];
        let waiting = metrics.into_iter().filter(|(_, value)| *value > 0);
        waiting.map(|(name, value)| (name.to_owned(), value as i64)).collect()
    }

    /// The first message is dropped.
    fn abandon(&mut self, now: Now, core: &mut CoreState, publisher: Publisher) {
        if let Some(queue) = self.queues.get_mut(&publisher) {
            for inquiry in queue.inquiries.drain(..) {
                inquiry.end(core, LogicalTime::ZERO);
            }
        }
        self.pop(publisher);
        self.go_on(now, core, publisher, None);
    }

    /// Hands out what need not wait, and asks about the first message that must. This past is visible here.
    fn go_on(
        &mut self,
        now: Now,
        core: &mut CoreState,
        publisher: Publisher,
        mut visible: Option<Vec<(KeyspaceId, Context)>>,
    ) {
        while let Some(first) = self.queues.get(&publisher).and_then(|queue| queue.messages.front()) {
            let begun = match visible.as_ref() == Some(&first.message.past) {
                true => Begun::Ready,
                false => begin(now, core, publisher, &first.message.past),
            };
            match begun {
                Begun::Waits(inquiries) => {
                    if let Some(queue) = self.queues.get_mut(&publisher) {
                        queue.inquiries = inquiries;
                    }
                    return self.watch(now, publisher);
                }
                Begun::Ready => {
                    let Some(message) = self.pop(publisher) else { return };
                    hand_out(core, &message);
                    visible = Some(message.past);
                }
                Begun::Never => {
                    core.counters.messages.dropped_lost += 1;
                    self.pop(publisher);
                }
            }
        }
        if let Some(queue) = self.queues.remove(&publisher) {
            self.due.remove(&(queue.due_us, publisher));
        }
    }

    fn pop(&mut self, publisher: Publisher) -> Option<Published> {
        let Waiting { message, .. } = self.queues.get_mut(&publisher)?.messages.pop_front()?;
        self.bytes -= message.bytes();
        Some(message)
    }

    /// Looks at the queue again when its first message is over, or the questions are to be repeated.
    fn watch(&mut self, now: Now, publisher: Publisher) {
        let Some(queue) = self.queues.get_mut(&publisher) else { return };
        let Some(first) = queue.messages.front() else { return };
        self.due.remove(&(queue.due_us, publisher));
        queue.due_us = first.until_us.min(now.monotonic_us + REPEAT_US);
        self.due.insert((queue.due_us, publisher));
    }
}

impl Published {
    /// What it takes while it waits.
    fn bytes(&self) -> usize {
        let past = |(_, context): &(KeyspaceId, Context)| context.causes.encoded_bytes();
        let past: usize = self.past.iter().map(past).sum();
        self.channel.len() + self.payload.len() + past + MESSAGE_BYTES
    }

    fn compact(self) -> Published {
        let [channel, payload] = [&self.channel, &self.payload].map(|bytes| Bytes::copy_from_slice(bytes));
        Published { channel, payload, ..self }
    }
}

/// Asks the partitions of this datacenter about a past.
fn begin(now: Now, core: &mut CoreState, publisher: Publisher, past: &[(KeyspaceId, Context)]) -> Begun {
    let mut inquiries = Vec::new();
    for (keyspace, context) in past {
        let is_ahead = context.time.ms().saturating_sub(now.wall_ms) > core.config.tuning.clock_ahead_ms_max;
        let inquiry = Inquiry::about(core, core.protocol(*keyspace), &context.causes);
        let Ok(inquiry) = inquiry else { return Begun::Never };
        if is_ahead {
            return Begun::Never;
        }
        if !inquiry.is_empty() {
            inquiries.push(inquiry.for_readers(*keyspace));
        }
    }
    if inquiries.is_empty() {
        return Begun::Ready;
    }
    for inquiry in &mut inquiries {
        inquiry.begin(core, Waiter::Messages(publisher), LogicalTime::ZERO);
    }
    Begun::Waits(inquiries)
}

fn hand_out(core: &mut CoreState, message: &Published) {
    let frames = core.channels.frames(message.kind, &message.channel, &message.payload);
    core.counters.messages.delivered += frames.len() as u64;
    core.push_frames(frames, None);
}

/// The tables' share of a message that waits.
const MESSAGE_BYTES: usize = 256;
/// How often partitions that have not answered are asked again.
const REPEAT_US: u64 = 200_000;
