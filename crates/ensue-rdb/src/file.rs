//! An RDB file, read entry by entry.
//!
//! ```text
//! file     "REDIS" and four digits, or "VALKEY" and three; parts; 255; checksum of 8 bytes from version 5 on
//! part     250 name value | 254 database | 251 keys, keys with deadline | 244 slot, keys, keys with deadline
//!          | 245 library | 247 module, parts | entry
//! entry    [252 milliseconds u64 | 253 seconds u32] [248 idle | 249 frequency u8] layout, key, value
//! ```
//!
//! Versions 1 to 12 of Redis are read, and those of Valkey 9. A version that came later may mean another thing by what
//! is known, and is refused.

use crate::content::{self, Writer};
use crate::error::{Damage, RdbError};
use crate::reader::{Budget, Reader};
use crate::value::Content;
use crate::{layout, module};
use bytes::Bytes;
use std::io::BufRead;

/// What stands in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// What its writer tells of itself.
    Aux {
        name: Bytes,
        value: Bytes,
    },
    /// The text of a library of functions.
    Library(Bytes),
    /// What a module keeps beside the keys, which was read past.
    ModuleAux {
        name: String,
    },
    Entry(Entry),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub database: u64,
    pub key: Bytes,
    pub deadline_ms: Option<u64>,
    pub content: Content,
}

/// Reads a file from its beginning.
#[derive(Debug)]
pub struct RdbReader<R> {
    reader: Reader<R>,
    writer: Writer,
    version: u32,
    database: u64,
    /// That of the next entry. KeyDB tells something of itself between the two.
    deadline_ms: Option<u64>,
    is_over: bool,
}

/// The newest version of Redis that is known, and those of Valkey.
const REDIS_VERSION_MAX: u32 = 12;
const VALKEY_VERSIONS: std::ops::RangeInclusive<u32> = 80..=81;
/// The first version with a checksum at its end.
const CHECKSUM_VERSION: u32 = 5;
/// Most bytes that the compressed strings of one value may become together.
const EXPANDED_BYTES_MAX: usize = 1 << 30;
/// Most bytes that its elements may take.
const ELEMENTS_BYTES_MAX: usize = 4 << 30;

/// Whether a file that begins like this is an RDB file.
pub fn is_rdb(beginning: &[u8]) -> bool {
    beginning.starts_with(b"REDIS") || beginning.starts_with(b"VALKEY")
}

impl<R: BufRead> RdbReader<R> {
    /// Reads what a file begins with.
    pub fn new(source: R) -> Result<RdbReader<R>, RdbError> {
        let mut reader = Reader::summing(source, EXPANDED_BYTES_MAX, Budget::new(ELEMENTS_BYTES_MAX));
        let magic: [u8; 9] = reader.array()?;
        let not_rdb = RdbError::Damaged { offset: 0, damage: Damage::NotRdb };
        let (writer, digits) = if let Some(digits) = magic.strip_prefix(b"REDIS") {
            (Writer::Redis, digits)
        } else if let Some(digits) = magic.strip_prefix(b"VALKEY") {
            (Writer::Valkey, digits)
        } else {
            return Err(not_rdb);
        };
        let version = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u32>().ok());
        let Some(version) = version else { return Err(not_rdb) };
        let is_known = match writer {
            Writer::Redis => (1..=REDIS_VERSION_MAX).contains(&version),
            Writer::Valkey => VALKEY_VERSIONS.contains(&version),
        };
        if !is_known {
            return Err(RdbError::Damaged { offset: 0, damage: Damage::Version(version) });
        }
        Ok(RdbReader { reader, writer, version, database: 0, deadline_ms: None, is_over: false })
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.reader.offset()
    }

    /// What follows what was read.
    pub fn into_source(self) -> R {
        self.reader.into_source()
    }

    /// What comes next; nothing at the end, once the checksum was right.
    pub fn next_item(&mut self) -> Result<Option<Item>, RdbError> {
        while !self.is_over {
            let opcode = self.reader.byte()?;
            match opcode {
                layout::DEADLINE_MS => self.deadline_ms = Some(self.reader.unsigned(8)?),
                layout::DEADLINE_S => self.deadline_ms = Some(self.reader.unsigned(4)? * 1_000),
                layout::IDLE => {
                    self.reader.length()?;
                }
                layout::FREQUENCY => {
                    self.reader.byte()?;
                }
                layout::DATABASE => self.database = self.reader.length()?,
                layout::SIZES => self.skip_lengths(2)?,
                layout::SLOT_INFO => self.skip_lengths(3)?,
                layout::AUX => {
                    let (name, value) = (self.reader.text()?, self.reader.text()?);
                    return Ok(Some(Item::Aux { name, value }));
                }
                layout::LIBRARY => return Ok(Some(Item::Library(self.reader.text()?))),
                layout::MODULE_AUX => {
                    let name = module::skip_aux(&mut self.reader)?.to_string();
                    return Ok(Some(Item::ModuleAux { name }));
                }
                layout::END => self.end()?,
                layout => return self.entry(layout).map(Some),
            }
        }
        Ok(None)
    }

    fn skip_lengths(&mut self, count: usize) -> Result<(), RdbError> {
        for _ in 0..count {
            self.reader.length()?;
        }
        Ok(())
    }

    fn entry(&mut self, layout: u8) -> Result<Item, RdbError> {
        self.reader.begin_value(EXPANDED_BYTES_MAX, Budget::new(ELEMENTS_BYTES_MAX));
        if !is_value(layout) {
            return Err(self.reader.damaged(Damage::Type(layout)));
        }
        let key = self.reader.text()?;
        let content = content::read(&mut self.reader, layout, self.writer)?;
        let deadline_ms = self.deadline_ms.take();
        Ok(Item::Entry(Entry { database: self.database, key, deadline_ms, content }))
    }

    fn end(&mut self) -> Result<(), RdbError> {
        self.is_over = true;
        if self.version < CHECKSUM_VERSION {
            return Ok(());
        }
        let expected = self.reader.sum();
        let told = u64::from_le_bytes(self.reader.array()?);
        // Zero says that whoever wrote it makes no checksums.
        if told != 0 && expected != Some(told) {
            return Err(self.reader.damaged(Damage::Checksum));
        }
        Ok(())
    }
}

/// Whether a layout can be that of a value. The one of modules before Redis 4.0 was released cannot be read past.
fn is_value(layout: u8) -> bool {
    matches!(
        layout,
        0..=5 | layout::MODULE | layout::HASH_ZIPMAP..=layout::HASH_EXPIRING_PACKED | layout::JOB_OF_KEYDB
    )
}

#[cfg(test)]
mod tests;
