//! `log`: one serial stream a datacenter, replayed in its order, and no dependency tracking.
//!
//! The baseline of Lloyd, Freedman, Kaminsky, Andersen, "Don't Settle for Eventual", SOSP 2011, section 6.4: what log
//! serialization and exchange gives (Bayou, PRACTI), and what it costs. The rules:
//!
//! - Everything that a datacenter writes passes one sequencer, and is one stream.
//! - Context: nothing. Dependencies: nothing: the place in the stream is the dependency.
//! - Visibility: in the order of the origin's stream. Entries are received in order, none of them waits for anything,
//!   and so they are merged in order.
//! - Choice: the newest, and a read never waits.
//! - Snapshot: all keys have one owner, so whatever is read or written together is read or written at one moment.
//! - Forgetting: old versions at once.
//!
//! What follows: whoever sees a write has everything that its datacenter had written before it, also what came to be
//! known there by way of other datacenters and was answered by a write there. Streams of different datacenters know
//! nothing of each other: an album that dc2 made of a photo of dc1 may be seen in dc3 before the photo. So it is not
//! causal, and a token would promise nothing.
//!
//! Where we differ from the paper:
//! - Its LOG is COPS without dependencies on one server a datacenter. Here that server is the first partition: it owns
//!   all keys of such a keyspace in each datacenter. A sequencer in front of several partitions would give the same
//!   order and the same bottleneck.
//! - Stamps arbitrate, and a stamp is above all that its partition had merged: so a later write in the stream wins over
//!   all before it.

use crate::{Capabilities, Family, Needs, Nothing, Profile, Promises, Protocol, Registration, SnapshotReads};
use ensue_types::Rule;

/// The protocol, as it is registered.
pub const REGISTRATION: Registration = Registration {
    name: "log",
    capabilities: Capabilities {
        snapshot_reads: SnapshotReads::OneRound,
        write_transactions: true,
        causality: false,
        available: true,
    },
    promises: Promises { snapshots: true, one_stream: true, ..Promises::CONVERGENCE },
    make: |_| {
        let needs = Needs { one_stream: Rule::OneStreamADatacenter.holds(), ..Needs::default() };
        Box::new(Log { profile: REGISTRATION.profile(needs) })
    },
};

/// The protocol of one stream a datacenter.
#[derive(Debug)]
struct Log {
    profile: Profile,
}

impl Protocol for Log {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    #[inline]
    fn family(&self) -> &dyn Family {
        &Nothing
    }
}
