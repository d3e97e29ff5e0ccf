//! `cops-cd`: `cops` that finds writes which did not know of each other, and keeps their values beside each other.
//!
//! Lloyd, Freedman, Kaminsky, Andersen, "Don't Settle for Eventual: Scalable Causal Consistency for Wide-Area Storage
//! with COPS", SOSP 2011, section 5.3 and appendix A. The rules are those of `cops`, and:
//!
//! - A put carries the previous version: what stood at its key in its datacenter when it was taken.
//! - It depends on that: elsewhere it is committed after it, which costs no message, since both are of one partition.
//! - It is in conflict exactly if what stands at its key where it is committed is not that previous version.
//! - A handler, associative and commutative, makes one value of those in conflict; a client sees that value and never
//!   the parts. Whoever has read it has read all of them, as the handler thread of appendix A has.
//!
//! Where we differ from the paper:
//! - The paper's handler puts a new version, in every datacenter one: with several conflicts at once, handlers put many
//!   equal versions, and "must output only one". Here nothing is put. The values in conflict stay beside each other
//!   until a put replaces them, and the handler's answer is what reads return. So it may change with the configuration,
//!   and no value is lost to it.
//! - The previous version of a put over values in conflict is all of them: the paper's is the one that the handler had
//!   put.
//! - What stands at a key is a function of the set of puts alone: those that no other put had as its previous version.
//!   The paper's proof leans on the order in which conflicts are found; a restart that merges puts again, or finds them
//!   in another order, needs more.
//! - A put replaces every earlier put of its own datacenter, because one owner takes them one after another. So there
//!   are never more values at a key than datacenters, and none is ever dropped for a bound.
//! - A handler must be idempotent too: what is merged again after a restart must not count twice.
//! - A delete is a put of nothing. A value in conflict with it stays, but for the handler `newest`. Additions to a
//!   counter conflict with nothing.

use crate::cops::{CAPABILITIES, Cops};
use crate::{Needs, Promises, Registration};

/// The protocol, as it is registered: in everything but conflicts, `cops`.
pub const REGISTRATION: Registration = Registration {
    name: "cops-cd",
    capabilities: CAPABILITIES,
    promises: Promises { folds: true, ..Promises::CAUSAL_SINGLE_KEYS },
    make: |options| {
        let needs = Needs { previous_versions: true, siblings: true, ..Needs::default() };
        Box::new(Cops::new(&REGISTRATION, needs, options))
    },
};
