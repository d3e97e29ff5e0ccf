//! Commands on keys whatever they hold, and on the whole keyspace.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. `RENAME` is read here but evaluated by
//! nobody alone: the session coordinates it.

use super::{
    Deadline, ExpireCondition, LifetimeForm, Request, TimeBase, TimeUnit, bounded_pattern, deadline_ms,
    integer, is_word, scan_options, values,
};
use crate::CommandError;
use bytes::Bytes;

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Request>, CommandError> {
    let key = || args[1].clone();
    Ok(Some(match name {
        "del" | "unlink" => Request::Delete { keys: args[1..].to_vec() },
        "exists" => Request::Exists { keys: args[1..].to_vec() },
        "touch" => Request::Touch { keys: args[1..].to_vec() },
        "type" => Request::Type { key: key() },
        "expire" => expire(name, args, TimeUnit::Seconds, TimeBase::Now)?,
        "pexpire" => expire(name, args, TimeUnit::Ms, TimeBase::Now)?,
        "expireat" => expire(name, args, TimeUnit::Seconds, TimeBase::Epoch)?,
        "pexpireat" => expire(name, args, TimeUnit::Ms, TimeBase::Epoch)?,
        "ttl" => Request::Lifetime { key: key(), form: LifetimeForm::InSeconds },
        "pttl" => Request::Lifetime { key: key(), form: LifetimeForm::InMs },
        "expiretime" => Request::Lifetime { key: key(), form: LifetimeForm::AtSeconds },
        "pexpiretime" => Request::Lifetime { key: key(), form: LifetimeForm::AtMs },
        "persist" => Request::Persist { key: key() },
        "rename" | "renamenx" => Request::Rename { key: key(), target: args[2].clone() },
        "scan" => {
            let (options, type_name) = scan_options(&args[1], &args[2..], true)?;
            Request::Scan { options, type_name }
        }
        "keys" => Request::Keys { pattern: bounded_pattern(&args[1])? },
        "randomkey" => Request::RandomKey,
        "dbsize" => Request::Size,
        "watch" => Request::Watch { keys: args[1..].to_vec() },
        "flushall" => flush(args, true)?,
        "flushdb" => flush(args, false)?,
        _ => return Ok(values::parse(name, args)?.map(Request::Whole)),
    }))
}

fn expire(
    name: &'static str,
    args: &[Bytes],
    unit: TimeUnit,
    base: TimeBase,
) -> Result<Request, CommandError> {
    let condition = expire_condition(&args[3..])?;
    let ms = deadline_ms(integer(&args[2])?, unit, base, name)?;
    let deadline = match base {
        TimeBase::Now => Deadline::InMs(ms),
        TimeBase::Epoch => Deadline::AtMs(ms),
    };
    Ok(Request::Expire { key: args[1].clone(), deadline, condition })
}

fn expire_condition(words: &[Bytes]) -> Result<ExpireCondition, CommandError> {
    let (mut none, mut some, mut later, mut earlier) = (false, false, false, false);
    for word in words {
        match word {
            word if is_word(word, "NX") => none = true,
            word if is_word(word, "XX") => some = true,
            word if is_word(word, "GT") => later = true,
            word if is_word(word, "LT") => earlier = true,
            _ => return Err(CommandError::unsupported_option(word)),
        }
    }
    match (none, some, later, earlier) {
        (true, true, _, _) | (true, _, true, _) | (true, _, _, true) => Err(CommandError::ExpireConditionsNx),
        (_, _, true, true) => Err(CommandError::ExpireConditionsGtLt),
        (true, false, false, false) => Ok(ExpireCondition::IfNone),
        (false, _, true, false) => Ok(ExpireCondition::IfLater),
        (false, true, false, true) => Ok(ExpireCondition::IfSomeAndEarlier),
        (false, false, false, true) => Ok(ExpireCondition::IfEarlier),
        (false, true, false, false) => Ok(ExpireCondition::IfSome),
        (false, false, false, false) => Ok(ExpireCondition::Always),
    }
}

/// `SYNC` and `ASYNC` are accepted and mean the same.
fn flush(args: &[Bytes], every_keyspace: bool) -> Result<Request, CommandError> {
    match &args[1..] {
        [] => {}
        [word] if is_word(word, "SYNC") || is_word(word, "ASYNC") => {}
        _ => return Err(CommandError::Syntax),
    }
    Ok(Request::Flush { every_keyspace })
}
