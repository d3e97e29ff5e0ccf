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
fn what_is_no_server_is_said_so() {
    let (options, _thread) = server(b"HTTP/1.1 400 Bad Request\r\n");
    let mut connection = Connection::open(&options).unwrap();
    assert!(matches!(connection.call(&[b"PING"]), Err(ClientError::NotRedis(_))));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert!(matches!(Connection::open(&Options::local(port)), Err(ClientError::Connect { .. })));
}
