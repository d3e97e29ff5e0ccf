//! Which cores of this datacenter are told what is written to rows, and what they are to be told later.
//!
//! A change is told when readers can see it. What this datacenter writes is visible at once. What others write is
//! visible when it is merged, but in keyspaces with versions when it is stable, and what it depends on, too: until then
//! it waits here. Where some readers may see it before, it is told twice. The
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
    /// What is not stable, by whom and when it was written.
    hidden: BTreeMap<(DatacenterId, LogicalTime), Vec<(KeyspaceId, Written)>>,
    /// What is stable and was told, and may depend on what is not, by when it was written.
    doubtful: BTreeMap<LogicalTime, Vec<(KeyspaceId, Written)>>,
    /// How many are in both.
    count: usize,
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
        cx: &Cx,
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
            true if !was_wanted => self.hide_what_has_come(cx, rows, times),
            true => {}
            false => *self = Changes::default(),
        }
    }

    /// What has come and is not stable was not noted, since nobody wanted to be told: when it is, everything counts as
    /// changed.
    fn hide_what_has_come(&mut self, cx: &Cx, rows: &Keyspaces, times: &Times) {
        let versioned = (0..).map(KeyspaceId).zip(rows.each()).find(|(_, rows)| rows.keeps_versions());
        let Some((keyspace, _)) = versioned else { return };
        let hides_own_writes = cx.protocols.iter().any(|protocol| protocol.needs().hides_own_writes);
        let own = hides_own_writes.then(|| (cx.datacenter, cx.clock.latest()));
        for (datacenter, time) in times.received().entries().chain(own) {
            if time > times.shown_to_all(cx) {
                let change = Happened::Everything;
                let everything = Written { key: None, datacenter, time, change, event: None, writer: None };
                self.hide(cx, keyspace, everything);
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
            self.hide(cx, keyspace, written);
        }
    }

    /// Nobody will be told of changes: whoever is told keeps nothing.
    pub(in crate::partition) fn on_stopped(&mut self, cx: &mut Cx) {
        for core in std::mem::take(&mut self.listeners) {
            let to = Address::Core { datacenter: cx.datacenter, core };
            let (keyspace, event) = (KeyspaceId::default(), Bytes::new());
            cx.send_refusal(to, Message::Changed { keyspace, key: None, event, writer: None });
        }
    }

    /// Tells of what readers see by now.
    pub(in crate::partition) fn on_stable(&mut self, cx: &mut Cx, times: &Times) {
        let shown_to_all = times.shown_to_all(cx);
        self.notify_stable(cx, times.stable(), shown_to_all);
        while let Some(first) = self.doubtful.first_entry().filter(|first| *first.key() <= shown_to_all) {
            for (keyspace, written) in first.remove() {
                self.count -= 1;
                self.send(cx, keyspace, &written);
            }
        }
    }

    /// Most readers see what is stable. What it depends on may not be: then some do not, and are told again.
    fn notify_stable(&mut self, cx: &mut Cx, stable: &TimeVector, shown_to_all: LogicalTime) {
        let mut from = (DatacenterId(0), LogicalTime::ZERO);
        // Each datacenter's come in the order of their times, so the first that is hidden hides the others.
        while let Some(&(datacenter, time)) = self.hidden.range(from..).next().map(|(place, _)| place) {
            if stable.at(datacenter) < time {
                let Some(next) = datacenter.0.checked_add(1) else { return };
                from = (DatacenterId(next), LogicalTime::ZERO);
                continue;
            }
            for (keyspace, mut written) in self.hidden.remove(&(datacenter, time)).unwrap_or_default() {
                self.send(cx, keyspace, &written);
                if time <= shown_to_all {
                    self.count -= 1;
                    continue;
                }
                written.event = Some("");
                self.doubtful.entry(time).or_default().push((keyspace, written));
            }
        }
    }

    fn hide(&mut self, cx: &Cx, keyspace: KeyspaceId, written: Written) {
        let mut written = written;
        if self.count >= HIDDEN_MAX {
            // The latest of all stands for all: it is visible last.
            let doubtful = self.doubtful.last_key_value().map(|(time, _)| *time);
            let last = self.hidden.keys().map(|(_, time)| *time).chain(doubtful).max().unwrap_or_default();
            self.hidden.clear();
            self.doubtful.clear();
            self.count = 0;
            written = Written { key: None, change: Happened::Everything, event: None, ..written };
            written.time = written.time.max(last);
        }
        self.count += 1;
        match written.datacenter == cx.datacenter {
            // It is here; what it depends on may not be.
            true => self.doubtful.entry(written.time).or_default().push((keyspace, written)),
            false => {
                self.hidden.entry((written.datacenter, written.time)).or_default().push((keyspace, written))
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AppendFsync;
    use crate::partition::tests::config;
    use ensue_types::{Now, PartitionId};
    use std::sync::Arc;

    const OTHER: DatacenterId = DatacenterId(1);

    fn written(time: u64) -> Written {
        let (key, time) = (Some(Bytes::from(time.to_string())), LogicalTime(time));
        Written { key, datacenter: OTHER, time, change: Happened::Deadline, event: None, writer: None }
    }

    /// However long a link is cut, and whatever comes over the others: what waits has a bound, nothing is forgotten.
    #[test]
    fn what_waits_has_a_bound_and_beyond_it_everything_counts_as_changed() {
        let protocols = vec![ensue_protocol::by_name("cure", Default::default()).expect("it is known")];
        let config = Arc::new(config(AppendFsync::Always));
        let mut cx = Cx::new(PartitionId(0), config, Arc::new(protocols), Now::default());
        let mut changes = Changes { listeners: [CoreId(0)].into(), ..Changes::default() };
        let last = 3 * HIDDEN_MAX as u64;
        for time in 1..=last {
            changes.hide(&cx, KeyspaceId(0), written(time));
            assert!(changes.count <= HIDDEN_MAX);
        }
        assert_eq!(changes.hidden.values().map(Vec::len).sum::<usize>(), changes.count);
        let mut times = Times::default();
        let mut stable = TimeVector::default();
        stable.raise(OTHER, LogicalTime(last));
        times.join_stable(&stable);
        changes.on_stable(&mut cx, &times);
        assert_eq!((changes.count, changes.hidden.len(), changes.doubtful.len()), (0, 0, 0));
        let told: Vec<Message> = std::iter::from_fn(|| cx.outbox.next()).map(|one| one.message).collect();
        assert!(told.iter().any(|message| matches!(message, Message::Changed { key: None, .. })));
    }
}
