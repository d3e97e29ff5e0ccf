//! Commands on the deadlines of a hash's fields.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. The fields stand behind the word `FIELDS`
//! and their number. A field that stands twice is worked on twice.

use super::{
    Deadline, ExpireCondition, GetExpiry, LifetimeForm, SetExpiry, TimeBase, TimeUnit, deadline_ms,
    expiry_option, integer, is_word,
};
use crate::CommandError;
use bytes::Bytes;

/// A command on fields that have deadlines, or get some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fields {
    /// `HEXPIRE` and its kind: for each field -2 if it is not there, 0 if the condition is not met, 1, or 2 if the
    /// deadline has passed and the field is deleted.
    Expire { key: Bytes, fields: Vec<Bytes>, deadline: Deadline, condition: ExpireCondition },
    /// `HTTL` and its kind: for each field -2 if it is not there, -1 if it has no deadline, or the time.
    Lifetime { key: Bytes, fields: Vec<Bytes>, form: LifetimeForm },
    /// `HPERSIST`: for each field -2 if it is not there, -1 if it has no deadline, or 1.
    Persist { key: Bytes, fields: Vec<Bytes> },
    /// `HGETEX`: the values.
    GetExpire { key: Bytes, fields: Vec<Bytes>, expiry: GetExpiry },
    /// `HGETDEL`: the values.
    GetDelete { key: Bytes, fields: Vec<Bytes> },
    /// `HSETEX`: 1 or 0.
    SetExpire { key: Bytes, pairs: Vec<(Bytes, Bytes)>, expiry: SetExpiry, condition: FieldCondition },
}

/// When `HSETEX` applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldCondition {
    /// In any case.
    #[default]
    Always,
    /// `FNX`: only if none of the fields is there.
    IfAbsent,
    /// `FXX`: only if all of them are.
    IfPresent,
}

impl Fields {
    pub fn is_write(&self) -> bool {
        !matches!(self, Fields::Lifetime { .. })
    }

    pub fn key(&self) -> Option<&Bytes> {
        match self {
            Fields::Expire { key, .. } | Fields::Lifetime { key, .. } | Fields::Persist { key, .. } => {
                Some(key)
            }
            Fields::GetExpire { key, .. } | Fields::GetDelete { key, .. } => Some(key),
            Fields::SetExpire { key, .. } => Some(key),
        }
    }
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Fields>, CommandError> {
    let lifetime =
        |form| Ok(Some(Fields::Lifetime { key: args[1].clone(), fields: all_behind(&args[2..])?, form }));
    Ok(Some(match name {
        "hexpire" => expire(name, args, TimeUnit::Seconds, TimeBase::Now)?,
        "hpexpire" => expire(name, args, TimeUnit::Ms, TimeBase::Now)?,
        "hexpireat" => expire(name, args, TimeUnit::Seconds, TimeBase::Epoch)?,
        "hpexpireat" => expire(name, args, TimeUnit::Ms, TimeBase::Epoch)?,
        "httl" => return lifetime(LifetimeForm::InSeconds),
        "hpttl" => return lifetime(LifetimeForm::InMs),
        "hexpiretime" => return lifetime(LifetimeForm::AtSeconds),
        "hpexpiretime" => return lifetime(LifetimeForm::AtMs),
        "hpersist" => Fields::Persist { key: args[1].clone(), fields: all_behind(&args[2..])? },
        "hgetdel" => Fields::GetDelete { key: args[1].clone(), fields: all_behind(&args[2..])? },
        "hgetex" => get_expire(args)?,
        "hsetex" => set_expire(args)?,
        _ => return Ok(None),
    }))
}

fn expire(
    name: &'static str,
    args: &[Bytes],
    unit: TimeUnit,
    base: TimeBase,
) -> Result<Fields, CommandError> {
    let value = integer(&args[2])?;
    if value < 0 {
        return Err(CommandError::Argument("invalid expire time, must be >= 0"));
    }
    let ms = bounded_ms(value, unit, base, name)?;
    let (condition, rest) = match &args[3] {
        word if is_word(word, "NX") => (ExpireCondition::IfNone, &args[4..]),
        word if is_word(word, "XX") => (ExpireCondition::IfSome, &args[4..]),
        word if is_word(word, "GT") => (ExpireCondition::IfLater, &args[4..]),
        word if is_word(word, "LT") => (ExpireCondition::IfEarlier, &args[4..]),
        _ => (ExpireCondition::Always, &args[3..]),
    };
    let deadline = match base {
        TimeBase::Now => Deadline::InMs(ms),
        TimeBase::Epoch => Deadline::AtMs(ms),
    };
    Ok(Fields::Expire { key: args[1].clone(), fields: all_behind(rest)?, deadline, condition })
}

/// The deadline of a field is at most so high; it may not be so far from now either, as far as that is known here.
fn bounded_ms(value: i64, unit: TimeUnit, base: TimeBase, name: &'static str) -> Result<i64, CommandError> {
    match deadline_ms(value, unit, base, name)? {
        ms if ms > FIELD_DEADLINE_MS_MAX => Err(CommandError::InvalidExpire(name)),
        ms => Ok(ms),
    }
}

/// `FIELDS`, a number, and as many fields, which end the command.
fn all_behind(words: &[Bytes]) -> Result<Vec<Bytes>, CommandError> {
    let [word, number, fields @ ..] = words else { return Err(MISPLACED) };
    if !is_word(word, "FIELDS") {
        return Err(MISPLACED);
    }
    let number = integer(number).ok().filter(|number| *number > 0);
    let number = number.ok_or(CommandError::Argument("Parameter `numFields` should be greater than 0"))?;
    if usize::try_from(number) != Ok(fields.len()) {
        return Err(MISCOUNTED);
    }
    Ok(fields.to_vec())
}

/// What options and fields of `HGETEX` and `HSETEX` say, in any order.
#[derive(Default)]
struct Options<'a> {
    condition: FieldCondition,
    time: Option<(TimeUnit, TimeBase, &'a Bytes)>,
    persists: bool,
    keeps: bool,
    /// The words behind `FIELDS` and their number.
    fields: Option<&'a [Bytes]>,
}

/// Reads options; `words_a_field` words stand behind `FIELDS` for each of them.
fn options<'a>(words: &'a [Bytes], words_a_field: usize) -> Result<Options<'a>, CommandError> {
    let mut read = Options::default();
    let mut rest = words;
    while let [word, others @ ..] = rest {
        let has_expiry = read.time.is_some() || read.persists || read.keeps;
        rest = others;
        match others {
            [number, fields @ ..] if is_word(word, "FIELDS") && read.fields.is_none() => {
                let number = integer(number).ok().and_then(|number| usize::try_from(number).ok());
                let number = number.filter(|number| *number > 0);
                let number =
                    number.ok_or(CommandError::Argument("Number of fields must be a positive integer"))?;
                let count = number.checked_mul(words_a_field).ok_or(MISCOUNTED)?;
                let (taken, others) = fields.split_at_checked(count).ok_or(MISCOUNTED)?;
                read.fields = Some(taken);
                rest = others;
            }
            [value, others @ ..] if !has_expiry && expiry_option(word).is_some() => {
                read.time = expiry_option(word).map(|(unit, base)| (unit, base, value));
                rest = others;
            }
            _ if is_word(word, "PERSIST") && !has_expiry => read.persists = true,
            _ if is_word(word, "KEEPTTL") && !has_expiry => read.keeps = true,
            _ if is_word(word, "FNX") && read.condition == FieldCondition::Always => {
                read.condition = FieldCondition::IfAbsent;
            }
            _ if is_word(word, "FXX") && read.condition == FieldCondition::Always => {
                read.condition = FieldCondition::IfPresent;
            }
            _ => return Err(CommandError::Syntax),
        }
    }
    Ok(read)
}

impl Options<'_> {
    /// Milliseconds above zero, and from when on.
    fn deadline(&self, name: &'static str) -> Result<Option<Deadline>, CommandError> {
        let Some((unit, base, value)) = self.time else { return Ok(None) };
        let value = integer(value)?;
        if value <= 0 {
            return Err(CommandError::InvalidExpire(name));
        }
        let ms = bounded_ms(value, unit, base, name)?;
        Ok(Some(if base == TimeBase::Now { Deadline::InMs(ms) } else { Deadline::AtMs(ms) }))
    }
}

fn get_expire(args: &[Bytes]) -> Result<Fields, CommandError> {
    let read = options(&args[2..], 1)?;
    if read.keeps || read.condition != FieldCondition::Always {
        return Err(CommandError::Syntax);
    }
    let fields = read.fields.ok_or(MISPLACED)?.to_vec();
    let expiry = match read.deadline("hgetex")? {
        None if read.persists => GetExpiry::Persist,
        None => GetExpiry::Keep,
        Some(Deadline::InMs(ms)) => GetExpiry::InMs(ms),
        Some(Deadline::AtMs(ms)) => GetExpiry::AtMs(ms),
    };
    Ok(Fields::GetExpire { key: args[1].clone(), fields, expiry })
}

fn set_expire(args: &[Bytes]) -> Result<Fields, CommandError> {
    let read = options(&args[2..], 2)?;
    if read.persists {
        return Err(CommandError::Syntax);
    }
    let words = read.fields.ok_or(MISPLACED)?;
    let pairs = words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let expiry = match read.deadline("hsetex")? {
        None if read.keeps => SetExpiry::Keep,
        None => SetExpiry::None,
        Some(Deadline::InMs(ms)) => SetExpiry::InMs(ms),
        Some(Deadline::AtMs(ms)) => SetExpiry::AtMs(ms),
    };
    Ok(Fields::SetExpire { key: args[1].clone(), pairs, expiry, condition: read.condition })
}

/// As Redis bounds it.
const FIELD_DEADLINE_MS_MAX: i64 = ((1 << 48) - 2) >> 2;

const MISPLACED: CommandError =
    CommandError::Argument("Mandatory argument FIELDS is missing or not at the right position");
const MISCOUNTED: CommandError =
    CommandError::Argument("The `numfields` parameter must match the number of arguments");
