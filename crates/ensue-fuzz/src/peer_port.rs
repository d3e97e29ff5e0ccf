//! Bytes of a peer: frames, messages, handshakes; and a node that is told whatever decodes, theirs to say or not.

use crate::cursor::Cursor;
use crate::lone::Lone;
use bytes::{Bytes, BytesMut};
use ensue_node::Input;
use ensue_types::{CoreId, DatacenterId};
use ensue_wire::{
    Envelope, FrameKey, FrameReader, FrameWriter, Handshake, Hello, Identity, Keys, Scope, Settings,
    WireError, decode, encode,
};
use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    static LINKED: RefCell<Option<Lone>> = const { RefCell::new(None) };
}

/// The first byte says what the others are: a hello, a handshake, raw frames, or bodies that get a right tag.
pub fn run(data: &[u8]) {
    let mut cursor = Cursor::new(data);
    match cursor.byte() % 4 {
        0 => greet(cursor.rest()),
        1 => {
            let cut = usize::from(cursor.byte());
            let bytes = cursor.rest();
            let whole = read_frames([bytes]);
            assert_eq!(whole, read_frames(bytes.chunks(cut + 1)), "{} bytes at a time", cut + 1);
            tell(whole.0);
        }
        3 => shake_hands(cursor.byte(), cursor.rest()),
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

/// Both sides of a handshake hear this after a hello that counts; in pieces or at once it comes to the same.
fn shake_hands(cut: u8, bytes: &[u8]) {
    let own = identity("dc1");
    let hello = identity("dc2").hello.encode();
    let verdict = |pieces: Vec<&[u8]>| {
        let (mut out, mut input) = (Vec::new(), BytesMut::from(&hello[..]));
        let mut handshake = Handshake::accept(&own, [3; 32]);
        for piece in pieces {
            input.extend_from_slice(piece);
            match handshake.advance(&own, &mut input, &mut out) {
                Ok(None) => {}
                Ok(Some(joined)) => return (Some(joined.peer), None, out),
                Err(error) => return (None, Some(error), out),
            }
        }
        (None, None, out)
    };
    let whole = verdict(vec![bytes]);
    assert_eq!(whole, verdict(bytes.chunks(usize::from(cut) + 1).collect()));
    let text = String::from_utf8_lossy(bytes);
    if let Some(settings) = Settings::parse(&text) {
        assert_eq!(Settings::parse(&settings.text()), Some(settings), "what was read is written the same");
    }
}

/// One of two datacenters of a cluster without a secret: with one, no guess of a fuzzer gets any further.
fn identity(datacenter: &str) -> Identity {
    let mut settings = Settings::default();
    settings.add(Scope::Cluster, "partitions", "2");
    let hello = Hello {
        wire_version_min: 1,
        wire_version_max: 1,
        cluster: "fuzz".into(),
        datacenter: datacenter.into(),
        core: CoreId(0),
        boot: 1,
        nonce: [4; 32],
        flags: 0,
    };
    let datacenters = ["dc1", "dc2"].map(|name| (name.to_owned(), 1)).into();
    Identity { hello, settings, keys: Keys::Open, datacenters }
}

/// Bodies of the frames, and whether they ended in a refusal.
fn read_frames<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Bytes>, Option<WireError>) {
    let (mut frames, mut buffer, mut bodies) = (FrameReader::new(key()), BytesMut::new(), Vec::new());
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

fn key() -> FrameKey {
    FrameKey::new([7; 32])
}

/// A body as it comes out of a frame around it.
fn framed(body: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    FrameWriter::new(key()).write(body, &mut bytes).expect("it is short enough");
    let mut buffer = BytesMut::from(&bytes[..]);
    let out = FrameReader::new(key()).next(&mut buffer).expect("the tag is right").expect("it is whole");
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
