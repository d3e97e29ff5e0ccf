//! Which cores of this datacenter are told what is written to rows, and what they are to be told later.
//!
//! A change is told when readers can see it. What this datacenter writes is visible at once. What others write is
//! visible when it is merged, but in keyspaces with versions when it is stable: until then it waits here. Where some
//! readers see it before, it is told twice. The
//! answers to reads and the news go to a core one behind the other, so that whoever caches what it has read learns of
//! every later write.

use crate::command::events;
use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::stable_time::times::Times;
use bytes::Bytes;
use ensue_store::keyspace::{Happened, Written};
use ensue_types::{CoreId, DatacenterId, KeyspaceId, LogicalTime, TimeVector};
use ensue_wire::{Address, Message};
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(in crate::partition) struct Changes {
    listeners: BTreeSet<CoreId>,
    /// By whom and when it was written.
    hidden: BTreeMap<(DatacenterId, LogicalTime), Vec<(KeyspaceId, Written)>>,
    hidden_count: usize,
}

/// Who sees a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::partition) enum SeenBy {
    All,
    /// Those who read the newest, whatever it is.
    Some,
    Nobody,
}

/// Changes that wait until they are visible; beyond, everything counts as changed.
const HIDDEN_MAX: usize = 65_536;

impl Changes {
    pub(in crate::partition) fn is_wanted(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// A core wants to be told, or does no longer.
    pub(in crate::partition) fn on_wanted(
        &mut self,
        rows: &mut Keyspaces,
        times: &Times,
        core: CoreId,
        wanted: bool,
    ) {
        let was_wanted = self.is_wanted();
        match wanted {
            true => self.listeners.insert(core),
            false => self.listeners.remove(&core),
        };
        rows.note_written(self.is_wanted());
        match self.is_wanted() {
            true if !was_wanted => self.hide_what_has_come(rows, times),
            true => {}
            false => *self = Changes::default(),
        }
    }

    /// What has come and is not stable was not noted, since nobody wanted to be told: when it is, everything counts as
    /// changed.
    fn hide_what_has_come(&mut self, rows: &Keyspaces, times: &Times) {
        let versioned = (0..).map(KeyspaceId).zip(rows.each()).find(|(_, rows)| rows.keeps_versions());
        let Some((keyspace, _)) = versioned else { return };
        for (datacenter, time) in times.received().entries() {
            if time > times.stable().at(datacenter) {
                let change = Happened::Everything;
                self.hide(
                    keyspace,
                    Written { key: None, datacenter, time, change, event: None, writer: None },
                );
            }
        }
    }

    /// Something was written, which readers see, all of them or some, or do not see yet.
    pub(in crate::partition) fn on_written(
        &mut self,
        cx: &mut Cx,
        keyspace: KeyspaceId,
        mut written: Written,
        seen: SeenBy,
    ) {
        if seen != SeenBy::Nobody {
            self.send(cx, keyspace, &written);
        }
        if seen == SeenBy::Some {
            // It was told once; the others, who cache it, are told again.
            written.event = Some("");
        }
        if seen != SeenBy::All {
            self.hide(keyspace, written);
        }
    }

    /// Tells of what all readers see by now.
    pub(in crate::partition) fn on_stable(&mut self, cx: &mut Cx, stable: &TimeVector) {
        let mut from = (DatacenterId(0), LogicalTime::ZERO);
        // Each datacenter's come in the order of their times, so the first that is hidden hides the others.
        while let Some(&(datacenter, time)) = self.hidden.range(from..).next().map(|(place, _)| place) {
            if stable.at(datacenter) < time {
                let Some(next) = datacenter.0.checked_add(1) else { return };
                from = (DatacenterId(next), LogicalTime::ZERO);
                continue;
            }
            for (keyspace, written) in self.hidden.remove(&(datacenter, time)).unwrap_or_default() {
                self.hidden_count -= 1;
                self.send(cx, keyspace, &written);
            }
        }
    }

    fn hide(&mut self, keyspace: KeyspaceId, written: Written) {
        let mut written = written;
        if self.hidden_count >= HIDDEN_MAX {
            // The latest of all stands for all: it is visible last.
            let last = self.hidden.keys().map(|(_, time)| *time).max().unwrap_or_default();
            self.hidden.clear();
            self.hidden_count = 0;
            written = Written { key: None, change: Happened::Everything, event: None, ..written };
            written.time = written.time.max(last);
        }
        self.hidden_count += 1;
        self.hidden.entry((written.datacenter, written.time)).or_default().push((keyspace, written));
    }

    fn send(&self, cx: &mut Cx, keyspace: KeyspaceId, written: &Written) {
        let event = written.event.unwrap_or_else(|| events::of_change(written.change));
        for core in self.listeners.iter().copied() {
            let writer = written.writer.filter(|(of, _)| *of == core).map(|(_, session)| session);
            let (key, event) = (written.key.clone(), Bytes::from_static(event.as_bytes()));
            let to = Address::Core { datacenter: cx.datacenter, core };
            cx.send(to, Message::Changed { keyspace, key, event, writer });
        }
    }
}
