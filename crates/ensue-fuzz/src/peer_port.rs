//! Bytes of a peer: frames, messages, greetings; and a node that is told whatever decodes.

use crate::cursor::Cursor;
use crate::lone::Lone;
use bytes::{Bytes, BytesMut};
use ensue_node::Input;
use ensue_types::{CoreId, DatacenterId};
use ensue_wire::{Envelope, FrameReader, Hello, WireError, decode, encode, write_frame};
use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    static LINKED: RefCell<Option<Lone>> = const { RefCell::new(None) };
}

/// The first byte says what the others are: a greeting, raw frames, or bodies that get a right checksum.
pub fn run(data: &[u8]) {
    let mut cursor = Cursor::new(data);
    match cursor.byte() % 3 {
        0 => greet(cursor.rest()),
        1 => {
            let cut = usize::from(cursor.byte());
            let bytes = cursor.rest();
            let whole = read_frames([bytes]);
            assert_eq!(whole, read_frames(bytes.chunks(cut + 1)), "{} bytes at a time", cut + 1);
            tell(whole.0);
        }
        _ => {
            let mut bodies = Vec::new();
            while !cursor.is_empty() {
                let length = usize::from(cursor.short());
                bodies.push(framed(cursor.take(length)));
            }
            tell(bodies);
        }
    }
}

fn greet(bytes: &[u8]) {
    let mut buffer = BytesMut::from(bytes);
    if let Ok(Some(hello)) = Hello::next(&mut buffer) {
        let again = Hello::decode(&hello.encode());
        assert_eq!(again.as_ref(), Ok(&hello), "what was read is written the same");
    }
}

/// Bodies of the frames, and whether they ended in a refusal.
fn read_frames<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Bytes>, Option<WireError>) {
    let (frames, mut buffer, mut bodies) = (FrameReader::default(), BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match frames.next(&mut buffer) {
                Ok(Some(body)) => bodies.push(body),
                Ok(None) => break,
                Err(error) => return (bodies, Some(error)),
            }
        }
    }
    (bodies, None)
}

/// A body as it comes out of a frame around it.
fn framed(body: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    write_frame(body, &mut bytes).expect("it is short enough");
    let mut buffer = BytesMut::from(&bytes[..]);
    let out = FrameReader::default().next(&mut buffer).expect("the checksum is right").expect("it is whole");
    assert_eq!(&out[..], body);
    out
}

/// Tells a node whatever decodes, until something does not: the link would be closed there.
fn tell(bodies: Vec<Bytes>) {
    let envelopes: Vec<Envelope> = bodies.iter().map_while(read).collect();
    if envelopes.is_empty() {
        return;
    }
    let mut lone = linked();
    for envelope in envelopes {
        lone.give(Input::Message(envelope));
    }
    // Whatever it was told, it still serves its own clients.
    lone.connect();
    lone.say(vec![vec![Bytes::from_static(b"PING")]]);
    lone.await_answers(1);
    assert_eq!(lone.check_replies(), 1, "a peer has made the node silent");
}

fn read(body: &Bytes) -> Option<Envelope> {
    let envelope = decode(body).ok()?;
    let mut again = Vec::new();
    encode(&envelope, &mut again).expect("what was read can be written");
    assert_eq!(again, &body[..], "a message has one encoding");
    Some(envelope)
}

fn linked() -> Lone {
    let start = || {
        let mut lone = Lone::new(2, BTreeMap::new());
        lone.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
        lone
    };
    LINKED.with_borrow_mut(|linked| linked.get_or_insert_with(start).clone())
}
