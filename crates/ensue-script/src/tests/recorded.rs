//! What Redis 7.0.15 answered to these scripts, each with one key and one argument on an empty keyspace.
//!
//! `recorded.txt` has a script a line, and its answer on the next. Where ours differs on purpose, `differs.txt` has our
//! answer to the same script.

use super::{Outcome, run};
use ensue_types::Reply;
use std::collections::BTreeMap;
use std::fmt::Write;

fn shown(reply: &Reply) -> String {
    let list = |items: &[Reply]| items.iter().map(shown).collect::<Vec<_>>().join(", ");
    match reply {
        Reply::Status(words) => format!("+{}", escaped(words.as_bytes())),
        Reply::Error(words) => format!("-{}", escaped(words.as_bytes())),
        Reply::Integer(integer) => format!(":{integer}"),
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) | Reply::BigNumber(bytes) => {
            format!("\"{}\"", escaped(bytes))
        }
        Reply::Nil | Reply::NilArray => "nil".into(),
        Reply::Array(items) | Reply::Set(items) => format!("[{}]", list(items)),
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            let flat: Vec<Reply> =
                pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect();
            format!("[{}]", list(&flat))
        }
        Reply::Keyed(pairs) => {
            let nested: Vec<Reply> =
                pairs.iter().map(|(key, value)| Reply::Array(vec![key.clone(), value.clone()])).collect();
            format!("[{}]", list(&nested))
        }
        // As they are encoded for a client of the second version of the protocol.
        Reply::Double(number) => format!("\"{number}\""),
        Reply::Boolean(truth) => format!(":{}", u8::from(*truth)),
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => write!(text, "\\x{byte:02x}"),
            32..127 => write!(text, "{}", char::from(byte)),
            byte => write!(text, "\\x{byte:02x}"),
        }
        .expect("text takes everything");
    }
    text
}

fn pairs(text: &'static str) -> BTreeMap<&'static str, &'static str> {
    let lines: Vec<&str> = text.lines().collect();
    lines.chunks(2).map(|pair| (pair[0], pair[1].trim_start())).collect()
}

#[test]
fn scripts_answer_as_in_redis() {
    let (recorded, differs) = (pairs(include_str!("recorded.txt")), pairs(include_str!("differs.txt")));
    assert!(differs.iter().all(|(script, answer)| recorded.get(script).is_some_and(|other| other != answer)));
    let mut wrong = String::new();
    for (script, expected) in recorded {
        let expected = differs.get(script).copied().unwrap_or(expected);
        let answer = match run(script).outcome {
            Outcome::Ended(reply) => shown(&reply),
            Outcome::Stopped(reply) => format!("stopped: {}", shown(&reply)),
        };
        if answer != expected {
            writeln!(wrong, "{script}\n    {answer}\n  expected\n    {expected}")
                .expect("text takes everything");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
