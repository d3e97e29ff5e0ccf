//! `SLOWLOG`: commands that took long, as far as this core's sessions have begun them.
//!
//! Commands of a turn that may be slow are noted as they begin. When the turn is over, and each of its commands took as
//! long as `slowlog-log-slower-than` says, on the average, those noted become entries. Commands that take constant time
//! are noted only where that parameter is below its default. One that waits for somebody else is noted in the turn in
//! which it goes on. Nothing here reads a clock.

use bytes::Bytes;
use ensue_resp::{CommandSpec, Flags};
use ensue_types::{Args, Now, Reply, SessionId};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// See the module.
#[derive(Clone, Default)]
pub(super) struct SlowLog {
    noted: Vec<Noted>,
    /// The commands of sessions that wait for somebody else: they are noted when they go on.
    waiting: BTreeMap<SessionId, Noted>,
    entries: VecDeque<Entry>,
    made: u64,
}

/// A command that has begun in the present turn.
#[derive(Clone, Debug)]
struct Noted {
    session: SessionId,
    args: Args,
    address: Bytes,
    name: Bytes,
}

#[derive(Clone, Debug)]
struct Entry {
    id: u64,
    at_s: u64,
    took_us: u64,
    command: Noted,
}

/// Nothing that happens later depends on it, so two nodes that differ in it alone are in the same state.
impl fmt::Debug for SlowLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SlowLog")
    }
}

impl SlowLog {
    /// Whether a command is to be noted, if this is what counts as slow.
    pub(super) fn wants(&self, spec: &CommandSpec, slower_than_us: i64) -> bool {
        slower_than_us >= 0
            && self.noted.len() < NOTED_MAX
            && !spec.flags.contains(Flags::SKIP_SLOWLOG)
            && (!SlowLog::is_constant(spec) || slower_than_us < DEFAULT_US)
    }

    /// Whether a command takes about the same time whatever it works on.
    pub(super) fn is_constant(spec: &CommandSpec) -> bool {
        spec.flags.contains(Flags::FAST) || spec.group == "string"
    }

    /// Whether all commands are noted, if this is what counts as slow.
    pub(super) fn wants_all(slower_than_us: i64) -> bool {
        (0..DEFAULT_US).contains(&slower_than_us)
    }

    pub(super) fn note(&mut self, session: SessionId, args: &[Bytes], (address, name): (&str, &Bytes)) {
        let (address, name) = (Bytes::copy_from_slice(address.as_bytes()), name.clone());
        self.noted.push(Noted { session, args: trimmed(args), address, name });
    }

    /// The latest command of a session waits for somebody else.
    pub(super) fn wait(&mut self, session: SessionId) {
        if let Some(place) = self.noted.iter().rposition(|noted| noted.session == session) {
            self.waiting.insert(session, self.noted.remove(place));
        }
    }

    /// It does no longer.
    pub(super) fn go_on(&mut self, session: SessionId) {
        self.noted.extend(self.waiting.remove(&session));
    }

    /// The turn is over; each of its commands took so long.
    pub(super) fn on_turn_end(&mut self, now: Now, took_us: u64, slower_than_us: i64, entries_max: usize) {
        for command in std::mem::take(&mut self.noted) {
            if u64::try_from(slower_than_us).is_ok_and(|least| took_us >= least) {
                let id = self.made;
                self.made += 1;
                self.entries.push_front(Entry { id, at_s: now.wall_ms / 1_000, took_us, command });
            }
        }
        self.entries.truncate(entries_max);
    }

    /// The latest command that was noted took so long: it slept.
    pub(super) fn on_slept(&mut self, now: Now, took_us: u64, slower_than_us: i64, entries_max: usize) {
        let others = self.noted.len().saturating_sub(1);
        let last = self.noted.split_off(others);
        let noted = std::mem::replace(&mut self.noted, last);
        self.on_turn_end(now, took_us, slower_than_us, entries_max);
        self.noted = noted;
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The entries, the latest first.
    pub(super) fn replies(&self) -> Reply {
        Reply::Array(self.entries.iter().map(Entry::reply).collect())
    }
}

impl Entry {
    fn reply(&self) -> Reply {
        let Noted { args, address, name, .. } = &self.command;
        Reply::Array(vec![
            Reply::Integer(self.id as i64),
            Reply::Integer(self.at_s as i64),
            Reply::Integer(self.took_us as i64),
            Reply::Array(args.iter().cloned().map(Reply::Bulk).collect()),
            Reply::Bulk(address.clone()),
            Reply::Bulk(name.clone()),
        ])
    }
}

/// The arguments as far as they are kept, and how many more there were.
fn trimmed(args: &[Bytes]) -> Args {
    let shown = if args.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { args.len() };
    let mut kept: Args = args[..shown].iter().map(shortened).collect();
    if shown < args.len() {
        kept.push(format!("... ({} more arguments)", args.len() - shown).into());
    }
    kept
}

/// A copy of its own, so that it does not keep a client's whole read buffer alive.
fn shortened(argument: &Bytes) -> Bytes {
    match argument.len().checked_sub(ARGUMENT_BYTES_MAX) {
        None | Some(0) => Bytes::copy_from_slice(argument),
        Some(more) => {
            let mut text = argument[..ARGUMENT_BYTES_MAX].to_vec();
            text.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
            text.into()
        }
    }
}

const DEFAULT_US: i64 = 10_000;
/// Commands of one turn that are noted.
const NOTED_MAX: usize = 256;
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_BYTES_MAX: usize = 128;
