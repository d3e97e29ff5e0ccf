//! Commands on the bits of strings.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. Bit 0 is the highest of the first byte.
//! Offsets are bounded here, so that whoever evaluates cannot be made to allocate beyond the longest bulk string.

use super::{integer, is_word};
use crate::{CommandError, number};
use bytes::Bytes;
use ensue_types::limits;

/// What the owner of strings evaluates bit by bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bits {
    /// `GETBIT`.
    Get { key: Bytes, offset: u64 },
    /// `SETBIT`: the bit that was there.
    Set { key: Bytes, offset: u64, bit: bool },
    /// `BITCOUNT`: how many are set.
    Count { key: Bytes, range: Option<BitRange> },
    /// `BITPOS`: the place of the first such bit, or -1.
    Find { key: Bytes, bit: bool, start: i64, end: Option<i64>, unit: BitUnit },
    /// `BITOP`: the length of the result.
    Combine { operator: BitOperator, target: Bytes, sources: Vec<Bytes> },
    /// `BITFIELD`, `BITFIELD_RO`: an answer for each step but `OVERFLOW`.
    Fields { key: Bytes, steps: Vec<FieldStep>, reads_only: bool },
}

/// What a range of places counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitUnit {
    #[default]
    Byte,
    Bit,
}

/// From the one to the other, both included; negative places count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRange {
    pub start: i64,
    pub end: i64,
    pub unit: BitUnit,
}

/// How `BITOP` makes one string of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOperator {
    And,
    Or,
    Xor,
    /// Of one source.
    Not,
}

/// One of the integers that `BITFIELD` sees in a string: 1 to 64 bits from an offset on, unsigned ones at most 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    pub is_signed: bool,
    pub width: u32,
    pub offset: u64,
}

/// What becomes of a number that a field does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// Its lower bits stay.
    #[default]
    Wrap,
    /// The number next to it that the field holds.
    Saturate,
    /// Nothing is written, and the answer is nil.
    Fail,
}

/// One step of `BITFIELD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldStep {
    Get(BitField),
    Set(BitField, i64, Overflow),
    Increment(BitField, i64, Overflow),
}

impl Bits {
    pub(super) fn is_write(&self) -> bool {
        match self {
            Bits::Get { .. } | Bits::Count { .. } | Bits::Find { .. } => false,
            Bits::Fields { reads_only, .. } => !reads_only,
            Bits::Set { .. } | Bits::Combine { .. } => true,
        }
    }

    pub(super) fn key(&self) -> Option<&Bytes> {
        match self {
            Bits::Get { key, .. } | Bits::Set { key, .. } | Bits::Count { key, .. } => Some(key),
            Bits::Find { key, .. } | Bits::Fields { key, .. } => Some(key),
            Bits::Combine { .. } => None,
        }
    }
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Bits>, CommandError> {
    let key = args[1].clone();
    Ok(Some(match name {
        "getbit" => Bits::Get { key, offset: offset(&args[2], None, READ_BITS_MAX)? },
        "setbit" => {
            let offset = offset(&args[2], None, WRITTEN_BITS_MAX)?;
            let bit = bit(&args[3]).ok_or(CommandError::Argument("bit is not an integer or out of range"))?;
            Bits::Set { key, offset, bit }
        }
        "bitcount" => Bits::Count { key, range: range(&args[2..])? },
        "bitpos" => find(key, &args[2..])?,
        "bitop" => combine(&args[1..])?,
        "bitfield" => Bits::Fields { key, steps: steps(&args[2..], false)?, reads_only: false },
        "bitfield_ro" => Bits::Fields { key, steps: steps(&args[2..], true)?, reads_only: true },
        _ => return Ok(None),
    }))
}

/// Bits of the longest string, and of the longest one of Redis: behind the end of a string all bits are read as 0.
const WRITTEN_BITS_MAX: u64 = 8 * limits::BULK_BYTES_MAX as u64;
const READ_BITS_MAX: u64 = 1 << 32;

/// A place in a string; with `#` it counts fields of a width.
fn offset(argument: &[u8], width: Option<u32>, bits_max: u64) -> Result<u64, CommandError> {
    const REFUSAL: CommandError = CommandError::Argument("bit offset is not an integer or out of range");
    let (digits, factor) = match (argument, width) {
        ([b'#', digits @ ..], Some(width)) => (digits, u64::from(width)),
        (digits, _) => (digits, 1),
    };
    let place = number::parse_i64(digits).and_then(|place| u64::try_from(place).ok()).ok_or(REFUSAL)?;
    let place = place.checked_mul(factor).ok_or(REFUSAL)?;
    let last = place.saturating_add(u64::from(width.unwrap_or(1)) - 1);
    if last >= bits_max {
        return Err(REFUSAL);
    }
    Ok(place)
}

fn bit(argument: &[u8]) -> Option<bool> {
    match number::parse_i64(argument)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn unit(word: &[u8]) -> Result<BitUnit, CommandError> {
    match word {
        word if is_word(word, "BYTE") => Ok(BitUnit::Byte),
        word if is_word(word, "BIT") => Ok(BitUnit::Bit),
        _ => Err(CommandError::Syntax),
    }
}

/// `BITCOUNT` behind its key.
fn range(args: &[Bytes]) -> Result<Option<BitRange>, CommandError> {
    let (start, end, unit) = match args {
        [] => return Ok(None),
        [start, end] => (integer(start)?, integer(end)?, BitUnit::Byte),
        [start, end, word] => (integer(start)?, integer(end)?, unit(word)?),
        _ => return Err(CommandError::Syntax),
    };
    Ok(Some(BitRange { start, end, unit }))
}

/// `BITPOS` behind its key.
fn find(key: Bytes, args: &[Bytes]) -> Result<Bits, CommandError> {
    let bit = match integer(&args[0])? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::Argument("The bit argument must be 1 or 0.")),
    };
    let (start, end, unit) = match &args[1..] {
        [] => (0, None, BitUnit::Byte),
        [start] => (integer(start)?, None, BitUnit::Byte),
        [start, end] => (integer(start)?, Some(integer(end)?), BitUnit::Byte),
        [start, end, word] => {
            let start = integer(start)?;
            let unit = unit(word)?;
            (start, Some(integer(end)?), unit)
        }
        _ => return Err(CommandError::Syntax),
    };
    Ok(Bits::Find { key, bit, start, end, unit })
}

/// `BITOP` behind its name.
fn combine(args: &[Bytes]) -> Result<Bits, CommandError> {
    let operator = match &args[0] {
        word if is_word(word, "AND") => BitOperator::And,
        word if is_word(word, "OR") => BitOperator::Or,
        word if is_word(word, "XOR") => BitOperator::Xor,
        word if is_word(word, "NOT") => BitOperator::Not,
        _ => return Err(CommandError::Syntax),
    };
    let sources = args[2..].to_vec();
    if operator == BitOperator::Not && sources.len() != 1 {
        return Err(CommandError::Argument("BITOP NOT must be called with a single source key."));
    }
    Ok(Bits::Combine { operator, target: args[1].clone(), sources })
}

/// `BITFIELD` behind its key. `OVERFLOW` holds for the steps behind it.
fn steps(args: &[Bytes], reads_only: bool) -> Result<Vec<FieldStep>, CommandError> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut rest = args;
    while let [word, others @ ..] = rest {
        rest = match others {
            [field, place, others @ ..] if is_word(word, "GET") => {
                steps.push(FieldStep::Get(bit_field(field, place, READ_BITS_MAX)?));
                others
            }
            [field, place, value, others @ ..] if is_word(word, "SET") => {
                let field = bit_field(field, place, WRITTEN_BITS_MAX)?;
                steps.push(FieldStep::Set(field, integer(value)?, overflow));
                others
            }
            [field, place, amount, others @ ..] if is_word(word, "INCRBY") => {
                let field = bit_field(field, place, WRITTEN_BITS_MAX)?;
                steps.push(FieldStep::Increment(field, integer(amount)?, overflow));
                others
            }
            [kind, others @ ..] if is_word(word, "OVERFLOW") => {
                overflow = overflow_named(kind)?;
                others
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    if reads_only && !steps.iter().all(|step| matches!(step, FieldStep::Get(_))) {
        return Err(CommandError::Argument("BITFIELD_RO only supports the GET subcommand"));
    }
    Ok(steps)
}

fn overflow_named(word: &[u8]) -> Result<Overflow, CommandError> {
    match word {
        word if is_word(word, "WRAP") => Ok(Overflow::Wrap),
        word if is_word(word, "SAT") => Ok(Overflow::Saturate),
        word if is_word(word, "FAIL") => Ok(Overflow::Fail),
        _ => Err(CommandError::Argument("Invalid OVERFLOW type specified")),
    }
}

fn bit_field(kind: &[u8], place: &[u8], bits_max: u64) -> Result<BitField, CommandError> {
    const REFUSAL: CommandError = CommandError::Argument(
        "Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
    );
    let (is_signed, digits) = match kind {
        [b'i', digits @ ..] => (true, digits),
        [b'u', digits @ ..] => (false, digits),
        _ => return Err(REFUSAL),
    };
    let most = if is_signed { 64 } else { 63 };
    let width = number::parse_i64(digits).and_then(|width| u32::try_from(width).ok());
    let width = width.filter(|width| (1..=most).contains(width)).ok_or(REFUSAL)?;
    Ok(BitField { is_signed, width, offset: offset(place, Some(width), bits_max)? })
}
