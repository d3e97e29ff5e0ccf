//! Round trips, one encoding a message, refusal of everything else, and bounds on both sides.

use super::{WIRE_VERSION, decode, encode};
use crate::error::{Malformed, Unsendable, WireError};
use crate::limits::{self, Bound};
use crate::message::{Address, Envelope, Message};
use crate::testing::{generated, samples};
use bytes::Bytes;
use ensue_types::{CoreId, DatacenterId, LogicalTime, Reply, RequestId};
use proptest::prelude::*;

/// Where the fields of a message begin, and where those after a request's id.
const FIELDS: usize = 20;
const AFTER_REQUEST: usize = FIELDS + 22;

fn bytes_of(envelope: &Envelope) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(envelope, &mut bytes).unwrap();
    bytes
}

fn envelope_of(message: Message) -> Envelope {
    let core = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    Envelope { from: core, to: core, time: LogicalTime(1), message }
}

fn refused(reply: Reply) -> Envelope {
    envelope_of(Message::Refused { request: RequestId::default(), reply })
}

/// An array in an array, so many times.
fn nested(levels: usize) -> Reply {
    (0..levels).fold(Reply::Nil, |inner, _| Reply::Array(vec![inner]))
}

/// Whatever the bytes are: no panic, and what decodes encodes to the same bytes.
fn check_any_bytes(bytes: Vec<u8>) {
    let bytes = Bytes::from(bytes);
    if let Ok(envelope) = decode(&bytes) {
        assert_eq!(bytes_of(&envelope), bytes, "two encodings of {envelope:?}");
    }
}

fn peer_error(bytes: &[u8]) -> Malformed {
    match decode(&Bytes::copy_from_slice(bytes)) {
        Err(WireError::Peer(error)) => error,
        other => panic!("the peer is to blame, not {other:?}"),
    }
}

fn excess_to_send(envelope: &Envelope) -> Bound {
    let mut out = vec![7];
    match encode(envelope, &mut out) {
        Err(WireError::Ours(Unsendable::OverBound(excess))) => {
            assert_eq!(out, [7], "something was left behind");
            Bound { what: excess.what, max: excess.max }
        }
        other => panic!("not beyond a bound: {other:?}"),
    }
}

fn excess_to_read(bytes: &[u8]) -> Bound {
    match peer_error(bytes) {
        Malformed::OverBound(excess) => Bound { what: excess.what, max: excess.max },
        other => panic!("not beyond a bound: {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn generated_envelopes_come_back(envelope in generated::envelope()) {
        prop_assert_eq!(decode(&Bytes::from(bytes_of(&envelope))), Ok(envelope));
    }

    #[test]
    fn generated_envelopes_cut_short_are_refused(envelope in generated::envelope(), at in any::<prop::sample::Index>()) {
        let mut bytes = bytes_of(&envelope);
        bytes.truncate(at.index(bytes.len()));
        let is_truncated = matches!(peer_error(&bytes), Malformed::Truncated { .. });
        prop_assert!(is_truncated);
    }

    #[test]
    fn flipped_bits_do_not_panic(
        envelope in generated::envelope(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u32..8), 1..4),
    ) {
        let mut bytes = bytes_of(&envelope);
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        check_any_bytes(bytes);
    }

    #[test]
    fn garbage_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check_any_bytes(bytes);
    }

    #[test]
    fn garbage_after_a_sound_start_does_not_panic(
        sample in any::<prop::sample::Index>(),
        rest in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(8), any::<u8>()], 0..300),
    ) {
        let (_, envelope) = sample.get(&samples::envelopes()).clone();
        let mut bytes = bytes_of(&envelope);
        bytes.truncate(FIELDS);
        bytes.extend(rest);
        check_any_bytes(bytes);
    }
}

#[test]
fn samples_come_back() {
    for (name, envelope) in samples::envelopes() {
        assert_eq!(decode(&Bytes::from(bytes_of(&envelope))), Ok(envelope), "{name}");
    }
}

#[test]
fn every_cut_and_every_flipped_bit_of_every_sample() {
    for (name, envelope) in samples::envelopes() {
        let bytes = bytes_of(&envelope);
        for length in 0..bytes.len() {
            let error = peer_error(&bytes[..length]);
            assert!(matches!(error, Malformed::Truncated { .. }), "{name} cut to {length}: {error}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            check_any_bytes(flipped);
        }
    }
}

#[test]
fn nothing_may_follow() {
    for (name, envelope) in samples::envelopes() {
        let mut bytes = bytes_of(&envelope);
        bytes.push(0);
        assert_eq!(peer_error(&bytes), Malformed::Trailing { count: 1 }, "{name}");
    }
}

#[test]
fn arguments_and_entries_are_slices_of_the_body() {
    for (name, envelope) in samples::envelopes() {
        let body = Bytes::from(bytes_of(&envelope));
        let range = body.as_ptr_range();
        let slices = match decode(&body).unwrap().message {
            Message::Execute { commands, .. } => commands.concat(),
            Message::StreamEntries { entries, .. } => entries,
            Message::CoreAnswer { text, .. } => vec![text],
            _ => continue,
        };
        for slice in slices.iter().filter(|slice| !slice.is_empty()) {
            assert!(range.contains(&slice.as_ptr()), "{name}: a copy");
        }
    }
}

#[test]
fn other_versions_tags_and_kinds_are_refused_by_name() {
    let sound = bytes_of(&refused(Reply::Nil));
    let with = |at: usize, value: u8| {
        let mut bytes = sound.clone();
        bytes[at] = value;
        peer_error(&bytes)
    };
    assert_eq!(with(0, 2), Malformed::Version { theirs: 2, min: WIRE_VERSION, max: WIRE_VERSION });
    assert_eq!(with(0, 0), Malformed::Version { theirs: 0, min: WIRE_VERSION, max: WIRE_VERSION });
    assert_eq!(with(3, 9), Malformed::UnknownMessage { tag: 0x0909 });
    assert_eq!(with(2, 0xff), Malformed::UnknownMessage { tag: 0x01ff });
    assert_eq!(with(4, 3), Malformed::UnknownKind { what: "address", value: 3 });
    assert_eq!(with(AFTER_REQUEST, 99), Malformed::UnknownKind { what: "reply", value: 99 });
}

#[test]
fn a_command_has_a_name() {
    let execute = |commands: Vec<ensue_types::Args>| {
        let (request, keyspace, context) = Default::default();
        envelope_of(Message::Execute { request, keyspace, context, commands, together: false })
    };
    let ping = || vec![Bytes::from_static(b"PING")];
    assert!(decode(&Bytes::from(bytes_of(&execute(vec![ping()])))).is_ok());
    assert_eq!(peer_error(&bytes_of(&execute(vec![ping(), Vec::new()]))), Malformed::NoCommand);
}

#[test]
fn text_must_be_text() {
    let mut bytes = bytes_of(&refused(Reply::error("x")));
    let last = bytes.len() - 1;
    bytes[last] = 0xff;
    assert_eq!(peer_error(&bytes), Malformed::NotText);
}

#[test]
fn nesting_is_bounded_on_both_sides() {
    let deepest = refused(nested(limits::NESTING.max));
    assert_eq!(decode(&Bytes::from(bytes_of(&deepest))), Ok(deepest));
    assert_eq!(excess_to_send(&refused(nested(limits::NESTING.max + 1))), limits::NESTING);

    let mut bytes = bytes_of(&refused(Reply::Nil));
    bytes.truncate(AFTER_REQUEST);
    for _ in 0..100_000 {
        bytes.extend([8, 1, 0, 0, 0]);
    }
    assert_eq!(excess_to_read(&bytes), limits::NESTING);
}

#[test]
fn an_announced_count_needs_its_bytes() {
    let mut bytes = bytes_of(&refused(Reply::Nil));
    bytes.truncate(AFTER_REQUEST);
    bytes.push(8);
    bytes.extend((limits::REPLY_ITEMS.max as u32).to_le_bytes());
    let error = peer_error(&bytes);
    assert_eq!(error, Malformed::Truncated { needed: limits::REPLY_ITEMS.max, remaining: 0 });
    let count = bytes.len() - 4;
    bytes[count..].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(excess_to_read(&bytes), limits::REPLY_ITEMS);
}

#[test]
fn items_are_bounded_over_the_whole_message() {
    let half = Reply::Array(vec![Reply::Nil; limits::ITEMS.max / 2]);
    let envelope = refused(Reply::Array(vec![half.clone(), half]));
    assert_eq!(excess_to_send(&envelope), limits::ITEMS);

    let mut bytes = bytes_of(&refused(Reply::Nil));
    bytes.truncate(AFTER_REQUEST);
    bytes.extend([8, 2, 0, 0, 0]);
    for _ in 0..2 {
        bytes.push(8);
        bytes.extend((limits::ITEMS.max as u32 / 2).to_le_bytes());
        bytes.resize(bytes.len() + limits::ITEMS.max / 2, 6);
    }
    assert_eq!(excess_to_read(&bytes), limits::ITEMS);
}

#[test]
fn strings_are_bounded_on_both_sides() {
    let long = "x".repeat(limits::TEXT_BYTES.max + 1);
    assert_eq!(excess_to_send(&refused(Reply::Error(long.into()))), limits::TEXT_BYTES);
    let metrics = vec![("x".repeat(limits::METRIC_NAME_BYTES.max + 1), 1)];
    let answer = envelope_of(Message::MetricsAnswer { request: RequestId::default(), metrics });
    assert_eq!(excess_to_send(&answer), limits::METRIC_NAME_BYTES);

    let mut bytes = bytes_of(&refused(Reply::error("x")));
    bytes.truncate(AFTER_REQUEST + 1);
    bytes.extend((limits::TEXT_BYTES.max as u32 + 1).to_le_bytes());
    assert_eq!(excess_to_read(&bytes), limits::TEXT_BYTES);
}

#[test]
fn what_no_frame_holds_is_not_written() {
    let bulk = Bytes::from(vec![0; limits::FRAME.max / 2]);
    let replies = vec![Reply::Bulk(bulk.clone()), Reply::Bulk(bulk)];
    assert_eq!(excess_to_send(&refused(Reply::Array(replies))), limits::FRAME);
}

#[test]
fn every_bound_fits_its_length_field() {
    let bounds = [
        limits::FRAME,
        limits::ITEMS,
        limits::ARGUMENT_BYTES,
        limits::ARGUMENTS,
        limits::COMMANDS,
        limits::REPLIES,
        limits::PARTS,
        limits::REPLY_BYTES,
        limits::TEXT_BYTES,
        limits::REPLY_ITEMS,
        limits::NESTING,
        limits::CONTEXT_BYTES,
        limits::DEPENDENCIES,
        limits::NAME_BYTES,
        limits::ANSWER_BYTES,
        limits::METRICS,
        limits::METRIC_NAME_BYTES,
        limits::ENTRIES,
        limits::ENTRY_BYTES,
        limits::WATERMARKS,
    ];
    for bound in bounds {
        assert!(u32::try_from(bound.max).is_ok_and(|max| max < u32::MAX), "{bound:?}");
    }
}
