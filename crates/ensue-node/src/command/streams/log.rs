//! A stream as its commands see it: the logs of all datacenters, merged by id, with the stream's head.

use super::values::{Head, fields_of};
use crate::evaluate::{Halt, Parts};
use bytes::Bytes;
use ensue_types::{DatacenterId, Reply, Section, StreamId, StreamPart};
use std::cmp::Ordering;

/// See the module.
pub(super) struct Log<'e>(pub Parts<'e>);

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub id: StreamId,
    pub source: DatacenterId,
    /// Its fields and values.
    pub value: Bytes,
}

/// What is known of how many entries came before an id, as Redis reckons.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub length: u64,
    pub added: u64,
    /// The first id that is there.
    pub first: StreamId,
    pub last: StreamId,
    /// The highest that `XDEL` removed.
    pub removed: StreamId,
}

impl Counts {
    /// Whether an entry was removed behind an id, so that those behind it cannot be counted.
    pub fn is_fragmented_from(&self, id: StreamId) -> bool {
        let is_fragmented = self.length > 0 && self.removed > StreamId::MIN && self.first <= self.removed;
        is_fragmented && id <= self.removed
    }

    /// How many entries were added up to an id, if that can be known.
    pub fn entries_up_to(&self, id: StreamId) -> Option<u64> {
        let Counts { length, added, first, last, removed } = *self;
        if added == 0 {
            return Some(0);
        }
        if length == 0 && id <= last || id == last {
            return Some(added);
        }
        let is_whole = removed == StreamId::MIN || removed < first;
        if id > last || !is_whole {
            return None;
        }
        match id.cmp(&first) {
            Ordering::Less => Some(added.saturating_sub(length)),
            Ordering::Equal => Some(added.saturating_sub(length) + 1),
            Ordering::Greater => None,
        }
    }

    /// How many entries a group has not read, if that can be known.
    pub fn lag(&self, last: StreamId, entries_read: Option<u64>) -> Option<u64> {
        if self.added == 0 {
            return Some(0);
        }
        let read = entries_read.filter(|_| !self.is_fragmented_from(last));
        let read = read.or_else(|| self.entries_up_to(last))?;
        Some(self.added.saturating_sub(read))
    }
}

/// Which entries of a range come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    First,
    Last,
}

impl Entry {
    pub fn part(&self) -> StreamPart {
        StreamPart::Entry(self.source, self.id)
    }

    pub fn reply(&self) -> Reply {
        let fields = fields_of(&self.value).into_iter().map(Reply::Bulk).collect();
        Reply::Array(vec![super::id_reply(self.id), Reply::Array(fields)])
    }
}

impl Log<'_> {
    pub fn is_there(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether it is there without entries, too.
    pub fn is_made(&self) -> bool {
        !self.0.places(&Section::Makers.names()).is_empty()
    }

    pub fn length(&self) -> usize {
        self.0.places(&Section::Entries.names()).len()
    }

    /// What this datacenter has noted of its removals, and what all have noted together.
    pub fn heads(&self, own: DatacenterId) -> Result<(Head, Head), Halt> {
        let mut heads = (Head::default(), Head::default());
        for (part, value) in self.0.between(&Section::Heads.names())? {
            let head = Head::of(&value);
            if part == StreamPart::Removals(own) {
                heads.0 = head;
            }
            heads.1 = heads.1.join(head);
        }
        Ok(heads)
    }

    pub fn head(&self) -> Result<Head, Halt> {
        Ok(self.heads(DatacenterId(0))?.1)
    }

    /// The datacenters that have entries here.
    pub fn sources(&self) -> Result<Vec<DatacenterId>, Halt> {
        let all = self.0.places(&Section::Entries.names());
        let mut sources = Vec::new();
        let mut place = all.start;
        while place < all.end {
            let Some((StreamPart::Entry(source, _), _)) = self.0.at(place..place + 1)?.pop() else { break };
            sources.push(source);
            place = self.0.places(&Section::EntriesOf(source).names()).end.max(place + 1);
        }
        Ok(sources)
    }

    /// The last entry of a datacenter.
    pub fn last_of(&self, source: DatacenterId) -> Result<StreamId, Halt> {
        let places = self.0.places(&Section::EntriesOf(source).names());
        let last = self.0.at(places.end.saturating_sub(1).max(places.start)..places.end)?;
        Ok(match last.first() {
            Some((StreamPart::Entry(_, id), _)) => *id,
            _ => StreamId::MIN,
        })
    }

    /// The highest id of an entry that is there.
    pub fn top(&self) -> Result<StreamId, Halt> {
        let mut top = StreamId::MIN;
        for source in self.sources()? {
            top = top.max(self.last_of(source)?);
        }
        Ok(top)
    }

    /// The highest id that was ever added.
    pub fn last_id(&self) -> Result<StreamId, Halt> {
        Ok(self.top()?.max(self.head()?.last))
    }

    pub fn entries_added(&self) -> Result<i64, Halt> {
        let length = i64::try_from(self.length()).unwrap_or(i64::MAX);
        Ok(length.saturating_add(self.head()?.past))
    }

    /// Entries with ids from one to another, the first or the last ones, as many as are asked for; of several
    /// datacenters those of one id stand in the order of the datacenters.
    pub fn range(
        &self,
        [from, to]: [StreamId; 2],
        count: Option<usize>,
        side: From,
    ) -> Result<Vec<Entry>, Halt> {
        let mut entries = Vec::new();
        if from <= to {
            for source in self.sources()? {
                entries.extend(self.range_of(source, [from, to], count, side)?);
            }
        }
        merge(&mut entries, count, side);
        Ok(entries)
    }

    /// The same of one datacenter's log.
    pub fn range_of(
        &self,
        source: DatacenterId,
        [from, to]: [StreamId; 2],
        count: Option<usize>,
        side: From,
    ) -> Result<Vec<Entry>, Halt> {
        let mut places = self.0.places(&Section::EntriesOf(source).names_between(from, to));
        let count = count.unwrap_or(usize::MAX).min(places.len());
        match side {
            From::First => places.end = places.start + count,
            From::Last => places.start = places.end - count,
        }
        let entry = |(part, value): (StreamPart, Bytes)| match part {
            StreamPart::Entry(source, id) => Some(Entry { id, source, value }),
            _ => None,
        };
        Ok(self.0.at(places)?.into_iter().filter_map(entry).collect())
    }

    /// How many entries have ids up to this one.
    pub fn count_to(&self, id: StreamId) -> Result<usize, Halt> {
        let count =
            |source| self.0.places(&Section::EntriesOf(source).names_between(StreamId::MIN, id)).len();
        Ok(self.sources()?.into_iter().map(count).sum())
    }

    /// The entries with an id, of which two datacenters may each have added one.
    pub fn find(&self, id: StreamId) -> Result<Vec<Entry>, Halt> {
        let mut found = Vec::new();
        for source in self.sources()? {
            if let Some(value) = self.0.value(&StreamPart::Entry(source, id))? {
                found.push(Entry { id, source, value });
            }
        }
        Ok(found)
    }

    pub fn counts(&self) -> Result<Counts, Halt> {
        let first = self.first()?.map(|entry| entry.id).unwrap_or_default();
        let removed = self.head()?.removed;
        let added = u64::try_from(self.entries_added()?).unwrap_or(0);
        Ok(Counts { length: self.length() as u64, added, first, last: self.last_id()?, removed })
    }

    pub fn first(&self) -> Result<Option<Entry>, Halt> {
        Ok(self.range([StreamId::MIN, StreamId::MAX], Some(1), From::First)?.pop())
    }

    pub fn last(&self) -> Result<Option<Entry>, Halt> {
        Ok(self.range([StreamId::MIN, StreamId::MAX], Some(1), From::Last)?.pop())
    }
}

/// Entries of several logs in one order.
pub(super) fn merge(entries: &mut Vec<Entry>, count: Option<usize>, side: From) {
    entries.sort_by_key(|entry| (entry.id, entry.source));
    if side == From::Last {
        entries.reverse();
    }
    entries.truncate(count.unwrap_or(usize::MAX));
}
