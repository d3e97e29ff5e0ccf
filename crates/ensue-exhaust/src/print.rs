//! Fingerprints: 128 bits of everything that can make a difference later. Two states with one fingerprint are taken as
//! one.

use foldhash::quality::FixedState;
use std::fmt::{self, Write};
use std::hash::{BuildHasher, Hash};

/// A fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Print(pub u128);

/// Gathers what a fingerprint is made of.
#[derive(Default)]
pub struct Printer {
    bytes: Vec<u8>,
}

impl Printer {
    pub fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    pub fn print(&mut self, print: Print) {
        self.bytes.extend_from_slice(&print.0.to_le_bytes());
    }

    pub fn finish(&self) -> Print {
        of_parts(&self.bytes)
    }
}

impl Write for Printer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// The fingerprint of what a value's debug text tells.
pub fn of(value: &dyn fmt::Debug) -> Print {
    let mut printer = Printer { bytes: Vec::with_capacity(16 << 10) };
    // Writing into memory cannot fail.
    let _ = write!(printer, "{value:?}");
    printer.finish()
}

/// The fingerprint of a value that hashes all of its parts.
pub fn of_parts(value: &impl Hash) -> Print {
    let half = |seed| FixedState::with_seed(seed).hash_one(value);
    Print(u128::from(half(1)) << 64 | u128::from(half(2)))
}
