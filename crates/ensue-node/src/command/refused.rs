//! Commands that are refused for their arguments, after a look at the keys that Redis looks at before them.

use super::{integer, streams};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_resp::request::{Absent, Refused, Sought};
use ensue_store::row::Kind;
use ensue_types::Reply;

pub(super) fn evaluate(refused: &Refused, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    for key in &refused.keys {
        let kind = evaluation.kind(key)?;
        if kind.is_some_and(|kind| !is_sought(&refused.sought, kind)) {
            return Err(Halt::WrongType);
        }
        let lacks_group = match &refused.sought {
            Sought::Group(group) if kind.is_some() => !streams::has_group(evaluation, key, group)?,
            _ => false,
        };
        if kind.is_none() || lacks_group {
            if let Some(answer) = absent(refused, key, lacks_group) {
                return answer;
            }
        }
    }
    Err(refused.error.clone().into())
}

fn is_sought(sought: &Sought, kind: Kind) -> bool {
    match sought {
        Sought::Text => kind == Kind::Text,
        Sought::Hash => kind == Kind::Hash,
        Sought::Set => kind == Kind::Set,
        Sought::SortedSet => kind == Kind::SortedSet,
        Sought::AnySet => matches!(kind, Kind::Set | Kind::SortedSet),
        Sought::List => kind == Kind::List,
        Sought::Stream | Sought::Group(_) => kind == Kind::Stream,
    }
}

/// The answer if a key is absent, or has not the group; nothing if that makes no difference.
fn absent(refused: &Refused, key: &Bytes, lacks_group: bool) -> Option<Result<Reply, Halt>> {
    let group: &[u8] = if let Sought::Group(group) = &refused.sought { group } else { &[] };
    Some(match refused.absent {
        Absent::Refused => return None,
        Absent::Nil => Ok(Reply::Nil),
        Absent::Zero => Ok(integer(0)),
        Absent::Page => Ok(Reply::Array(vec![Reply::bulk("0"), Reply::Array(Vec::new())])),
        Absent::NoSuchKey => Err(CommandError::NoSuchKey.into()),
        Absent::NoStream if lacks_group => Err(streams::no_group_of_key(group, key)),
        Absent::NoStream => Err(streams::no_stream()),
        Absent::NoGroup => Err(streams::no_group(group, key)),
        Absent::NoGroupToRead => Err(streams::no_group_to_read(group, key)),
    })
}
