//! Commands on several sets, and those that take members out.

use super::{add, length, remove};
use crate::command::draw::{self, Drawn};
use crate::command::{flag, integer, name_of};
use crate::evaluate::{Evaluation, Halt, element_bytes};
use bytes::Bytes;
use ensue_resp::request::{SetAlgebra, SetOperator};
use ensue_store::cell::Content;
use ensue_store::row::Kind;
use ensue_types::{Column, Reply};
use std::collections::BTreeSet;

/// The members of a set, in the order of their bytes.
type Members = BTreeSet<Bytes>;

pub(in crate::command) fn evaluate(
    request: &SetAlgebra,
    evaluation: &mut Evaluation<'_>,
) -> Result<Reply, Halt> {
    match request {
        SetAlgebra::Combine { operator, keys } => Ok(as_set(combined(evaluation, *operator, keys)?)),
        SetAlgebra::CombineStore { operator, target, keys } => {
            let members = combined(evaluation, *operator, keys)?;
            store(evaluation, target, members)
        }
        SetAlgebra::IntersectionLength { keys, limit } => {
            let common = combined(evaluation, SetOperator::Intersection, keys)?.len();
            Ok(integer(limit.map_or(common, |limit| common.min(limit))))
        }
        SetAlgebra::Pop { key, count } => pop(evaluation, key, *count),
        SetAlgebra::Move { source, target, member } => move_to(evaluation, source, target, member),
    }
}

fn as_set(members: impl IntoIterator<Item = Bytes>) -> Reply {
    Reply::Set(members.into_iter().map(Reply::Bulk).collect())
}

fn members(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Members, Halt> {
    Ok(evaluation.columns(key, Kind::Set)?.into_iter().map(|(column, _)| name_of(column)).collect())
}

/// Every source is looked at, so that a key of another kind is an error wherever it stands.
fn combined(evaluation: &mut Evaluation<'_>, operator: SetOperator, keys: &[Bytes]) -> Result<Members, Halt> {
    let mut result: Option<Members> = None;
    for key in keys {
        let next = members(evaluation, key)?;
        result = Some(match (result, operator) {
            (None, _) => next,
            (Some(mut all), SetOperator::Union) => {
                all.extend(next);
                all
            }
            (Some(mut all), SetOperator::Intersection) => {
                all.retain(|member| next.contains(member));
                all
            }
            (Some(mut all), SetOperator::Difference) => {
                all.retain(|member| !next.contains(member));
                all
            }
        });
    }
    Ok(result.unwrap_or_default())
}

/// Makes a row the set of these members; answers how many they are.
fn store(evaluation: &mut Evaluation<'_>, target: &Bytes, members: Members) -> Result<Reply, Halt> {
    let stored = members.iter().map(|name| element_bytes(target, name, 0)).sum::<usize>();
    let bytes = stored.saturating_add(evaluation.bytes_to_clear(target));
    evaluation.check_room_of(target, members.len(), bytes)?;
    evaluation.begin_write(target)?;
    evaluation.clear_row(target, |column| match column {
        Column::Member(name) => !members.contains(name),
        _ => true,
    })?;
    let count = members.len();
    for name in members {
        evaluation.put(target, Column::Member(name), Bytes::new());
    }
    Ok(integer(count))
}

/// `SPOP`.
fn pop(evaluation: &mut Evaluation<'_>, key: &Bytes, count: Option<usize>) -> Result<Reply, Halt> {
    let count = count.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    Ok(match draw::some_of(evaluation, key, Kind::Set, count)? {
        Drawn::One(None) => Reply::Nil,
        Drawn::One(Some((column, _))) => {
            let member = name_of(column);
            remove(evaluation, key, std::slice::from_ref(&member))?;
            Reply::Bulk(member)
        }
        Drawn::Several(members) => {
            let members: Vec<Bytes> = members.into_iter().map(|(column, _)| name_of(column)).collect();
            remove(evaluation, key, &members)?;
            as_set(members)
        }
    })
}

/// `SMOVE`.
fn move_to(
    evaluation: &mut Evaluation<'_>,
    source: &Bytes,
    target: &Bytes,
    member: &Bytes,
) -> Result<Reply, Halt> {
    let is_there = evaluation.content(source, &Column::Member(member.clone()))? != Content::Nothing;
    if evaluation.kind(source)?.is_none() {
        return Ok(flag(false));
    }
    // The target's kind is looked at even if nothing is moved.
    length(evaluation, target)?;
    if is_there && source != target {
        let member = std::slice::from_ref(member);
        evaluation
            .check_room(2 * element_bytes(source, &member[0], 0).max(element_bytes(target, &member[0], 0)))?;
        remove(evaluation, source, member)?;
        add(evaluation, target, member)?;
    }
    Ok(flag(is_there))
}
