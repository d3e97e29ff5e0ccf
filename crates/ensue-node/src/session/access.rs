//! Who the users are, as this core knows them, and who was refused.
//!
//! Every core of the datacenter has all users. A change leaves a session as an order to all cores, with a stamp; of two
//! changes of one user the later stamp counts, whichever arrives first, so that all cores agree. Passwords that were
//! proven are remembered, so that the next connection costs nothing.

pub(super) mod refused;
pub(super) mod scripts;

use ensue_acl::limits::{PROVEN_MAX, USERS_MAX};
use ensue_acl::{Log, Proven, Refusal, Unhashed, User, UserVersion, Users};
use ensue_types::{Now, Reply};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// See the module.
#[derive(Clone)]
pub(super) struct Access {
    users: Users,
    /// When each user was changed last, those that are gone among them.
    stamps: BTreeMap<Vec<u8>, Stamp>,
    /// When all of them were replaced last.
    replaced: Stamp,
    latest: u64,
    proven: Proven,
    log: Log,
    /// Whom sessions belong to that are no client's.
    everything: Arc<User>,
    core: u16,
}

/// When a change was made: later than all that its core knew of; of equal times, that of the higher core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    time: u64,
    core: u16,
}

impl Stamp {
    pub(super) fn text(self) -> String {
        format!("{}-{}", self.time, self.core)
    }

    pub(super) fn parse(text: &[u8]) -> Option<Stamp> {
        let (time, core) = std::str::from_utf8(text).ok()?.split_once('-')?;
        Some(Stamp { time: time.parse().ok()?, core: core.parse().ok()? })
    }
}

/// Names the users only: nothing that is replicated depends on more.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.users.iter().map(|user| user.name())).finish()
    }
}

/// What errors in a text of users would name as its file.
const USERS: &str = "users";

impl Access {
    pub(super) fn new(users: Users, seed: u128, core: u16) -> Access {
        let mut key = [0; 32];
        key[..16].copy_from_slice(&seed.to_le_bytes());
        Access {
            users,
            stamps: BTreeMap::new(),
            replaced: Stamp::default(),
            latest: 0,
            proven: Proven::new(key, PROVEN_MAX),
            log: Log::default(),
            everything: Arc::new(User::unrestricted()),
            core,
        }
    }

    /// Whether this password was proven before to be one of this user as it is now.
    pub(super) fn is_proven(&self, user: &User, password: &[u8]) -> bool {
        self.proven.knows(user, password)
    }

    /// The user, whose password was proven, if it may still log in. It is proven from now on.
    pub(super) fn on_proven(&mut self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = self.users.user(name).filter(|user| user.is_on())?;
        self.proven.remember(user, password);
        Some(Arc::clone(user))
    }

    pub(super) fn users(&self) -> &Users {
        &self.users
    }

    /// Whether new users and selectors may use all channels.
    pub(super) fn open_channels(&mut self, opens: bool) {
        self.users.open_channels(opens);
    }

    /// Whether users have changed since the start.
    pub(super) fn has_changed(&self) -> bool {
        !self.stamps.is_empty() || self.replaced != Stamp::default()
    }

    /// A number that differs after each change.
    pub(super) fn version(&self) -> UserVersion {
        self.users.version()
    }

    /// Whom a new connection belongs to; nobody where it has to log in first.
    pub(super) fn newcomer(&self) -> Option<Arc<User>> {
        let default = self.users.default_user();
        (default.is_on() && default.is_nopass()).then(|| Arc::clone(default))
    }

    /// Whom a session belongs to that executes what was allowed elsewhere.
    pub(super) fn everything(&self) -> Arc<User> {
        Arc::clone(&self.everything)
    }

    /// Notes who was refused what; so many entries are kept.
    pub(super) fn note(&mut self, now: Now, refusal: Refusal, entries_max: usize) {
        self.log.record(refusal, now.wall_ms, entries_max);
    }

    /// How often something was refused since the start, as `INFO` names it.
    pub(super) fn metrics(&self) -> [(&'static str, u64); 5] {
        let counts = self.log.counts();
        [
            ("acl_access_denied_auth", counts.auth),
            ("acl_access_denied_cmd", counts.command),
            ("acl_access_denied_key", counts.key),
            ("acl_access_denied_channel", counts.channel),
            ("acl_access_denied_db", counts.database),
        ]
    }

    /// The entries of the log, the latest first.
    pub(super) fn refusals(&self, now: Now) -> Reply {
        self.log.latest(usize::MAX, now.wall_ms)
    }

    pub(super) fn forget_refusals(&mut self) {
        self.log.reset();
    }

    /// A stamp for a change that is made now.
    pub(super) fn stamp(&mut self, now: Now) -> Stamp {
        self.latest = now.wall_ms.max(self.latest + 1);
        Stamp { time: self.latest, core: self.core }
    }

    /// Whether a change counts: nothing later is known of this user.
    fn is_news(&mut self, name: &[u8], stamp: Stamp) -> bool {
        self.latest = self.latest.max(stamp.time);
        let known = self.stamps.get(name).copied().unwrap_or_default().max(self.replaced);
        if stamp <= known {
            return false;
        }
        self.stamps.insert(name.to_vec(), stamp);
        true
    }

    /// A user is as this line of an ACL file says.
    pub(super) fn on_user(&mut self, stamp: Stamp, line: &[u8]) {
        let name = line.split(|&byte| byte == b' ').nth(1);
        if name.is_some_and(|name| self.is_news(name, stamp)) {
            self.put(line);
        }
    }

    fn put(&mut self, line: &[u8]) {
        let mut words = line.split(|&byte| byte == b' ').skip(1);
        let Some(name) = words.next() else { return };
        let rules: Vec<&[u8]> = std::iter::once(&b"reset"[..]).chain(words).collect();
        // Another core has applied them, so they are right.
        let _ = self.users.set(name, &rules, &mut Unhashed);
    }

    /// Users are gone.
    pub(super) fn on_deleted(&mut self, stamp: Stamp, names: &[impl AsRef<[u8]>]) {
        let news: Vec<Vec<u8>> = names
            .iter()
            .map(|name| name.as_ref().to_vec())
            .filter(|name| self.is_news(name, stamp))
            .collect();
        // Nobody orders that `default` be deleted.
        let _ = self.users.delete(&news);
        self.forget_the_earliest_deleted();
    }

    /// Of at least half as many deletions as there may be users it is remembered when they were, the latest ones. A
    /// change that arrives after that many later deletions would bring its user back; orders arrive within the time of
    /// a request.
    fn forget_the_earliest_deleted(&mut self) {
        if self.stamps.len() <= 2 * USERS_MAX {
            return;
        }
        let is_gone = |name: &Vec<u8>| self.users.user(name).is_none();
        let mut gone: Vec<Stamp> =
            self.stamps.iter().filter(|(name, _)| is_gone(name)).map(|(_, stamp)| *stamp).collect();
        // There are more than `USERS_MAX` of them, since there are no more users than that. Half a bound is forgotten
        // at once, so that few deletions look at all of them.
        gone.sort_unstable();
        let until = gone[gone.len() - USERS_MAX / 2 - 1];
        let users = &self.users;
        self.stamps.retain(|name, stamp| *stamp > until || users.user(name).is_some());
    }

    /// All users are as this text of an ACL file says.
    pub(super) fn on_loaded(&mut self, stamp: Stamp, text: &[u8]) {
        self.latest = self.latest.max(stamp.time);
        if stamp <= self.replaced {
            return;
        }
        self.replaced = stamp;
        self.stamps.retain(|_, known| *known > stamp);
        // What was changed later than it was read stays.
        let later: Vec<Vec<u8>> = self.stamps.keys().cloned().collect();
        let kept: Vec<Vec<u8>> =
            later.iter().filter_map(|name| Some(self.users.user(name)?.describe())).collect();
        // Another core has read it, so it can be read.
        let _ = self.users.load(USERS, text, &mut Unhashed);
        let _ = self.users.delete(&later.iter().filter(|name| **name != b"default"[..]).collect::<Vec<_>>());
        kept.iter().for_each(|line| self.put(line));
    }
}

#[cfg(test)]
mod tests;
