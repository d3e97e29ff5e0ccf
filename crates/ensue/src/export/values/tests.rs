//! Values of a node on this machine, read part by part: they are what their dumps are.

use super::*;
use crate::export::walk;
use ensue_client::Options;
use ensue_rdb::dump;
use ensue_server::{Config, Machine, Running};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

/// More than one part has.
const MANY: usize = 2 * PART + 7;

struct Node {
    running: Option<Running>,
    folder: PathBuf,
    target: Target,
}

impl Node {
    fn start() -> Node {
        let folder = std::env::temp_dir().join(format!("ensue-values-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (port, peer_port) = (port(), port());
        let dir = folder.display();
        let text = format!(
            "node dc1 127.0.0.1:{peer_port} cores 1\nself dc1\nport {port}\nbind 127.0.0.1\ndir \"{dir}\"\n"
        );
        let path = folder.join("node.conf");
        std::fs::write(&path, text).unwrap();
        let config = Config::load(Some(&path), &[], std::iter::empty()).unwrap();
        let running = ensue_server::start(&config, &Machine::of_this_process(1)).unwrap();
        let mut target = Target::open(&Options::local(port)).unwrap();
        for _ in 0..600 {
            let reply = target.run(0, &[words!["SET", "serves", "1"]]).map(|mut replies| replies.pop());
            if matches!(reply, Ok(Some(Reply::Status(_)))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Node { running: Some(running), folder, target }
    }

    fn run(&mut self, commands: &[Words]) {
        let replies = self.target.run(0, commands).unwrap();
        assert!(!replies.iter().any(Reply::is_error), "{replies:?}");
    }

    fn dumped(&mut self, key: &Bytes) -> (String, Value) {
        let read =
            walk::read(&mut self.target, 0, std::slice::from_ref(key)).unwrap().pop().unwrap().unwrap();
        let Reply::Bulk(bytes) = read.dump else { panic!("{key:?} has no dump") };
        match dump::read_own(&bytes) {
            Ok(dump::Dumped::Value(value)) => (read.kind, value),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        ensue_server::shutdown::stop(self.running.take().into_iter().collect());
        // The system clears the folder in its time.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Members in one order, whichever they have: but for those of a list.
fn sorted(value: Value) -> Value {
    fn by<T, K: Ord>(mut items: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
        items.sort_by_key(key);
        items
    }
    match value {
        Value::Set(members) => Value::Set(by(members, Bytes::clone)),
        Value::Hash(pairs) => Value::Hash(by(pairs, |(name, _)| name.clone())),
        Value::DatedHash(fields) => Value::DatedHash(by(fields, |(name, ..)| name.clone())),
        Value::Sorted(members) => Value::Sorted(by(members, |(_, name)| name.clone())),
        other => other,
    }
}

fn filled(command: &'static str, key: &'static str, element: impl Fn(usize) -> Words) -> Vec<Words> {
    let with = |number| words![command, key].into_iter().chain(element(number)).collect();
    (0..MANY).map(with).collect()
}

#[test]
fn what_is_read_in_parts_is_what_its_dump_is() {
    let mut node = Node::start();
    node.run(&filled("RPUSH", "list", |number| words![(number % 3).to_string()]));
    node.run(&filled("SADD", "set", |number| words![format!("m{number}")]));
    node.run(&filled("ZADD", "zset", |number| words![format!("{number}.5"), format!("m{number}")]));
    node.run(&filled("HSET", "hash", |number| words![format!("f{number}"), format!("v{number}")]));
    node.run(&filled("HSET", "dated", |number| words![format!("f{number}"), format!("v{number}")]));
    node.run(&[words!["HPEXPIREAT", "dated", "4000000000000", "FIELDS", "1", "f2000"]]);
    node.run(&[words!["ZADD", "zset", "-inf", "low", "inf", "high"]]);
    for key in ["list", "set", "zset", "hash", "dated"].map(Bytes::from) {
        let (kind, dumped) = node.dumped(&key);
        assert!(has_parts(&kind), "{kind}");
        let value = read(&mut node.target, 0, &key, &kind).unwrap().unwrap();
        assert!(sorted(value) == sorted(dumped), "{key:?} is another one in parts");
    }
    let key = Bytes::from("hash");
    let mut reading = Reading { target: &mut node.target, keyspace: 0, key: &key };
    let Ok(pairs) = reading.by_names() else { panic!("no answer") };
    assert_eq!(sorted(Value::Hash(pairs_of(pairs).collect())), sorted(node.dumped(&key).1));
    let key = Bytes::from("zset");
    let mut reading = Reading { target: &mut node.target, keyspace: 0, key: &key };
    let Ok(pairs) = reading.ranged("ZRANGE", Some("WITHSCORES")) else { panic!("no answer") };
    assert_eq!(pairs.len(), 2 * (MANY + 2));
}

#[test]
fn what_a_walk_meets_twice_is_there_once() {
    let items = ["a", "1", "b", "2", "a", "3"].map(Bytes::from);
    assert_eq!(distinct(items.to_vec(), 2), ["a", "1", "b", "2"].map(Bytes::from));
}
