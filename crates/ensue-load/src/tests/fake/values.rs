//! Lists, sorted sets, streams, sketches and numbers of the fake server, which remembers how large each type grew.

use bytes::Bytes;
use ensue_types::Reply;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

#[derive(Default)]
pub struct Values {
    lists: HashMap<Bytes, VecDeque<Bytes>>,
    /// Sorted sets, by name of the member: no order is asked for; and sketches and sets, as members without scores.
    members: HashMap<Bytes, BTreeSet<Bytes>>,
    streams: HashMap<Bytes, usize>,
    pub largest: BTreeMap<char, usize>,
}

fn number(word: &Bytes) -> usize {
    String::from_utf8_lossy(word).parse().expect("it is a number")
}

fn bulks<'a>(items: impl Iterator<Item = &'a Bytes>) -> Reply {
    Reply::Array(items.map(|item| Reply::Bulk(item.clone())).collect())
}

impl Values {
    pub fn execute(&mut self, name: &str, args: &[Bytes]) -> Reply {
        let key = args[1].clone();
        let (reply, size) = match name {
            "LPUSH" => {
                let list = self.lists.entry(key).or_default();
                args[2..].iter().for_each(|element| list.push_front(element.clone()));
                (Reply::Integer(list.len() as i64), list.len())
            }
            "RPUSH" => {
                let list = self.lists.entry(key).or_default();
                list.extend(args[2..].iter().cloned());
                (Reply::Integer(list.len() as i64), list.len())
            }
            "LTRIM" => {
                let list = self.lists.entry(key).or_default();
                list.truncate(number(&args[3]) + 1);
                (Reply::OK, list.len())
            }
            "LPOP" => {
                let popped = self.pop(&key);
                (popped.map_or(Reply::Nil, Reply::Bulk), 0)
            }
            "LRANGE" => (bulks(self.lists.entry(key).or_default().iter().take(number(&args[3]) + 1)), 0),
            "ZADD" => self.add(key, args[3..].iter().step_by(2)),
            "ZINCRBY" => {
                let (_, size) = self.add(key, args[3..].iter());
                (Reply::bulk("1"), size)
            }
            "ZRANGE" => (bulks(self.members.entry(key).or_default().iter().take(number(&args[3]) + 1)), 0),
            "SADD" | "PFADD" => self.add(key, args[2..].iter()),
            "XADD" => {
                let entries = self.streams.entry(key).or_default();
                let most = if args[2] == "MAXLEN" { number(&args[4]) } else { usize::MAX };
                *entries = (*entries + 1).min(most);
                (Reply::bulk("1-1"), *entries)
            }
            "XRANGE" => {
                let entries = self.streams.get(&key).copied().unwrap_or_default().min(number(&args[5]));
                (Reply::Array(vec![Reply::Array(Vec::new()); entries]), 0)
            }
            "SETBIT" => (Reply::Integer(0), number(&args[2]) / 8 + 1),
            "INCR" | "EVAL" => (Reply::Integer(1), 0),
            "INCRBYFLOAT" => (Reply::bulk("0.5"), 0),
            _ => (Reply::error("ERR unknown command"), 0),
        };
        let first = name.chars().next().expect("commands have names");
        let largest = self.largest.entry(first).or_default();
        *largest = size.max(*largest);
        reply
    }

    pub fn pop(&mut self, list: &Bytes) -> Option<Bytes> {
        self.lists.get_mut(list)?.pop_front()
    }

    fn add<'a>(&mut self, key: Bytes, members: impl Iterator<Item = &'a Bytes>) -> (Reply, usize) {
        let known = self.members.entry(key).or_default();
        let before = known.len();
        known.extend(members.cloned());
        (Reply::Integer((known.len() - before) as i64), known.len())
    }
}
