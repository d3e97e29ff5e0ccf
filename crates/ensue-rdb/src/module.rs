//! Values of modules: each tells the name of its module and is made of parts that anybody can read past.

use crate::error::{Damage, RdbError};
use crate::reader::Reader;
use std::fmt;
use std::io::BufRead;

/// The name of a type of a module: nine characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ModuleName([u8; NAME_BYTES]);

const NAME_BYTES: usize = 9;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Below the nine characters of six bits an id has the version of the type.
const VERSION_BITS: u32 = 10;

/// What the parts of a value are.
mod part {
    pub(super) const END: u64 = 0;
    pub(super) const SIGNED: u64 = 1;
    pub(super) const UNSIGNED: u64 = 2;
    pub(super) const FLOAT: u64 = 3;
    pub(super) const DOUBLE: u64 = 4;
    pub(super) const TEXT: u64 = 5;
}

impl ModuleName {
    fn of_id(id: u64) -> ModuleName {
        let character = |place: usize| {
            let bits = id >> (VERSION_BITS + 6 * (NAME_BYTES - 1 - place) as u32);
            ALPHABET[(bits & 0x3f) as usize]
        };
        ModuleName(std::array::from_fn(character))
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads past a value.
pub(crate) fn skip_value(reader: &mut Reader<impl BufRead>) -> Result<ModuleName, RdbError> {
    let name = ModuleName::of_id(reader.length()?);
    skip_parts(reader, name)?;
    Ok(name)
}

/// Reads past what a module keeps beside the keys.
pub(crate) fn skip_aux(reader: &mut Reader<impl BufRead>) -> Result<ModuleName, RdbError> {
    let name = ModuleName::of_id(reader.length()?);
    if reader.length()? != part::UNSIGNED {
        return Err(reader.damaged(Damage::Module(name)));
    }
    let _before_or_after_keys = reader.length()?;
    skip_parts(reader, name)?;
    Ok(name)
}

fn skip_parts(reader: &mut Reader<impl BufRead>, name: ModuleName) -> Result<(), RdbError> {
    loop {
        match reader.length()? {
            part::END => return Ok(()),
            part::SIGNED | part::UNSIGNED => {
                reader.length()?;
            }
            part::FLOAT => reader.skip(4)?,
            part::DOUBLE => reader.skip(8)?,
            part::TEXT => reader.skip_text()?,
            _ => return Err(reader.damaged(Damage::Module(name))),
        }
    }
}
