//! Frames in pieces of any size, damaged frames, and announced lengths that never come.

use super::{FRAME_HEADER_BYTES, FrameKey, FrameReader, FrameWriter};
use crate::codec;
use crate::error::{Damaged, Malformed, WireError};
use crate::limits;
use crate::message::{Envelope, Message};
use crate::testing::{generated, samples};
use bytes::{Bytes, BytesMut};
use ensue_types::{Reply, RequestId};
use proptest::prelude::*;

const KEY: FrameKey = FrameKey([7; 32]);

fn reader() -> FrameReader {
    FrameReader::new(KEY)
}

fn writer() -> FrameWriter {
    FrameWriter::new(KEY)
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    writer().write(body, &mut out).unwrap();
    out
}

/// Frames of one connection, one after another.
fn frames(bodies: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut writer = writer();
    let frame = |body: &&[u8]| {
        let mut out = Vec::new();
        writer.write(body, &mut out).unwrap();
        out
    };
    bodies.iter().map(frame).collect()
}

/// How many frames of these bytes are taken before one is refused.
#[track_caller]
fn refused_after(bytes: &[u8]) -> usize {
    let (mut reader, mut buffer, mut taken) = (reader(), BytesMut::from(bytes), 0);
    loop {
        match reader.next(&mut buffer) {
            Ok(Some(_)) => taken += 1,
            Ok(None) => panic!("all {taken} frames were taken"),
            Err(WireError::Way(Damaged::Tag { sequence })) => {
                assert_eq!(sequence, taken as u64);
                return taken;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Bodies of a connection that arrives in pieces of these sizes, over and over.
fn read_in_pieces(bytes: &[u8], sizes: &[usize]) -> Result<Vec<Bytes>, WireError> {
    let mut reader = reader();
    let (mut buffer, mut bodies, mut rest) = (BytesMut::new(), Vec::new(), bytes);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, later) = rest.split_at((*size).min(rest.len()));
        rest = later;
        buffer.extend_from_slice(piece);
        while let Some(body) = reader.next(&mut buffer)? {
            bodies.push(body);
        }
    }
    assert!(buffer.is_empty(), "{} bytes left", buffer.len());
    Ok(bodies)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn envelopes_arrive_whole_in_any_pieces(
        envelopes in prop::collection::vec(generated::envelope(), 0..5),
        sizes in prop::collection::vec(1_usize..50, 1..8),
    ) {
        let (mut writer, mut sent) = (writer(), Vec::new());
        for envelope in &envelopes {
            writer.write_envelope(envelope, &mut sent).unwrap();
        }
        let bodies = read_in_pieces(&sent, &sizes).unwrap();
        let received: Vec<Envelope> = bodies.iter().map(|body| codec::decode(body).unwrap()).collect();
        prop_assert_eq!(received, envelopes);
    }

    #[test]
    fn garbage_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut buffer = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = reader().next(&mut buffer) {}
    }
}

#[test]
fn no_flipped_bit_gets_through() {
    let sound = framed(b"a body of some length");
    for bit in 0..sound.len() * 8 {
        let mut flipped = sound.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let verdict = reader().next(&mut BytesMut::from(&flipped[..]));
        assert!(!matches!(verdict, Ok(Some(_))), "bit {bit} got through: {verdict:?}");
    }
}

#[test]
fn a_damaged_body_is_refused_again_and_again() {
    let mut bytes = framed(b"body");
    bytes[FRAME_HEADER_BYTES] ^= 1;
    let (mut buffer, mut reader) = (BytesMut::from(&bytes[..]), reader());
    for _ in 0..2 {
        let verdict = reader.next(&mut buffer);
        assert!(matches!(verdict, Err(WireError::Way(Damaged::Tag { .. }))), "{verdict:?}");
    }
}

#[test]
fn too_long_a_frame_is_refused_by_its_header() {
    let mut reader = reader();
    reader.set_body_bytes_max(100);
    let mut buffer = BytesMut::from(&framed(&[0; 101])[..FRAME_HEADER_BYTES]);
    let verdict = reader.next(&mut buffer);
    assert!(matches!(verdict, Err(WireError::Peer(Malformed::OverBound(_)))), "{verdict:?}");
    let mut buffer = BytesMut::from(&framed(&[0; 100])[..]);
    assert_eq!(reader.next(&mut buffer).unwrap().unwrap().len(), 100);
}

#[test]
fn nothing_is_reserved_for_an_announced_length() {
    let mut bytes = (limits::FRAME.max as u32).to_le_bytes().to_vec();
    bytes.extend([0; 20]);
    let mut buffer = BytesMut::from(&bytes[..]);
    let capacity = buffer.capacity();
    assert_eq!(reader().next(&mut buffer), Ok(None));
    assert_eq!((buffer.capacity(), buffer.len()), (capacity, bytes.len()));
}

#[test]
fn an_empty_body_is_a_frame() {
    assert_eq!(read_in_pieces(&framed(b""), &[3]), Ok(vec![Bytes::new()]));
}

#[test]
fn an_envelope_is_framed_where_it_stands() {
    for (name, envelope) in samples::envelopes() {
        let mut body = Vec::new();
        codec::encode(&envelope, &mut body).unwrap();
        let mut out = b"before".to_vec();
        writer().write_envelope(&envelope, &mut out).unwrap();
        assert_eq!(out, [&b"before"[..], &framed(&body)].concat(), "{name}");
    }
}

#[test]
fn a_refused_envelope_leaves_nothing_behind() {
    let (_, mut envelope) = samples::envelopes().swap_remove(0);
    let reply = Reply::Error("x".repeat(limits::TEXT_BYTES.max + 1).into());
    envelope.message = Message::Refused { request: RequestId::default(), reply };
    let mut out = b"before".to_vec();
    assert!(matches!(writer().write_envelope(&envelope, &mut out), Err(WireError::Ours(_))));
    assert_eq!(out, b"before");
}

#[test]
fn a_frame_is_taken_once_and_in_its_place() {
    let sent = frames(&[b"one", b"two", b"three"]);
    let [one, two, three] = &sent[..] else { unreachable!() };
    assert_eq!(read_in_pieces(&sent.concat(), &[7]).unwrap().len(), 3);
    assert_eq!(refused_after(&[&one[..], one].concat()), 1, "repeated");
    assert_eq!(refused_after(&[&one[..], three].concat()), 1, "left out");
    assert_eq!(refused_after(&[&two[..], one].concat()), 0, "moved");
}

#[test]
fn a_frame_of_another_key_is_refused() {
    let mut out = Vec::new();
    FrameWriter::new(FrameKey([8; 32])).write(b"forged", &mut out).unwrap();
    assert_eq!(refused_after(&out), 0);
}

#[test]
fn what_could_not_be_sent_takes_no_number() {
    let (mut writer, mut out) = (writer(), Vec::new());
    writer.write(&vec![0; limits::FRAME.max + 1], &mut out).unwrap_err();
    writer.write(b"next", &mut out).unwrap();
    assert_eq!(read_in_pieces(&out, &[100]).unwrap(), vec![Bytes::from_static(b"next")]);
}

#[test]
fn a_key_is_never_shown() {
    assert_eq!(
        format!("{:?}", writer()),
        "FrameWriter { direction: Direction { key: FrameKey(hidden), sequence: 0 } }"
    );
}
