//! A server of this process that knows a few commands, and can stall, refuse and hang up on demand.

use bytes::{Bytes, BytesMut};
use ensue_resp::parse::ParseLimits;
use ensue_resp::{Parser, ProtocolVersion, encode};
use ensue_types::Reply;
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use values::Values;

mod values;

/// What the server does besides answering.
#[derive(Clone, Debug, Default)]
pub struct Habits {
    /// At its so-and-so-manieth command that works on a key.
    pub stall: Option<(u64, Duration)>,
    /// Every so-and-so-manieth command is refused, if it is SET or RPUSH.
    pub refuse_every: Option<u64>,
    /// After so many commands that work on a key, all connections are closed.
    pub hang_up_after: Option<u64>,
    /// Commands that it does not know.
    pub lacks: &'static [&'static str],
    pub pops: Pops,
}

/// What becomes of clients that wait for an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pops {
    #[default]
    Served,
    Forgotten,
    Refused,
}

/// How often a client that waits is looked at.
const POP_PAUSE: Duration = Duration::from_micros(50);

#[derive(Default)]
struct Data {
    strings: HashMap<Bytes, Bytes>,
    hashes: HashMap<Bytes, BTreeMap<Bytes, Bytes>>,
    /// By score and name.
    index: BTreeMap<(u64, Bytes), ()>,
    values: Values,
    commands: u64,
}

/// A running server; it lives as long as the process.
pub struct Fake {
    pub port: u16,
    data: Arc<Mutex<Data>>,
}

impl Fake {
    pub fn start(habits: Habits) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let data = Arc::new(Mutex::new(Data::default()));
        let shared = Arc::clone(&data);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (data, habits) = (Arc::clone(&shared), habits.clone());
                thread::spawn(move || serve(stream, &data, &habits));
            }
        });
        Fake { port, data }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn strings(&self) -> usize {
        self.data.lock().unwrap().strings.len()
    }

    pub fn hashes(&self) -> usize {
        self.data.lock().unwrap().hashes.len()
    }

    /// The largest value that there ever was of each type, by the first letter of its command.
    pub fn largest(&self) -> BTreeMap<char, usize> {
        self.data.lock().unwrap().values.largest.clone()
    }
}

fn serve(mut stream: TcpStream, data: &Mutex<Data>, habits: &Habits) {
    let (mut input, mut parser) = (BytesMut::new(), Parser::new(ParseLimits::default()));
    let (mut scratch, mut queued) = (vec![0; 1 << 16], None);
    loop {
        while let Some(args) = parser.next(&mut input).unwrap() {
            let Some(reply) = answer(&args, &mut queued, data, habits) else { return };
            let mut out = Vec::new();
            encode(&reply, ProtocolVersion::Resp2, &mut out);
            if stream.write_all(&out).is_err() {
                return;
            }
        }
        match stream.read(&mut scratch) {
            Ok(length) if length > 0 => input.extend_from_slice(&scratch[..length]),
            _ => return,
        }
    }
}

fn answer(
    args: &[Bytes],
    queued: &mut Option<Vec<Vec<Bytes>>>,
    data: &Mutex<Data>,
    habits: &Habits,
) -> Option<Reply> {
    let name = String::from_utf8_lossy(&args[0]).to_uppercase();
    match (name.as_str(), &mut *queued) {
        ("COMMAND", _) => {
            let lacks = habits.lacks.iter().any(|lacks| lacks.as_bytes() == args[2]);
            let row = if lacks { Reply::NilArray } else { Reply::Array(vec![Reply::Bulk(args[2].clone())]) };
            return Some(Reply::Array(vec![row]));
        }
        ("INFO", _) => return Some(Reply::bulk("# Server\r\nredis_version:7.0.0\r\n")),
        ("MULTI", _) => *queued = Some(Vec::new()),
        ("EXEC", Some(commands)) => {
            let commands = std::mem::take(commands);
            *queued = None;
            let mut data = data.lock().unwrap();
            return Some(Reply::Array(commands.iter().map(|args| data.execute(args)).collect()));
        }
        (_, Some(commands)) => {
            commands.push(args.to_vec());
            return Some(Reply::Status("QUEUED".into()));
        }
        ("BLPOP", None) => return Some(pop_waiting(&args[1], data, habits.pops)),
        _ => {
            // Who stalls holds the lock, so that all clients wait, as behind a server of one thread.
            let mut data = data.lock().unwrap();
            data.commands += 1;
            let count = data.commands;
            match habits {
                Habits { stall: Some((at, lasts)), .. } if count == *at => thread::sleep(*lasts),
                Habits { hang_up_after: Some(after), .. } if count > *after => return None,
                Habits { refuse_every: Some(every), .. }
                    if ["SET", "RPUSH"].contains(&name.as_str()) && count % every == 0 =>
                {
                    return Some(Reply::error("OOM command not allowed"));
                }
                _ => {}
            }
            return Some(data.execute(args));
        }
    }
    Some(Reply::OK)
}

fn pop_waiting(list: &Bytes, data: &Mutex<Data>, pops: Pops) -> Reply {
    if pops == Pops::Refused {
        return Reply::error("NOWAIT pops that wait are refused");
    }
    loop {
        let popped = data.lock().unwrap().values.pop(list);
        match popped.filter(|_| pops == Pops::Served) {
            Some(element) => return Reply::Array(vec![Reply::Bulk(list.clone()), Reply::Bulk(element)]),
            None => thread::sleep(POP_PAUSE),
        }
    }
}

impl Data {
    fn execute(&mut self, args: &[Bytes]) -> Reply {
        let name = String::from_utf8_lossy(&args[0]).to_uppercase();
        let found = |value: Option<&Bytes>| value.map_or(Reply::Nil, |value| Reply::Bulk(value.clone()));
        match name.as_str() {
            "GET" => found(self.strings.get(&args[1])),
            "MGET" => Reply::Array(args[1..].iter().map(|key| found(self.strings.get(key))).collect()),
            "SET" | "MSET" => {
                for pair in args[1..].chunks(2) {
                    self.strings.insert(pair[0].clone(), pair[1].clone());
                }
                Reply::OK
            }
            "EXISTS" => {
                let exists = self.strings.contains_key(&args[1]) || self.hashes.contains_key(&args[1]);
                Reply::Integer(i64::from(exists))
            }
            "HSET" => {
                let hash = self.hashes.entry(args[1].clone()).or_default();
                args[2..].chunks(2).for_each(|pair| {
                    hash.insert(pair[0].clone(), pair[1].clone());
                });
                Reply::Integer(0)
            }
            "HMGET" => {
                let hash = self.hashes.get(&args[1]);
                Reply::Array(
                    args[2..].iter().map(|field| found(hash.and_then(|hash| hash.get(field)))).collect(),
                )
            }
            "HGETALL" => {
                let fields = self.hashes.get(&args[1]).into_iter().flatten();
                Reply::Array(
                    fields.flat_map(|(name, value)| [name, value].map(|b| Reply::Bulk(b.clone()))).collect(),
                )
            }
            "DEL" => {
                let removed = args[1..]
                    .iter()
                    .filter(|key| self.strings.remove(*key).is_some() | self.hashes.remove(*key).is_some());
                Reply::Integer(removed.count() as i64)
            }
            "EXPIRE" => Reply::Integer(i64::from(self.strings.contains_key(&args[1]))),
            "ZADD" if args[1].ends_with(b"index") => {
                let score = String::from_utf8_lossy(&args[2]).parse().unwrap();
                self.index.insert((score, args[3].clone()), ());
                Reply::Integer(1)
            }
            "ZRANGEBYSCORE" => {
                let from = String::from_utf8_lossy(&args[2]).parse().unwrap();
                let count = String::from_utf8_lossy(&args[6]).parse().unwrap();
                let range = self.index.range((from, Bytes::new())..).take(count);
                Reply::Array(range.map(|((_, key), ())| Reply::Bulk(key.clone())).collect())
            }
            _ => self.values.execute(&name, args),
        }
    }
}
