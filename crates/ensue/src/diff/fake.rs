//! A server of a test: it answers one connection by a function, or from a list of commands with their answers.

use super::side::Side;
use bytes::BytesMut;
use ensue_client::{Options, Reply};
use ensue_resp::{ParseLimits, Parser, ProtocolVersion, encode};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// A side whose server answers each command, of which it gets the words joined by blanks.
pub(super) fn side(name: &'static str, answer: impl FnMut(&str) -> Reply + Send + 'static) -> Side {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || serve(listener.accept().unwrap().0, answer));
    Side::open(name, &Options::local(port)).unwrap()
}

/// A side whose server knows these commands, and no others.
pub(super) fn side_with(name: &'static str, answers: &[(&str, Reply)]) -> Side {
    let answers: Vec<(String, Reply)> =
        answers.iter().map(|(command, reply)| (command.to_string(), reply.clone())).collect();
    side(name, move |command| {
        let known = answers.iter().find(|(known, _)| known == command).map(|(_, reply)| reply.clone());
        match command {
            "PING" => Reply::Status("PONG".into()),
            _ => known.unwrap_or_else(|| Reply::Error(format!("ERR unknown command '{command}'").into())),
        }
    })
}

fn serve(mut stream: TcpStream, mut answer: impl FnMut(&str) -> Reply) {
    let mut parser = Parser::new(ParseLimits::default());
    let (mut input, mut scratch) = (BytesMut::new(), [0; 4_096]);
    loop {
        while let Some(words) = parser.next(&mut input).unwrap() {
            let words: Vec<String> =
                words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
            let mut out = Vec::new();
            encode(&answer(&words.join(" ")), ProtocolVersion::Resp2, &mut out);
            if stream.write_all(&out).is_err() {
                return;
            }
        }
        match stream.read(&mut scratch) {
            Ok(0) | Err(_) => return,
            Ok(length) => input.extend_from_slice(&scratch[..length]),
        }
    }
}

/// A list of texts.
pub(super) fn list(texts: &[&str]) -> Reply {
    Reply::Array(texts.iter().map(|text| Reply::bulk(text.to_string())).collect())
}

/// An entry of a stream.
pub(super) fn entry(id: &str, fields: &[&str]) -> Reply {
    Reply::Array(vec![Reply::bulk(id.to_string()), list(fields)])
}
