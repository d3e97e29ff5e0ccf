//! The subcommands of `ACL` that change nothing and need nothing but users: `CAT`, `DRYRUN`, `GENPASS`; and the
//! argument of `LOG`.
//!
//! Their arguments arrive, the answers of Redis 7.2 leave. Random bytes are an argument.

use crate::call::Call;
use crate::limits::{GENPASS_BITS_DEFAULT, GENPASS_BITS_MAX, LOG_ENTRIES_SHOWN};
use crate::rule_error::refused;
use crate::users::Users;
use bytes::Bytes;
use ensue_resp::{CommandError, category, check_arity, lookup, number};
use ensue_types::{KeyspaceId, Reply};

/// `ACL CAT`: all categories without their sign.
pub fn categories() -> Reply {
    Reply::Array(category::CATEGORIES.iter().map(|name| Reply::bulk(&name[1..])).collect())
}

/// `ACL CAT category`: its commands and subcommands.
pub fn members(name: &[u8]) -> Reply {
    // With its sign it is no name of a category here, as in Redis.
    let found = if name.starts_with(b"@") { None } else { category::of_category(name) };
    match found {
        Some(names) => Reply::Array(names.into_iter().map(Reply::bulk).collect()),
        None => refused(&format!("Unknown category '{}'", String::from_utf8_lossy(name))),
    }
}

/// `ACL DRYRUN user command…`: whether the user may execute the command in a database. The command is not empty.
pub fn dry_run(users: &Users, name: &[u8], args: &[Bytes], database: KeyspaceId) -> Reply {
    let Some(user) = users.user(name) else {
        return refused(&format!("User '{}' not found", String::from_utf8_lossy(name)));
    };
    let command = args.first().map(Bytes::as_ref).unwrap_or_default();
    let Some(spec) = lookup(command) else {
        return refused(&format!("Command '{}' not found", String::from_utf8_lossy(command)));
    };
    let call = Call { spec, args, database };
    if !check_arity(spec, args.len()) {
        return CommandError::wrong_arity(call.full_name()).reply();
    }
    match user.check(&call) {
        Ok(()) => Reply::OK,
        Err(denied) => Reply::bulk(denied.explain(name, &call)),
    }
}

/// How many entries `ACL LOG count` asks for; 10 if it is not told.
pub fn log_count(argument: Option<&[u8]>) -> Result<usize, Reply> {
    let Some(argument) = argument else { return Ok(LOG_ENTRIES_SHOWN) };
    let count = number::parse_i64(argument).ok_or_else(|| CommandError::NotInteger.reply())?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// How many random bits `ACL GENPASS` is asked for, at most 4096; 256 if it is not told.
pub fn genpass_bits(argument: Option<&[u8]>) -> Result<usize, Reply> {
    let Some(argument) = argument else { return Ok(GENPASS_BITS_DEFAULT) };
    let bits = number::parse_i64(argument).ok_or_else(|| CommandError::NotInteger.reply())?;
    usize::try_from(bits).ok().filter(|bits| (1..=GENPASS_BITS_MAX).contains(bits)).ok_or_else(|| {
        refused(&format!(
            "ACL GENPASS argument must be the number of bits for the output password, a positive number up to \
             {GENPASS_BITS_MAX}"
        ))
    })
}

/// `ACL GENPASS`: a password of so many bits, rounded up to hexadecimal digits, of 512 random bytes.
pub fn genpass(bits: usize, random: &[u8; GENPASS_BITS_MAX / 8]) -> Reply {
    let digits = random.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.take(bits.div_ceil(4)).filter_map(|digit| char::from_digit(digit.into(), 16));
    Reply::bulk(digits.collect::<String>())
}

#[cfg(test)]
mod tests;
