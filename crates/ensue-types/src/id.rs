//! Identifiers, one type each, so that the compiler refuses a mix-up.

use crate::LogicalTime;
use bytes::Bytes;
use std::fmt;
use std::str::FromStr;

/// A datacenter of the cluster, by its index in the configuration: `dc1` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatacenterId(pub u8);

impl DatacenterId {
    /// In a `SeenSum`: the additions of every datacenter up to the stamp. No datacenter has this number.
    pub const EVERY: DatacenterId = DatacenterId(u8::MAX);
    /// Added to a datacenter's number, names the lane of its additions that only stable sessions make.
    const STABLE_ADDER: u8 = 64;

    /// Under whose name the additions of this datacenter run: a sum that runs on shows all that went before it, so what
    /// some readers see and others do not needs a sum of its own.
    pub fn adder(self, stable: bool) -> DatacenterId {
        if stable { DatacenterId(self.0 + DatacenterId::STABLE_ADDER) } else { self }
    }
}

/// Some of the datacenters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DatacenterSet(pub u16);

impl DatacenterSet {
    pub fn contains(self, datacenter: DatacenterId) -> bool {
        datacenter.0 < 16 && self.0 >> datacenter.0 & 1 == 1
    }

    pub fn union(self, other: DatacenterSet) -> DatacenterSet {
        DatacenterSet(self.0 | other.0)
    }

    pub fn intersection(self, other: DatacenterSet) -> DatacenterSet {
        DatacenterSet(self.0 & other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = DatacenterId> {
        (0..16).map(DatacenterId).filter(move |datacenter| self.contains(*datacenter))
    }
}

impl FromIterator<DatacenterId> for DatacenterSet {
    fn from_iter<I: IntoIterator<Item = DatacenterId>>(datacenters: I) -> DatacenterSet {
        let one = |datacenter: DatacenterId| 1u16.checked_shl(u32::from(datacenter.0)).unwrap_or_default();
        DatacenterSet(datacenters.into_iter().fold(0, |set, datacenter| set | one(datacenter)))
    }
}

/// A partition of the keyspace: the unit of ownership. The same number means the same slots in every datacenter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub u16);

/// A keyspace, as `SELECT n` picks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyspaceId(pub u8);

/// A core of a datacenter, counted over all its nodes: node index times cores a node, plus the core's index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u16);

/// A client connection, unique in the process that accepted it for as long as the process lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Bits of a position that count the entries of one incarnation: at a million writes a second, nine years.
const POSITION_BITS: u32 = 48;

/// One life of a partition's log. It grows by one when a partition starts without its whole log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u16);

/// The identity of a partition's directory: drawn at its first start, kept in its superblock, and remembered by the
/// same
/// partition of every other datacenter, so that an empty or foreign directory is not taken for the one that was lost.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectoryId(pub u128);

impl DirectoryId {
    /// What directories have that were made before directories had an identity.
    pub const UNKNOWN: DirectoryId = DirectoryId(0);

    /// What a datacenter shows to say how far it has received a stream: a keyed hash (64-bit FNV-1a of all that it
    /// names), so that
    /// a message whose fields are wrong, or which is meant for another directory, proves nothing. It is no signature:
    /// whoever
    /// knows the identity can make one.
    pub fn proof(self, stream: (DatacenterId, PartitionId), received: Position, last: LogicalTime) -> u64 {
        let numbers = [
            stream.1.0.to_le_bytes().to_vec(),
            received.0.to_le_bytes().to_vec(),
            last.0.to_le_bytes().to_vec(),
        ];
        let bytes = self.0.to_le_bytes().into_iter().chain([stream.0.0]).chain(numbers.into_iter().flatten());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

impl fmt::Debug for DirectoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for DirectoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A place in a partition's own stream. 0 means "nothing yet".
///
/// The upper 16 bits count the incarnations, the lower 48 the entries of one: the first incarnation begins at 1, the
/// second at 2^48 + 1. Positions are dense within an incarnation, grow through all of them, and none is used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// The place before the first entry of an incarnation.
    pub fn before(incarnation: Incarnation) -> Position {
        Position(u64::from(incarnation.0.saturating_sub(1)) << POSITION_BITS)
    }

    /// The incarnation that this place belongs to; the place before the first entry counts to the one that ended there.
    pub fn incarnation(self) -> Incarnation {
        Incarnation(1_u16.saturating_add((self.0.saturating_sub(1) >> POSITION_BITS) as u16))
    }

    /// How many entries of its incarnation there are up to this place.
    pub fn number(self) -> u64 {
        self.0 - Position::before(self.incarnation()).0
    }

    /// The position that follows this one.
    pub fn next(self) -> Position {
        Position(self.0.saturating_add(1))
    }

    /// How many entries come after this place up to an end. Of an earlier incarnation only the last part is counted:
    /// how many entries it had is not kept.
    pub fn entries_to(self, end: Position) -> u64 {
        match self.incarnation() == end.incarnation() {
            true => end.0.saturating_sub(self.0),
            false => end.number(),
        }
    }

    /// Whether a stream may come to this place, and go on in another incarnation if it must.
    pub fn is_possible(self) -> bool {
        self.0 <= u64::from(u16::MAX - 1) << POSITION_BITS
    }
}

/// A write operation, named by the place of its entry in the stream of the partition that accepted or coordinated it.
///
/// Partition numbers are the same everywhere, so the id is its own locator (Eiger, section 3.1): the partition of
/// this number, in whichever datacenter one asks, knows whether the operation has been applied there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId {
    pub datacenter: DatacenterId,
    pub incarnation: Incarnation,
    pub partition: PartitionId,
    pub position: Position,
}

/// Something that must have been applied in a datacenter before something else may be shown there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependency {
    pub operation: OperationId,
    pub extent: Extent,
}

/// How much of a stream a dependency means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extent {
    /// This very operation (Eiger, section 3.1; trap 1).
    Exact,
    /// Every operation of the stream up to and with this one: what a context folds into when it grows too long.
    Through,
}

/// A question of one session, unique in its datacenter while an answer may still come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub core: CoreId,
    /// Differs between two runs of the same process, so that an answer to an earlier run is recognised and dropped.
    pub boot: u32,
    pub session: SessionId,
    pub sequence: u64,
}

/// One command as the client sent it: its name and its arguments.
pub type Args = Vec<Bytes>;

impl fmt::Display for DatacenterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dc{}", u16::from(self.0) + 1)
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// The incarnation, and the number within it: as `ensue fsck` takes it.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.incarnation().0, self.number())
    }
}

/// What `Display` writes; also a number alone, which is one of all incarnations.
impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Position, NoPosition> {
        let Some((incarnation, number)) = text.split_once('.') else {
            return text.parse().map(Position).map_err(|_| NoPosition);
        };
        let (incarnation, number) = (incarnation.parse(), number.parse::<u64>());
        match (incarnation, number) {
            (Ok(incarnation @ 1..), Ok(number)) if number <= 1 << POSITION_BITS => {
                Ok(Position(Position::before(Incarnation(incarnation)).0 + number))
            }
            _ => Err(NoPosition),
        }
    }
}

/// A text is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPosition;

impl std::error::Error for NoPosition {}

impl fmt::Display for NoPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a position is an incarnation from 1 on, a dot and a number, as in 1.1200")
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}.{}", self.datacenter, self.partition, self.incarnation.0, self.position.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_shown() {
        let second = Position::before(Incarnation(2));
        let shown = [(Position(3), "1.3"), (second.next(), "2.1"), (Position(second.0 + 42), "2.42")];
        for (position, text) in shown {
            assert_eq!((position.to_string().as_str(), text.parse()), (text, Ok(position)));
        }
        assert_eq!(second.to_string().parse(), Ok(second));
        assert_eq!("7".parse(), Ok(Position(7)));
        for text in ["", "0.1", "1.", "1.-2", "70000.1", "2.281474976710657"] {
            assert_eq!(text.parse::<Position>(), Err(NoPosition), "{text}");
        }
    }
}
