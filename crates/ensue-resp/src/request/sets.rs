//! Commands on sets.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. Members that stand twice are not removed
//! here.

mod algebra;

use super::{Request, integer, scan_options};
use crate::CommandError;
use bytes::Bytes;

pub use algebra::{SetAlgebra, SetOperator};

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Request>, CommandError> {
    let key = args[1].clone();
    let members = || args[2..].to_vec();
    Ok(Some(match name {
        "sadd" => Request::SetAdd { key, members: members() },
        "srem" => Request::SetRemove { key, members: members() },
        "smembers" => Request::SetMembers { key },
        "sismember" => Request::SetContains { key, member: args[2].clone() },
        "smismember" => Request::SetContainsMany { key, members: members() },
        "scard" => Request::SetLength { key },
        "srandmember" => Request::SetRandom { key, count: random_count(&args[2..])? },
        "sscan" => Request::SetScan { key, options: scan_options(&args[2], &args[3..], false)?.0 },
        _ => return Ok(algebra::parse(name, args)?.map(Request::Algebra)),
    }))
}

/// The count of `SRANDMEMBER`, whose negative must be a number, too.
fn random_count(args: &[Bytes]) -> Result<Option<i64>, CommandError> {
    match args {
        [] => Ok(None),
        [count] => match integer(count)? {
            i64::MIN => Err(CommandError::CountOutOfRange),
            count => Ok(Some(count)),
        },
        _ => Err(CommandError::Syntax),
    }
}
