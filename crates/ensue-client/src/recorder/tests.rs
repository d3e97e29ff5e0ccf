//! Commands and answers go in, lines are compared; and what was recorded of a right store passes the checker.

use super::*;
use bytes::Bytes;
use ensue_types::Reply;

/// An output whose bytes can be looked at.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Bench {
    lines: Lines,
    recorder: Recorder,
    connection: RecordedConnection,
}

impl Bench {
    fn new() -> Bench {
        let lines = Lines::default();
        let recorder = Recorder::new(Box::new(lines.clone())).unwrap();
        let connection = recorder.connection(None);
        Bench { lines, recorder, connection }
    }

    fn send(&mut self, command: &str) -> &mut Bench {
        let args: Vec<Bytes> =
            command.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        self.connection.on_command(&args);
        self
    }

    fn answer(&mut self, reply: Reply) -> &mut Bench {
        self.connection.on_reply(&reply);
        self
    }

    fn ask(&mut self, command: &str, reply: Reply) -> &mut Bench {
        self.send(command).answer(reply)
    }

    /// Everything between the first line and the last, without times.
    fn finish(mut self) -> Vec<String> {
        self.connection.on_end();
        self.recorder.finish().unwrap();
        let text = String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<String> = text.lines().map(without_times).collect();
        lines[1..lines.len() - 1].to_vec()
    }
}

fn without_times(line: &str) -> String {
    let Some((before, rest)) = line.split_once(r#","start":"#) else { return line.into() };
    let (_, end) = rest.split_once(r#","end":"#).expect("both stand there");
    let digits = end.find([',', '}']).unwrap();
    let end_text = if end.starts_with("null") { r#","end":null"# } else { "" };
    format!("{before}{end_text}{}", &end[digits..])
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(Bytes::copy_from_slice(text.as_bytes()))
}

/// The operations of one command with this answer.
#[track_caller]
fn check(command: &str, reply: Reply, operations: &str) {
    let mut bench = Bench::new();
    bench.ask(command, reply);
    let lines = bench.finish();
    assert_eq!(
        lines[0],
        format!(r#"{{"session":"c1","operations":[{operations}]}}"#),
        "{command}: {lines:?}"
    );
}

#[track_caller]
fn check_nothing(command: &str, reply: Reply) {
    let mut bench = Bench::new();
    bench.ask(command, reply);
    assert_eq!(bench.finish(), Vec::<String>::new(), "{command}");
}

#[track_caller]
fn check_left_out(command: &str, reply: Reply, keys: &[&str]) {
    let mut bench = Bench::new();
    bench.ask(command, reply);
    let lines: Vec<String> = bench.finish().into_iter().filter(|line| line.contains("left-out")).collect();
    assert_eq!(lines.len(), keys.len(), "{command}: {lines:?}");
    for (line, key) in lines.iter().zip(keys) {
        assert!(line.contains(&format!(r#""key":"{key}""#)), "{command}: {line}");
    }
}

#[test]
fn strings() {
    check("GET x", bulk("1"), r#"{"read":"x","value":"1"}"#);
    check("GET x", Reply::Nil, r#"{"read":"x","value":null}"#);
    check("SET x 1", Reply::OK, r#"{"write":"x","value":"1"}"#);
    check("SET x 1 NX", Reply::OK, r#"{"read":"x","value":null},{"write":"x","value":"1"}"#);
    check_nothing("SET x 1 NX", Reply::Nil);
    check("SET x 1 XX", Reply::Nil, r#"{"read":"x","value":null}"#);
    check("SET x 2 GET", bulk("1"), r#"{"read":"x","value":"1"},{"write":"x","value":"2"}"#);
    check("SET x 2 XX GET", Reply::Nil, r#"{"read":"x","value":null}"#);
    check("GETSET x 2", bulk("1"), r#"{"read":"x","value":"1"},{"write":"x","value":"2"}"#);
    check("SETNX x 1", Reply::Integer(1), r#"{"read":"x","value":null},{"write":"x","value":"1"}"#);
    check_nothing("SETNX x 1", Reply::Integer(0));
    check("GETDEL x", bulk("1"), r#"{"read":"x","value":"1"},{"write":"x","value":null}"#);
    check(
        "MGET x y",
        Reply::Array(vec![bulk("1"), Reply::Nil]),
        r#"{"read":"x","value":"1"},{"read":"y","value":null}"#,
    );
    check("MSET x 1 y 2", Reply::OK, r#"{"write":"x","value":"1"},{"write":"y","value":"2"}"#);
    check("DEL x y", Reply::Integer(2), r#"{"write":"x","value":null},{"write":"y","value":null}"#);
    check("DEL x", Reply::Integer(0), r#"{"read":"x","value":null}"#);
    check_left_out("DEL x y", Reply::Integer(1), &["x", "y"]);
    check("DECRBY n 3", Reply::Integer(-3), r#"{"add":"n","delta":-3},{"count":"n","value":-3}"#);
}

#[test]
fn hashes_and_sets() {
    check("HGET h f", bulk("1"), r#"{"read":"h[f]","value":"1"}"#);
    check(
        "HSET h f 1 g 2",
        Reply::Integer(1),
        r#"{"write":"h[f]","value":"1"},{"write":"h[g]","value":"2"}"#,
    );
    check("HSET h f 1", Reply::Integer(1), r#"{"read":"h[f]","value":null},{"write":"h[f]","value":"1"}"#);
    check(
        "HGETALL h",
        Reply::Map(vec![(bulk("f"), bulk("1"))]),
        r#"{"read":"h[f]","value":"1"},{"row":"h"}"#,
    );
    check(
        "HGETALL h",
        Reply::Array(vec![bulk("f"), bulk("1")]),
        r#"{"read":"h[f]","value":"1"},{"row":"h"}"#,
    );
    check("HDEL h f", Reply::Integer(1), r#"{"write":"h[f]","value":null}"#);
    check("SADD s m", Reply::Integer(1), r#"{"read":"s[m]","value":null},{"write":"s[m]","value":"in"}"#);
    check("SREM s m", Reply::Integer(0), r#"{"read":"s[m]","value":null}"#);
    check("SISMEMBER s m", Reply::Integer(1), r#"{"read":"s[m]","value":"in"}"#);
    check("SMEMBERS s", Reply::Set(vec![bulk("m")]), r#"{"read":"s[m]","value":"in"},{"row":"s"}"#);
    check("SMEMBERS s", Reply::Set(Vec::new()), r#"{"row":"s"}"#);
    check("HGETALL h", Reply::Map(Vec::new()), r#"{"row":"h"}"#);
}

#[test]
fn what_cannot_be_said_leaves_its_keys_out() {
    check_left_out("APPEND x 1", Reply::Integer(1), &["x"]);
    check_left_out("LTRIM list 0 1", Reply::OK, &["list"]);
    check_left_out("LSET list 0 a", Reply::OK, &["list"]);
    check_left_out("GEOADD places a", Reply::Integer(1), &["places", "a"]);
    check_left_out("INCRBYFLOAT x 1.5", bulk("1.5"), &["x"]);
    check_nothing("DEL x y", Reply::error("READONLY no"));
    check_nothing("STRLEN x", Reply::Integer(3));
    check_nothing("PING", Reply::Status("PONG".into()));
    check_nothing("GET x", Reply::error("WRONGTYPE no"));
}

#[test]
fn queues() {
    let array = |items: &[&str]| Reply::Array(items.iter().map(|item| bulk(item)).collect());
    check("RPUSH q a b", Reply::Integer(2), r#"{"push":"q","value":"a"},{"push":"q","value":"b"}"#);
    check("LPUSHX q a", Reply::Integer(7), r#"{"push":"q","value":"a"}"#);
    check_nothing("LPUSHX q a", Reply::Integer(0));
    check("LINSERT q BEFORE a b", Reply::Integer(7), r#"{"push":"q","value":"b"}"#);
    check_nothing("LINSERT q BEFORE a b", Reply::Integer(-1));
    check("LPOP q", bulk("a"), r#"{"pop":"q","value":"a"}"#);
    check("RPOP q", Reply::Nil, r#"{"pop":"q","value":null}"#);
    check("LPOP q 2", array(&["a", "b"]), r#"{"pop":"q","value":"a"},{"pop":"q","value":"b"}"#);
    check("LPOP q 2", array(&["a"]), r#"{"pop":"q","value":"a"},{"pop":"q","value":null}"#);
    check("BLPOP p q 0", array(&["q", "a"]), r#"{"pop":"q","value":"a"}"#);
    check("BLPOP p q 1", Reply::NilArray, r#"{"pop":"p","value":null},{"pop":"q","value":null}"#);
    check(
        "LMPOP 2 p q LEFT COUNT 1",
        Reply::Array(vec![bulk("q"), array(&["a"])]),
        r#"{"pop":"q","value":"a"}"#,
    );
    check("BLMPOP 1 1 q LEFT", Reply::NilArray, r#"{"pop":"q","value":null}"#);
    for moves in ["LMOVE q p LEFT LEFT", "RPOPLPUSH q p", "BLMOVE q p LEFT LEFT 0", "BRPOPLPUSH q p 0"] {
        check(moves, bulk("a"), r#"{"pop":"q","value":"a"},{"push":"p","value":"a"}"#);
        check(moves, Reply::Nil, r#"{"pop":"q","value":null}"#);
    }
    check("LREM q 0 a", Reply::Integer(2), r#"{"pop":"q","value":"a"},{"pop":"q","value":"a"}"#);
    check_nothing("LREM q 0 a", Reply::Integer(0));
    check("LRANGE q 0 -1", array(&["a", "b"]), r#"{"hold":"q","value":"a"},{"hold":"q","value":"b"}"#);
    check("LRANGE q 0 -1", Reply::Array(Vec::new()), r#"{"hold":"q","value":null}"#);
    check_nothing("LRANGE q 0 5", array(&["a"]));
    check_nothing("LLEN q", Reply::Integer(1));
    check_left_out("BLPOP p q 0", array(&["elsewhere", "a"]), &["p", "q"]);
}

/// The name in the answer is that of the command, without the keyspace.
#[test]
fn queues_of_other_keyspaces_have_names_of_their_own() {
    let mut bench = Bench::new();
    bench.ask("SELECT 3", Reply::OK);
    bench.ask("BRPOP p q 0", Reply::Array(vec![bulk("q"), bulk("a")]));
    assert!(bench.finish()[0].contains(r#"[{"pop":"[3]q","value":"a"}]"#));
}

#[test]
fn queue_commands_without_an_answer_may_have_happened() {
    for (command, operations) in [
        ("RPUSH q a", r#"{"push":"q","value":"a"}"#),
        ("LPOP q", r#"{"pop":"q"}"#),
        ("LPOP q 2", r#"{"pop":"q"},{"pop":"q"}"#),
        ("BLPOP p q 0", r#"{"pop":"p"},{"pop":"q"}"#),
        ("LMOVE q p LEFT LEFT", r#"{"pop":"q"},{"push":"p"}"#),
        ("LREM q -1 a", r#"{"pop":"q"}"#),
    ] {
        for reply in [Some(Reply::error("UNKNOWN who knows")), None] {
            let mut bench = Bench::new();
            bench.send(command);
            if let Some(reply) = reply {
                bench.answer(reply);
            }
            let lines = bench.finish();
            assert!(lines[0].contains(&format!(r#""end":null,"operations":[{operations}]}}"#)), "{lines:?}");
        }
    }
    for command in ["LPOP q 1001", "LREM q 0 a"] {
        check_left_out(command, Reply::error("UNKNOWN who knows"), &["q"]);
    }
    let mut bench = Bench::new();
    bench.ask("RPUSH q a", Reply::error("WRONGTYPE no"));
    assert!(bench.finish()[0].contains(r#""status":"failed","operations":[{"push":"q","value":"a"}]"#));
}

#[test]
fn renames_and_flushes_are_operations() {
    check("RENAME x y", Reply::OK, r#"{"rename":"x","to":"y"}"#);
    check("RENAMENX x y", Reply::Integer(1), r#"{"read":"y","value":null},{"rename":"x","to":"y"}"#);
    check_nothing("RENAMENX x y", Reply::Integer(0));
    check_nothing("RENAME x x", Reply::OK);
    check("FLUSHDB", Reply::OK, r#"{"flush":0}"#);
    check("FLUSHALL ASYNC", Reply::OK, r#"{"flush":"all"}"#);
    let mut bench = Bench::new();
    bench.ask("RENAME x y", Reply::error("ERR no such key"));
    bench.ask("SELECT 3", Reply::OK).send("FLUSHDB");
    let expected = [
        r#"{"session":"c1","status":"failed","operations":[{"rename":"x","to":"y"}]}"#,
        r#"{"session":"c1/3~t1","end":null,"operations":[{"flush":3}]}"#,
        r#"{"event":"session","session":"c1"}"#,
    ];
    assert_eq!(bench.finish(), expected);
    let mut bench = Bench::new();
    bench.ask("MULTI", Reply::OK).ask("FLUSHDB", Reply::Status("QUEUED".into()));
    bench.ask("EXEC", Reply::Array(vec![Reply::OK]));
    assert_eq!(bench.finish(), [r#"{"event":"left-out","reason":"FLUSHDB in a MULTI"}"#]);
}

#[test]
fn a_script_that_fails_may_have_changed_something_before() {
    let wrong = || Reply::error("WRONGTYPE no, script: 1");
    check_left_out("EVAL script 1 k", wrong(), &["script", "1", "k"]);
    let mut bench = Bench::new();
    let queued = || Reply::Status("QUEUED".into());
    bench.ask("MULTI", Reply::OK).ask("SET x 1", queued()).ask("EVAL script 1 k", queued());
    bench.ask("EXEC", Reply::Array(vec![Reply::OK, wrong()]));
    bench.ask("MULTI", Reply::OK).ask("EVAL script 1 other", queued()).ask("EXEC", Reply::Nil);
    let expected = [
        r#"{"session":"c1","operations":[{"write":"x","value":"1"}]}"#,
        r#"{"event":"left-out","key":"script","reason":"EVAL"}"#,
        r#"{"event":"left-out","key":"1","reason":"EVAL"}"#,
        r#"{"event":"left-out","key":"k","reason":"EVAL"}"#,
        r#"{"event":"session","session":"c1"}"#,
    ];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn a_transaction_is_one_line() {
    let mut bench = Bench::new();
    let queued = || Reply::Status("QUEUED".into());
    bench.ask("MULTI", Reply::OK).ask("SET x 1", queued()).ask("GET y", queued()).ask("INCR x", queued());
    bench.ask("EXEC", Reply::Array(vec![Reply::OK, Reply::Nil, Reply::error("ERR no integer")]));
    bench.ask("MULTI", Reply::OK).ask("SET x 2", queued()).ask("DISCARD", Reply::OK);
    bench.ask("MULTI", Reply::OK).ask("SET x 3", queued()).ask("EXEC", Reply::error("EXECABORT no"));
    let expected = [
        r#"{"session":"c1","operations":[{"write":"x","value":"1"},{"read":"y","value":null}]}"#,
        r#"{"session":"c1","status":"failed","operations":[{"write":"x","value":"3"}]}"#,
        r#"{"event":"session","session":"c1"}"#,
    ];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn what_was_not_answered_stands_apart() {
    let mut bench = Bench::new();
    bench.ask("SET x 1", Reply::OK).ask("SET x 2", Reply::error("UNKNOWN no answer"));
    bench.send("SET x 3").send("INCR n").send("GET x");
    let expected = [
        r#"{"session":"c1","operations":[{"write":"x","value":"1"}]}"#,
        r#"{"session":"c1","token":"t1","operations":[]}"#,
        r#"{"session":"c1~t2","end":null,"merges":["t1"],"operations":[{"write":"x","value":"2"}]}"#,
        r#"{"session":"c1","token":"t3","operations":[]}"#,
        r#"{"session":"c1~t4","end":null,"merges":["t3"],"operations":[{"write":"x","value":"3"}]}"#,
        r#"{"session":"c1","token":"t5","operations":[]}"#,
        r#"{"session":"c1~t6","end":null,"merges":["t5"],"operations":[{"add":"n","delta":1}]}"#,
        r#"{"event":"session","session":"c1"}"#,
    ];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn after_a_fallback_comes_a_new_session() {
    let mut bench = Bench::new();
    bench.ask("SET x 1", Reply::OK);
    bench.ask("GET x", Reply::error("BLOCKED not here yet"));
    bench.ask("SET y 2", Reply::error("FALLBACK not here yet")).ask("GET x", Reply::Nil);
    let expected = [
        r#"{"session":"c1","operations":[{"write":"x","value":"1"}]}"#,
        r#"{"session":"c1","status":"failed","operations":[{"write":"y","value":"2"}]}"#,
        r#"{"event":"session","session":"c1"}"#,
        r#"{"session":"c2","operations":[{"read":"x","value":null}]}"#,
        r#"{"event":"session","session":"c2"}"#,
    ];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn a_deadline_is_a_deletion_that_may_come() {
    let mut bench = Bench::new();
    bench.ask("SET x 1 EX 10", Reply::OK);
    let expected = [
        r#"{"session":"c1","token":"t1","operations":[{"write":"x","value":"1"}]}"#,
        r#"{"session":"c1~t2","end":null,"merges":["t1"],"operations":[{"write":"x","value":null}]}"#,
        r#"{"event":"session","session":"c1"}"#,
    ];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn a_deadline_that_was_not_answered_may_come_too() {
    let mut bench = Bench::new();
    bench.ask("SET y 1", Reply::OK).send("SET x 1 EX 10");
    let expected = [
        r#"{"session":"c1","operations":[{"write":"y","value":"1"}]}"#,
        r#"{"session":"c1","token":"t1","operations":[]}"#,
        r#"{"session":"c1~t3","end":null,"token":"t2","merges":["t1"],"operations":[{"write":"x","value":"1"}]}"#,
        r#"{"session":"c1~t4","end":null,"merges":["t2"],"operations":[{"write":"x","value":null}]}"#,
        r#"{"event":"session","session":"c1"}"#,
    ];
    assert_eq!(bench.finish(), expected);
    let mut bench = Bench::new();
    let queued = || Reply::Status("QUEUED".into());
    bench.ask("MULTI", Reply::OK).ask("SET x 1 EX 10", queued()).ask("SET y 1", queued()).send("EXEC");
    let expected = [
        r#"{"session":"c1~t2","end":null,"token":"t1","operations":[{"write":"x","value":"1"},{"write":"y","value":"1"}]}"#,
        r#"{"session":"c1~t3","end":null,"merges":["t1"],"operations":[{"write":"x","value":null}]}"#,
    ];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn tokens_name_the_transaction_that_got_them() {
    let mut bench = Bench::new();
    bench
        .ask("SET x 1", Reply::OK)
        .ask("CAUSAL TOKEN", bulk("abc"))
        .ask("RESET", Reply::Status("RESET".into()));
    bench.ask("CAUSAL MERGE abc", Reply::OK).ask("CAUSAL MERGE other", Reply::OK);
    bench.ask("CAUSAL MERGE abc", Reply::error("NOTYET 1"));
    let expected = [
        r#"{"session":"c1","operations":[{"write":"x","value":"1"}]}"#,
        r#"{"session":"c1","token":"t1","operations":[]}"#,
        r#"{"event":"session","session":"c1"}"#,
        r#"{"session":"c2","merges":["t1"],"operations":[]}"#,
        r#"{"event":"session","session":"c2"}"#,
    ];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn keyspaces_have_pasts_of_their_own() {
    let mut bench = Bench::new();
    bench.ask("SELECT 2", Reply::OK).ask("SET x 1", Reply::OK).ask("HGET h f", Reply::Nil);
    bench.ask("SELECT 99", Reply::error("ERR out of range")).ask("SET y 1", Reply::OK);
    let expected = [
        r#"{"session":"c1/2","operations":[{"write":"[2]x","value":"1"}]}"#,
        r#"{"session":"c1/2","operations":[{"read":"[2]h[f]","value":null}]}"#,
        r#"{"session":"c1/2","operations":[{"write":"[2]y","value":"1"}]}"#,
        r#"{"event":"session","session":"c1/2"}"#,
    ];
    assert_eq!(bench.finish(), expected);
}

#[test]
fn after_a_subscription_whatever_is_sent_may_have_been_done() {
    let mut bench = Bench::new();
    bench
        .ask("SET x 1", Reply::OK)
        .send("SUBSCRIBE news")
        .answer(bulk("?"))
        .send("SET x 2")
        .answer(Reply::OK);
    let lines = bench.finish();
    assert!(lines[2].starts_with(r#"{"session":"c1~t2","end":null"#), "{lines:?}");
}

#[test]
fn names_are_never_mistaken() {
    let names = [
        name::key(0, b"a[b]"),
        name::element("a", b"b"),
        name::key(0, br"a\[b]"),
        name::key(1, b"a"),
        name::key(0, b"[1]a"),
        name::key(0, b"\xff"),
        name::key(0, br"\xff"),
    ];
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
    let (one, other) = ([b'a'; 500], [b'b'; 500]);
    assert_eq!(name::value(&one), name::value(&one));
    assert_ne!(name::value(&one), name::value(&other));
    assert!(name::value(&one).len() < 100);
}

#[test]
fn the_first_failure_to_write_is_reported() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.starts_with(br#"{"event":"history""#) {
                Ok(bytes.len())
            } else {
                Err(io::Error::other("full"))
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let recorder = Recorder::new(Box::new(Full)).unwrap();
    let mut connection = recorder.connection(Some("dc1"));
    connection.on_command(&[Bytes::from("SET"), Bytes::from("x"), Bytes::from(vec![b'a'; 90])]);
    connection.on_reply(&Reply::OK);
    drop(connection);
    assert!(recorder.finish().is_err());
}

#[test]
fn what_a_connection_of_the_final_name_reads_is_final() {
    let mut bench = Bench::new();
    bench
        .ask("GET x", Reply::Nil)
        .ask("CLIENT SETNAME ensue-final", Reply::OK)
        .ask("GET x", Reply::Nil)
        .ask("CLIENT SETNAME other", Reply::OK)
        .ask("GET x", Reply::Nil);
    let lines = bench.finish();
    let is_final: Vec<bool> = lines
        .iter()
        .filter(|line| line.contains(r#""read":"x""#))
        .map(|line| line.contains(r#""final":true"#))
        .collect();
    assert_eq!(is_final, [false, true, false], "{lines:?}");
}
