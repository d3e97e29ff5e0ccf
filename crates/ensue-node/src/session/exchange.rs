//! What a session waits for: at most one exchange at a time, one struct for each of its states.
//!
//! - On an answer of the present exchange: the state is consumed by the step, which leaves the next state behind.
//! - On an answer of an earlier exchange, known by its sequence: nothing; its commands were answered with an error.
//! - On a timeout, a refusal or a broken link: the commands of the exchange get their error, what waits for it
//!   elsewhere is withdrawn, and the next ones begin.

use super::admin::cluster_query::ClusterQuery;
use super::admin::dead::Declaring;
use super::admin::errand::{Outcome, Waiting};
use super::admin::home::Homes;
use super::admin::populating::Populating;
use super::admin::retire::Retiring;
use super::admin::slots::InSlot;
use super::commands::rename::Renaming;
use super::cx::Cx;
use super::failure::{Failure, Reason};
use super::homes::AtHome;
use super::step::Step;
use super::{causal, commands, transactions};
use ensue_types::{Args, CoreId, DatacenterId, PartitionId, Reply};

/// The state of what is outstanding.
#[derive(Clone, Debug, Default)]
pub(super) enum Exchange {
    #[default]
    None,
    Commands(commands::Exchange),
    Transactions(transactions::Exchange),
    Causal(causal::Exchange),
    Admin(Box<ClusterQuery>),
    AtHome(AtHome),
    /// For what somebody else does.
    Errand(Waiting),
    /// For a pause to end; then this is answered, if it is anything.
    Paused(Option<Reply>),
}

/// What becomes of the answers to a plan.
#[derive(Clone, Debug, Default)]
pub(super) enum Then {
    /// They are the client's answer.
    #[default]
    Answer,
    /// They are the answers of several commands of the client.
    Each,
    /// They are what the second half of `RENAME` writes.
    Rename(Renaming),
    /// They are the encoding of a value, for `DEBUG OBJECT`.
    Debug,
    /// They are those to a step of `DEBUG POPULATE`.
    Populate(Populating),
    /// They are the keys of a partition, of which those of a slot are told.
    InSlot(InSlot),
    /// They are the numbers under which the keys of this `WATCH` are watched, at their home if that is elsewhere.
    Watch(Args),
    /// Every partition was told of the script of this command, which is executed now.
    Script(Args),
    /// They are the text of the script of this command, which is executed at the home of its keys.
    ScriptAtHome(DatacenterId, Args),
    /// They say whether the next command may write while writes are paused.
    Pass,
    /// They are what the second half of `CAUSAL DEAD` rests on, if it is confirmed.
    Declare(Declaring),
    /// The same of `CAUSAL RETIRE`.
    Retire(Retiring),
    /// The same of `CAUSAL HOME`.
    Homes(Homes),
}

impl Exchange {
    /// Partitions whose answer is still missing.
    fn unanswered(&self) -> Vec<PartitionId> {
        match self {
            Exchange::None
            | Exchange::Admin(_)
            | Exchange::AtHome(_)
            | Exchange::Errand(_)
            | Exchange::Paused(_) => Vec::new(),
            Exchange::Commands(exchange) => exchange.unanswered(),
            Exchange::Transactions(exchange) => exchange.unanswered(),
            Exchange::Causal(exchange) => exchange.unanswered(),
        }
    }

    /// Partitions without which it comes to no end.
    fn needed(&self) -> Vec<PartitionId> {
        match self {
            Exchange::Transactions(exchange) => exchange.needed(),
            _ => self.unanswered(),
        }
    }

    /// One of those that were asked refuses.
    pub(super) fn on_refused(self, cx: &mut Cx<'_>, share: usize, reply: Reply) -> Step<Exchange> {
        match self {
            Exchange::Admin(query) => query.on_silence(cx, share).map(Exchange::from),
            exchange => {
                exchange.withdraw(cx);
                Step::Failed(Failure::Refused(reply))
            }
        }
    }

    /// Its time is over.
    pub(super) fn on_timeout(self, cx: &mut Cx<'_>) -> Step<Exchange> {
        match self {
            Exchange::Causal(exchange) => exchange.on_timeout(cx).map(Exchange::from),
            Exchange::Commands(exchange) => exchange.on_timeout(cx).map(Exchange::from),
            Exchange::Admin(query) => query.on_timeout(cx).map(Exchange::from),
            Exchange::AtHome(waiting) => waiting.on_timeout(cx).map(Exchange::from),
            Exchange::Errand(waiting) => waiting.on_timeout(),
            Exchange::Paused(reply) => Exchange::after_pause(reply),
            exchange => {
                let silent = exchange.unanswered().first().copied().unwrap_or_default();
                Step::Failed(cx.no_answer(silent, Reason::Timeout))
            }
        }
    }

    /// A pause is over.
    pub(super) fn after_pause(reply: Option<Reply>) -> Step<Exchange> {
        reply.map_or(Step::Ready, Step::answer)
    }

    /// What was asked of somebody will not be answered.
    pub(super) fn on_lost(self, cx: &mut Cx<'_>, lost: Lost) -> Step<Exchange> {
        let exchange = match (self, lost) {
            (Exchange::Admin(query), Lost::Core(core)) => {
                return query.on_link_down(cx, core).map(Exchange::from);
            }
            (Exchange::Admin(query), Lost::Partition(moved)) => {
                return query.on_partition_moved(cx, moved).map(Exchange::from);
            }
            (exchange, _) => exchange,
        };
        let is_lost = |partition: &PartitionId| match lost {
            Lost::Core(core) => cx.core.owner(*partition) == core,
            Lost::Partition(moved) => *partition == moved,
        };
        let Some(partition) = exchange.needed().into_iter().find(is_lost) else {
            return Step::Waits(exchange);
        };
        exchange.withdraw(cx);
        Step::Failed(cx.no_answer(partition, Reason::LinkDown))
    }

    /// It is over before all have answered: nobody shall wait for its sake.
    pub(super) fn withdraw(self, cx: &mut Cx<'_>) {
        if let Exchange::Causal(exchange) = self {
            exchange.withdraw(cx);
        }
    }

    /// The client is gone, for which something may wait elsewhere.
    pub(super) fn on_gone(&mut self, cx: &mut Cx<'_>) {
        if let Exchange::Commands(exchange) = self {
            exchange.on_gone(cx);
        }
    }

    /// Whether the client waits for somebody else.
    pub(super) fn is_blocked(&self) -> bool {
        match self {
            Exchange::Commands(exchange) => exchange.is_blocked(),
            Exchange::AtHome(exchange) => exchange.waiting().is_some(),
            _ => false,
        }
    }

    pub(super) fn is_at_home(&self) -> bool {
        matches!(self, Exchange::AtHome(_))
    }

    /// The command that waits for somebody else, if one does.
    pub(super) fn waiting(&self) -> Option<&Args> {
        match self {
            Exchange::Commands(exchange) => exchange.waiting(),
            Exchange::AtHome(exchange) => exchange.waiting(),
            _ => None,
        }
    }

    /// Whether it ends when the client is gone.
    pub(super) fn only_waits(&self) -> bool {
        matches!(self, Exchange::Causal(exchange) if exchange.only_waits())
    }
}

/// Who does not answer any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// A core of this datacenter that cannot be reached.
    Core(CoreId),
    /// A partition of this datacenter that does not live where it did.
    Partition(PartitionId),
}

impl From<commands::Exchange> for Exchange {
    fn from(exchange: commands::Exchange) -> Exchange {
        Exchange::Commands(exchange)
    }
}

impl From<transactions::Exchange> for Exchange {
    fn from(exchange: transactions::Exchange) -> Exchange {
        Exchange::Transactions(exchange)
    }
}

impl From<causal::Exchange> for Exchange {
    fn from(exchange: causal::Exchange) -> Exchange {
        Exchange::Causal(exchange)
    }
}

impl From<Box<ClusterQuery>> for Exchange {
    fn from(query: Box<ClusterQuery>) -> Exchange {
        Exchange::Admin(query)
    }
}

impl From<Outcome> for Exchange {
    fn from(outcome: Outcome) -> Exchange {
        match outcome {
            Outcome::Waits(waiting) => Exchange::Errand(waiting),
            Outcome::Orders(query) => Exchange::Admin(query),
        }
    }
}

impl From<AtHome> for Exchange {
    fn from(waiting: AtHome) -> Exchange {
        Exchange::AtHome(waiting)
    }
}
