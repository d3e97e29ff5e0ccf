//! Client-side caching: which clients of this core have read which keys, and are told when these change.
//!
//! Keys that a command reads are noted before it is sent to their owner, and what the owner says of changes comes
//! behind its answers, so a client is told of every change of what it has been answered. A client may be told too
//! often, never too seldom: it may have stopped and begun again since it read a key; of its own changes it is told,
//! too, unless its present commands have read them; and when too many keys are noted, or news may have been lost, it is
//! told that keys, or all keys, have changed.

use bytes::Bytes;
use ensue_resp::{ProtocolVersion, encode};
use ensue_types::{Reply, SessionId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// What a client has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Another client of this core is told in its place; 0 is none.
    pub(super) redirect: u64,
    /// All keys with these beginnings, read or not.
    pub(super) broadcast: bool,
    pub(super) prefixes: Vec<Bytes>,
    /// Keys of a command are noted only if the one before it says so.
    pub(super) opt_in: bool,
    /// They are noted unless the one before it says no.
    pub(super) opt_out: bool,
    /// It is not told of what it writes itself.
    pub(super) no_loop: bool,
}

#[derive(Clone, Debug)]
struct Tracked {
    options: Options,
    /// What `CLIENT CACHING` has said of the next command.
    caching: Option<bool>,
    /// The keys that the scripts of its present command read are to be noted.
    notes_script: bool,
    version: ProtocolVersion,
    /// The client that is told in its place is gone.
    is_broken: bool,
    /// What it reads now, and what of that has changed since it asked: its answer may be older than the change.
    reading: BTreeSet<Bytes>,
    changed: BTreeSet<Bytes>,
    /// Keys that its present commands read, and do not write afterwards: what it reads has its own changes in it.
    own: BTreeSet<Bytes>,
    /// Changed keys of its prefixes that it is told of together.
    broadcast: BTreeSet<Bytes>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracking {
    clients: BTreeMap<SessionId, Tracked>,
    /// Those that are told of keys they have not read.
    broadcasters: BTreeSet<SessionId>,
    /// Who has read a key. Clients that have stopped since are among them: looking for all that one has read would take
    /// as long as there are keys.
    readers: BTreeMap<Bytes, BTreeSet<SessionId>>,
    items: usize,
    /// The key that was given up last for want of room.
    let_go: Bytes,
    has_broadcasts: bool,
    /// For whom a client is told.
    redirecting: BTreeMap<SessionId, BTreeSet<SessionId>>,
    /// The version of those that are told for others.
    versions: BTreeMap<SessionId, ProtocolVersion>,
}

/// Bytes that answer no command, for a client.
pub(super) type Push = (SessionId, Bytes);

impl Tracking {
    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    pub(super) fn options(&self, client: SessionId) -> Option<&Options> {
        self.clients.get(&client).map(|tracked| &tracked.options)
    }

    /// What `CLIENT CACHING` has said of the next command, and whether the client that is told instead is gone.
    pub(super) fn state(&self, client: SessionId) -> (Option<bool>, bool) {
        self.clients.get(&client).map_or((None, false), |tracked| (tracked.caching, tracked.is_broken))
    }

    pub(super) fn start(&mut self, client: SessionId, version: ProtocolVersion, options: Options) {
        // The prefixes of a client that asks again are added to.
        let mut options = options;
        if let Some(before) = self.clients.get(&client) {
            options.prefixes.extend(before.options.prefixes.iter().cloned());
        }
        let (reading, changed, own, broadcast) = Default::default();
        let tracked = Tracked {
            options,
            caching: None,
            notes_script: false,
            version,
            is_broken: false,
            reading,
            changed,
            own,
            broadcast,
        };
        match tracked.options.broadcast {
            true => self.broadcasters.insert(client),
            false => self.broadcasters.remove(&client),
        };
        self.end_redirection(client);
        if tracked.options.redirect != 0 {
            self.redirecting.entry(SessionId(tracked.options.redirect)).or_default().insert(client);
        }
        self.clients.insert(client, tracked);
    }

    /// Nobody is told in the place of a client any more.
    fn end_redirection(&mut self, client: SessionId) {
        let target = self.clients.get(&client).map(|tracked| SessionId(tracked.options.redirect));
        let Some((target, sources)) =
            target.and_then(|target| Some((target, self.redirecting.get_mut(&target)?)))
        else {
            return;
        };
        sources.remove(&client);
        if sources.is_empty() {
            self.redirecting.remove(&target);
        }
    }

    pub(super) fn stop(&mut self, client: SessionId) {
        self.end_redirection(client);
        self.clients.remove(&client);
        self.broadcasters.remove(&client);
        if self.clients.is_empty() {
            (self.readers, self.items) = (BTreeMap::new(), 0);
        }
    }

    pub(super) fn set_version(&mut self, client: SessionId, version: ProtocolVersion) {
        if let Some(tracked) = self.clients.get_mut(&client) {
            tracked.version = version;
        }
        self.versions.insert(client, version);
    }

    pub(super) fn set_caching(&mut self, client: SessionId, caching: bool) {
        if let Some(tracked) = self.clients.get_mut(&client) {
            tracked.caching = Some(caching);
        }
    }

    /// A client is gone, and those for which it was told are told so.
    pub(super) fn on_gone(&mut self, client: SessionId) -> Vec<Push> {
        self.stop(client);
        self.versions.remove(&client);
        let mut pushes = Vec::new();
        for id in self.redirecting.remove(&client).unwrap_or_default() {
            let Some(tracked) = self.clients.get_mut(&id) else { continue };
            tracked.is_broken = true;
            if tracked.version == ProtocolVersion::Resp3 {
                let items = [Reply::bulk("tracking-redir-broken"), Reply::Integer(client.0 as i64)];
                pushes.push((id, push(&items, ProtocolVersion::Resp3)));
            }
        }
        pushes
    }

    /// Whether the keys of the client's next command are to be noted; what was said of it counts once.
    pub(super) fn notes_next(&mut self, client: SessionId) -> bool {
        let Some(tracked) = self.clients.get_mut(&client) else { return false };
        let caching = tracked.caching.take();
        match &tracked.options {
            Options { broadcast: true, .. } => false,
            Options { opt_in: true, .. } => caching == Some(true),
            Options { opt_out: true, .. } => caching != Some(false),
            _ => true,
        }
    }

    /// A client begins commands: what it writes may be told to it again.
    pub(super) fn begin(&mut self, client: SessionId) {
        if let Some(tracked) = self.clients.get_mut(&client) {
            tracked.own.clear();
        }
    }

    /// A client writes keys behind what it has read, or reads them behind what it has written.
    pub(super) fn order<'k>(
        &mut self,
        client: SessionId,
        keys: impl Iterator<Item = &'k Bytes>,
        reads: bool,
    ) {
        let Some(tracked) = self.clients.get_mut(&client) else { return };
        for key in keys {
            match reads {
                true => tracked.own.insert(Bytes::copy_from_slice(key)),
                false => tracked.own.remove(key),
            };
        }
    }

    /// A script begins whose reads are to be noted.
    pub(super) fn begin_script(&mut self, client: SessionId) {
        if let Some(tracked) = self.clients.get_mut(&client) {
            tracked.notes_script = true;
        }
    }

    /// Whether what the scripts of a client read is to be noted.
    pub(super) fn notes_script(&self, client: SessionId) -> bool {
        self.clients.get(&client).is_some_and(|tracked| tracked.notes_script)
    }

    /// A client reads keys. Beyond so many keys others are given up, and their readers told that they have changed.
    pub(super) fn note<'k>(
        &mut self,
        client: SessionId,
        keys: impl Iterator<Item = &'k Bytes>,
        keys_max: usize,
    ) -> Vec<Push> {
        let mut reading = BTreeSet::new();
        for key in keys {
            // A copy of its own, so that it does not keep a client's whole read buffer alive.
            let own = Bytes::copy_from_slice(key);
            reading.insert(own.clone());
            if let Some(readers) = self.readers.get_mut(key) {
                self.items += usize::from(readers.insert(client));
            } else {
                self.readers.insert(own, BTreeSet::from([client]));
                self.items += 1;
            }
        }
        if let Some(tracked) = self.clients.get_mut(&client) {
            tracked.reading.append(&mut reading);
        }
        self.limit(keys_max)
    }

    /// Gives up keys beyond so many, unless 0 is the bound, which is none.
    pub(super) fn limit(&mut self, keys_max: usize) -> Vec<Push> {
        let mut pushes = Vec::new();
        while keys_max > 0 && self.readers.len() > keys_max {
            // In turn: the lowest key may be the one that is read most.
            let behind = (Bound::Excluded(&self.let_go), Bound::Unbounded);
            let next =
                self.readers.range::<Bytes, _>(behind).next().or_else(|| self.readers.first_key_value());
            let Some(key) = next.map(|(key, _)| key.clone()) else { break };
            self.let_go = key.clone();
            let readers = self.take_readers(&key);
            self.note_changed(&readers, &key);
            let keys = Some(std::slice::from_ref(&key));
            pushes.extend(readers.into_iter().filter_map(|id| self.told(id, keys)));
        }
        pushes
    }

    /// A key has changed, by a session of this core if one is named; all keys have if none is.
    pub(super) fn on_change(&mut self, key: Option<&Bytes>, writer: Option<SessionId>) -> Vec<Push> {
        let Some(key) = key else { return self.on_everything() };
        let mut told = self.take_readers(key);
        let knows = |own: &SessionId| self.clients.get(own).is_some_and(|one| one.own.contains(key));
        if let Some(own) = writer.filter(|own| knows(own) && told.remove(own)) {
            self.readers.insert(Bytes::copy_from_slice(key), BTreeSet::from([own]));
            self.items += 1;
        }
        self.note_changed(&told, key);
        for id in &self.broadcasters {
            let Some(tracked) = self.clients.get_mut(id) else { continue };
            let Options { prefixes, no_loop, .. } = &tracked.options;
            let is_own = *no_loop && writer == Some(*id);
            let is_meant = prefixes.is_empty() || prefixes.iter().any(|prefix| key.starts_with(prefix));
            if is_meant && !is_own {
                tracked.broadcast.insert(key.clone());
                self.has_broadcasts = true;
            }
        }
        let is_meant = |id: &SessionId| {
            let no_loop = self.clients.get(id).is_some_and(|tracked| tracked.options.no_loop);
            !(no_loop && writer == Some(*id))
        };
        let key = std::slice::from_ref(key);
        told.into_iter().filter(is_meant).filter_map(|id| self.told(id, Some(key))).collect()
    }

    /// What clients are told together of the keys of their prefixes that have changed: a message for each prefix, in
    /// the order of the prefixes.
    pub(super) fn take_broadcasts(&mut self) -> Vec<Push> {
        if !std::mem::take(&mut self.has_broadcasts) {
            return Vec::new();
        }
        let mut taken: Vec<(SessionId, Vec<Bytes>)> = Vec::new();
        for &id in &self.broadcasters {
            let Some(tracked) = self.clients.get_mut(&id) else { continue };
            let keys = std::mem::take(&mut tracked.broadcast);
            taken.extend(by_prefix(&tracked.options.prefixes, keys).into_iter().map(|keys| (id, keys)));
        }
        taken.into_iter().filter_map(|(id, keys)| self.told(id, Some(&keys))).collect()
    }

    /// Clients that have asked for a key, and have no answer yet, are told of it behind the answer, too.
    fn note_changed(&mut self, clients: &BTreeSet<SessionId>, key: &Bytes) {
        for id in clients {
            if let Some(tracked) = self.clients.get_mut(id).filter(|tracked| tracked.reading.contains(key)) {
                tracked.changed.insert(key.clone());
            }
        }
    }

    /// All keys may have changed.
    pub(super) fn on_everything(&mut self) -> Vec<Push> {
        self.readers.clear();
        self.items = 0;
        for tracked in self.clients.values_mut() {
            tracked.changed.extend(tracked.reading.iter().cloned());
        }
        self.clients.keys().filter_map(|id| self.told(*id, None)).collect()
    }

    /// All keys may have changed, for one client.
    pub(super) fn on_everything_of(&mut self, client: SessionId) -> Vec<Push> {
        self.told(client, None).into_iter().collect()
    }

    /// A client has its answers: what has changed meanwhile is told behind them once more.
    pub(super) fn on_answered(&mut self, client: SessionId) -> Vec<Push> {
        let Some(tracked) = self.clients.get_mut(&client) else { return Vec::new() };
        tracked.reading.clear();
        tracked.notes_script = false;
        let changed = std::mem::take(&mut tracked.changed);
        changed.iter().filter_map(|key| self.told(client, Some(std::slice::from_ref(key)))).collect()
    }

    /// Whether nobody is told in the place of another client.
    #[cfg(test)]
    pub(super) fn redirects_nothing(&self) -> bool {
        self.redirecting.is_empty()
    }

    pub(super) fn metrics(&self) -> [(&'static str, usize); 4] {
        let prefixes: BTreeSet<&Bytes> =
            self.clients.values().flat_map(|tracked| &tracked.options.prefixes).collect();
        [
            ("tracking_clients", self.clients.len()),
            ("tracking_total_keys", self.readers.len()),
            ("tracking_total_items", self.items),
            ("tracking_total_prefixes", prefixes.len()),
        ]
    }

    fn take_readers(&mut self, key: &Bytes) -> BTreeSet<SessionId> {
        let readers = self.readers.remove(key).unwrap_or_default();
        self.items -= readers.len();
        readers
    }

    /// What tells a client, or who is told for it, that keys have changed, or all. A client of RESP2 for which nobody
    /// else is told learns nothing, as in Redis.
    fn told(&self, id: SessionId, keys: Option<&[Bytes]>) -> Option<Push> {
        let tracked = self.clients.get(&id)?;
        let listed = |keys: &[Bytes]| Reply::Array(keys.iter().cloned().map(Reply::Bulk).collect());
        let keys = keys.map_or(Reply::Nil, listed);
        let (id, version) = match tracked.options.redirect {
            0 => (id, tracked.version),
            _ if tracked.is_broken => return None,
            other => {
                let other = SessionId(other);
                (other, self.versions.get(&other).copied().unwrap_or_default())
            }
        };
        match (tracked.options.redirect, version) {
            (0, ProtocolVersion::Resp2) => None,
            (_, ProtocolVersion::Resp3) => Some((id, push(&[Reply::bulk("invalidate"), keys], version))),
            (_, ProtocolVersion::Resp2) => {
                let channel = Reply::bulk("__redis__:invalidate");
                let keys = if keys == Reply::Nil { Reply::NilArray } else { keys };
                Some((id, push(&[Reply::bulk("message"), channel, keys], version)))
            }
        }
    }
}

/// Changed keys, those of each prefix together. No prefix of a client begins with another one of it.
fn by_prefix(prefixes: &[Bytes], keys: BTreeSet<Bytes>) -> Vec<Vec<Bytes>> {
    let prefix_of = |key: &Bytes| prefixes.iter().find(|prefix| key.starts_with(prefix));
    let mut groups: BTreeMap<Option<&Bytes>, Vec<Bytes>> = BTreeMap::new();
    for key in keys {
        groups.entry(prefix_of(&key)).or_default().push(key);
    }
    groups.into_values().collect()
}

fn push(items: &[Reply], version: ProtocolVersion) -> Bytes {
    let mut bytes = Vec::new();
    encode::encode_push(items, version, &mut bytes);
    bytes.into()
}
