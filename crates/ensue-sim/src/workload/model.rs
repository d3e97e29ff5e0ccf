//! A miniature of Redis for keys that one client has to itself: with nobody else writing, every answer is certain.

use super::elements;
use crate::resp::Answer;
use ensue_types::Args;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Row {
    Text(String),
    Hash(BTreeMap<String, String>),
    Set(BTreeSet<String>),
    Scores(BTreeMap<String, i64>),
    List(VecDeque<String>),
}

/// The rows of one client's private keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    rows: BTreeMap<String, Row>,
    /// Every key ever touched, with the command that shows it whole.
    touched: BTreeMap<String, &'static str>,
}

impl Model {
    /// Carries out a command and says what a server must answer. Unknown commands have no certain answer.
    pub fn apply(&mut self, args: &Args) -> Option<Answer> {
        let words: Vec<String> = args.iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect();
        let (name, rest) = words.split_first()?;
        let key = rest.first()?.clone();
        let name = name.to_ascii_uppercase();
        let show = match name.as_bytes().first()? {
            b'H' => "HGETALL",
            b'S' if matches!(name.as_str(), "SADD" | "SREM" | "SMEMBERS" | "SISMEMBER") => "SMEMBERS",
            b'Z' => "ZRANGE",
            b'L' | b'R' | b'B' => "LRANGE",
            _ => "GET",
        };
        if name != "DEL" {
            self.touched.insert(key.clone(), show);
        }
        match show {
            "HGETALL" => self.hash(&name, key, &rest[1..]),
            "SMEMBERS" => self.set(&name, key, &rest[1..]),
            "ZRANGE" => self.scores(&name, key, &rest[1..]),
            "LRANGE" => {
                let answer = elements::in_model(self.list(&key)?, &name, &key, &rest[1..]);
                self.leave_no_empty_list(&key);
                answer
            }
            _ => self.text(&name, key, &rest[1..]),
        }
    }

    /// For every key the command that shows it whole and its answer.
    pub fn whole(&self) -> Vec<(Vec<&str>, Answer)> {
        let answer = |key: &String, show: &str| match (self.rows.get(key), show) {
            (Some(Row::Text(text)), _) => bulk(text),
            (Some(Row::Hash(fields)), _) => pairs(fields),
            (Some(Row::Set(members)), _) => Answer::Array(members.iter().map(|m| bulk(m)).collect()),
            (Some(Row::Scores(members)), _) => ordered(members),
            (Some(Row::List(elements)), _) => Answer::Array(elements.iter().map(|text| bulk(text)).collect()),
            (None, "GET") => Answer::Nil,
            (None, _) => Answer::Array(Vec::new()),
        };
        let words = |key, show| match show {
            "ZRANGE" => vec![show, key, "0", "-1", "WITHSCORES"],
            "LRANGE" => vec![show, key, "0", "-1"],
            _ => vec![show, key],
        };
        self.touched.iter().map(|(key, &show)| (words(key.as_str(), show), answer(key, show))).collect()
    }

    fn text(&mut self, name: &str, key: String, rest: &[String]) -> Option<Answer> {
        let present = match self.rows.get(&key) {
            Some(Row::Text(text)) => Some(text.clone()),
            Some(_) if name == "DEL" => Some(String::new()),
            Some(_) => return None,
            None => None,
        };
        let answer = present.as_ref().map_or(Answer::Nil, |text| bulk(text));
        let number = integer(present.as_deref().unwrap_or("0"));
        let mut put = |text: String| self.rows.insert(key.clone(), Row::Text(text));
        Some(match name {
            "GET" => answer,
            "SET" => {
                put(rest.first()?.clone());
                Answer::Status("OK".to_owned())
            }
            "SETNX" if present.is_some() => Answer::Integer(0),
            "SETNX" => {
                put(rest.first()?.clone());
                Answer::Integer(1)
            }
            "GETSET" => {
                put(rest.first()?.clone());
                answer
            }
            "APPEND" => {
                let text = present.unwrap_or_default() + rest.first()?;
                put(text.clone());
                Answer::Integer(text.len() as i64)
            }
            "INCRBY" | "DECRBY" => {
                let by: i64 = rest.first()?.parse().ok()?;
                let sum = number?.checked_add(if name == "INCRBY" { by } else { -by })?;
                put(sum.to_string());
                Answer::Integer(sum)
            }
            "STRLEN" => Answer::Integer(present.map_or(0, |text| text.len() as i64)),
            "DEL" => Answer::Integer(i64::from(self.rows.remove(&key).is_some())),
            _ => return None,
        })
    }

    fn hash(&mut self, name: &str, key: String, rest: &[String]) -> Option<Answer> {
        let row = self.rows.entry(key.clone()).or_insert_with(|| Row::Hash(BTreeMap::new()));
        let Row::Hash(fields) = row else { return None };
        let answer = match name {
            "HSET" => {
                let new = fields.insert(rest.first()?.clone(), rest.get(1)?.clone()).is_none();
                Answer::Integer(i64::from(new))
            }
            "HGET" => fields.get(rest.first()?).map_or(Answer::Nil, |value| bulk(value)),
            "HDEL" => Answer::Integer(i64::from(fields.remove(rest.first()?).is_some())),
            "HLEN" => Answer::Integer(fields.len() as i64),
            "HINCRBY" => {
                let field = fields.entry(rest.first()?.clone()).or_insert_with(|| "0".to_owned());
                let sum = integer(field)?.checked_add(integer(rest.get(1)?)?)?;
                *field = sum.to_string();
                Answer::Integer(sum)
            }
            "HGETALL" => pairs(fields),
            _ => return None,
        };
        if fields.is_empty() {
            self.rows.remove(&key);
        }
        Some(answer)
    }

    fn set(&mut self, name: &str, key: String, rest: &[String]) -> Option<Answer> {
        let row = self.rows.entry(key.clone()).or_insert_with(|| Row::Set(BTreeSet::new()));
        let Row::Set(members) = row else { return None };
        let answer = match name {
            "SADD" => {
                let added = rest.iter().filter(|member| members.insert((*member).clone()));
                Answer::Integer(added.count() as i64)
            }
            "SREM" => Answer::Integer(i64::from(members.remove(rest.first()?))),
            "SISMEMBER" => Answer::Integer(i64::from(members.contains(rest.first()?))),
            "SMEMBERS" => Answer::Array(members.iter().map(|m| bulk(m)).collect()),
            _ => return None,
        };
        if members.is_empty() {
            self.rows.remove(&key);
        }
        Some(answer)
    }

    fn list(&mut self, key: &str) -> Option<&mut VecDeque<String>> {
        match self.rows.entry(key.to_owned()).or_insert_with(|| Row::List(VecDeque::new())) {
            Row::List(elements) => Some(elements),
            _ => None,
        }
    }

    fn leave_no_empty_list(&mut self, key: &str) {
        if matches!(self.rows.get(key), Some(Row::List(elements)) if elements.is_empty()) {
            self.rows.remove(key);
        }
    }

    fn scores(&mut self, name: &str, key: String, rest: &[String]) -> Option<Answer> {
        let row = self.rows.entry(key.clone()).or_insert_with(|| Row::Scores(BTreeMap::new()));
        let Row::Scores(members) = row else { return None };
        let place = |member: &String| {
            let own = (*members.get(member)?, member);
            Some(members.iter().filter(|(name, score)| (**score, *name) < own).count() as i64)
        };
        let answer = match name {
            "ZRANK" => place(rest.first()?).map_or(Answer::Nil, Answer::Integer),
            "ZADD" => {
                let new = members.insert(rest.get(1)?.clone(), integer(rest.first()?)?).is_none();
                Answer::Integer(i64::from(new))
            }
            "ZINCRBY" => {
                let score = members.entry(rest.get(1)?.clone()).or_insert(0);
                *score += integer(rest.first()?)?;
                bulk(&score.to_string())
            }
            "ZREM" => Answer::Integer(i64::from(members.remove(rest.first()?).is_some())),
            "ZPOPMAX" => {
                let highest = members.iter().map(|(name, score)| (*score, name.clone())).max();
                let gone = highest.and_then(|(_, name)| members.remove_entry(&name));
                Answer::Array(
                    gone.iter().flat_map(|(name, score)| [bulk(name), bulk(&score.to_string())]).collect(),
                )
            }
            "ZRANGE" => ordered(members),
            _ => return None,
        };
        if members.is_empty() {
            self.rows.remove(&key);
        }
        Some(answer)
    }
}

/// The members and their scores, the lowest first.
fn ordered(members: &BTreeMap<String, i64>) -> Answer {
    let mut members: Vec<(i64, &String)> = members.iter().map(|(name, score)| (*score, name)).collect();
    members.sort_unstable();
    Answer::Array(members.iter().flat_map(|(score, name)| [bulk(name), bulk(&score.to_string())]).collect())
}

/// An answer whose order is not promised, in an order of its own: members sorted, or fields with their values.
pub fn normal(args: &Args, answer: Answer) -> Answer {
    let name = args.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    match (name.as_slice(), answer) {
        (b"SMEMBERS", Answer::Array(mut items)) => {
            items.sort_by_key(Answer::to_string);
            Answer::Array(items)
        }
        (b"HGETALL", Answer::Array(items)) => {
            let mut pairs: Vec<&[Answer]> = items.chunks(2).collect();
            pairs.sort_by_key(|pair| pair[0].to_string());
            Answer::Array(pairs.concat())
        }
        (_, answer) => answer,
    }
}

/// Redis takes no integer for one that it would write otherwise, such as `05`.
fn integer(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|number| number.to_string() == text)
}

pub(super) fn bulk(text: &str) -> Answer {
    Answer::Bulk(text.as_bytes().to_vec())
}

fn pairs(fields: &BTreeMap<String, String>) -> Answer {
    Answer::Array(fields.iter().flat_map(|(field, value)| [bulk(field), bulk(value)]).collect())
}

#[cfg(test)]
mod tests {
    use super::{Model, normal};
    use crate::resp::args;

    #[test]
    fn answers_as_redis_does() {
        let mut model = Model::default();
        let script = [
            ("SET k a", "OK"),
            ("SETNX k b", "0"),
            ("APPEND k b", "2"),
            ("GETSET k 5", "\"ab\""),
            ("INCRBY k 3", "8"),
            ("DECRBY k 10", "-2"),
            ("DEL k", "1"),
            ("GET k", "nil"),
            ("HSET h f x", "1"),
            ("HSET h f y", "0"),
            ("HINCRBY h n 2", "2"),
            ("HGETALL h", "[\"f\" \"y\" \"n\" \"2\"]"),
            ("HDEL h f", "1"),
            ("SADD s b", "1"),
            ("SADD s a", "1"),
            ("SREM s c", "0"),
            ("SMEMBERS s", "[\"a\" \"b\"]"),
            ("ZADD z 2 a", "1"),
            ("ZADD z 5 a", "0"),
            ("ZINCRBY z 3 b", "\"3\""),
            ("ZRANK z a", "1"),
            ("ZRANK z c", "nil"),
            ("ZRANGE z 0 -1 WITHSCORES", "[\"b\" \"3\" \"a\" \"5\"]"),
            ("ZPOPMAX z", "[\"a\" \"5\"]"),
            ("ZREM z a", "0"),
            ("RPUSH l a b", "2"),
            ("LPUSH l c", "3"),
            ("LINSERT l BEFORE b d", "4"),
            ("LSET l 0 e", "OK"),
            ("LPOP l", "\"e\""),
            ("RPOP l", "\"b\""),
            ("LREM l 0 d", "1"),
            ("LLEN l", "1"),
            ("LINDEX l 0", "\"a\""),
            ("LINDEX l 5", "nil"),
            ("RPUSH p a", "1"),
            ("BLPOP p 0.01", "[\"p\" \"a\"]"),
            ("BLPOP p 0.01", "nil"),
        ];
        for (command, answer) in script {
            assert_eq!(model.apply(&args(command)).unwrap().to_string(), answer, "{command}");
        }
        let whole: Vec<String> = model.whole().iter().map(|(c, a)| format!("{} {a}", c.join(" "))).collect();
        assert_eq!(
            whole,
            [
                "HGETALL h [\"n\" \"2\"]",
                "GET k nil",
                "LRANGE l 0 -1 [\"a\"]",
                "LRANGE p 0 -1 []",
                "SMEMBERS s [\"a\" \"b\"]",
                "ZRANGE z 0 -1 WITHSCORES [\"b\" \"3\"]"
            ]
        );
        let shuffled = model.apply(&args("SMEMBERS s")).unwrap();
        assert_eq!(normal(&args("SMEMBERS s"), shuffled.clone()), shuffled);
    }
}
