//! Commands on sets: rows whose columns are members, each with an empty value.
//!
//! A member that one datacenter adds while another removes a different one is in the set; the same member, added and
//! removed at once, goes by stamp. Walks over a large set are in `walk`.

pub(super) mod algebra;

use crate::command::draw::{self, Drawn};
use crate::command::{flag, integer, leave_no_empty_row, name_of};
use crate::evaluate::{Evaluation, Halt, element_bytes};
use bytes::Bytes;
use ensue_store::row::Kind;
use ensue_types::{Column, Reply};

/// `SADD`: answers how many are new. A member that is there is put again, so that a later add beats an earlier
/// remove that has not arrived yet.
pub(super) fn add(evaluation: &mut Evaluation<'_>, key: &Bytes, members: &[Bytes]) -> Result<Reply, Halt> {
    let mut added = 0;
    evaluation.check_room_of(key, members.len(), bytes_of(key, members))?;
    for member in members {
        let column = Column::Member(member.clone());
        if !evaluation.has_content(key, &column)? {
            added += 1;
        }
        evaluation.begin_write(key)?;
        evaluation.put(key, column, Bytes::new());
    }
    Ok(integer(added))
}

fn bytes_of(key: &Bytes, members: &[Bytes]) -> usize {
    members.iter().map(|member| element_bytes(key, member, 0)).sum()
}

/// `SREM`: answers how many were there.
pub(super) fn remove(evaluation: &mut Evaluation<'_>, key: &Bytes, members: &[Bytes]) -> Result<Reply, Halt> {
    let mut removed = 0;
    evaluation.check_room_of(key, members.len(), bytes_of(key, members))?;
    for member in members {
        if evaluation.delete(key, Column::Member(member.clone()))? {
            removed += 1;
        }
    }
    if removed > 0 {
        leave_no_empty_row(evaluation, key, Kind::Set);
    }
    Ok(integer(removed))
}

/// `SMEMBERS`.
pub(super) fn members(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    let columns = evaluation.columns(key, Kind::Set)?;
    Ok(Reply::Set(columns.into_iter().map(|(column, _)| Reply::Bulk(name_of(column))).collect()))
}

/// `SISMEMBER`.
pub(super) fn contains(evaluation: &mut Evaluation<'_>, key: &Bytes, member: &Bytes) -> Result<Reply, Halt> {
    Ok(flag(evaluation.has_content(key, &Column::Member(member.clone()))?))
}

/// `SMISMEMBER`.
pub(super) fn contain_many(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    members: &[Bytes],
) -> Result<Reply, Halt> {
    let answers = members.iter().map(|member| contains(evaluation, key, member));
    Ok(Reply::Array(answers.collect::<Result<_, _>>()?))
}

/// `SRANDMEMBER`.
pub(super) fn random(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    count: Option<i64>,
) -> Result<Reply, Halt> {
    let named = |(column, _)| Reply::Bulk(name_of(column));
    Ok(match draw::some_of(evaluation, key, Kind::Set, count)? {
        Drawn::One(member) => member.map_or(Reply::Nil, named),
        Drawn::Several(members) => Reply::Array(members.into_iter().map(named).collect()),
    })
}

/// `SCARD`.
pub(super) fn length(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Reply, Halt> {
    Ok(integer(evaluation.count(key, Kind::Set)?))
}
