//! Subscriptions: those of this core's sessions by name, and how many every other core of the cluster has.
//!
//! Arrive: subscriptions of sessions, and reports of other cores. Leave: the receivers of a message, and the reports
//! for other cores. Nothing here is durable, and nothing is sent from here. A core without a link counts as one without
//! subscribers; when its link is up again, it gets a report of everything.

mod elsewhere;
mod subscribers;

use bytes::Bytes;
use elsewhere::Elsewhere;
use ensue_resp::{ProtocolVersion, glob};
use ensue_types::{DatacenterId, SessionId, limits};
use ensue_wire::{ChannelKind, CoreName, Interest};
use std::collections::BTreeSet;
use subscribers::Subscribers;

/// What a core knows of subscriptions.
#[derive(Clone, Debug, Default)]
pub(super) struct Channels {
    subscribers: Subscribers,
    elsewhere: Elsewhere,
    linked: BTreeSet<CoreName>,
    /// What the other cores have not been told.
    changes: Vec<Change>,
}

/// How many sessions of this core subscribe to a name, before and after.
#[derive(Clone, Debug)]
struct Change {
    kind: ChannelKind,
    name: Bytes,
    before: u32,
    after: u32,
}

impl Channels {
    /// Panics if who subscribes to what contradicts itself.
    pub(super) fn check_invariants(&self) {
        self.subscribers.check_invariants();
        self.elsewhere.check_invariants();
    }

    /// Whether there is room for these names.
    pub(super) fn has_room(&self, kind: ChannelKind, names: &[Bytes]) -> bool {
        let fresh = || names.iter().filter(|name| self.subscribers.sessions_of(kind, name) == 0);
        let count = self.subscribers.names() + fresh().count();
        let bytes = self.subscribers.bytes() + fresh().map(|name| bytes_of(name)).sum::<usize>();
        is_within_bounds(count, bytes)
    }

    /// A session subscribes to a name, perhaps again.
    pub(super) fn subscribe(
        &mut self,
        session: SessionId,
        version: ProtocolVersion,
        kind: ChannelKind,
        name: &Bytes,
    ) {
        let before = self.subscribers.sessions_of(kind, name);
        if self.subscribers.add(session, version, kind, name) {
            self.changes.push(Change { kind, name: name.clone(), before, after: before + 1 });
        }
    }

    pub(super) fn unsubscribe(&mut self, session: SessionId, kind: ChannelKind, name: &Bytes) {
        let before = self.subscribers.sessions_of(kind, name);
        if self.subscribers.remove(session, kind, name) {
            self.changes.push(Change { kind, name: name.clone(), before, after: before - 1 });
        }
    }

    /// Whether a session of this core may hear of channels whose names begin so; a pattern may match any.
    pub(super) fn may_hear(&self, prefix: &[u8]) -> bool {
        self.subscribers.has(ChannelKind::Pattern)
            || self.subscribers.has_prefix(ChannelKind::Channel, prefix)
    }

    /// The names to which a session subscribes, in their order.
    pub(super) fn of_session(&self, session: SessionId, kind: ChannelKind) -> Vec<Bytes> {
        self.subscribers.of_session(session, kind)
    }

    /// The channels and patterns that a session subscribes to.
    pub(super) fn named_by(&self, session: SessionId) -> Vec<(ChannelKind, Bytes)> {
        let of_kind = |kind| self.of_session(session, kind).into_iter().map(move |name: Bytes| (kind, name));
        NAMED.into_iter().flat_map(of_kind).collect()
    }

    /// To how many names of this kind a session subscribes.
    pub(super) fn count(&self, session: SessionId, kind: ChannelKind) -> usize {
        self.subscribers.count(session, kind)
    }

    /// The session is gone, or wants nothing any more.
    pub(super) fn forget(&mut self, session: SessionId) {
        for kind in KINDS {
            for name in self.of_session(session, kind) {
                self.unsubscribe(session, kind, &name);
            }
        }
    }

    /// A session speaks another version of the protocol from now on.
    pub(super) fn set_version(&mut self, session: SessionId, version: ProtocolVersion) {
        self.subscribers.set_version(session, version);
    }

    /// The frames that a message makes for the sessions of this core: of its channel first, then of patterns.
    pub(super) fn frames(
        &self,
        kind: ChannelKind,
        channel: &Bytes,
        payload: &Bytes,
    ) -> Vec<(SessionId, Bytes)> {
        self.subscribers.frames(kind, channel, payload)
    }

    /// The other cores that have subscribers of a channel, and how many.
    pub(super) fn targets(&self, kind: ChannelKind, channel: &[u8]) -> Vec<(CoreName, u32)> {
        self.elsewhere.targets(kind, channel)
    }

    /// Whether a client of the cluster wants to be told of every command.
    pub(super) fn is_monitored(&self) -> bool {
        self.subscribers.has(ChannelKind::Monitor) || self.elsewhere.has(ChannelKind::Monitor)
    }

    /// How many clients of this core subscribe to anything.
    pub(super) fn clients(&self) -> usize {
        self.subscribers.clients()
    }

    // What cores tell each other.

    /// A core can be told, and be handed messages; it is told this.
    pub(super) fn on_link_up(&mut self, core: CoreName) -> Vec<Interest> {
        self.linked.insert(core);
        self.subscribers.table()
    }

    pub(super) fn on_link_down(&mut self, core: CoreName) {
        self.linked.remove(&core);
        self.elsewhere.forget(core);
    }

    /// Another core says what its sessions subscribe to; false if that is more than any core may.
    pub(super) fn on_interest(&mut self, core: CoreName, all: bool, changes: Vec<Interest>) -> bool {
        if all {
            self.elsewhere.forget(core);
        }
        let mut fits = true;
        for interest in changes {
            fits &= self.elsewhere.learn(core, interest);
        }
        fits
    }

    /// What is to be told to which cores. Another datacenter need not know how many there are.
    pub(super) fn take_changes(&mut self, own: DatacenterId) -> Vec<(CoreName, Vec<Interest>)> {
        if self.changes.is_empty() {
            return Vec::new();
        }
        let changes = std::mem::take(&mut self.changes);
        let told = |is_near: bool| -> Vec<Interest> {
            let matters = |change: &&Change| is_near || (change.before == 0) != (change.after == 0);
            let interest = |Change { kind, name, after, .. }: &Change| Interest {
                kind: *kind,
                name: name.clone(),
                sessions: *after,
            };
            changes.iter().filter(matters).map(interest).collect()
        };
        let (near, far) = (told(true), told(false));
        let list = |core: &CoreName| if core.datacenter == own { near.clone() } else { far.clone() };
        self.linked.iter().map(|core| (*core, list(core))).filter(|(_, list)| !list.is_empty()).collect()
    }

    // What a datacenter's clients subscribe to.

    /// The names of this kind, of those that match.
    pub(super) fn known(
        &self,
        own: DatacenterId,
        kind: ChannelKind,
        pattern: Option<&[u8]>,
    ) -> BTreeSet<Bytes> {
        let here = self.subscribers.of_kind(kind);
        let there = self.elsewhere.of_kind(kind, own);
        let matches = |name: &&Bytes| pattern.is_none_or(|pattern| glob::matches(pattern, name));
        here.chain(there).filter(matches).cloned().collect()
    }

    /// How many sessions subscribe to a name.
    pub(super) fn sessions_of(&self, own: DatacenterId, kind: ChannelKind, name: &[u8]) -> u64 {
        u64::from(self.subscribers.sessions_of(kind, name)) + self.elsewhere.sessions_of(kind, name, own)
    }

    /// Names of this kind that this core counts: no core before it in its datacenter has a subscriber, so that the sum
    /// over all cores has each of them once.
    pub(super) fn counted(&self, own: CoreName, kind: ChannelKind) -> usize {
        let is_first = |name: &&Bytes| !self.elsewhere.has_before(kind, name, own);
        self.subscribers.of_kind(kind).filter(is_first).count()
    }
}

pub(super) const KINDS: [ChannelKind; 4] =
    [ChannelKind::Channel, ChannelKind::Pattern, ChannelKind::Shard, ChannelKind::Monitor];
/// Those to which clients subscribe by name.
pub(super) const NAMED: [ChannelKind; 3] = [ChannelKind::Channel, ChannelKind::Pattern, ChannelKind::Shard];

/// The place of a kind in a table.
fn place(kind: ChannelKind) -> usize {
    match kind {
        ChannelKind::Channel => 0,
        ChannelKind::Pattern => 1,
        ChannelKind::Shard => 2,
        ChannelKind::Monitor => 3,
    }
}

/// Whether a core may have so many names, of so many bytes.
fn is_within_bounds(names: usize, bytes: usize) -> bool {
    names <= limits::CHANNELS_MAX && bytes <= limits::CHANNELS_BYTES_MAX
}

/// What a name takes with its share of the tables.
fn bytes_of(name: &[u8]) -> usize {
    name.len() + ENTRY_BYTES
}

const ENTRY_BYTES: usize = 128;

#[cfg(test)]
mod tests;
