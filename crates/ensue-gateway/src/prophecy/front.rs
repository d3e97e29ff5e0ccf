//! Connections of clients, which are not changed: each has a thread, which reads one request, waits for its answer, and
//! writes it. So the requests of one connection are executed one after the other, as a server would.

use super::framing::{HttpRequest, HttpResponse, Unreadable, http_request, http_response};
use super::members::Protocol;
use crate::limits::{
    CLIENT_IDLE_MAX, CLIENTS_MAX, CONNECT_PAUSE, REFUSED_BYTES_MAX, REFUSED_IDLE_MAX, WRITE_MAX,
};
use crate::spawn;
use bytes::BytesMut;
use ensue_prophecy::handler::RequestError;
use ensue_prophecy::limits::REQUEST_BYTES_MAX;
use ensue_prophecy::replica_client::CallFailure;
use ensue_prophecy::sketcher::Refusal;
use ensue_resp::{CommandError, ParseLimits, Parser};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const READ_BYTES: usize = 64 << 10;

/// What a request came to.
pub(super) type Outcome = Result<Vec<u8>, Refusal>;
/// Issues a request, and waits; `None` if there is no sketcher any more.
pub(super) type Issue = Arc<dyn Fn(Vec<u8>) -> Option<Outcome> + Send + Sync>;

/// Takes connections.
pub(super) fn serve(listener: &TcpListener, protocol: Protocol, issue: &Issue) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(CONNECT_PAUSE);
            continue;
        };
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (issue, counted) = (Arc::clone(issue), Arc::clone(&clients));
        let started = spawn("client", move || {
            // Whatever ends a connection, its client sees it.
            let _ = converse(stream, protocol, &issue);
            counted.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn converse(stream: TcpStream, protocol: Protocol, issue: &Issue) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CLIENT_IDLE_MAX))?;
    stream.set_write_timeout(Some(WRITE_MAX))?;
    match protocol {
        Protocol::Redis => converse_redis(stream, issue),
        Protocol::Http => converse_http(stream, issue),
    }
}

fn converse_redis(mut stream: TcpStream, issue: &Issue) -> io::Result<()> {
    let limits = ParseLimits {
        bulk_bytes_max: REQUEST_BYTES_MAX,
        command_bytes_max: REQUEST_BYTES_MAX,
        ..ParseLimits::default()
    };
    let mut parser = Parser::new(limits);
    let mut bytes = BytesMut::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match parser.next(&mut bytes) {
            // The parser has passed over a command that is longer than it may be. A client without a reply to it
            // would take the next one for it.
            Ok(Some(args)) if args.is_empty() => {
                stream.write_all(format!("-ERR {}\r\n", CommandError::TooLong).as_bytes())?;
            }
            Ok(Some(args)) => {
                let mut request = Vec::new();
                ensue_resp::encode::encode_command(&args, &mut request);
                let Some(outcome) = issue(request) else { return Ok(()) };
                match outcome {
                    Ok(response) => stream.write_all(&response)?,
                    Err(refusal) => stream.write_all(redis_error(&refusal).as_bytes())?,
                }
            }
            Ok(None) => {
                let count = stream.read(&mut buffer)?;
                if count == 0 {
                    return Ok(());
                }
                bytes.extend_from_slice(&buffer[..count]);
            }
            Err(error) => return refuse(stream, format!("-ERR {error}\r\n").as_bytes()),
        }
    }
}

/// Ends a connection with an error. What the client has sent meanwhile is read: a socket that is closed with unread
/// bytes takes the error back.
fn refuse(mut stream: TcpStream, error: &[u8]) -> io::Result<()> {
    stream.write_all(error)?;
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(REFUSED_IDLE_MAX))?;
    let mut buffer = vec![0; READ_BYTES];
    let mut unread = REFUSED_BYTES_MAX;
    while unread > 0 {
        match stream.read(&mut buffer)? {
            0 => break,
            count => unread = unread.saturating_sub(count),
        }
    }
    Ok(())
}

fn redis_error(refusal: &Refusal) -> String {
    let code = match refusal {
        Refusal::Busy | Refusal::ForeignRegion => "TRYAGAIN",
        Refusal::Unanswered(_) => "UNANSWERED",
        Refusal::Request(_) => "ERR",
    };
    format!("-{code} {}\r\n", refusal.to_string().replace(['\r', '\n'], " "))
}

fn converse_http(mut stream: TcpStream, issue: &Issue) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut was_told = false;
    loop {
        match http_request(&bytes) {
            Ok(HttpRequest::Whole { end, keeps, is_head }) => {
                was_told = false;
                let rest = bytes.split_off(end);
                let request = std::mem::replace(&mut bytes, rest);
                let Some(outcome) = issue(request) else { return Ok(()) };
                let response =
                    outcome.unwrap_or_else(|refusal| http_error(status(&refusal), &refusal.to_string()));
                stream.write_all(&response)?;
                // A response of an earlier version, and one without an end, is over when its connection is.
                let ends =
                    matches!(http_response(&response, is_head), Ok(HttpResponse::Whole { keeps: true, .. }));
                if !keeps || !ends {
                    return Ok(());
                }
                continue;
            }
            Ok(HttpRequest::Headed { expects_continue: true }) if !was_told => {
                was_told = true;
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            Ok(HttpRequest::Begun | HttpRequest::Headed { .. }) => {}
            Err(Unreadable(why)) => return refuse(stream, &http_error("400 Bad Request", why)),
        }
        if bytes.len() > REQUEST_BYTES_MAX {
            let error = RequestError::TooLong(bytes.len());
            return refuse(stream, &http_error("413 Content Too Large", &error.to_string()));
        }
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
}

fn status(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Request(RequestError::Malformed(_)) => "400 Bad Request",
        Refusal::Request(RequestError::TooLong(_)) => "413 Content Too Large",
        Refusal::Request(
            RequestError::ConnectionState(_)
            | RequestError::Differs(_)
            | RequestError::Diverges(_)
            | RequestError::NotServed(_),
        ) => "501 Not Implemented",
        Refusal::Busy | Refusal::ForeignRegion => "503 Service Unavailable",
        Refusal::Unanswered(CallFailure::NoAgreement | CallFailure::TooLong | CallFailure::NoResponse) => {
            "502 Bad Gateway"
        }
        Refusal::Unanswered(CallFailure::Silence) => "504 Gateway Timeout",
    }
}

fn http_error(status: &str, why: &str) -> Vec<u8> {
    let length = why.len() + 1;
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n");
    format!("{head}Connection: close\r\n\r\n{why}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_its_reply_also_one_that_is_too_long() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let issue: Issue = Arc::new(|request| Some(Ok(format!(":{}\r\n", request.len()).into_bytes())));
        let server = thread::spawn(move || {
            converse(listener.accept().unwrap().0, Protocol::Redis, &issue).unwrap();
        });
        let mut asked = Vec::new();
        let long = "x".repeat(REQUEST_BYTES_MAX + 1);
        for words in [["SET", "k", "old"], ["SET", "k", &long], ["GET", "k", ""]] {
            ensue_resp::encode::encode_command(&words, &mut asked);
        }
        client.write_all(&asked).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut replies = String::new();
        client.read_to_string(&mut replies).unwrap();
        let kinds: Vec<&str> = replies.lines().map(|line| &line[..1]).collect();
        assert_eq!(kinds, [":", "-", ":"], "{replies}");
        server.join().unwrap();
    }
}
