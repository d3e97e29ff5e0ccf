//! What reaches a target that refuses commands for a while, and maps and subjects as they are typed.

use super::applier::Applier;
use super::loader::{Existing, Loader};
use super::target::Words;
use super::*;
use bytes::{Bytes, BytesMut};
use ensue_client::Reply;
use ensue_rdb::{Content, Entry, Item, Value};
use ensue_resp::{ParseLimits, Parser, ProtocolVersion, encode};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;

/// A target that refuses the first of its commands that make data larger, and takes everything else.
#[derive(Default)]
struct Fake {
    refusals: usize,
    keys: BTreeMap<Bytes, (Vec<Bytes>, Option<Bytes>)>,
}

impl Fake {
    fn answer(&mut self, command: &[Bytes]) -> Reply {
        let grows = [&b"SET"[..], b"HSET", b"RPUSH", b"INCR", b"EXEC"].contains(&&command[0][..]);
        if grows && self.refusals > 0 {
            self.refusals -= 1;
            return Reply::Error("OOM command not allowed when used memory > 'maxmemory'.".into());
        }
        let key = command.get(1).cloned().unwrap_or_default();
        match &command[0][..] {
            b"SET" => drop(self.keys.insert(key, (vec![command[2].clone()], command.get(4).cloned()))),
            b"DEL" => drop(self.keys.remove(&key)),
            b"RPUSH" => self.keys.entry(key).or_default().0.extend_from_slice(&command[2..]),
            b"HSET" => {
                let fields = &mut self.keys.entry(key).or_default().0;
                fields.retain(|field| field != &command[2]);
                fields.push(command[2].clone());
            }
            b"LPOP" => {
                if self.keys.get(&key).is_some_and(|(values, _)| values.len() < 2) {
                    self.keys.remove(&key);
                } else if let Some((values, _)) = self.keys.get_mut(&key) {
                    values.remove(0);
                }
            }
            b"PEXPIREAT" => {
                let Some((_, deadline)) = self.keys.get_mut(&key) else { return Reply::Integer(0) };
                *deadline = Some(command[2].clone());
            }
            b"EXISTS" => return Reply::Integer(i64::from(self.keys.contains_key(&key))),
            b"FLUSHDB" => self.keys.clear(),
            _ => {}
        }
        Reply::Integer(1)
    }

    fn serve(fake: &Mutex<Fake>, mut stream: TcpStream) {
        let (mut buffer, mut scratch) = (BytesMut::new(), [0; 4_096]);
        let mut parser = Parser::new(ParseLimits::default());
        while let Ok(count @ 1..) = stream.read(&mut scratch) {
            buffer.extend_from_slice(&scratch[..count]);
            while let Some(command) = parser.next(&mut buffer).expect("the target sends commands") {
                let mut answer = Vec::new();
                let reply = fake.lock().expect("nobody panics").answer(&command);
                encode(&reply, ProtocolVersion::Resp2, &mut answer);
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
        }
    }
}

/// A target with so many refusals before it, and what it holds.
fn fake(refusals: usize) -> (Target, Arc<Mutex<Fake>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it has one").port();
    let fake = Arc::new(Mutex::new(Fake { refusals, ..Fake::default() }));
    let served = Arc::clone(&fake);
    thread::spawn(move || Fake::serve(&served, listener.accept().expect("the test connects").0));
    let mut target = Target::open(&Options::local(port)).expect("it answers");
    target.wait_for_it(&Stop(Arc::default()));
    (target, fake)
}

/// Each key with its values and its deadline.
fn held(fake: &Mutex<Fake>) -> Vec<String> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let keys = &fake.lock().expect("nobody panics").keys;
    let line = |(key, (values, deadline)): (&Bytes, &(Vec<Bytes>, Option<Bytes>))| {
        let values: Vec<String> = values.iter().map(text).collect();
        format!("{} {} {}", text(key), values.join(","), deadline.as_ref().map_or("-".into(), text))
    };
    keys.iter().map(line).collect()
}

fn command(line: &str) -> Words {
    line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

/// Applies commands to a target that refuses some, and returns what it holds and the report.
fn applied(refusals: usize, lines: &[&str]) -> (Vec<String>, Report) {
    let (mut target, fake) = fake(refusals);
    let (mut applier, mut state) = (Applier::new(Databases::default(), 0), State::default());
    for line in lines {
        applier.take(command(line), &mut target, &mut state).expect("it is applied");
    }
    applier.flush(&mut target, &mut state).expect("it is applied");
    (held(&fake), state.report)
}

#[test]
fn a_value_that_was_refused_in_part_has_its_deadline_and_its_order() {
    let (mut target, fake) = fake(2);
    let entry = |key: &str, value| Entry {
        database: 0,
        key: Bytes::copy_from_slice(key.as_bytes()),
        content: Content::Value(value),
        deadline_ms: Some(9_000_000_000_000),
    };
    let field = |name: &str| (Bytes::copy_from_slice(name.as_bytes()), Bytes::from_static(b"v"));
    let many: Vec<Bytes> = (0..1_500).map(|number| Bytes::from(number.to_string())).collect();
    let entries = [entry("h", Value::Hash(vec![field("f")])), entry("l", Value::List(many.clone()))];
    let (databases, mut state) = (Databases::default(), State::default());
    let mut loader = Loader::new(&mut target, &databases, &mut state, Existing::Replace);
    for (index, entry) in entries.into_iter().enumerate() {
        loader.take(Item::Entry(entry), index as u64 + 1).expect("it is taken");
    }
    loader.flush().expect("it is written");
    let many: Vec<String> = (0..1_500).map(|number: u32| number.to_string()).collect();
    let expected = ["h f 9000000000000".to_string(), format!("l {} 9000000000000", many.join(","))];
    assert_eq!(held(&fake), expected);
    assert!(state.report.is_complete());
}

#[test]
fn what_the_source_deleted_does_not_come_back() {
    let lines = ["SET a v", "DEL a", "HSET h f 1", "PEXPIREAT h 9000000000000", "SET b 1", "SET b 2"];
    let (held, report) = applied(3, &lines);
    assert_eq!(held, ["b 2 -", "h f 9000000000000"]);
    assert!(report.is_complete(), "{}", report.text(Paint::off(), None));
}

#[test]
fn a_pop_that_came_too_early_is_told() {
    let (held, report) = applied(1, &["RPUSH l 1", "LPOP l", "SET other 1"]);
    assert_eq!(held, ["l 1 -", "other 1 -"]);
    let said = report.text(Paint::off(), None);
    assert!(
        said.contains("1 keys whose commands were applied in another order than at the source"),
        "{said}"
    );
}

#[test]
fn a_flush_stays_behind_what_it_flushes() {
    let (held, report) = applied(1, &["SET a 1", "FLUSHDB", "SET b 1"]);
    assert_eq!(held, ["b 1 -"]);
    assert!(report.is_complete());
}

#[test]
fn a_transaction_longer_than_a_window_is_sent_again_whole() {
    let mut lines = vec!["MULTI"];
    lines.resize(1_501, "LPOP l");
    let (mut target, fake) = fake(1);
    let commands: Vec<Words> = lines.iter().chain(&["EXEC"]).map(|line| command(line)).collect();
    let replies = target.run(0, &commands).expect("it is taken");
    assert!(!replies.iter().any(Reply::is_error));
    assert_eq!(fake.lock().expect("nobody panics").refusals, 0);
}

#[test]
fn a_deadline_that_counts_from_its_execution_counts_from_its_arrival() {
    let (mut target, fake) = fake(0);
    let (mut applier, mut state) = (Applier::new(Databases::default(), 0), State::default());
    applier.received_at(1_000);
    for line in ["SET k v", "PEXPIRE k 5", "MULTI", "SETEX j 5 w", "EXEC"] {
        applier.take(command(line), &mut target, &mut state).expect("it is applied");
    }
    applier.flush(&mut target, &mut state).expect("it is applied");
    assert_eq!(held(&fake), ["j w 6000", "k v 1005"]);
    assert!(state.report.is_complete());
}

#[test]
fn a_script_that_arrives_as_such_is_told() {
    let (_, report) = applied(0, &["EVAL x 0"]);
    let said = report.text(Paint::off(), None);
    assert!(
        said.contains("1 scripts, executed with the time and the random numbers of the target"),
        "{said}"
    );
}

#[test]
fn what_makes_it_another_import_is_in_its_subject() {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: ImportArgs,
    }
    let subject = |line: &str| {
        let words = std::iter::once("import").chain(line.split(' ')).chain(["--to", "h:1"]);
        <Line as clap::Parser>::parse_from(words).args.subject()
    };
    let lines = ["--from redis://s", "--from redis://s/0", "--from redis://s --replace"];
    let mapped = ["--from redis://s --db-map 1:0,0:-", "--from redis://s --db-map 1:2"];
    let subjects: std::collections::BTreeSet<String> = lines.into_iter().chain(mapped).map(subject).collect();
    assert_eq!(subjects.len(), 5, "{subjects:?}");
    assert_eq!(subject("--from redis://s/3 --replace"), "redis://s:6379/3 to h:1 --replace");
}
