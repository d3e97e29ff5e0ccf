//! Just enough of a store for scripts under test.

use crate::{Call, Called, Calls};
use bytes::Bytes;
use ensue_types::Reply;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Store {
    pub values: BTreeMap<Bytes, Bytes>,
    pub calls: usize,
    pub lines: Vec<(u8, String)>,
}

impl Calls for Store {
    fn log(&mut self, level: u8, text: &[u8]) {
        self.lines.push((level, String::from_utf8_lossy(text).into_owned()));
    }

    fn call(&mut self, call: Call) -> Called {
        self.calls += 1;
        if call.asks {
            // The user of these scripts may do everything but count.
            return Called::Answered(Reply::Integer((&call.args[0][..] != b"incr").into()), 1);
        }
        let name = call.args[0].to_ascii_lowercase();
        let reply = match (&name[..], &call.args[1..]) {
            (b"ping", []) => Reply::Status("PONG".into()),
            (b"get", [key]) => self.values.get(key).cloned().map_or(Reply::Nil, Reply::Bulk),
            (b"set", [key, value]) => {
                self.values.insert(key.clone(), value.clone());
                Reply::OK
            }
            (b"incr", [key]) => {
                let value = self
                    .values
                    .get(key)
                    .map_or(Some(0), |value| std::str::from_utf8(value).ok()?.parse().ok());
                let value: Option<i64> = value;
                match value {
                    None => Reply::error("ERR value is not an integer or out of range"),
                    Some(value) => {
                        self.values.insert(key.clone(), (value + 1).to_string().into());
                        Reply::Integer(value + 1)
                    }
                }
            }
            (b"stop", []) => return Called::Stop(Reply::error("TRYAGAIN not now")),
            _ => Reply::error("ERR Unknown Redis command called from script"),
        };
        Called::Answered(reply, 1)
    }
}
