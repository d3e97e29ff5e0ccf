//! The hash of everything that happened in a run: two runs of one seed must agree on it to the last event.

use std::fmt::{self, Write};

/// FNV-1a over 64 bits, fed with events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    hash: u64,
    events: u64,
}

impl Default for Audit {
    fn default() -> Audit {
        Audit { hash: 0xcbf2_9ce4_8422_2325, events: 0 }
    }
}

impl Audit {
    pub fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// One event: when, where, and what, as its debug text shows it.
    pub fn event(&mut self, at: u64, place: u64, what: &dyn fmt::Debug) {
        self.events += 1;
        self.number(at);
        self.number(place);
        // Writing into a hash cannot fail.
        let _ = write!(self, "{what:?}");
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn events(&self) -> u64 {
        self.events
    }
}

impl Write for Audit {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.hash)
    }
}
