//! Bytes of a client: any split gives the same commands, and a node answers each of them with whole answers.

use crate::cursor::Cursor;
use crate::lone::Lone;
use bytes::BytesMut;
use ensue_resp::{ParseError, ParseLimits, Parser};
use ensue_types::Args;
use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    static STARTED: RefCell<Option<Lone>> = const { RefCell::new(None) };
}

/// The first byte says how the others are cut on their way.
pub fn run(data: &[u8]) {
    let mut cursor = Cursor::new(data);
    let cut = usize::from(cursor.byte());
    let bytes = cursor.rest();
    let whole = parse([bytes]);
    assert_eq!(whole, parse(bytes.chunks(1)), "a byte at a time");
    assert_eq!(whole, parse(bytes.chunks(cut + 1)), "{} bytes at a time", cut + 1);
    converse(whole);
}

/// What a fresh node answers to commands that came over one connection.
fn converse((commands, error): (Vec<Args>, Option<ParseError>)) {
    let mut lone = started();
    lone.connect();
    let count = commands.len() as u32;
    lone.say(commands);
    if let Some(error) = error {
        lone.break_client(error.to_string());
    }
    lone.await_answers(count);
    assert!(
        lone.disconnected || lone.answered == count,
        "{} of {count} commands are answered",
        lone.answered
    );
    lone.check_replies();
}

/// A node that has just begun to serve.
pub fn started() -> Lone {
    STARTED.with_borrow_mut(|started| started.get_or_insert_with(|| Lone::new(1, BTreeMap::new())).clone())
}

fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Args>, Option<ParseError>) {
    let mut parser = Parser::new(ParseLimits::default());
    let mut buffer = BytesMut::new();
    let mut commands = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match parser.next(&mut buffer) {
                Ok(Some(command)) => commands.push(command),
                Ok(None) => break,
                Err(error) => return (commands, Some(error)),
            }
        }
    }
    (commands, None)
}
