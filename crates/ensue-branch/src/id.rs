//! The name of a state: unique in all sites, and above the names of its parents.
//!
//! A Lamport counter, the site, and the site's incarnation: a site that lost the end of its log never gives a name
//! again that it may have given before (trap 45). As text `12.0`, or `12.0.2` in a later incarnation than the first.

use ensue_types::{DatacenterId, Incarnation};
use std::fmt;
use std::str::FromStr;

/// Counter, incarnation, site, from the highest bit down: the order of ids goes by the counter first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(u64);

const COUNTER_SHIFT: u32 = 24;
const INCARNATION_SHIFT: u32 = 8;

impl StateId {
    /// The empty state that all others come from.
    pub const ROOT: StateId = StateId(0);
    /// At a million commits a second, twelve days; at a thousand, thirty-four years.
    pub const COUNTER_MAX: u64 = (1 << (64 - COUNTER_SHIFT)) - 1;

    pub fn new(counter: u64, site: DatacenterId, incarnation: Incarnation) -> StateId {
        assert!(counter <= StateId::COUNTER_MAX, "2^40 states of one keyspace");
        let incarnation = u64::from(incarnation.0) << INCARNATION_SHIFT;
        StateId(counter << COUNTER_SHIFT | incarnation | u64::from(site.0))
    }

    pub fn counter(self) -> u64 {
        self.0 >> COUNTER_SHIFT
    }

    pub fn site(self) -> DatacenterId {
        DatacenterId(self.0 as u8)
    }

    pub fn incarnation(self) -> Incarnation {
        Incarnation((self.0 >> INCARNATION_SHIFT) as u16)
    }

    /// For encodings.
    pub fn bits(self) -> u64 {
        self.0
    }

    pub fn from_bits(bits: u64) -> StateId {
        StateId(bits)
    }
}

impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.counter(), self.site().0)?;
        match self.incarnation().0 {
            0 | 1 => Ok(()),
            later => write!(f, ".{later}"),
        }
    }
}

impl FromStr for StateId {
    type Err = ();

    /// One text a name: no signs, no leading zeros, no first incarnation spelt out.
    fn from_str(text: &str) -> Result<StateId, ()> {
        let mut parts = text.split('.');
        let counter: u64 = parts.next().and_then(|part| part.parse().ok()).ok_or(())?;
        let site: u8 = parts.next().and_then(|part| part.parse().ok()).ok_or(())?;
        let incarnation: u16 = parts.next().map_or(Ok(1), str::parse).map_err(|_| ())?;
        if counter > StateId::COUNTER_MAX || parts.next().is_some() {
            return Err(());
        }
        let id = match counter {
            0 => StateId::ROOT,
            _ => StateId::new(counter, DatacenterId(site), Incarnation(incarnation)),
        };
        if id.to_string() == text { Ok(id) } else { Err(()) }
    }
}
