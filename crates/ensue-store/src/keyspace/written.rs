//! What was written to rows, where somebody wants to be told of it.
//!
//! Nothing is noted until somebody does. What a command wrote can be given a name before others are told; what arrives
//! from another datacenter has none. The list is bounded: when it is full, everything counts as written.

use super::{Expiry, Keyspace};
use crate::cell::Write;
use crate::row::Kind;
use bytes::Bytes;
use ensue_types::{Column, CoreId, DatacenterId, Effect, LogicalTime, RowEffect, SessionId, Stamp};

/// One change of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Nothing where all rows may have changed.
    pub key: Option<Bytes>,
    pub datacenter: DatacenterId,
    pub time: LogicalTime,
    pub change: Happened,
    /// What its command is called, if it was one of this datacenter.
    pub event: Option<&'static str>,
    /// The session whose command it was, if that is known.
    pub writer: Option<Writer>,
}

/// A session of this datacenter.
pub type Writer = (CoreId, SessionId);

/// What happened to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Something of this kind was put there, or added to.
    Put(Kind),
    /// Something of this kind was removed.
    Removed(Kind),
    Deadline,
    /// The deadline of a field was set, or removed.
    FieldDeadline,
    /// All rows may have changed.
    Everything,
}

/// Changes that nobody has been told of.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenLog {
    is_wanted: bool,
    writer: Option<Writer>,
    written: Vec<Written>,
}

/// Entries beyond which everything counts as written.
const WRITTEN_MAX: usize = 65_536;

impl WrittenLog {
    pub(super) fn note(&mut self, change: &RowEffect, write: &Write) {
        if !self.is_wanted {
            return;
        }
        if self.written.len() >= WRITTEN_MAX {
            return self.note_everything(write);
        }
        let is_removal = matches!(change.effect, Effect::Delete { .. } | Effect::Remove { .. });
        let changed = match (Kind::of(&change.column), is_removal) {
            _ if matches!(change.column, Column::FieldDeadline(_)) => Happened::FieldDeadline,
            _ if change.column == Column::Row => Happened::Removed(Kind::Text),
            (None, _) => Happened::Deadline,
            (Some(kind), true) => Happened::Removed(kind),
            (Some(kind), false) => Happened::Put(kind),
        };
        self.push(Some(change.key.clone()), write, changed);
    }

    /// All rows may have changed.
    pub(super) fn note_everything(&mut self, write: &Write) {
        if self.is_wanted {
            self.written.clear();
            self.push(None, write, Happened::Everything);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.written.len()
    }

    /// What was noted after so many has been taken back.
    pub(super) fn truncate(&mut self, len: usize) {
        self.written.truncate(len);
    }

    fn push(&mut self, key: Option<Bytes>, write: &Write, change: Happened) {
        let (datacenter, time) = (write.stamp.datacenter, write.stamp.time);
        self.written.push(Written { key, datacenter, time, change, event: None, writer: self.writer });
    }
}

impl Keyspace {
    /// From now on changes are noted, or no longer.
    pub fn note_written(&mut self, is_wanted: bool) {
        self.written.is_wanted = is_wanted;
        if !is_wanted {
            self.written.written.clear();
        }
    }

    /// Whose command writes from now on.
    pub fn written_by(&mut self, writer: Option<Writer>) {
        self.written.writer = writer;
    }

    /// The time of a row is over, if it still has this deadline.
    pub fn note_expired(&mut self, expiry: &Expiry) {
        // What the deletion of a field changes is told when it is done.
        if self.written.is_wanted && expiry.field.is_none() && self.expires(expiry) {
            let Stamp { datacenter, .. } = expiry.stamp;
            self.written.written.push(Written {
                key: Some(expiry.key.clone()),
                datacenter,
                // Everybody knows its deadline who sees the row.
                time: LogicalTime::ZERO,
                change: Happened::Deadline,
                event: Some("expired"),
                writer: None,
            });
        }
    }

    /// How many changes have been noted; nothing if none are.
    pub fn written_count(&self) -> Option<usize> {
        self.written.is_wanted.then_some(self.written.written.len())
    }

    /// Takes the changes out that were noted after so many.
    pub fn take_written(&mut self, after: usize) -> Vec<Written> {
        let written = &mut self.written.written;
        written.split_off(after.min(written.len()))
    }

    /// Puts changes back, named.
    pub fn put_written(&mut self, written: Vec<Written>) {
        self.written.written.extend(written);
    }
}
