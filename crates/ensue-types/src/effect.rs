//! What a write does to a row, after its command was evaluated: the unit that is logged, replicated and merged.
//!
//! Merging is commutative, associative and idempotent: a removal ends the values that it had observed, of those that
//! are left the highest stamp wins, and of an epoch's sums the latest counts. Replaying an effect is therefore
//! harmless, in any order and any number of times.

use crate::escrow::share_of;
use crate::{DatacenterId, Decimal, Observed, Stamp, StreamPart};
use bytes::Bytes;

/// The place of a value inside a row. A location of the papers is (key, column).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// The one column of a string.
    Text,
    /// The row's deadline: a value of 8 bytes, milliseconds since 1970, little endian; a tombstone means "persists".
    Deadline,
    /// A field of a hash.
    Field(Bytes),
    /// The deadline of a field of that name (`FieldDeadline`).
    FieldDeadline(Bytes),
    /// A member of a set; its value is empty.
    Member(Bytes),
    /// A member of a sorted set; its value is its score, as text.
    Scored(Bytes),
    /// An element of a list, by its name (`element`); the order of the names is that of the list.
    Element(Bytes),
    /// A part of a stream, by its name (`stream`); its entries stand in the order of their ids.
    Stream(Bytes),
    /// A bounded counter, or a datacenter's share of it, by its name (`escrow`).
    Escrow(Bytes),
    /// All columns of the row but its deadline, those that come later among them. It has no value: removals alone are
    /// written to it, and what they had observed is observed of each column.
    Row,
}

impl Column {
    /// Whether it is no value, but says how long one lives.
    pub fn is_deadline(&self) -> bool {
        matches!(self, Column::Deadline | Column::FieldDeadline(_))
    }

    /// Whether nobody sees it by itself: a deadline, or a share of a bounded counter, or a part of a stream that is
    /// nothing without that.
    pub fn is_beneath(&self) -> bool {
        match self {
            Column::Deadline | Column::FieldDeadline(_) => true,
            Column::Escrow(name) => share_of(name).is_some(),
            Column::Stream(name) => StreamPart::is_beneath(name),
            _ => false,
        }
    }

    /// The same in memory of its own: a name shares that of what it came with.
    pub fn copied(&self) -> Column {
        let copy = |name: &Bytes| Bytes::copy_from_slice(name);
        match self {
            Column::Text => Column::Text,
            Column::Deadline => Column::Deadline,
            Column::Field(name) => Column::Field(copy(name)),
            Column::FieldDeadline(name) => Column::FieldDeadline(copy(name)),
            Column::Member(name) => Column::Member(copy(name)),
            Column::Scored(name) => Column::Scored(copy(name)),
            Column::Element(name) => Column::Element(copy(name)),
            Column::Stream(name) => Column::Stream(copy(name)),
            Column::Escrow(name) => Column::Escrow(copy(name)),
            Column::Row => Column::Row,
        }
    }
}

/// The additions of one lane of a datacenter to one counter since the epoch began.
///
/// An addition replicates the new running sum and not its own amount, so that applying it twice counts once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochSum {
    /// Stamp at which this epoch began at zero, with the lane in the place of its datacenter. A datacenter begins a new
    /// epoch when it had forgotten the last one.
    pub epoch: Stamp,
    /// Sum of all additions of the epoch up to and with this one.
    pub sum: Decimal,
}

/// An epoch's sum that a value or a tombstone had taken into account when it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenSum {
    pub datacenter: DatacenterId,
    pub epoch_sum: EpochSum,
    /// Stamp of the addition that made this sum: an addition with another stamp was not seen.
    pub stamp: Stamp,
}

/// The tallies that a base value covers, by datacenter; empty for almost every value.
///
/// A writer that has collected tombstones of counters no longer knows what they covered, while another datacenter may
/// still hold those additions. It then covers the additions of `DatacenterId::EVERY` datacenter up to a stamp, below
/// which it has seen, and seen deleted, every addition to a column that it does not have.
pub type Seen = Vec<SeenSum>;

/// What a value replaces of other datacenters, as far as its writer's datacenter showed it; nothing for almost every
/// value. What its own datacenter had put need not be named.
pub type Over = Option<Box<Observed>>;

/// A change to one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The column holds this value, and what is in `over` is gone for good.
    Put { value: Bytes, seen: Seen, over: Over },
    /// The column holds nothing: a tombstone that wins or loses by its stamp, as a value does.
    Delete { seen: Seen },
    /// What was put here and is in `observed` is gone, and nothing else.
    Remove { observed: Observed, seen: Seen },
    /// The writing datacenter's additions to this counter now amount to this epoch sum.
    Add { epoch_sum: EpochSum },
}

impl Effect {
    /// Whether it is a value, or ends one, and no addition.
    pub fn is_base(&self) -> bool {
        !matches!(self, Effect::Add { .. })
    }
}

/// A change to one column of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowEffect {
    pub key: Bytes,
    pub column: Column,
    pub effect: Effect,
}
