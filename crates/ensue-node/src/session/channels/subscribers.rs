//! The sessions of this core that subscribe, by name and by session, and the frames that a message makes for them.

use super::{KINDS, NAMED, bytes_of, place};
use bytes::Bytes;
use ensue_resp::{ProtocolVersion, encode, glob};
use ensue_types::{Reply, SessionId};
use ensue_wire::{ChannelKind, Interest};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Subscriptions of this core.
#[derive(Clone, Debug, Default)]
pub(super) struct Subscribers {
    by_name: [BTreeMap<Bytes, BTreeSet<SessionId>>; KINDS.len()],
    by_session: BTreeMap<SessionId, Subscriber>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Subscriber {
    version: ProtocolVersion,
    names: [BTreeSet<Bytes>; KINDS.len()],
}

impl Subscribers {
    /// False if it was so already.
    pub(super) fn add(
        &mut self,
        session: SessionId,
        version: ProtocolVersion,
        kind: ChannelKind,
        name: &Bytes,
    ) -> bool {
        let fresh = || Subscriber { version, names: Default::default() };
        let subscriber = self.by_session.entry(session).or_insert_with(fresh);
        if subscriber.names[place(kind)].contains(name) {
            return false;
        }
        // The client's own bytes would keep all that came with them in memory.
        let known = self.by_name[place(kind)].get_key_value(name).map(|(known, _)| known.clone());
        let name = known.unwrap_or_else(|| {
            self.bytes += bytes_of(name);
            Bytes::copy_from_slice(name)
        });
        subscriber.names[place(kind)].insert(name.clone());
        self.by_name[place(kind)].entry(name).or_default().insert(session)
    }

    /// False if it was not so.
    pub(super) fn remove(&mut self, session: SessionId, kind: ChannelKind, name: &Bytes) -> bool {
        let Some(subscriber) = self.by_session.get_mut(&session) else { return false };
        if !subscriber.names[place(kind)].remove(name) {
            return false;
        }
        if subscriber.names.iter().all(BTreeSet::is_empty) {
            self.by_session.remove(&session);
        }
        if let Some(sessions) = self.by_name[place(kind)].get_mut(name) {
            sessions.remove(&session);
            if sessions.is_empty() {
                self.by_name[place(kind)].remove(name);
                self.bytes -= bytes_of(name);
            }
        }
        true
    }

    pub(super) fn set_version(&mut self, session: SessionId, version: ProtocolVersion) {
        if let Some(subscriber) = self.by_session.get_mut(&session) {
            subscriber.version = version;
        }
    }

    pub(super) fn of_session(&self, session: SessionId, kind: ChannelKind) -> Vec<Bytes> {
        let subscriber = self.by_session.get(&session);
        subscriber.map(|one| one.names[place(kind)].iter().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn count(&self, session: SessionId, kind: ChannelKind) -> usize {
        self.by_session.get(&session).map_or(0, |one| one.names[place(kind)].len())
    }

    pub(super) fn sessions_of(&self, kind: ChannelKind, name: &[u8]) -> u32 {
        self.by_name[place(kind)].get(name).map_or(0, |sessions| sessions.len() as u32)
    }

    pub(super) fn of_kind(&self, kind: ChannelKind) -> impl Iterator<Item = &Bytes> {
        self.by_name[place(kind)].keys()
    }

    /// Those that subscribe to something with a name.
    pub(super) fn clients(&self) -> usize {
        let subscribes = |one: &&Subscriber| NAMED.iter().any(|kind| !one.names[place(*kind)].is_empty());
        self.by_session.values().filter(subscribes).count()
    }

    /// Whether any session subscribes to a name of this kind.
    pub(super) fn has(&self, kind: ChannelKind) -> bool {
        !self.by_name[place(kind)].is_empty()
    }

    /// The same of names that begin so.
    pub(super) fn has_prefix(&self, kind: ChannelKind, prefix: &[u8]) -> bool {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let first = self.by_name[place(kind)].range::<[u8], _>(from).next();
        first.is_some_and(|(name, _)| name.starts_with(prefix))
    }

    pub(super) fn names(&self) -> usize {
        self.by_name.iter().map(BTreeMap::len).sum()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of it, for a core that knows nothing.
    /// Panics if a session would not get what it subscribes to, or get what it does not.
    pub(super) fn check_invariants(&self) {
        let names = self.by_name.iter().flat_map(BTreeMap::keys);
        assert_eq!(names.map(|name| bytes_of(name)).sum::<usize>(), self.bytes, "names are counted wrong");
        for kind in KINDS {
            let of_sessions = self.by_session.iter().flat_map(|(session, subscriber)| {
                subscriber.names[place(kind)].iter().map(move |name| (name, *session))
            });
            let of_sessions: BTreeSet<(&Bytes, SessionId)> = of_sessions.collect();
            let of_names = self.by_name[place(kind)].iter();
            let of_names =
                of_names.flat_map(|(name, sessions)| sessions.iter().map(move |session| (name, *session)));
            assert!(of_names.eq(of_sessions), "subscriptions by name differ from those by session");
        }
    }

    pub(super) fn table(&self) -> Vec<Interest> {
        let of_kind = |kind| {
            let names = self.by_name[place(kind)].iter();
            names.map(move |(name, sessions)| Interest {
                kind,
                name: name.clone(),
                sessions: sessions.len() as u32,
            })
        };
        KINDS.into_iter().flat_map(of_kind).collect()
    }

    pub(super) fn frames(
        &self,
        kind: ChannelKind,
        channel: &Bytes,
        payload: &Bytes,
    ) -> Vec<(SessionId, Bytes)> {
        let mut frames = Vec::new();
        let bulk = |bytes: &Bytes| Reply::Bulk(bytes.clone());
        if kind == ChannelKind::Monitor {
            let sessions = self.by_name[place(kind)].get(channel).into_iter().flatten();
            let line = Bytes::from([b"+", &payload[..], b"\r\n"].concat());
            return sessions.map(|session| (*session, line.clone())).collect();
        }
        if let Some(sessions) = self.by_name[place(kind)].get(channel) {
            let word = if kind == ChannelKind::Shard { "smessage" } else { "message" };
            self.add_frames(&mut frames, sessions, &[Reply::bulk(word), bulk(channel), bulk(payload)]);
        }
        if kind == ChannelKind::Channel {
            for (pattern, sessions) in &self.by_name[place(ChannelKind::Pattern)] {
                if glob::matches(pattern, channel) {
                    let items = [Reply::bulk("pmessage"), bulk(pattern), bulk(channel), bulk(payload)];
                    self.add_frames(&mut frames, sessions, &items);
                }
            }
        }
        frames
    }

    /// The same bytes for all who speak one version.
    fn add_frames(
        &self,
        frames: &mut Vec<(SessionId, Bytes)>,
        sessions: &BTreeSet<SessionId>,
        items: &[Reply],
    ) {
        let mut encoded: [Option<Bytes>; 2] = [None, None];
        for session in sessions {
            let Some(subscriber) = self.by_session.get(session) else { continue };
            let place = usize::from(subscriber.version == ProtocolVersion::Resp3);
            let bytes = encoded[place].get_or_insert_with(|| {
                let mut bytes = Vec::new();
                encode::encode_push(items, subscriber.version, &mut bytes);
                bytes.into()
            });
            frames.push((*session, bytes.clone()));
        }
    }
}
