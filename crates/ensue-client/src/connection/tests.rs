//! Tests against a listener that answers fixed bytes.

use super::*;
use std::net::{Shutdown, TcpListener};
use std::thread::{self, JoinHandle};

/// Accepts one connection, answers with these bytes, and returns what it was sent.
fn server(answer: &'static [u8]) -> (Options, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = Options {
        answer_timeout: Duration::from_millis(500),
        ..Options::local(listener.local_addr().unwrap().port())
    };
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(answer).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut asked = Vec::new();
        stream.read_to_end(&mut asked).unwrap();
        asked
    });
    (options, thread)
}

#[test]
fn commands_go_out_and_answers_come_back_in_order() {
    let (options, thread) = server(b"+OK\r\n+OK\r\n$2\r\nhi\r\n:7\r\n");
    let options = Options { password: Some("word".into()), keyspace: 3, ..options };
    let mut connection = Connection::open(&options).unwrap();
    let replies = connection.pipeline(&[&[b"ECHO", b"hi"], &[b"INCR", b"n"]]).unwrap();
    assert_eq!(replies, [Reply::bulk("hi"), Reply::Integer(7)]);
    assert!(matches!(connection.receive(), Err(ClientError::Closed)));
    drop(connection);
    let asked = String::from_utf8(thread.join().unwrap()).unwrap();
    assert_eq!(
        asked,
        "*2\r\n$4\r\nAUTH\r\n$4\r\nword\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n\
         *2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"
    );
}

#[test]
fn a_wrong_password_is_an_error_with_the_servers_words() {
    let (options, _thread) = server(b"-WRONGPASS no\r\n");
    let options = Options { password: Some("x".into()), ..options };
    let error = Connection::open(&options).unwrap_err();
    assert!(matches!(error, ClientError::Refused(ref words) if words == "WRONGPASS no"), "{error}");
}

#[test]
fn a_user_logs_in_by_name() {
    let (options, thread) = server(b"+OK\r\n");
    let options = Options { user: Some("ann".into()), password: Some("word".into()), ..options };
    drop(Connection::open(&options).unwrap());
    let asked = String::from_utf8(thread.join().unwrap()).unwrap();
    assert_eq!(asked, "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$4\r\nword\r\n");
}

#[test]
fn what_is_no_server_is_said_so() {
    let (options, _thread) = server(b"HTTP/1.1 400 Bad Request\r\n");
    let mut connection = Connection::open(&options).unwrap();
    assert!(matches!(connection.call(&[b"PING"]), Err(ClientError::NotRedis(_))));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert!(matches!(Connection::open(&Options::local(port)), Err(ClientError::Connect { .. })));
}

#[test]
fn what_is_recorded_ends_with_the_connection() {
    let (options, _thread) = server(b"+OK\r\n");
    let mut connection = Connection::open(&options).unwrap();
    let path = std::env::temp_dir().join(format!("ensue-client-record-{}", std::process::id()));
    let recorder = Recorder::new(Box::new(std::fs::File::create(&path).unwrap())).unwrap();
    connection.record(&recorder, Some("dc1"));
    assert!(connection.pipeline(&[&[b"SET", b"x", b"1"], &[b"INCR", b"n"]]).is_err());
    recorder.finish().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert!(
        lines[1].contains(r#""datacenter":"dc1""#) && lines[1].contains(r#"{"write":"x","value":"1"}"#),
        "{text}"
    );
    assert!(lines[3].contains(r#""end":null"#) && lines[3].contains(r#"{"add":"n","delta":1}"#), "{text}");
    assert_eq!(lines[5], r#"{"event":"end","transactions":3}"#);
}
