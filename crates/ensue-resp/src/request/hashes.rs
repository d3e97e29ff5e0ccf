//! Commands on hashes.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. The order of fields is kept as given: a
//! field that stands twice is set twice, and the last value stays.

use super::{HashPart, HashSetAnswer, Request, fields, integer, pairs, scan_options};
use crate::{CommandError, number};
use bytes::Bytes;

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Request>, CommandError> {
    let key = args[1].clone();
    let field = || args[2].clone();
    let fields = || args[2..].to_vec();
    Ok(Some(match name {
        "hset" => Request::HashSet { key, pairs: pairs(&args[2..], name)?, answer: HashSetAnswer::Added },
        "hmset" => Request::HashSet { key, pairs: pairs(&args[2..], name)?, answer: HashSetAnswer::Ok },
        "hsetnx" => Request::HashSetIfAbsent { key, field: field(), value: args[3].clone() },
        "hget" => Request::HashGet { key, field: field() },
        "hmget" => Request::HashGetMany { key, fields: fields() },
        "hgetall" => Request::HashGetAll { key, part: HashPart::FieldsAndValues },
        "hkeys" => Request::HashGetAll { key, part: HashPart::Fields },
        "hvals" => Request::HashGetAll { key, part: HashPart::Values },
        "hdel" => Request::HashDelete { key, fields: fields() },
        "hexists" => Request::HashExists { key, field: field() },
        "hlen" => Request::HashLength { key },
        "hstrlen" => Request::HashFieldLength { key, field: field() },
        "hincrby" => Request::HashIncrementBy { key, field: field(), amount: integer(&args[3])? },
        "hincrbyfloat" => {
            let amount = number::parse_decimal(&args[3], CommandError::NotFinite)?;
            Request::HashIncrementByFloat { key, field: field(), amount }
        }
        "hrandfield" => {
            let (count, with_values) = super::sorted_sets::random(&args[2..], "WITHVALUES")?;
            Request::HashRandom { key, count, with_values }
        }
        "hscan" => Request::HashScan { key, options: scan_options(&args[2], &args[3..], false)?.0 },
        _ => return Ok(fields::parse(name, args)?.map(Request::Fields)),
    }))
}
