//! What an answer holds, whatever server gives it.

use bytes::Bytes;
use ensue_client::Reply;

/// Bytes, or the digits of a number.
pub(crate) fn text(reply: &Reply) -> Option<Bytes> {
    match reply {
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) | Reply::BigNumber(bytes) => Some(bytes.clone()),
        Reply::Status(words) => Some(Bytes::copy_from_slice(words.as_bytes())),
        Reply::Integer(number) => Some(Bytes::from(number.to_string())),
        _ => None,
    }
}

/// The texts of a list; otherwise what was answered, in words.
pub(crate) fn texts(reply: &Reply) -> Result<Vec<Bytes>, String> {
    list(reply)?.iter().map(|item| text(item).ok_or_else(|| unexpected(reply))).collect()
}

pub(crate) fn list(reply: &Reply) -> Result<&[Reply], String> {
    match reply {
        Reply::Array(items) | Reply::Set(items) => Ok(items),
        other => Err(unexpected(other)),
    }
}

pub(crate) fn integer(reply: &Reply) -> Result<i64, String> {
    if let Reply::Integer(number) = reply { Ok(*number) } else { Err(unexpected(reply)) }
}

/// What follows a name in a list of names and values.
pub(crate) fn field<'r>(reply: &'r Reply, name: &str) -> Option<&'r Reply> {
    let pairs = list(reply).ok()?.chunks_exact(2);
    pairs.into_iter().find(|pair| text(&pair[0]).is_some_and(|text| text == name)).map(|pair| &pair[1])
}

/// A score, which servers write with more digits or fewer; minus zero is zero.
pub(crate) fn score(text: &[u8]) -> Option<f64> {
    let score: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(if score == 0.0 { 0.0 } else { score })
}

/// An entry of a stream: its id, and its fields and values.
pub(crate) fn entry(reply: &Reply) -> Result<(Bytes, Vec<Bytes>), String> {
    let [id, fields] = list(reply)? else { return Err(unexpected(reply)) };
    Ok((text(id).ok_or_else(|| unexpected(reply))?, texts(fields)?))
}

/// An answer that says no, or that nobody expected, in words.
pub(crate) fn unexpected(reply: &Reply) -> String {
    match reply {
        Reply::Error(words) => words.to_string(),
        other => format!(
            "an answer that was not expected: {}",
            format!("{other:?}").chars().take(80).collect::<String>()
        ),
    }
}
