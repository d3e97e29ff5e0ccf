//! What a protocol promises its clients: the oracle of the simulator asks for this, no more and no less.
//!
//! `eiger` promises causal+ consistency. `eventual` promises, of that, what follows from writes that are stamped
//! above all that their session had seen and that are taken by one owner of each key in each datacenter:
//!
//! - the writes of a key are ordered, the same way everywhere, and a write comes after all that its session had seen;
//! - a session, which stays in one datacenter here, never sees a key go back, and sees its own writes of it;
//! - everyone ends with the same, nothing acknowledged is lost, and an addition counts once;
//! - a datacenter serves whatever becomes of the others.
//!
//! Who sees one key of a write of several knows nothing of its other keys: each has a stamp of its own. It promises
//! nothing about two keys, and nothing to a session that goes elsewhere with its token.
//!
//! `log` promises the same as `eventual`, and that a datacenter's writes are seen in their order: who has one of them
//! has all that this datacenter had written before. All keys have one owner, so what is read together is of one
//! moment, and what is written together takes effect together.
//!
//! `cops` promises causality between single keys, `cops-gt` between several read together, too.
//! `cops-cd` promises the same as `cops`, and that no value is lost to a write which did not know of
//! it: where a key has a handler of conflicts, what is read is made of all of them.
//!
//! The vector family (`orbe-dm`, `orbe-clock`, `cure`, `pocc`, `ha-pocc`) promises causality to sessions, with their
//! tokens everywhere, and has no write transactions. Its members differ in whether several keys are read as one
//! state, in what a datacenter shows at once of what it has acknowledged, and in what becomes of a read whose past is
//! not there yet.

use crate::find;

/// What becomes of one command, or one `MULTI`, that writes in several partitions. In one partition it is atomic
/// always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeveralWrites {
    /// They take effect together: P10.
    Together,
    /// A command is so many writes; a `MULTI` is refused.
    Apart,
    /// Refused by name.
    Refused,
}

/// What a healthy datacenter answers, whatever becomes of the others: P14.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Everything, at once.
    Always,
    /// What waits longer than a request may is answered `BLOCKED`: it had no effect, and the session goes on.
    Blocks,
    /// What waits longer than the threshold is answered `FALLBACK`: it had no effect, and the session is a new one.
    FallsBack,
}

/// What an operation shows of what its datacenter had acknowledged, to whomever, before it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recency {
    /// All of it.
    Everywhere,
    /// All of it, if it reads one place; the state that a read of several sees may lie in the past.
    SingleReads,
    /// Nothing but what its session knows.
    OwnPast,
}

/// What the oracle checks only of protocols that promise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// What a session sees contains the causal past of all that it saw, in every datacenter: P1 to P5, P11.
    pub causality: bool,
    /// Reads of several keys see one state: P9.
    pub snapshots: bool,
    pub several_writes: SeveralWrites,
    pub recency: Recency,
    pub availability: Availability,
    /// All keys have one owner, and a datacenter's writes are seen everywhere in their order.
    pub one_stream: bool,
    /// What a partition has received is shown to whoever reads one place of it.
    pub shows_received: bool,
    /// What was received everywhere may be shown only some rounds of messages later.
    pub shows_late: bool,
    /// Values that nothing replaced are kept, and what is read of them is what their key's handler makes of them.
    pub folds: bool,
    /// What was received is shown or hidden by vectors of times, and nothing waits where it arrives.
    pub goes_by_times: bool,
    /// Keyspaces have branches: other clients ask, and another oracle judges.
    pub branches: bool,
}

impl Promises {
    /// Causal+ consistency, with reads and writes of several keys at one moment.
    pub const CAUSAL_WITH_TRANSACTIONS: Promises = Promises {
        causality: true,
        snapshots: true,
        several_writes: SeveralWrites::Together,
        recency: Recency::SingleReads,
        availability: Availability::Always,
        one_stream: false,
        shows_received: false,
        shows_late: false,
        folds: false,
        goes_by_times: false,
        branches: false,
    };

    /// No causality. Each read of several stands for itself, and is of the moment.
    pub const CONVERGENCE: Promises = Promises {
        causality: false,
        snapshots: false,
        several_writes: SeveralWrites::Apart,
        recency: Recency::Everywhere,
        shows_received: true,
        ..Promises::CAUSAL_WITH_TRANSACTIONS
    };

    /// Causal+ consistency between keys that are read and written one by one.
    pub const CAUSAL_SINGLE_KEYS: Promises = Promises {
        causality: true,
        several_writes: SeveralWrites::Refused,
        shows_received: false,
        ..Promises::CONVERGENCE
    };

    /// Causal+ consistency with snapshots by vectors of times. What was received may be shown late.
    pub const CAUSAL_BY_TIMES: Promises = Promises {
        snapshots: true,
        recency: Recency::SingleReads,
        shows_late: true,
        goes_by_times: true,
        ..Promises::CAUSAL_SINGLE_KEYS
    };

    /// Whether keys can have a home: every session there sees what happened at a key, or is refused if it may not.
    pub fn may_have_homes(&self) -> bool {
        let refuses = self.availability == Availability::FallsBack;
        !self.branches && (self.recency != Recency::OwnPast || refuses)
    }

    /// What the protocol of this name promises.
    pub fn of(protocol: &str) -> Option<Promises> {
        find(protocol).map(|registration| registration.promises)
    }

    /// Over how many of a cluster's partitions, from the first on, keys are spread.
    pub fn spread(&self, partitions: u16) -> u16 {
        if self.one_stream { 1 } else { partitions }
    }

    /// Whether writes in several partitions by one command are atomic.
    pub fn writes_together(&self) -> bool {
        self.several_writes == SeveralWrites::Together
    }
}

/// The most that any protocol promises.
impl Default for Promises {
    fn default() -> Promises {
        Promises::CAUSAL_WITH_TRANSACTIONS
    }
}
