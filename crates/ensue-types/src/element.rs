//! Names of a list's elements: byte strings whose order is the order of the list.
//!
//! Arrives: the names on both sides of a place, and the write that puts an element there. Leaves: a name between them
//! that no other element ever has. The list itself is not known here.
//!
//! A name is a path of waypoints, with a mark behind each. A waypoint is an element of a *run*: what one datacenter has
//! put side by side, in either direction. Elements between two neighbours of a run hang below one of them.
//!
//! ```text
//! name      waypoint (mark: 1 left of it, 3 right of it | waypoint)* mark: 2 it itself
//! waypoint  order signed | time of the run u64 | its datacenter u8 | its partition number | index signed
//! index     time since the run began, partition, number within the write, negative on the left of the run's begin
//! number    how many bytes u8, bytes, big endian
//! signed    numbers behind each other; 0x80 is added to the first byte, and all is inverted if it is negative
//! ```
//!
//! - *Nobody interleaves.* A run is of one datacenter, and only its datacenter goes on with it. What others put beside
//!   it concurrently stands before or behind all of it.
//! - *Names stay short.* At the ends a push goes on with a run of its own datacenter, or begins one with the next
//!   order. Both take as many bytes after a million pushes as after ten.
//! - *Names are used once.* An index is the time of its write, which no other write of the datacenter has, and not the
//!   count of what is there: what was removed, or is hidden from the writer, had another one.

use crate::{DatacenterId, LogicalTime, PartitionId, Stamp};
use bytes::Bytes;

/// The longest name. One that is put between two neighbours over and over grows, always beside the latest one.
pub const NAME_BYTES_MAX: usize = 8 << 10;

const LEFT: u8 = 1;
const SELF: u8 = 2;
const RIGHT: u8 = 3;

/// Added to the first byte of what is not negative.
const NOT_NEGATIVE: u8 = 0x80;

/// Who puts an element into a list.
#[derive(Clone, Copy, Debug)]
pub struct Author {
    pub stamp: Stamp,
    /// Among the elements that the write names, in any list.
    pub number: u32,
}

/// One waypoint of a name, as it stands in it.
#[derive(Clone, Debug)]
struct Waypoint {
    start: usize,
    order: i64,
    run: Stamp,
    /// Where its index begins.
    run_end: usize,
}

/// A name between two others, of which the one is below the other, or at an end. Nothing if the name would be too long,
/// or if the neighbours are not such names.
pub fn name_between(before: Option<&[u8]>, after: Option<&[u8]>, author: Author) -> Option<Bytes> {
    let fits = |name: &[u8]| {
        name.len() <= NAME_BYTES_MAX
            && before.is_none_or(|before| before < name)
            && after.is_none_or(|after| name < after)
    };
    let (mut first, mut second) = (Path::of(before), Path::of(after));
    // The shallowest level at which there is room.
    loop {
        let levels = (first.next(), second.next());
        if let (None, None) = levels {
            break;
        }
        let behind = levels.0.iter().flat_map(|waypoint| author.behind(first.name, waypoint));
        let ahead = levels.1.iter().flat_map(|waypoint| author.ahead(second.name, waypoint));
        if let Some(name) = behind.chain(ahead).find(|name| fits(name)) {
            return Some(Bytes::from(name));
        }
    }
    Some(author.below(before, after)).filter(|name| fits(name)).map(Bytes::from)
}

impl Author {
    /// Names behind a waypoint, beside its run or in it.
    fn behind(self, name: &[u8], waypoint: &Waypoint) -> Vec<Vec<u8>> {
        let own = self.goes_on(waypoint).then(|| self.in_run(&name[..waypoint.run_end], waypoint.run, false));
        let next = waypoint.order.checked_add(1).map(|order| self.new_run(&name[..waypoint.start], order));
        own.into_iter().chain(next).collect()
    }

    /// Names ahead of a waypoint.
    fn ahead(self, name: &[u8], waypoint: &Waypoint) -> Vec<Vec<u8>> {
        let own = self.goes_on(waypoint).then(|| self.in_run(&name[..waypoint.run_end], waypoint.run, true));
        let next = waypoint.order.checked_sub(1).map(|order| self.new_run(&name[..waypoint.start], order));
        own.into_iter().chain(next).collect()
    }

    fn goes_on(self, waypoint: &Waypoint) -> bool {
        waypoint.run.datacenter == self.stamp.datacenter && waypoint.run.time <= self.stamp.time
    }

    /// A name in a run, which ends what is given.
    fn in_run(self, prefix: &[u8], run: Stamp, is_negative: bool) -> Vec<u8> {
        let mut name = prefix.to_vec();
        let since = self.stamp.time.0.saturating_sub(run.time.0);
        let index = [since, u64::from(self.stamp.partition.0), u64::from(self.number)];
        push_signed(&mut name, is_negative, &index);
        name.push(SELF);
        name
    }

    /// The first name of a new run.
    fn new_run(self, prefix: &[u8], order: i64) -> Vec<u8> {
        let mut name = prefix.to_vec();
        push_signed(&mut name, order < 0, &[order.unsigned_abs()]);
        name.extend_from_slice(&self.stamp.time.0.to_be_bytes());
        name.push(self.stamp.datacenter.0);
        push_number(&mut name, u64::from(self.stamp.partition.0));
        self.in_run(&name, self.stamp, false)
    }

    /// Below one of two neighbours that have no room between them: to the right of the first, unless the second hangs
    /// there.
    fn below(self, before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<u8> {
        let below = |name: &[u8], mark: u8| [&name[..name.len().saturating_sub(1)], &[mark]].concat();
        let prefix = match (before, after) {
            (None, None) => Vec::new(),
            (None, Some(after)) => below(after, LEFT),
            (Some(before), None) => below(before, RIGHT),
            (Some(before), Some(after)) => match below(before, RIGHT) {
                right if after.starts_with(&right) => below(after, LEFT),
                right => right,
            },
        };
        self.new_run(&prefix, 0)
    }
}

/// The waypoints of a name, one after the other. What is no waypoint ends them.
struct Path<'n> {
    name: &'n [u8],
    at: usize,
}

impl<'n> Path<'n> {
    fn of(name: Option<&'n [u8]>) -> Path<'n> {
        Path { name: name.unwrap_or_default(), at: 0 }
    }
}

impl Iterator for Path<'_> {
    type Item = Waypoint;

    fn next(&mut self) -> Option<Waypoint> {
        let start = self.at;
        let (is_negative, [order]) = self.signed()?;
        let magnitude = i64::try_from(order).ok()?;
        let order = if is_negative { -magnitude } else { magnitude };
        let time = u64::from_be_bytes(self.take(8)?.try_into().ok()?);
        let datacenter = *self.take(1)?.first()?;
        let partition = u16::try_from(self.number(false, false)?).ok()?;
        let run_end = self.at;
        self.signed::<3>()?;
        self.take(1)?;
        let run = Stamp {
            time: LogicalTime(time),
            datacenter: DatacenterId(datacenter),
            partition: PartitionId(partition),
        };
        Some(Waypoint { start, order, run, run_end })
    }
}

impl Path<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let taken = self.name.get(self.at..self.at + count)?;
        self.at += count;
        Some(taken)
    }

    fn signed<const COUNT: usize>(&mut self) -> Option<(bool, [u64; COUNT])> {
        let is_negative = *self.name.get(self.at)? < NOT_NEGATIVE;
        let mut numbers = [0; COUNT];
        for (place, number) in numbers.iter_mut().enumerate() {
            *number = self.number(is_negative, place == 0)?;
        }
        Some((is_negative, numbers))
    }

    fn number(&mut self, is_negative: bool, is_first: bool) -> Option<u64> {
        let invert = if is_negative { u8::MAX } else { 0 };
        let count = self.take(1)?[0] ^ invert;
        let count = if is_first { count & !NOT_NEGATIVE } else { count };
        let bytes = self.take(usize::from(count)).filter(|bytes| bytes.len() <= 8)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(byte ^ invert)))
    }
}

fn push_signed(name: &mut Vec<u8>, is_negative: bool, numbers: &[u64]) {
    let start = name.len();
    numbers.iter().for_each(|number| push_number(name, *number));
    name[start] |= NOT_NEGATIVE;
    if is_negative {
        name[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn push_number(name: &mut Vec<u8>, number: u64) {
    let skipped = number.leading_zeros() as usize / 8;
    name.push(8 - skipped as u8);
    name.extend_from_slice(&number.to_be_bytes()[skipped..]);
}

#[cfg(test)]
mod tests;
