//! A settled column in bytes: at most one value and at most one datacenter's additions, which every reader sees, and
//! nothing else.
//!
//! Most columns of hashes, sets and sorted sets are that, and so are most counters. Their bytes stand beside each other
//! in a small row (`packed`), or alone in a large one (`columns`). What more a location can have makes it a `Cell`, and
//! when that is gone it is settled again. No answer tells the two forms apart.
//!
//! Times and positions are differences to those of one write, the origin, that stands once for all columns of a row.
//!
//! ```text
//! flags u8: kind of column, bits 0 to 2 | a value, 3 | additions, 4 | here since the latest stamp, 5 |
//!           the additions' operation and datacenters are the origin's, 6 | the same of the value, 7
//! name's length | name | since, without bit 5
//! additions: write | epoch: datacenter u8, partition u16, time | sum, 1 for whole ones or 0 and 16 bytes
//! value: write | the rest of the bytes
//! write: time | position | without its bit of the flags: stamp's datacenter u8, datacenter u8, stamp's partition u16,
//!        partition u16, incarnation u16
//! ```
//!
//! Lengths are base-128 numbers of as many bytes as they need, and so are times and positions as differences, of which
//! the lowest bit is the sign.

use crate::cell::{Addition, Base, Cell, Content, Counter, Outcome, State, Write, content_of};
use crate::row::{Gone, Kind};
use crate::view::View;
use bytes::Bytes;
use ensue_types::{
    Column, DatacenterId, Decimal, Effect, EpochSum, Incarnation, LogicalTime, OperationId, PartitionId,
    Position, Rule, Seen, Source, Stamp,
};

/// Longer values stay by themselves, so that answers need not copy them.
pub const VALUE_MAX: usize = 1024;

/// The most that stands between a name and a value.
const META_MAX: usize = 10 + 2 * (10 + 10 + 8) + 3 + 10 + 17;
/// Bytes of a column that need no allocation before they are where they stand.
pub(crate) const SHORT: usize = 256;
/// Units of a decimal number that is one.
const ONE: i128 = Decimal::ONE.0;

const KINDS: u8 = 0b111;
/// The kind of column that is no value, but a field's deadline.
const FIELD_DEADLINE: u8 = 6;
pub(crate) const ESCROW: u8 = 7;
const HAS_VALUE: u8 = 1 << 3;
const HAS_ADDITIONS: u8 = 1 << 4;
const SINCE_STAMP: u8 = 1 << 5;
const ADDITIONS_BY_ORIGIN: u8 = 1 << 6;
const VALUE_BY_ORIGIN: u8 = 1 << 7;

/// The write to which all others of a row are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) stamp: Stamp,
    pub(crate) operation: OperationId,
}

impl Origin {
    pub(crate) fn of(write: &Write) -> Origin {
        Origin { stamp: write.stamp, operation: write.operation }
    }

    /// Whether another write differs in times and positions alone.
    fn is_like(&self, stamp: Stamp, operation: OperationId) -> bool {
        let Origin { stamp: own, operation: by } = self;
        let by = (by.datacenter, by.partition, by.incarnation);
        (own.datacenter, own.partition) == (stamp.datacenter, stamp.partition)
            && by == (operation.datacenter, operation.partition, operation.incarnation)
    }
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled<'a> {
    /// Its present state is valid from this time on.
    pub since: LogicalTime,
    value: Option<Value<'a>>,
    added: Option<Added>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value<'a> {
    stamp: Stamp,
    operation: OperationId,
    bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Added {
    stamp: Stamp,
    operation: OperationId,
    epoch_sum: EpochSum,
}

impl Added {
    fn addition(&self) -> Addition {
        let Added { stamp, operation, epoch_sum } = *self;
        Addition { datacenter: epoch_sum.epoch.datacenter, stamp, operation, dependencies: None, epoch_sum }
    }
}

impl<'a> Settled<'a> {
    /// A cell as it is, if it is nothing but settled.
    pub(crate) fn of(cell: &'a Cell) -> Option<Settled<'a>> {
        let state = cell.as_undisputed()?;
        let value = match &state.base {
            Base { stamp, operation, dependencies: None, value: Some(bytes) } if bytes.len() <= VALUE_MAX => {
                Some(Value { stamp: *stamp, operation: *operation, bytes })
            }
            Base { stamp: Stamp::ZERO, value: None, .. } => None,
            _ => return None,
        };
        let added = match state.counter.as_deref() {
            None => None,
            Some(Counter { seen, additions }) => match additions.as_slice() {
                [Addition { stamp, operation, dependencies: None, epoch_sum, .. }] if seen.is_empty() => {
                    Some(Added { stamp: *stamp, operation: *operation, epoch_sum: *epoch_sum })
                }
                _ => return None,
            },
        };
        (value.is_some() || added.is_some()).then(|| Settled { since: cell.since(), value, added })
    }

    /// A string as it was put.
    pub(crate) fn of_value(
        since: LogicalTime,
        (stamp, operation): (Stamp, OperationId),
        bytes: &'a [u8],
    ) -> Settled<'a> {
        Settled { since, value: Some(Value { stamp, operation, bytes }), added: None }
    }

    /// The same as a cell.
    pub(crate) fn cell(&self) -> Cell {
        let base = self.value.map(|Value { stamp, operation, bytes }| Base {
            stamp,
            operation,
            dependencies: None,
            value: Some(Bytes::copy_from_slice(bytes)),
        });
        let counter = self
            .added
            .map(|added| Box::new(Counter { seen: Seen::new(), additions: vec![added.addition()] }));
        let mut state = State::empty();
        state.base = base.unwrap_or(state.base);
        state.counter = counter;
        Cell::of_state(self.since, state)
    }

    /// What a write makes of a location that was empty since a time, if that is settled.
    pub(crate) fn first(effect: &'a Effect, write: &Write, empty_since: LogicalTime) -> Option<Settled<'a>> {
        let empty = Settled { since: empty_since, value: None, added: None };
        empty.merged(effect, write).map(|(_, merged)| merged)
    }

    /// What a write makes of it, if that is settled: values of two datacenters stand against each other, and each
    /// datacenter's additions by themselves.
    pub(crate) fn merged(self, effect: &'a Effect, write: &Write) -> Option<(Outcome, Settled<'a>)> {
        let Write { stamp, operation, dependencies: None, at } = write else { return None };
        let won = Settled { since: self.since.max(*at), ..self };
        match effect {
            Effect::Put { value, seen, over: None } if seen.is_empty() && value.len() <= VALUE_MAX => {
                if let Some(known) = &self.value {
                    if known.stamp.datacenter != stamp.datacenter {
                        return None;
                    }
                    if loses(*stamp, known.stamp) || *stamp == known.stamp && known.bytes == value {
                        return Some((Outcome::Lost, self));
                    }
                }
                let value = Some(Value { stamp: *stamp, operation: *operation, bytes: value });
                Some((Outcome::Won, Settled { value, ..won }))
            }
            Effect::Add { epoch_sum } => {
                let added = Added { stamp: *stamp, operation: *operation, epoch_sum: *epoch_sum };
                if let Some(known) = self.added.map(|known| known.addition()) {
                    if known.datacenter != epoch_sum.epoch.datacenter {
                        return None;
                    }
                    if known.is_at_least(&added.addition()) {
                        return Some((Outcome::Lost, self));
                    }
                }
                Some((Outcome::Won, Settled { added: Some(added), ..won }))
            }
            _ => None,
        }
    }

    /// The value alone, and which datacenter has put it, if nothing was added.
    pub(crate) fn only_value(&self) -> Option<(Stamp, &'a [u8])> {
        let Value { stamp, bytes, .. } = self.value?;
        self.added.is_none().then_some((stamp, bytes))
    }

    /// What every reader sees.
    pub fn content(&self) -> Content {
        let value = self.value.map(|value| Bytes::copy_from_slice(value.bytes));
        match (value, self.added) {
            (Some(value), None) => Content::Bytes(value),
            (value, Some(added)) => content_of(value.as_ref(), &Seen::new(), &[added.addition()]),
            (None, None) => Content::Nothing,
        }
    }

    /// The additions of a datacenter, which go on.
    pub fn added_by(&self, datacenter: DatacenterId) -> Option<EpochSum> {
        self.added.map(|added| added.epoch_sum).filter(|sum| sum.epoch.datacenter == datacenter)
    }

    /// The writes that made it.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let value = self.value.map(|Value { stamp, operation, .. }| (stamp, operation));
        let added = self.added.map(|Added { stamp, operation, .. }| (stamp, operation));
        let writes = value.into_iter().chain(added);
        writes.map(|(stamp, operation)| Source { operation, stamp, dependencies: None })
    }

    /// Whether nothing but a value with a stamp below this one is here.
    pub(crate) fn is_value_below(&self, stamp: Stamp) -> bool {
        self.only_value().is_some_and(|(own, _)| own < stamp)
    }

    pub fn is_counter(&self) -> bool {
        self.added.is_some()
    }

    /// The stamp of its value.
    pub(crate) fn put(&self) -> Option<Stamp> {
        self.value.map(|value| value.stamp)
    }

    /// Whether a view shows it; the state of an earlier time is gone.
    pub fn at(&self, view: View<'_>) -> Result<(), Gone> {
        match view {
            View::At(at) | View::With(at, _) if self.since > at => Err(Gone),
            _ => Ok(()),
        }
    }

    fn latest(&self) -> LogicalTime {
        let value = self.value.map_or(LogicalTime::ZERO, |value| value.stamp.time);
        value.max(self.added.map_or(LogicalTime::ZERO, |added| added.stamp.time))
    }
}

/// Whether additions stand in the bytes of a column.
pub(crate) fn adds(column: &[u8]) -> bool {
    column.first().is_some_and(|flags| flags & HAS_ADDITIONS != 0)
}

/// Whether a column is not removed with all others of its row: one with additions, or one of a bounded counter.
pub(crate) fn stays_apart(column: &[u8]) -> bool {
    !column.is_empty() && (adds(column) || Item::of(column).number_of_kind() == ESCROW)
}

/// Whether a later write of the same datacenter is known.
fn loses(stamp: Stamp, known: Stamp) -> bool {
    let is_older = match Rule::TiesByDatacenter.holds() {
        true => stamp < known,
        false => stamp.time < known.time,
    };
    is_older && Rule::LastWriterWins.holds()
}

/// A column's bytes before they are written.
pub(crate) struct Encoded<'a> {
    flags: u8,
    name: &'a [u8],
    meta: [u8; META_MAX],
    meta_len: usize,
    value: &'a [u8],
}

impl<'a> Encoded<'a> {
    pub(crate) fn new((kind, name): (u8, &'a [u8]), settled: &Settled<'a>, origin: &Origin) -> Encoded<'a> {
        let mut encoded = Encoded { flags: kind, name, meta: [0; META_MAX], meta_len: 0, value: &[] };
        match settled.since == settled.latest() {
            true => encoded.flags |= SINCE_STAMP,
            false => encoded.put_difference(settled.since.0, origin.stamp.time.0),
        }
        if let Some(Added { stamp, operation, epoch_sum: EpochSum { epoch, sum } }) = settled.added {
            encoded.flags |= HAS_ADDITIONS;
            encoded.put_write((stamp, operation), origin, ADDITIONS_BY_ORIGIN);
            encoded.put(&[epoch.datacenter.0]);
            encoded.put(&epoch.partition.0.to_le_bytes());
            encoded.put_difference(epoch.time.0, stamp.time.0);
            match i64::try_from(sum.0 / ONE) {
                Ok(whole) if sum.0 % ONE == 0 && whole.unsigned_abs() < 1 << 61 => {
                    encoded.put_number(signed(whole) << 1 | 1);
                }
                _ => {
                    encoded.put(&[0]);
                    encoded.put(&sum.0.to_le_bytes());
                }
            }
        }
        if let Some(Value { stamp, operation, bytes }) = settled.value {
            encoded.flags |= HAS_VALUE;
            encoded.put_write((stamp, operation), origin, VALUE_BY_ORIGIN);
            encoded.value = bytes;
        }
        encoded
    }

    fn put(&mut self, bytes: &[u8]) {
        self.meta[self.meta_len..self.meta_len + bytes.len()].copy_from_slice(bytes);
        self.meta_len += bytes.len();
    }

    fn put_number(&mut self, number: u64) {
        self.meta_len += write_number(number, &mut self.meta[self.meta_len..]);
    }

    fn put_difference(&mut self, number: u64, to: u64) {
        self.put_number(signed(number.wrapping_sub(to) as i64));
    }

    fn put_write(&mut self, (stamp, operation): (Stamp, OperationId), origin: &Origin, like_origin: u8) {
        self.put_difference(stamp.time.0, origin.stamp.time.0);
        self.put_difference(operation.position.0, origin.operation.position.0);
        if origin.is_like(stamp, operation) {
            self.flags |= like_origin;
            return;
        }
        self.put(&[stamp.datacenter.0, operation.datacenter.0]);
        for part in [stamp.partition.0, operation.partition.0, operation.incarnation.0] {
            self.put(&part.to_le_bytes());
        }
    }

    pub(crate) fn len(&self) -> usize {
        1 + number_bytes(self.name.len() as u64) + self.name.len() + self.meta_len + self.value.len()
    }

    /// Writes it to the beginning of these bytes, which are long enough.
    pub(crate) fn write(&self, out: &mut [u8]) {
        out[0] = self.flags;
        let mut at = 1 + write_number(self.name.len() as u64, &mut out[1..]);
        for part in [self.name, &self.meta[..self.meta_len], self.value] {
            out[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    }
}

/// The bytes of a column, found and not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    flags: u8,
    pub(crate) name: &'a [u8],
    body: &'a [u8],
    bytes: usize,
}

impl<'a> Item<'a> {
    #[inline]
    pub(crate) fn of(bytes: &'a [u8]) -> Item<'a> {
        let (flags, mut rest) = bytes.split_first().expect("a column has flags");
        let name = read_number(&mut rest) as usize;
        let (name, body) = rest.split_at(name);
        Item { flags: *flags, name, body, bytes: bytes.len() }
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn number_of_kind(&self) -> u8 {
        self.flags & KINDS
    }

    pub(crate) fn is_field_deadline(&self) -> bool {
        self.number_of_kind() == FIELD_DEADLINE
    }

    pub(crate) fn column(&self) -> Column {
        column_of(self.number_of_kind(), self.name)
    }

    pub(crate) fn settled(&self, origin: &Origin) -> Settled<'a> {
        let Item { flags, mut body, .. } = *self;
        let body = &mut body;
        let has = |flag: u8| flags & flag != 0;
        let since = (!has(SINCE_STAMP)).then(|| LogicalTime(read_difference(body, origin.stamp.time.0)));
        let added = has(HAS_ADDITIONS).then(|| {
            let (stamp, operation) = read_write(body, origin, has(ADDITIONS_BY_ORIGIN));
            let datacenter = DatacenterId(take::<1>(body)[0]);
            let partition = PartitionId(u16::from_le_bytes(take(body)));
            let time = LogicalTime(read_difference(body, stamp.time.0));
            let sum = match read_number(body) {
                0 => i128::from_le_bytes(take(body)),
                whole => i128::from(unsigned(whole >> 1)) * ONE,
            };
            let epoch_sum = EpochSum { epoch: Stamp { time, datacenter, partition }, sum: Decimal(sum) };
            Added { stamp, operation, epoch_sum }
        });
        let value = has(HAS_VALUE).then(|| {
            let (stamp, operation) = read_write(body, origin, has(VALUE_BY_ORIGIN));
            Value { stamp, operation, bytes: body }
        });
        let settled = Settled { since: LogicalTime::ZERO, value, added };
        Settled { since: since.unwrap_or_else(|| settled.latest()), ..settled }
    }
}

/// The name of a column that has none lies somewhere: an empty slice at no address is compared by a load that faults and
/// is masked, which takes longer than comparing any name.
static NAMELESS: [u8; 1] = [0];

/// The number of a column's kind, and its name; nothing of a deadline.
pub(crate) fn parts_of(column: &Column) -> Option<(u8, &[u8])> {
    Some(match column {
        Column::Text => (0, &NAMELESS[..0]),
        Column::Field(name) => (1, name),
        Column::Member(name) => (2, name),
        Column::Scored(name) => (3, name),
        Column::Element(name) => (4, name),
        Column::Stream(name) => (5, name),
        Column::FieldDeadline(name) => (FIELD_DEADLINE, name),
        Column::Escrow(name) => (ESCROW, name),
        Column::Deadline | Column::Row => return None,
    })
}

fn column_of(kind: u8, name: &[u8]) -> Column {
    let name = || Bytes::copy_from_slice(name);
    match kind {
        0 => Column::Text,
        1 => Column::Field(name()),
        2 => Column::Member(name()),
        3 => Column::Scored(name()),
        4 => Column::Element(name()),
        5 => Column::Stream(name()),
        ESCROW => Column::Escrow(name()),
        _ => Column::FieldDeadline(name()),
    }
}

pub(crate) fn kind_of(number: u8) -> Kind {
    match number {
        FIELD_DEADLINE => Kind::Hash,
        ESCROW => Kind::Bounded,
        _ => Kind::ALL[usize::from(number)],
    }
}

fn read_write(body: &mut &[u8], origin: &Origin, is_like_origin: bool) -> (Stamp, OperationId) {
    let time = LogicalTime(read_difference(body, origin.stamp.time.0));
    let position = Position(read_difference(body, origin.operation.position.0));
    if is_like_origin {
        return (Stamp { time, ..origin.stamp }, OperationId { position, ..origin.operation });
    }
    let [stamp_datacenter, datacenter] = take(body).map(DatacenterId);
    let stamp =
        Stamp { time, datacenter: stamp_datacenter, partition: PartitionId(u16::from_le_bytes(take(body))) };
    let partition = PartitionId(u16::from_le_bytes(take(body)));
    let incarnation = Incarnation(u16::from_le_bytes(take(body)));
    (stamp, OperationId { datacenter, incarnation, partition, position })
}

fn take<const N: usize>(from: &mut &[u8]) -> [u8; N] {
    let (taken, rest) = from.split_first_chunk().expect("a column is whole");
    *from = rest;
    *taken
}

/// A number whose lowest bit is the sign.
fn signed(number: i64) -> u64 {
    (number << 1) as u64 ^ (number >> 63) as u64
}

fn unsigned(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn read_difference(from: &mut &[u8], to: u64) -> u64 {
    to.wrapping_add(unsigned(read_number(from)) as u64)
}

pub(crate) fn number_bytes(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// Writes a number of base 128, the lowest digit first; answers its length.
pub(crate) fn write_number(mut number: u64, out: &mut [u8]) -> usize {
    let mut at = 0;
    while number >= 0x80 {
        out[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    out[at] = number as u8;
    at + 1
}

#[inline]
pub(crate) fn read_number(from: &mut &[u8]) -> u64 {
    let mut number = 0;
    let mut shift = 0;
    loop {
        let (&digit, rest) = from.split_first().expect("a number is whole");
        *from = rest;
        number |= u64::from(digit & 0x7f) << shift;
        if digit < 0x80 {
            return number;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests;
