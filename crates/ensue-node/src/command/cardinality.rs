//! Commands on HyperLogLogs: strings of 16,384 registers, each the longest run of zeros that was hashed to it.
//!
//! The layout is that of Redis, dense or sparse, so that a value can be read, dumped and moved there (`registers`). A
//! count is estimated from how many registers have which value, after Ertl, "New cardinality estimation algorithms for
//! HyperLogLog sketches", 2017 (`estimate`).

mod estimate;
mod registers;

use super::{flag, text_of};
use crate::evaluate::{Evaluation, Halt, effect_bytes};
use bytes::{Bytes, BytesMut};
use ensue_resp::request::{Cardinality, Inspection};
use ensue_types::{Column, Reply};
use registers::{Encoding, Registers};

pub(super) fn evaluate(request: &Cardinality, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    match request {
        Cardinality::Add { key, elements } => add(evaluation, key, elements),
        Cardinality::Count { keys } => {
            let (union, _) = union(evaluation, keys)?;
            Ok(Reply::Integer(estimate::cardinality(&union) as i64))
        }
        Cardinality::Merge { target, sources } => merge(evaluation, target, sources),
        Cardinality::Inspect { key, what } => inspect(evaluation, key, *what),
    }
}

/// `PFSELFTEST`: estimates are as near as they should be, and both forms hold what they are given.
pub(super) fn self_test() -> Reply {
    let mut registers = Registers::default();
    let mut checked_next = 1;
    for count in 1..=SELF_TEST_ELEMENTS {
        registers.add(format!("element {count}").as_bytes());
        if count < checked_next {
            continue;
        }
        checked_next *= 10;
        let off = estimate::cardinality(&registers).abs_diff(count);
        if off as f64 > ERRORS_MAX * STANDARD_ERROR * count as f64 + 1.0 {
            return Reply::Error(format!("ERR TESTFAILED the estimate of {count} is off by {off}").into());
        }
        for form in [Encoding::Sparse, Encoding::Dense] {
            let read = Registers::read(&registers.write(form));
            if !read.is_ok_and(|(read, _)| read == registers) {
                return Reply::Error(format!("ERR TESTFAILED the {} form of {count}", form.word()).into());
            }
        }
    }
    Reply::OK
}

/// How many elements the test adds, and by how many standard errors an estimate may be off.
const SELF_TEST_ELEMENTS: u64 = 10_000;
const ERRORS_MAX: f64 = 4.0;
/// Of 2^14 registers: 1.04 over the root of their number.
const STANDARD_ERROR: f64 = 0.008_125;

/// The registers of a key, and how they stand there; nothing if the key is not there.
fn registers(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Option<(Registers, Encoding)>, Halt> {
    match text_of(evaluation.content(key, &Column::Text)?) {
        Some(text) => Registers::read(&text).map(Some).map_err(Halt::Error),
        None => Ok(None),
    }
}

/// `PFADD`. Without elements it only makes the key.
fn add(evaluation: &mut Evaluation<'_>, key: &Bytes, elements: &[Bytes]) -> Result<Reply, Halt> {
    let before = text_of(evaluation.content(key, &Column::Text)?);
    if let Some(before) = before.as_ref().filter(|before| registers::is_dense(before)) {
        return add_to_dense(evaluation, key, before, elements);
    }
    let found = before.map(|before| Registers::read(&before)).transpose().map_err(Halt::Error)?;
    let mut changes = found.is_none();
    let (mut registers, encoding) = found.unwrap_or((Registers::default(), Encoding::Sparse));
    for element in elements {
        changes |= registers.add(element);
    }
    if changes {
        put(evaluation, key, &registers, encoding)?;
    }
    Ok(flag(changes))
}

/// The same of one whose registers need not be unfolded.
fn add_to_dense(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    before: &Bytes,
    elements: &[Bytes],
) -> Result<Reply, Halt> {
    let mut text = BytesMut::from(&before[..]);
    let mut changes = false;
    for element in elements {
        changes |= registers::add_to_dense(&mut text, element);
    }
    if changes {
        write(evaluation, key, text.freeze())?;
    }
    Ok(flag(changes))
}

fn put(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    registers: &Registers,
    encoding: Encoding,
) -> Result<(), Halt> {
    write(evaluation, key, registers.write(encoding))
}

fn write(evaluation: &mut Evaluation<'_>, key: &Bytes, text: Bytes) -> Result<(), Halt> {
    evaluation.check_room(effect_bytes(key, &Column::Text, text.len()))?;
    evaluation.begin_write(key)?;
    evaluation.put(key, Column::Text, text);
    Ok(())
}

/// The highest of each register, and whether one of them is dense.
fn union(evaluation: &mut Evaluation<'_>, keys: &[Bytes]) -> Result<(Registers, Encoding), Halt> {
    let (mut all, mut encoding) = (Registers::default(), Encoding::Sparse);
    for key in keys {
        if let Some((one, found)) = registers(evaluation, key)? {
            all.rise_to(&one);
            encoding = encoding.max(found);
        }
    }
    Ok((all, encoding))
}

/// `PFMERGE`. The target is one of the sources.
fn merge(evaluation: &mut Evaluation<'_>, target: &Bytes, sources: &[Bytes]) -> Result<Reply, Halt> {
    let (mut all, encoding) = union(evaluation, std::slice::from_ref(target))?;
    let (others, other_encoding) = union(evaluation, sources)?;
    all.rise_to(&others);
    put(evaluation, target, &all, encoding.max(other_encoding))?;
    Ok(Reply::OK)
}

/// `PFDEBUG`.
fn inspect(evaluation: &mut Evaluation<'_>, key: &Bytes, what: Inspection) -> Result<Reply, Halt> {
    let Some((registers, encoding)) = registers(evaluation, key)? else { return Err(Halt::Error(ABSENT)) };
    Ok(match what {
        Inspection::Encoding => Reply::Status(encoding.word().into()),
        Inspection::Registers => {
            Reply::Array(registers.values().map(|value| Reply::Integer(value.into())).collect())
        }
        Inspection::ToDense => {
            if encoding == Encoding::Sparse {
                put(evaluation, key, &registers, Encoding::Dense)?;
            }
            flag(encoding == Encoding::Sparse)
        }
        Inspection::Decode if encoding == Encoding::Dense => return Err(Halt::Error(NOT_SPARSE)),
        Inspection::Decode => Reply::bulk(registers.runs_in_words()),
    })
}

const ABSENT: Reply = Reply::error("ERR The specified key does not exist");
const NOT_SPARSE: Reply = Reply::error("ERR HLL encoding is not sparse");
