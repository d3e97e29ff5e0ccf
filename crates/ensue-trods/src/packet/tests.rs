//! Packets as bytes and back, and patches of them.

use super::*;
use proptest::prelude::*;

fn endpoint() -> impl Strategy<Value = Endpoint> {
    (any::<u32>(), any::<u16>())
        .prop_map(|(address, port)| Endpoint { address: Ipv4Addr::from(address), port })
}

fn stamps() -> impl Strategy<Value = Option<Timestamps>> {
    prop::option::of((any::<u32>(), any::<u32>()).prop_map(|(value, echo)| Timestamps { value, echo }))
}

fn options() -> impl Strategy<Value = Options> {
    let sacks = prop::collection::vec((any::<u32>(), any::<u32>()), 0..3);
    let scale = prop::option::of(0_u8..15);
    (prop::option::of(any::<u16>()), scale, any::<bool>(), sacks, stamps()).prop_map(
        |(segment_size, window_scale, sack_permitted, sacks, timestamps)| Options {
            segment_size,
            window_scale,
            sack_permitted,
            sacks: sacks.into_iter().map(|(first, after)| (Seq(first), Seq(after))).collect(),
            timestamps,
            others: Vec::new(),
        },
    )
}

fn packets() -> impl Strategy<Value = Packet> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u8>(), any::<u16>(), any::<u16>());
    let payload = prop::collection::vec(any::<u8>(), 0..200);
    (endpoint(), endpoint(), numbers, options(), payload).prop_map(
        |(source, destination, (seq, ack, flags, window, identification), options, payload)| Packet {
            source,
            destination,
            seq: Seq(seq),
            ack: Seq(ack),
            flags: Flags(flags),
            window,
            options,
            payload,
            identification,
            time_to_live: 64,
        },
    )
}

proptest! {
    #[test]
    fn what_is_built_parses_as_it_was(packet in packets()) {
        prop_assert_eq!(Packet::parse(&packet.build()), Ok(packet));
    }

    #[test]
    fn any_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = Packet::parse(&bytes);
        let _ = ends(&bytes);
    }

    #[test]
    fn a_damaged_byte_is_noticed(packet in packets(), at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let mut bytes = packet.build();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(Packet::parse(&bytes).is_err());
    }

    /// Patched fields and incremental checksums are those of the packet built anew.
    #[test]
    fn a_patch_is_the_packet_built_anew(before in packets(), fields in packets(), value in any::<u32>()) {
        let mut after = before.clone();
        (after.source, after.destination) = (fields.source, fields.destination);
        (after.seq, after.ack) = (fields.seq, fields.ack);
        after.window = fields.window;
        for (first, last) in &mut after.options.sacks {
            (*first, *last) = (first.plus(u64::from(value)), last.minus(value));
        }
        if let Some(stamps) = &mut after.options.timestamps {
            *stamps = Timestamps { value, echo: value ^ stamps.echo };
        }
        let patched = patched(&before.build(), &before, &after);
        prop_assert_eq!(Packet::parse(&patched), Ok(after));
    }
}

#[test]
fn options_at_odd_places_are_patched() {
    let mut packet = Packet::acknowledgment(
        Endpoint { address: Ipv4Addr::new(10, 0, 0, 1), port: 1 },
        Endpoint { address: Ipv4Addr::new(10, 0, 0, 2), port: 2 },
        Seq(5),
        Seq(6),
    );
    packet.options.others = vec![254, 3, 7, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let bytes = packet.build();
    let before = Packet::parse(&bytes).expect("valid");
    assert_eq!(before.options.timestamps, Some(Timestamps { value: 1, echo: 2 }));
    let mut after = before.clone();
    after.options.timestamps = Some(Timestamps { value: 0xffff_0001, echo: 0x1234_5678 });
    let patched = patched(&bytes, &before, &after);
    assert_eq!(Packet::parse(&patched), Ok(after));
}

/// A payload that was damaged before the patch is still seen to be damaged after it.
#[test]
fn a_patch_does_not_hide_damage() {
    let mut packet = Packet::acknowledgment(
        Endpoint { address: Ipv4Addr::new(10, 0, 0, 1), port: 1 },
        Endpoint { address: Ipv4Addr::new(10, 0, 0, 2), port: 2 },
        Seq(5),
        Seq(6),
    );
    packet.payload = b"hello".to_vec();
    let mut bytes = packet.build();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let mut after = packet.clone();
    after.seq = Seq(77);
    assert_eq!(Packet::parse(&patched(&bytes, &packet, &after)), Err(PacketError::Checksum));
}

#[test]
fn what_is_not_handled_has_its_error() {
    let packet = Packet::acknowledgment(
        Endpoint { address: Ipv4Addr::new(10, 0, 0, 1), port: 1 },
        Endpoint { address: Ipv4Addr::new(10, 0, 0, 2), port: 2 },
        Seq(5),
        Seq(6),
    );
    let with = |at: usize, byte: u8| {
        let mut bytes = packet.build();
        bytes[at] = byte;
        Packet::parse(&bytes)
    };
    assert_eq!(Packet::parse(&[0x45; 12]), Err(PacketError::Short { have: 12, need: 40 }));
    assert_eq!(with(0, 0x65), Err(PacketError::Version(6)));
    assert_eq!(with(9, 17), Err(PacketError::Protocol(17)));
    assert_eq!(with(0, 0x46), Err(PacketError::Unsupported));
    assert_eq!(with(6, 0x20), Err(PacketError::Unsupported));
    assert_eq!(with(IP_HEADER + 12, 0x40), Err(PacketError::Length));
    assert_eq!(with(3, 60), Err(PacketError::Short { have: 40, need: 60 }));
}
