//! Commands on strings and counters.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves: first what is wrong with the options,
//! then what is wrong with the numbers in them. Whether a stored value is a number is the evaluator's question.

use super::{
    Compared, Comparison, GetExpiry, Request, SetCondition, SetExpiry, TimeBase, TimeUnit, deadline_ms,
    expiry_option, integer, is_word, pairs,
};
use crate::{CommandError, number};
use bytes::Bytes;
use ensue_types::limits;

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Request>, CommandError> {
    let key = || args[1].clone();
    let value = || args[2].clone();
    Ok(Some(match name {
        "get" => Request::Get { key: key() },
        "set" => set(args)?,
        "setnx" => Request::SetIfAbsent { key: key(), value: value() },
        "setex" => set_with_lifetime(name, args, TimeUnit::Seconds)?,
        "psetex" => set_with_lifetime(name, args, TimeUnit::Ms)?,
        "getset" => Request::Set {
            key: key(),
            value: value(),
            condition: SetCondition::Always,
            expiry: SetExpiry::None,
            get: true,
        },
        "getdel" => Request::GetDelete { key: key() },
        "delex" => delete_if(args)?,
        "digest" => Request::Digest { key: key() },
        "getex" => get_expire(args)?,
        "mget" => Request::GetMany { keys: args[1..].to_vec() },
        "mset" => Request::SetMany { pairs: pairs(&args[1..], name)? },
        "msetnx" => Request::SetManyIfAbsent { pairs: pairs(&args[1..], name)? },
        "append" => Request::Append { key: key(), value: value() },
        "strlen" => Request::Length { key: key() },
        "getrange" | "substr" => {
            Request::GetRange { key: key(), start: integer(&args[2])?, end: integer(&args[3])? }
        }
        "setrange" => set_range(args)?,
        "incr" => Request::IncrementBy { key: key(), amount: 1 },
        "decr" => Request::IncrementBy { key: key(), amount: -1 },
        "incrby" => Request::IncrementBy { key: key(), amount: integer(&args[2])? },
        "decrby" => {
            let amount = integer(&args[2])?.checked_neg().ok_or(CommandError::DecrementOverflow)?;
            Request::IncrementBy { key: key(), amount }
        }
        "incrbyfloat" => {
            let amount = number::parse_decimal(&args[2], CommandError::IncrementNotFinite)?;
            Request::IncrementByFloat { key: key(), amount }
        }
        "lcs" => Request::Common { keys: [args[1].clone(), args[2].clone()], part: common(&args[3..]) },
        _ => return Ok(None),
    }))
}

/// What `LCS` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommonPart {
    Text,
    Length,
    /// The places of its pieces that are so long, and if asked their lengths.
    Places {
        length_min: usize,
        with_lengths: bool,
    },
}

fn common(options: &[Bytes]) -> Result<CommonPart, CommandError> {
    let (mut length, mut places, mut length_min, mut with_lengths) = (false, false, 0, false);
    let mut rest = options;
    while let [word, others @ ..] = rest {
        rest = match others {
            others if is_word(word, "IDX") => {
                places = true;
                others
            }
            others if is_word(word, "LEN") => {
                length = true;
                others
            }
            others if is_word(word, "WITHMATCHLEN") => {
                with_lengths = true;
                others
            }
            [least, others @ ..] if is_word(word, "MINMATCHLEN") => {
                length_min = usize::try_from(integer(least)?).unwrap_or(0);
                others
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    match (length, places) {
        (true, true) => {
            Err(CommandError::Argument("If you want both the length and indexes, please just use IDX."))
        }
        (true, false) => Ok(CommonPart::Length),
        (false, true) => Ok(CommonPart::Places { length_min, with_lengths }),
        (false, false) => Ok(CommonPart::Text),
    }
}

/// A time of an option, not yet read as a number: options are checked before numbers.
struct ExpiryArgument<'a> {
    unit: TimeUnit,
    base: TimeBase,
    value: &'a Bytes,
}

impl ExpiryArgument<'_> {
    /// Milliseconds above zero.
    fn ms(&self, name: &'static str) -> Result<i64, CommandError> {
        let value = integer(self.value)?;
        if value <= 0 {
            return Err(CommandError::InvalidExpire(name));
        }
        deadline_ms(value, self.unit, self.base, name)
    }
}

/// Reads `EX seconds` and its kind at the front of the options. A repeated option of the same kind replaces the first.
fn expiry_argument<'a>(
    options: &'a [Bytes],
    previous: Option<&ExpiryArgument<'_>>,
) -> Result<ExpiryArgument<'a>, CommandError> {
    let [word, value, ..] = options else { return Err(CommandError::Syntax) };
    let (unit, base) = expiry_option(word).ok_or(CommandError::Syntax)?;
    if previous.is_some_and(|previous| (previous.unit, previous.base) != (unit, base)) {
        return Err(CommandError::Syntax);
    }
    Ok(ExpiryArgument { unit, base, value })
}

fn set(args: &[Bytes]) -> Result<Request, CommandError> {
    let mut condition = SetCondition::Always;
    let mut expiry: Option<ExpiryArgument<'_>> = None;
    let (mut keep, mut get) = (false, false);
    let mut rest = &args[3..];
    while let Some(word) = rest.first() {
        let mut used = 1;
        if is_word(word, "NX") && matches!(condition, SetCondition::Always | SetCondition::IfAbsent) {
            condition = SetCondition::IfAbsent;
        } else if is_word(word, "XX") && matches!(condition, SetCondition::Always | SetCondition::IfPresent) {
            condition = SetCondition::IfPresent;
        } else if is_word(word, "GET") {
            get = true;
        } else if let Some(comparison) = comparison(rest).filter(|_| condition == SetCondition::Always) {
            condition = SetCondition::If(comparison?);
            used = 2;
        } else if is_word(word, "KEEPTTL") && expiry.is_none() {
            keep = true;
        } else if !keep {
            expiry = Some(expiry_argument(rest, expiry.as_ref())?);
            used = 2;
        } else {
            return Err(CommandError::Syntax);
        }
        rest = &rest[used..];
    }
    let expiry = match expiry {
        None if keep => SetExpiry::Keep,
        None => SetExpiry::None,
        Some(argument) if argument.base == TimeBase::Now => SetExpiry::InMs(argument.ms("set")?),
        Some(argument) => SetExpiry::AtMs(argument.ms("set")?),
    };
    Ok(Request::Set { key: args[1].clone(), value: args[2].clone(), condition, expiry, get })
}

/// Reads `IFEQ value` and its kind at the front of the options, if that is what stands there.
fn comparison(options: &[Bytes]) -> Option<Result<Comparison, CommandError>> {
    let [word, with, ..] = options else { return None };
    let (is_digest, is_same) = match word {
        word if is_word(word, "IFEQ") => (false, true),
        word if is_word(word, "IFNE") => (false, false),
        word if is_word(word, "IFDEQ") => (true, true),
        word if is_word(word, "IFDNE") => (true, false),
        _ => return None,
    };
    if !is_digest {
        return Some(Ok(Comparison { with: Compared::Value(with.clone()), is_same }));
    }
    Some(match with.len() == DIGEST_DIGITS {
        true => Ok(Comparison { with: Compared::Digest(with.clone()), is_same }),
        false => Err(CommandError::Argument("must be exactly 16 hexadecimal characters")),
    })
}

fn delete_if(args: &[Bytes]) -> Result<Request, CommandError> {
    let key = args[1].clone();
    match args.len() {
        2 => Ok(Request::DeleteIf { key, comparison: None }),
        4 => match comparison(&args[2..]) {
            Some(comparison) => Ok(Request::DeleteIf { key, comparison: Some(comparison?) }),
            None => Err(CommandError::Argument("Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE")),
        },
        _ => Err(CommandError::wrong_arity("delex")),
    }
}

fn set_with_lifetime(name: &'static str, args: &[Bytes], unit: TimeUnit) -> Result<Request, CommandError> {
    let lifetime = ExpiryArgument { unit, base: TimeBase::Now, value: &args[2] };
    Ok(Request::Set {
        key: args[1].clone(),
        value: args[3].clone(),
        condition: SetCondition::Always,
        expiry: SetExpiry::InMs(lifetime.ms(name)?),
        get: false,
    })
}

fn get_expire(args: &[Bytes]) -> Result<Request, CommandError> {
    let mut expiry: Option<ExpiryArgument<'_>> = None;
    let mut persist = false;
    let mut rest = &args[2..];
    while let Some(word) = rest.first() {
        let mut used = 1;
        if is_word(word, "PERSIST") && expiry.is_none() {
            persist = true;
        } else if !persist {
            expiry = Some(expiry_argument(rest, expiry.as_ref())?);
            used = 2;
        } else {
            return Err(CommandError::Syntax);
        }
        rest = &rest[used..];
    }
    let expiry = match expiry {
        None if persist => GetExpiry::Persist,
        None => GetExpiry::Keep,
        Some(argument) if argument.base == TimeBase::Now => GetExpiry::InMs(argument.ms("getex")?),
        Some(argument) => GetExpiry::AtMs(argument.ms("getex")?),
    };
    Ok(Request::GetExpire { key: args[1].clone(), expiry })
}

/// Bounds the offset here, so that whoever evaluates cannot be made to allocate beyond the longest bulk string.
fn set_range(args: &[Bytes]) -> Result<Request, CommandError> {
    let offset = integer(&args[2])?;
    let offset = usize::try_from(offset).map_err(|_| CommandError::OffsetOutOfRange)?;
    let value = args[3].clone();
    let end = offset.saturating_add(value.len());
    if !value.is_empty() && end > limits::BULK_BYTES_MAX {
        return Err(CommandError::StringTooLong);
    }
    Ok(Request::SetRange { key: args[1].clone(), offset, value })
}

/// A digest of 64 bits as text.
const DIGEST_DIGITS: usize = 16;
