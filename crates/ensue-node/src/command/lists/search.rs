//! Commands that look for elements by their value. They look at all of the list.

use super::remove_all;
use crate::command::integer;
use crate::evaluate::{Element, Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::request::ListSearch;
use ensue_types::Reply;

/// `LREM`: how many were removed.
pub(super) fn remove(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    count: i64,
    value: &Bytes,
) -> Result<Reply, Halt> {
    let mut elements = evaluation.elements(key, |len| 0..len)?.0;
    if count < 0 {
        elements.reverse();
    }
    let most = match usize::try_from(count.unsigned_abs()) {
        Ok(count @ 1..) => count,
        _ => usize::MAX,
    };
    let doomed: Vec<Element> =
        elements.into_iter().filter(|element| element.value == *value).take(most).collect();
    remove_all(evaluation, key, &doomed)?;
    Ok(integer(doomed.len()))
}

/// `LPOS`.
pub(super) fn position(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    value: &Bytes,
    search: &ListSearch,
) -> Result<Reply, Halt> {
    let (elements, len) = evaluation.elements(key, |len| 0..len)?;
    let compared = if search.compared == 0 { len } else { search.compared.min(len) };
    let most = match search.count {
        None => 1,
        Some(0) => usize::MAX,
        Some(count) => count,
    };
    let skipped = usize::try_from(search.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let is_match = |place: &usize| elements[*place].value == *value;
    let matches: Vec<Reply> = match search.rank > 0 {
        true => (0..compared).filter(is_match).skip(skipped).take(most).map(integer).collect(),
        false => (len - compared..len).rev().filter(is_match).skip(skipped).take(most).map(integer).collect(),
    };
    Ok(match search.count {
        Some(_) => Reply::Array(matches),
        None => matches.into_iter().next().unwrap_or(Reply::Nil),
    })
}
