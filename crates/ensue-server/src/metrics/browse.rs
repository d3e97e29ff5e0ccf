//! Keys and conflicts for the page: what a keyspace holds, a part at a time, and what its datacenters disagree about.
//!
//! On `GET /v1/keys`: a few steps of a `SCAN`, with type, deadline, size and the beginning of the value of each key.
//! On `GET /v1/conflicts`: the conflicts that were seen lately, the values that still stand beside each other, and
//! where branches differ.
//!
//! Everything is asked by commands that read, as the user of the request, and so nobody sees more here than in a Redis
//! client: a key that the user may not read is not shown, and who may not list keys is refused. How much one request
//! looks at is bounded; a value of many bytes is not read for its beginning. Keys and values are bytes: a character of
//! the JSON is a byte.

use super::Site;
use super::access::{self, Asked, command};
use super::http::{self, Refusal, Request};
use super::state::JSON;
use crate::bounds::{BROWSED_BYTES_MAX, BROWSED_CONFLICTS_MAX, BROWSED_KEYS_MAX, BROWSED_STEPS_MAX};
use bytes::Bytes;
use ensue_types::{Args, Reply};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The answer to a path of this module; nothing if it is none.
pub(super) fn answer(site: &Site, asked: Asked<'_>) -> Option<Vec<u8>> {
    let found = match asked.request.path.as_str() {
        "/v1/keys" => keys(site, asked),
        "/v1/conflicts" => conflicts(site, asked),
        _ => return None,
    };
    Some(match found {
        Ok(value) => http::encode(http::OK, JSON, &value.to_string()),
        Err(Failure::Refused(refusal)) => refusal.answer(),
        Err(Failure::Words(words)) => {
            // Everything else is about the node, and not about the question.
            let status = if words.starts_with("ERR") { "400 Bad Request" } else { http::UNAVAILABLE };
            http::encode(status, http::TEXT, &format!("{words}\n"))
        }
    })
}

/// Why there is nothing to show.
#[derive(Debug)]
enum Failure {
    Refused(Refusal),
    /// What the session answered.
    Words(String),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}

/// A keyspace, as it was asked for.
struct Chosen<'a> {
    site: &'a Site,
    asked: Asked<'a>,
    keyspace: String,
}

impl<'a> Chosen<'a> {
    fn of(site: &'a Site, asked: Asked<'a>) -> Chosen<'a> {
        Chosen { site, asked, keyspace: parameter(asked.request, "keyspace").unwrap_or("0").into() }
    }

    /// The answers to these commands, executed in the keyspace.
    fn ask(&self, commands: Vec<Args>) -> Result<Vec<Reply>, Failure> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        // Who may read need not have the right to the command that goes where a session is already.
        if self.keyspace == "0" {
            return Ok(access::ask(self.site, self.asked, commands)?);
        }
        let mut all = vec![command(&["SELECT", &self.keyspace])];
        all.extend(commands);
        let mut answers = access::ask(self.site, self.asked, all)?.into_iter();
        match answers.next() {
            Some(Reply::Error(words)) => Err(failure(&words)),
            _ => Ok(answers.collect()),
        }
    }
}

/// Of a refusal its status, and of everything else what was said.
fn failure(words: &str) -> Failure {
    match access::refusal(words) {
        Refusal::Silent => Failure::Words(words.into()),
        refusal => Failure::Refused(refusal),
    }
}

fn parameter<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn keys(site: &Site, asked: Asked<'_>) -> Result<Value, Failure> {
    let chosen = Chosen::of(site, asked);
    let mut cursor = parameter(asked.request, "cursor").unwrap_or("0").to_owned();
    let mut found = Vec::new();
    // A step may find nothing though there is more: few keys match, or a partition has none.
    for _ in 0..BROWSED_STEPS_MAX {
        let (next, keys) = step(&chosen, &cursor)?;
        found.extend(keys);
        cursor = next;
        if cursor == "0" || found.len() >= BROWSED_KEYS_MAX / 2 {
            break;
        }
    }
    let rows = rows(&chosen, found)?;
    Ok(json!({ "keyspace": chosen.keyspace, "cursor": cursor, "keys": rows }))
}

/// One step of a scan: the next cursor, and keys.
fn step(chosen: &Chosen<'_>, cursor: &str) -> Result<(String, Vec<Bytes>), Failure> {
    let wanted = |name| parameter(chosen.asked.request, name).filter(|value| !value.is_empty());
    let mut scan = command(&["SCAN", cursor, "MATCH", wanted("match").unwrap_or("*"), "COUNT", "50"]);
    if let Some(kind) = wanted("type") {
        scan.extend(command(&["TYPE", kind]));
    }
    match &chosen.ask(vec![scan])?[..] {
        [Reply::Error(words)] => Err(failure(words)),
        [Reply::Array(parts)] => match &parts[..] {
            [cursor, Reply::Array(keys)] => Ok((text(cursor), keys.iter().filter_map(bytes).collect())),
            _ => Err(Refusal::Silent.into()),
        },
        _ => Err(Refusal::Silent.into()),
    }
}

/// What is known of a key before its value is looked at.
struct Row {
    key: Bytes,
    kind: String,
    ttl_ms: i64,
    bytes: i64,
}

/// A description of each key that the user may read and that is still there.
fn rows(chosen: &Chosen<'_>, keys: Vec<Bytes>) -> Result<Vec<Value>, Failure> {
    let beyond: Vec<Value> =
        keys.iter().skip(BROWSED_KEYS_MAX).map(|key| json!({ "key": latin(key) })).collect();
    let keys: Vec<Bytes> = keys.into_iter().take(BROWSED_KEYS_MAX).collect();
    let of_key = |key: &Bytes| {
        let about = |words: &[&str]| command(words).into_iter().chain([key.clone()]).collect();
        [about(&["TYPE"]), about(&["PTTL"]), about(&["MEMORY", "USAGE"])]
    };
    let answers = chosen.ask(keys.iter().flat_map(of_key).collect())?;
    let known = keys.into_iter().zip(answers.chunks_exact(3)).filter_map(|(key, told)| match &told[0] {
        Reply::Error(_) => None,
        kind if text(kind) == "none" => None,
        kind => Some(Row { key, kind: text(kind), ttl_ms: number(&told[1]), bytes: number(&told[2]) }),
    });
    let known: Vec<Row> = known.collect();
    let asked: Vec<Vec<Args>> = known.iter().map(questions).collect();
    let mut answers = chosen.ask(asked.concat())?.into_iter();
    let mut found = Vec::new();
    for (row, asked) in known.iter().zip(&asked) {
        let told: Vec<Reply> = answers.by_ref().take(asked.len()).collect();
        found.push(json!({
            "key": latin(&row.key), "type": row.kind, "ttl_ms": row.ttl_ms, "bytes": row.bytes,
            "length": told.first().map_or(Value::Null, length), "value": told.get(1).map(shown),
        }));
    }
    // There are no more of these than a node answers at once beyond the bound.
    found.extend(beyond);
    Ok(found)
}

/// How long a value is, and its beginning, unless that could be long.
fn questions(row: &Row) -> Vec<Args> {
    let (length, beginning): (&str, (&str, &[&str])) = match row.kind.as_str() {
        "string" => ("STRLEN", ("GETRANGE", &["0", "127"])),
        "hash" => ("HLEN", ("HSCAN", &["0", "COUNT", "8"])),
        "list" => ("LLEN", ("LRANGE", &["0", "7"])),
        "set" => ("SCARD", ("SSCAN", &["0", "COUNT", "8"])),
        "zset" => ("ZCARD", ("ZRANGE", &["0", "7", "WITHSCORES"])),
        "stream" => ("XLEN", ("XREVRANGE", &["+", "-", "COUNT", "4"])),
        _ => return Vec::new(),
    };
    let about = |name: &str, more: &[&str]| -> Args {
        command(&[name]).into_iter().chain([row.key.clone()]).chain(command(more)).collect()
    };
    let mut asked = vec![about(length, &[])];
    if row.kind == "string" || row.bytes <= BROWSED_BYTES_MAX {
        asked.push(about(beginning.0, beginning.1));
    }
    asked
}

fn conflicts(site: &Site, asked: Asked<'_>) -> Result<Value, Failure> {
    let chosen = Chosen::of(site, asked);
    let first = [&["CAUSAL", "CONFLICTS"][..], &["BRANCH", "LIST"], &["BRANCH", "CONFLICTS"]];
    let answers = chosen.ask(first.iter().map(|words| command(words)).collect())?;
    let [seen, leaves, differing] = &answers[..] else { return Err(Refusal::Silent.into()) };
    // Conflicts are only where the protocol looks for them, and branches where it has them.
    match seen {
        Reply::Error(words) if !words.starts_with("ERR") => return Err(failure(words)),
        _ => {}
    }
    let mut seen = lines(seen);
    seen.drain(..seen.len().saturating_sub(BROWSED_CONFLICTS_MAX));
    let keyspace = chosen.keyspace.parse::<u64>().ok();
    let is_here = |line: &&Value| line["keyspace"].as_u64() == keyspace;
    let keys: BTreeSet<String> =
        seen.iter().filter(is_here).filter_map(|line| Some(line["key"].as_str()?.to_owned())).collect();
    let of_key = |key: &String| {
        let key = Bytes::from_iter(key.chars().map(|letter| letter as u8));
        command(&["CAUSAL", "CONFLICTS"]).into_iter().chain([key]).collect()
    };
    let differing: Vec<Bytes> = items(differing).iter().filter_map(bytes).take(BROWSED_KEYS_MAX).collect();
    let of_branches = |key: &Bytes| command(&["BRANCH", "GET"]).into_iter().chain([key.clone()]).collect();
    let asked = keys.iter().map(of_key).chain(differing.iter().map(of_branches)).collect();
    let answers = chosen.ask(asked)?;
    let (standing, in_branches) = answers.split_at(keys.len().min(answers.len()));
    let standing = keys.iter().zip(standing).filter(|(_, told)| !items(told).is_empty());
    let standing: Vec<Value> =
        standing.map(|(key, told)| json!({ "key": key, "values": lines(told) })).collect();
    let in_branches: Vec<Value> = differing
        .iter()
        .zip(in_branches)
        .map(|(key, told)| json!({ "key": latin(key), "values": shown(told) }))
        .collect();
    let leaves = match leaves {
        Reply::Error(_) => Value::Null,
        leaves => items(leaves).iter().map(text).collect(),
    };
    Ok(json!({ "seen": seen, "standing": standing, "leaves": leaves, "in_branches": in_branches }))
}

/// Lines of JSON as they are.
fn lines(reply: &Reply) -> Vec<Value> {
    let parsed = |line: &Reply| serde_json::from_slice(&bytes(line)?).ok();
    items(reply).iter().filter_map(parsed).collect()
}

fn items(reply: &Reply) -> &[Reply] {
    match reply {
        Reply::Array(items) => items,
        _ => &[],
    }
}

fn bytes(reply: &Reply) -> Option<Bytes> {
    match reply {
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) => Some(bytes.clone()),
        Reply::Status(words) => Some(Bytes::copy_from_slice(words.as_bytes())),
        _ => None,
    }
}

fn text(reply: &Reply) -> String {
    bytes(reply).map(|bytes| latin(&bytes)).unwrap_or_default()
}

fn number(reply: &Reply) -> i64 {
    if let Reply::Integer(number) = reply { *number } else { 0 }
}

fn length(reply: &Reply) -> Value {
    if let Reply::Integer(number) = reply { json!(number) } else { Value::Null }
}

/// A character for each byte.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// An answer as JSON; long strings as their beginning.
fn shown(reply: &Reply) -> Value {
    match reply {
        Reply::Integer(number) => json!(number),
        Reply::Array(items) | Reply::Set(items) => items.iter().map(shown).collect(),
        Reply::Error(words) => json!({ "error": words }),
        other => match bytes(other) {
            Some(bytes) => json!(latin(&bytes[..bytes.len().min(SHOWN_BYTES)])),
            None => Value::Null,
        },
    }
}

/// Bytes of a string that are shown.
const SHOWN_BYTES: usize = 128;

#[cfg(test)]
mod tests;
