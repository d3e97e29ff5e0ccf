//! Rows of the reference store, whole and simple, and what ordinary commands make of them.

use crate::resp::Answer;
use ensue_types::Args;
use std::collections::{BTreeMap, BTreeSet};

pub type Key = Vec<u8>;

/// What stands at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    Nothing,
    Text(Vec<u8>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    /// What stands there was made of something that the history does not tell.
    Untold,
}

/// What a command does to the state that its transaction sees.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// What must be answered, as far as that is told.
    pub answer: Option<Answer>,
    /// Keys that the answer, or what is written, depends on.
    pub reads: Vec<Key>,
    pub writes: Vec<(Key, Row)>,
}

/// What a command does where `row` says what stands at a key. Nothing if it is no command on rows.
pub fn effect(args: &Args, row: &dyn Fn(&[u8]) -> Row) -> Option<Effect> {
    let name = String::from_utf8_lossy(args.first()?).to_ascii_uppercase();
    let key = args.get(1)?.to_vec();
    let rest: Vec<Vec<u8>> = args[2..].iter().map(|arg| arg.to_vec()).collect();
    let found = |key: &Key| row(key);
    let reads = vec![key.clone()];
    Some(match (name.as_str(), rest.as_slice()) {
        ("SET", [value]) => Effect {
            answer: Some(Answer::Status("OK".to_owned())),
            reads: Vec::new(),
            writes: vec![(key, Row::Text(value.clone()))],
        },
        ("GET" | "HGETALL" | "SMEMBERS", []) => {
            Effect { answer: shown(&found(&key)), reads, writes: Vec::new() }
        }
        ("MGET", more) => {
            let keys: Vec<Key> = std::iter::once(&key).chain(more).cloned().collect();
            let answers: Option<Vec<Answer>> = keys.iter().map(|key| shown(&row(key))).collect();
            Effect { answer: answers.map(Answer::Array), reads: keys, writes: Vec::new() }
        }
        ("INCRBY", [by]) => increment(&key, &found(&key), by),
        ("HSET", [field, value]) => set_field(&key, found(&key), field, value),
        ("SADD", [member]) => add_member(&key, found(&key), member),
        ("DEL", []) => {
            let old = found(&key);
            let answer = (old != Row::Untold).then(|| Answer::Integer(i64::from(old != Row::Nothing)));
            // Nothing is deleted where nothing is; whether that is a write is for the history to tell.
            let writes = if old == Row::Nothing { Vec::new() } else { vec![(key, Row::Nothing)] };
            Effect { answer, reads, writes }
        }
        ("PEXPIRE", [_]) => {
            let old = found(&key);
            let answer = (old != Row::Untold).then(|| Answer::Integer(i64::from(old != Row::Nothing)));
            let writes = if old == Row::Nothing { Vec::new() } else { vec![(key, Row::Untold)] };
            Effect { answer, reads, writes }
        }
        _ => return None,
    })
}

fn increment(key: &Key, old: &Row, by: &[u8]) -> Effect {
    let number = match old {
        Row::Nothing => Some(0),
        Row::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok()),
        _ => None,
    };
    let by: Option<i64> = std::str::from_utf8(by).ok().and_then(|by| by.parse().ok());
    let sum = number.zip(by).map(|(number, by)| number + by);
    let row = sum.map_or(Row::Untold, |sum| Row::Text(sum.to_string().into_bytes()));
    Effect { answer: sum.map(Answer::Integer), reads: vec![key.clone()], writes: vec![(key.clone(), row)] }
}

fn set_field(key: &Key, old: Row, field: &[u8], value: &[u8]) -> Effect {
    let fields = match old {
        Row::Nothing => Some(BTreeMap::new()),
        Row::Hash(fields) => Some(fields),
        _ => None,
    };
    let reads = vec![key.clone()];
    let Some(mut fields) = fields else {
        return Effect { answer: None, reads, writes: vec![(key.clone(), Row::Untold)] };
    };
    let is_new = fields.insert(field.to_vec(), value.to_vec()).is_none();
    let answer = Some(Answer::Integer(i64::from(is_new)));
    Effect { answer, reads, writes: vec![(key.clone(), Row::Hash(fields))] }
}

fn add_member(key: &Key, old: Row, member: &[u8]) -> Effect {
    let members = match old {
        Row::Nothing => Some(BTreeSet::new()),
        Row::Set(members) => Some(members),
        _ => None,
    };
    let reads = vec![key.clone()];
    let Some(mut members) = members else {
        return Effect { answer: None, reads, writes: vec![(key.clone(), Row::Untold)] };
    };
    let is_new = members.insert(member.to_vec());
    let answer = Some(Answer::Integer(i64::from(is_new)));
    Effect { answer, reads, writes: vec![(key.clone(), Row::Set(members))] }
}

/// How a row is shown by `GET`, `HGETALL`, `SMEMBERS` and `BRANCH GET`, in order; nothing if it is not told.
pub fn shown(row: &Row) -> Option<Answer> {
    let bulk = |bytes: &Vec<u8>| Answer::Bulk(bytes.clone());
    match row {
        Row::Untold => None,
        Row::Nothing => Some(Answer::Nil),
        Row::Text(text) => Some(bulk(text)),
        Row::Hash(fields) => {
            Some(Answer::Array(fields.iter().flat_map(|(field, value)| [bulk(field), bulk(value)]).collect()))
        }
        Row::Set(members) => Some(Answer::Array(members.iter().map(bulk).collect())),
    }
}

/// The answer with the fields of a hash and the members of a set in order, and an empty one as nothing.
pub fn in_order(key: &[u8], answer: &Answer) -> Answer {
    let Answer::Array(items) = answer else { return answer.clone() };
    if items.is_empty() {
        return Answer::Nil;
    }
    let text = |item: &Answer| item.to_string();
    match key.first() {
        Some(b'h') => {
            let mut pairs: Vec<&[Answer]> = items.chunks(2).collect();
            pairs.sort_by_key(|pair| pair.first().map(text));
            Answer::Array(pairs.concat())
        }
        Some(b's') => {
            let mut members = items.clone();
            members.sort_by_key(text);
            Answer::Array(members)
        }
        _ => answer.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Effect, Row, effect, in_order, shown};
    use crate::resp::Answer;
    use crate::resp::args;

    fn of(text: &str, row: Row) -> Effect {
        effect(&args(text), &|_| row.clone()).unwrap()
    }

    #[test]
    fn commands_do_what_redis_does() {
        let text = |text: &str| Row::Text(text.as_bytes().to_vec());
        assert_eq!(of("GET r0", text("v1")).answer, Some(Answer::Bulk(b"v1".to_vec())));
        assert_eq!(of("INCRBY c0 3", text("4")).writes, [(b"c0".to_vec(), text("7"))]);
        assert_eq!(of("INCRBY c0 3", Row::Nothing).answer, Some(Answer::Integer(3)));
        assert_eq!(of("DEL d0", Row::Nothing).answer, Some(Answer::Integer(0)));
        assert_eq!(of("DEL d0", text("v1")).writes, [(b"d0".to_vec(), Row::Nothing)]);
        assert!(of("SET r0 v2", Row::Nothing).reads.is_empty());
        assert_eq!(of("HSET h0 f v", Row::Untold).answer, None);
        assert!(effect(&args("BRANCH LIST"), &|_| Row::Nothing).is_none());
    }

    #[test]
    fn hashes_and_sets_are_told_in_order() {
        let hash =
            of("HSET h0 f2 b", of("HSET h0 f1 a", Row::Nothing).writes[0].1.clone()).writes[0].1.clone();
        let bulk = |text: &str| Answer::Bulk(text.as_bytes().to_vec());
        let told = Answer::Array(vec![bulk("f2"), bulk("b"), bulk("f1"), bulk("a")]);
        assert_eq!(Some(in_order(b"h0", &told)), shown(&hash));
        assert_eq!(in_order(b"h0", &Answer::Array(Vec::new())), Answer::Nil);
    }
}
