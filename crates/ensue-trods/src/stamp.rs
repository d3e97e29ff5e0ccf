//! Timestamps that the client sees: shifted between servers' clocks, or used as the store of TRODS-TS (section IV-B).
//!
//! ```text
//! 31       25 24     20 19    16 15            0
//! | index 7  | units 5 | scale 4 | object id 16 |
//! ```
//!
//! The index selects the server's own timestamp in a table of the connection, so that round trips are measured; it is
//! highest, so that its wrap is a wrap of the whole value. `units` is the length of the padded response head in units
//! of 64 bytes, or says that there is none yet, that the exchange is unprotected, or that the record is in the store.
//!
//! The paper gives the object 20 bits and the client's window scale none; but a recovering server did not see the SYN
//! and cannot read the client's window without the scale. The paper lets the index take 128 steps between packet and
//! echo; after 64 a client takes a new timestamp for an old one and drops its packet. Here the index stops 60 steps
//! after the last echo, and packets share a timestamp until an echo arrives.

use crate::limits::{STAMP_MARGIN, STAMP_SHARED_MAX, STAMP_STEPS_MAX};

/// Bytes of a unit of the head's length.
pub const UNIT_BYTES: usize = 64;
/// The lengths to which heads are padded, in units; 30 and 31 have other meanings. They are few, so that the heads of
/// two servers, which differ by some bytes, have one length: nothing else arbitrates between servers that both answer.
pub const UNITS: [usize; 4] = [8, 16, 22, 29];

/// In the order in which a connection may have them, so that its timestamps only grow.
const UNITS_IN_STORE: u32 = 30;
const UNITS_UNPROTECTED: u32 = 31;
const SCALE_NONE: u32 = 15;
const INDEXES: u32 = 128;
/// A first index that is not 0, so that a server whose table starts here is not mistaken for one that wrapped.
const INDEX_FIRST: u32 = 1;

/// What a timestamp says about the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// No response has begun.
    Setup,
    /// An object is being downloaded.
    Object {
        /// Units of the padded head.
        units: u8,
        /// Index into the table of objects.
        object: u16,
    },
    /// A response flows that cannot be recovered.
    Unprotected,
    /// The record is in the key-value store.
    InStore,
}

/// What stands in a timestamp beside the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The exchange.
    pub mark: Mark,
    /// The client's window scale.
    pub scale: Option<u8>,
}

impl Stamp {
    fn bits(self) -> u32 {
        let (units, object) = match self.mark {
            Mark::Setup => (0, 0),
            Mark::Object { units, object } => (u32::from(units), u32::from(object)),
            Mark::Unprotected => (UNITS_UNPROTECTED, 0),
            Mark::InStore => (UNITS_IN_STORE, 0),
        };
        units << 20 | self.scale.map_or(SCALE_NONE, u32::from) << 16 | object
    }

    /// Reads the fields of a timestamp that a client echoed.
    #[must_use]
    pub fn read(value: u32) -> Self {
        let units = value >> 20 & 31;
        let scale = value >> 16 & 15;
        let mark = match units {
            0 => Mark::Setup,
            UNITS_UNPROTECTED => Mark::Unprotected,
            UNITS_IN_STORE => Mark::InStore,
            _ => Mark::Object {
                units: u8::try_from(units).expect("five bits"),
                object: u16::try_from(value & 0xffff).expect("sixteen bits"),
            },
        };
        Self { mark, scale: (scale != SCALE_NONE).then(|| u8::try_from(scale).expect("four bits")) }
    }
}

/// How the timestamps of one connection are translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The values are those of the server, or those moved by a constant.
    Shifted(Shift),
    /// The values hold the state of the connection.
    Table(Box<Table>),
}

impl Clock {
    /// The value that the client is to see for the server's value.
    pub fn outbound(&mut self, value: u32) -> u32 {
        match self {
            Self::Shifted(shift) => shift.outbound(value),
            Self::Table(table) => table.outbound(value),
        }
    }

    /// The server's value for the one that the client echoed.
    pub fn inbound(&mut self, echo: u32) -> u32 {
        match self {
            Self::Shifted(shift) => shift.inbound(echo),
            Self::Table(table) => table.inbound(echo),
        }
    }

    /// The server's first value is known, though the client does not see the packet that brought it.
    pub fn prime(&mut self, value: u32) {
        match self {
            Self::Shifted(shift) => shift.sent = Some(value),
            Self::Table(table) => table.first = Some(value),
        }
    }

    /// The newest value of the server, if one is known.
    #[must_use]
    pub fn newest(&self) -> Option<u32> {
        match self {
            Self::Shifted(shift) => shift.sent,
            Self::Table(table) => table.last.or(table.first),
        }
    }

    /// A value for a packet of the gateway's own: the newest one again. `None` before the server's first.
    pub fn repeated(&mut self) -> Option<u32> {
        let last = match self {
            Self::Shifted(shift) => shift.sent,
            Self::Table(table) => table.values[table.current as usize].or(table.first),
        };
        last.map(|value| self.outbound(value))
    }

    /// Whether the client echoed the timestamp of a response that is not this server's: another one answered, too.
    pub fn is_foreign(&self, echo: u32) -> bool {
        let Self::Table(table) = self else { return false };
        let (theirs, ours) = (Stamp::read(echo).mark, table.stamp.mark);
        matches!(theirs, Mark::Object { .. }) && ours != Mark::Setup && theirs != ours
    }

    /// Marks the exchange in all timestamps from now on.
    pub fn mark(&mut self, mark: Mark) {
        if let Self::Table(table) = self {
            table.stamp.mark = mark;
        }
    }
}

/// Timestamps moved by a constant, which grows when the client echoes a value that this server has not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Shift {
    delta: u32,
    /// The last value of the server, and the first one that the client was shown.
    sent: Option<u32>,
    began: Option<u32>,
    /// A value that the next one must not be below.
    floor: Option<u32>,
}

impl Shift {
    /// A clock that continues after what the client echoed of another server.
    #[must_use]
    pub fn after(echo: u32) -> Self {
        Self { delta: 0, sent: None, began: None, floor: Some(echo.wrapping_add(STAMP_MARGIN)) }
    }

    fn outbound(&mut self, value: u32) -> u32 {
        if let Some(floor) = self.floor.take() {
            self.delta = floor.wrapping_sub(value);
        }
        self.sent = Some(self.sent.filter(|last| is_later(*last, value)).unwrap_or(value));
        self.began.get_or_insert(value);
        value.wrapping_add(self.delta)
    }

    fn inbound(&mut self, echo: u32) -> u32 {
        // To an echo of which nothing is known, the newest value is the answer: a round trip that seems short does no
        // harm, and one of a connection's age stops a sender for as long.
        let Some(last) = self.sent else { return 0 };
        if self.floor.is_some() {
            return last;
        }
        let value = echo.wrapping_sub(self.delta);
        if is_later(value, last) {
            self.floor = Some(echo.wrapping_add(STAMP_MARGIN));
            return last;
        }
        if self.began.is_some_and(|began| is_later(began, value)) { last } else { value }
    }
}

fn is_later(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) > 0
}

/// The table of a connection whose timestamps hold its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    stamp: Stamp,
    /// The server's values, by index.
    values: [Option<u32>; INDEXES as usize],
    current: u32,
    echoed: u32,
    first: Option<u32>,
    /// The server's newest value, which packets may have carried under an older index.
    last: Option<u32>,
    /// The next value takes a new index, whatever the window says: an echo of another server was seen.
    jump: Option<u32>,
}

impl Table {
    /// The table of a new connection.
    #[must_use]
    pub fn new(stamp: Stamp) -> Self {
        let values = [None; INDEXES as usize];
        Self { stamp, values, current: INDEX_FIRST, echoed: INDEX_FIRST, first: None, last: None, jump: None }
    }

    /// The table of a connection of which the client echoed a value of another server.
    #[must_use]
    pub fn after(echo: u32, stamp: Stamp) -> Self {
        let mut table = Self::new(stamp);
        table.rebase(echo >> 25);
        table
    }

    /// Continues after an index of another server, past all that it may have sent since.
    fn rebase(&mut self, index: u32) {
        self.echoed = index;
        self.jump = Some((index + STAMP_STEPS_MAX) % INDEXES);
    }

    fn outbound(&mut self, value: u32) -> u32 {
        self.first.get_or_insert(value);
        self.last = Some(self.last.filter(|last| is_later(*last, value)).unwrap_or(value));
        let next = (self.current + 1) % INDEXES;
        if let Some(index) = self.jump.take() {
            self.current = index;
            self.values = [None; INDEXES as usize];
            self.values[index as usize] = Some(value);
        } else {
            match self.values[self.current as usize] {
                Some(held) if is_later(value, held) && steps(self.echoed, next) <= STAMP_STEPS_MAX => {
                    self.current = next;
                    self.values[next as usize] = Some(value);
                }
                // Packets share an index while no echo comes, for a second at most: then the newest of them counts.
                Some(held) if is_later(value, held.wrapping_add(STAMP_SHARED_MAX)) => {
                    self.values[self.current as usize] = Some(value);
                }
                Some(_) => {}
                None => self.values[self.current as usize] = Some(value),
            }
        }
        self.current << 25 | self.stamp.bits()
    }

    fn inbound(&mut self, echo: u32) -> u32 {
        let index = echo >> 25;
        // As in `Shift`: what is not known is answered with the newest value.
        let newest = self.last.or(self.first).unwrap_or(0);
        if self.jump.is_some() {
            // Nothing was sent since the last jump was decided; a later echo moves the target.
            if steps(self.echoed, index) < INDEXES / 2 {
                self.rebase(index);
            }
            return newest;
        }
        let behind = steps(index, self.current);
        if behind >= INDEXES / 2 {
            self.rebase(index);
            return newest;
        }
        if steps(self.echoed, index) <= steps(self.echoed, self.current) {
            self.echoed = index;
        }
        self.values[index as usize].unwrap_or(newest)
    }
}

/// Steps from one index forward to another.
fn steps(from: u32, to: u32) -> u32 {
    (to + INDEXES - from) % INDEXES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamp() -> Stamp {
        Stamp { mark: Mark::Setup, scale: Some(7) }
    }

    #[test]
    fn the_fields_are_read_as_they_were_written() {
        let marks =
            [Mark::Setup, Mark::Unprotected, Mark::InStore, Mark::Object { units: 29, object: u16::MAX }];
        for mark in marks {
            for scale in [None, Some(0), Some(14)] {
                let stamp = Stamp { mark, scale };
                assert_eq!(Stamp::read(stamp.bits() | 77 << 25), stamp);
            }
        }
    }

    #[test]
    fn an_echo_gives_the_servers_own_value_back() {
        let mut table = Table::new(stamp());
        for round in 0..1000 {
            let sent = table.outbound(round);
            assert_eq!(table.inbound(sent), round);
        }
    }

    /// After a server that the client heard 60 steps beyond its last echo, and after two such servers in a row.
    #[test]
    fn a_recovered_table_is_never_behind_the_client() {
        for ahead in 0..=STAMP_STEPS_MAX {
            let mut dead = Table::new(stamp());
            let mut last = dead.outbound(0);
            let echo = last;
            for value in 1..=ahead {
                last = dead.outbound(value);
            }
            let mut next = Table::after(echo, stamp());
            let value = next.outbound(5);
            assert!(!is_later(last, value), "{ahead}: {last:x} then {value:x}");
            assert_eq!(next.inbound(value), 5);
        }
    }

    proptest! {
        /// A client that keeps the latest value never sees an older one, whatever it echoes and however late.
        #[test]
        fn values_never_go_back_at_the_client(lags in prop::collection::vec(0_usize..300, 1..600)) {
            let mut table = Table::new(stamp());
            let mut sent = vec![table.outbound(0)];
            let mut recent = sent[0];
            for (step, lag) in lags.iter().enumerate() {
                let value = table.outbound(u32::try_from(step).expect("small") + 1);
                // Everything after the echo may be lost, so each value is compared with the echoed one.
                prop_assert!(!is_later(recent, value));
                sent.push(value);
                if *lag < 5 {
                    recent = sent[sent.len() - 1 - lag.min(&(sent.len() - 1))].max_serial(recent);
                    table.inbound(recent);
                }
            }
        }
    }

    trait Serial {
        fn max_serial(self, other: Self) -> Self;
    }

    impl Serial for u32 {
        fn max_serial(self, other: Self) -> Self {
            if is_later(self, other) { self } else { other }
        }
    }

    /// A sender that is told the first value takes the connection's age for a round trip, and stands still for as long.
    #[test]
    fn an_echo_that_nobody_knows_is_answered_with_the_newest_value() {
        let mut table = Table::new(stamp());
        let mut sent = table.outbound(0);
        for value in 1..1000 {
            sent = table.outbound(value);
            table.inbound(sent);
        }
        assert_eq!(table.inbound(sent.wrapping_add(40 << 25)), 999);
        assert_eq!(table.inbound(sent.wrapping_add(41 << 25)), 999);
        let jumped = table.outbound(1000);
        // No echo comes for long.
        for value in 1001..9000 {
            table.outbound(value);
        }
        assert!(table.inbound(jumped.wrapping_sub(40 << 25)) == 8999 && table.inbound(jumped) > 7000);
        let mut table = Table::new(stamp());
        (0..1000).for_each(|value| {
            sent = table.outbound(value);
            table.inbound(sent);
        });
        table.inbound(sent.wrapping_add(40 << 25));
        let jumped = table.outbound(1000);
        assert_eq!(table.inbound(sent), 1000);
        assert_eq!(table.inbound(jumped), 1000);

        let mut shift = Shift::default();
        assert_eq!((shift.outbound(0), shift.outbound(999)), (0, 999));
        assert_eq!(shift.inbound(900_000), 999);
        assert_eq!(shift.inbound(5), 999);
        assert_eq!(shift.outbound(1000), 900_000 + STAMP_MARGIN);
        assert_eq!(shift.inbound(899_000), 1000);
    }

    #[test]
    fn marks_only_grow() {
        let bits =
            [Mark::Setup, Mark::Object { units: 29, object: u16::MAX }, Mark::InStore, Mark::Unprotected]
                .map(|mark| Stamp { mark, scale: None }.bits());
        assert!(bits.is_sorted());
    }

    #[test]
    fn a_shifted_clock_catches_up_with_a_foreign_echo() {
        let mut shift = Shift::default();
        assert_eq!(shift.outbound(1000), 1000);
        assert_eq!(shift.inbound(900_000), 1000);
        let next = shift.outbound(1001);
        assert!(is_later(next, 900_000));
        assert_eq!(shift.inbound(next), 1001);
    }
}
