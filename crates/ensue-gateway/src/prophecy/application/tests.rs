//! Whatever a server does with a request of the order, there is an outcome of it.

use super::*;
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread::JoinHandle;

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(20);

type Handler = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// A server of which each connection is handled by the next of these.
fn server(handlers: Vec<Handler>) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = thread::spawn(move || {
        for handle in handlers {
            handle(&mut listener.accept().unwrap().0);
        }
    });
    (address, thread)
}

fn read_some(stream: &mut TcpStream) -> Vec<u8> {
    let mut buffer = [0; 4096];
    let count = stream.read(&mut buffer).unwrap();
    buffer[..count].to_vec()
}

/// A handler that answers each request of a connection with the next of these.
fn answers(replies: &'static [&'static str]) -> Handler {
    Box::new(move |stream| {
        for reply in replies {
            assert!(!read_some(stream).is_empty(), "a request is awaited for {reply:?}");
            stream.write_all(reply.as_bytes()).unwrap();
        }
    })
}

fn is_absent(called: &Result<Vec<u8>, CallError>) -> bool {
    matches!(called, Err(CallError::NoResponse(_)))
}

#[test]
fn a_server_that_closes_or_answers_what_cannot_be_read_gives_no_response_and_the_next_request_has_one() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let wrong =
        ["", "no HTTP\r\n\r\n", "HTTP/1.1 101 On\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"];
    for reply in wrong {
        let replies: &'static [&'static str] = Box::leak(Box::new([reply]));
        let (address, thread) = server(vec![answers(replies), answers(&[OK])]);
        let mut application = Application::new(Protocol::Http, address, LONG);
        let called = application.execute(b"GET /%00 HTTP/1.1\r\n\r\n");
        assert!(is_absent(&called), "{reply:?}: {called:?}");
        assert_eq!(application.execute(b"GET / HTTP/1.1\r\n\r\n").unwrap(), OK.as_bytes());
        thread.join().unwrap();
    }
}

#[test]
fn a_response_that_does_not_end_is_none_after_one_time_for_all_of_it() {
    for is_read in [false, true] {
        let (ended, has_ended) = mpsc::channel::<()>();
        let drip = move |stream: &mut TcpStream| {
            read_some(stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            // Far more often than the time limit, and until the caller is gone.
            while has_ended.recv_timeout(SHORT / 10) == Err(mpsc::RecvTimeoutError::Timeout) {
                if stream.write_all(b".").is_err() {
                    return;
                }
            }
        };
        let (address, thread) = server(vec![Box::new(drip)]);
        let mut application = Application::new(Protocol::Http, address, SHORT);
        let request = b"GET /events HTTP/1.1\r\n\r\n";
        let called = if is_read { application.read(request) } else { application.execute(request) };
        assert!(is_absent(&called), "{called:?}");
        drop(ended);
        thread.join().unwrap();
    }
}

#[test]
fn what_asks_for_a_header_is_known_by_the_method_of_a_whole_request() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    let replies: &'static [&'static str] = Box::leak(Box::new([head]));
    let (address, thread) = server(vec![answers(replies)]);
    let mut application = Application::new(Protocol::Http, address, LONG);
    assert_eq!(application.execute(b"HEAD / HTTP/1.1\r\n\r\n").unwrap(), head.as_bytes());
    thread.join().unwrap();
}

#[test]
fn the_port_of_a_request_is_free_when_its_response_was_read() {
    let reset = |stream: &mut TcpStream| {
        read_some(stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        let end = stream.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(end, Err(io::ErrorKind::ConnectionReset), "an orderly end would wait for a minute");
    };
    let (address, thread) = server(vec![Box::new(reset)]);
    let mut application = Application::new(Protocol::Http, address, LONG);
    application.execute(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    drop(application);
    thread.join().unwrap();
}

#[test]
fn a_server_that_takes_no_connections_for_a_while_is_waited_for() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (tried, has_tried) = mpsc::channel();
    let caller = thread::spawn(move || {
        let mut application = Application::new(Protocol::Http, address, LONG);
        assert!(application.connect().is_err(), "nobody listens");
        tried.send(()).unwrap();
        application.execute(b"GET / HTTP/1.1\r\n\r\n")
    });
    has_tried.recv().unwrap();
    let listener = TcpListener::bind(address).unwrap();
    answers(&["HTTP/1.1 204 No\r\n\r\n"])(&mut listener.accept().unwrap().0);
    assert!(caller.join().unwrap().unwrap().starts_with(b"HTTP/1.1 204"));
}

const RUN: &str = "$12\r\nrun_id:abc\r\n\r\n";
const OTHER_RUN: &str = "$12\r\nrun_id:abd\r\n\r\n";

#[test]
fn a_server_of_the_redis_protocol_that_closed_is_asked_again_if_it_is_the_same() {
    let first = answers(&[RUN, ":0\r\n"]);
    let (address, thread) = server(vec![first, answers(&[RUN, "+OK\r\n"]), answers(&[RUN, ""])]);
    let mut application = Application::new(Protocol::Redis, address, LONG);
    assert!(!application.is_used().unwrap());
    // It closes a connection on which nothing was asked, and executes nothing of it.
    while is_quiet(application.stream.as_ref().unwrap()) {
        thread::yield_now();
    }
    assert_eq!(application.execute(b"SET").unwrap(), b"+OK\r\n");
    while is_quiet(application.stream.as_ref().unwrap()) {
        thread::yield_now();
    }
    assert!(is_absent(&application.execute(b"CRASH")));
    thread.join().unwrap();
}

#[test]
fn a_server_of_the_redis_protocol_that_was_started_anew_ends_its_replica() {
    for run in [OTHER_RUN, "$-1\r\n"] {
        let replies: &'static [&'static str] = Box::leak(Box::new([run]));
        let (address, thread) = server(vec![answers(&[RUN, ":0\r\n", ""]), answers(replies)]);
        let mut application = Application::new(Protocol::Redis, address, LONG);
        assert!(!application.is_used().unwrap());
        assert!(is_absent(&application.execute(b"CRASH")));
        assert!(matches!(application.execute(b"SET"), Err(CallError::StartedAnew)));
        thread.join().unwrap();
    }
}
