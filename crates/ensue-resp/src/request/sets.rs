//! Commands on sets.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. Members that stand twice are not removed
//! here.

use super::{Request, scan_options};
use crate::CommandError;
use bytes::Bytes;

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
        "sscan" => Request::SetScan { key, options: scan_options(&args[2], &args[3..], false)?.0 },
        _ => return Ok(None),
    }))
}
