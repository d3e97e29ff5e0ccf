//! Who may talk to whom, in which version, and what strangers are told apart by.

use super::{
    FLAG_SECRET, Foreign, HELLO_BYTES, HandshakeError, Hello, MAGIC, Speaker, cluster_hash, negotiate,
    negotiate_dialled,
};
use bytes::BytesMut;
use ensue_types::CoreId;
use proptest::prelude::*;

mod steps;

fn hello(datacenter: &str, core: u16) -> Hello {
    Hello {
        wire_version_min: 1,
        wire_version_max: 3,
        cluster: "demo".into(),
        datacenter: datacenter.into(),
        core: CoreId(core),
        boot: 100,
        nonce: [9; 32],
        flags: 0,
    }
}

fn speaker(datacenter: &str, core: u16) -> Speaker {
    Speaker { datacenter: datacenter.into(), core: CoreId(core) }
}

/// Our side is refused in these words, and the other side refuses too.
#[track_caller]
fn refused(ours: &Hello, theirs: &Hello, words: &str) {
    assert_eq!(negotiate(ours, theirs).unwrap_err().to_string(), words);
    assert!(negotiate(theirs, ours).is_err(), "the other side would talk");
}

#[track_caller]
fn strange(bytes: &[u8], expected: Foreign) {
    match Hello::next(&mut BytesMut::from(bytes)) {
        Err(HandshakeError::NotEnsue { speaks, .. }) => assert_eq!(speaks, expected),
        other => panic!("taken for a peer: {other:?}"),
    }
}

prop_compose! {
    fn any_hello()(
        versions in any::<(u16, u16)>(),
        cluster in "[a-zA-Z0-9_-]{1,64}",
        datacenter in "[a-zA-Z0-9_-]{1,64}",
        core in any::<u16>(),
        boot in any::<u32>(),
        nonce in any::<[u8; 32]>(),
        flags in any::<u16>(),
    ) -> Hello {
        Hello {
            wire_version_min: versions.0,
            wire_version_max: versions.1,
            cluster,
            datacenter,
            core: CoreId(core),
            boot,
            nonce,
            flags,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn any_hello_comes_back(hello in any_hello(), rest in prop::collection::vec(any::<u8>(), 0..20)) {
        let mut buffer = BytesMut::from(&hello.encode()[..]);
        buffer.extend_from_slice(&rest);
        prop_assert_eq!(Hello::next(&mut buffer), Ok(Some(hello)));
        prop_assert_eq!(&buffer[..], &rest[..]);
    }

    #[test]
    fn both_sides_come_to_the_same(ours in any_hello(), changes in any_hello(), same in any::<u8>()) {
        let pick = |bit: u8| same & (1 << bit) != 0;
        let theirs = Hello {
            cluster: ours.cluster.clone(),
            wire_version_min: if pick(0) { ours.wire_version_min } else { changes.wire_version_min },
            datacenter: if pick(1) { ours.datacenter.clone() } else { changes.datacenter.clone() },
            core: if pick(2) { ours.core } else { changes.core },
            flags: if pick(3) { ours.flags } else { changes.flags },
            ..changes
        };
        let (here, there) = (negotiate(&ours, &theirs), negotiate(&theirs, &ours));
        prop_assert_eq!(here.is_ok(), there.is_ok());
        if let (Ok(here), Ok(there)) = (here, there) {
            prop_assert_eq!(here, there);
            prop_assert!(ours.wire_version_min <= here && here <= ours.wire_version_max);
            prop_assert!(theirs.wire_version_min <= here && here <= theirs.wire_version_max);
        }
    }

    #[test]
    fn garbage_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = Hello::next(&mut BytesMut::from(&bytes[..]));
        let _ = Hello::next(&mut BytesMut::from(&[&MAGIC, &bytes[..]].concat()[..]));
    }
}

#[test]
fn peers_agree_on_the_highest_common_version() {
    assert_eq!(negotiate(&hello("dc1", 1), &hello("dc3", 1)), Ok(3));
    let older = Hello { wire_version_min: 1, wire_version_max: 2, ..hello("dc3", 1) };
    assert_eq!(negotiate(&hello("dc1", 1), &older), Ok(2));
    assert_eq!(negotiate(&older, &hello("dc1", 1)), Ok(2));
    assert_eq!(negotiate_dialled(&hello("dc1", 1), &older, &speaker("dc3", 1)), Ok(2));
}

#[test]
fn every_mismatch_names_both_sides() {
    let ours = hello("dc1", 1);
    let theirs = hello("dc3", 1);
    refused(
        &ours,
        &Hello { cluster: "other".into(), ..theirs.clone() },
        "cluster-name: demo here, other there",
    );
    refused(
        &ours,
        &Hello { wire_version_min: 4, wire_version_max: 5, ..theirs.clone() },
        "no common version of the wire: we speak 1 to 3, they speak 4 to 5",
    );
    refused(
        &ours,
        &Hello { wire_version_min: 3, wire_version_max: 2, ..theirs.clone() },
        "no common version of the wire: we speak 1 to 3, they speak 3 to 2",
    );
    let secret = Hello { flags: FLAG_SECRET, ..theirs.clone() };
    refused(&ours, &secret, "they have a `cluster-secret`, and we have none");
    refused(&secret, &ours, "we have a `cluster-secret`, and they have none");
    let error = negotiate_dialled(&ours, &theirs, &speaker("dc3", 7)).unwrap_err().to_string();
    assert_eq!(
        error,
        "we dialled core 7 of dc3, and core 1 of dc3 answered: compare the `node` lines of both sides"
    );
}

#[test]
fn we_do_not_talk_to_ourselves() {
    let ours = hello("dc1", 1);
    refused(
        &ours,
        &ours,
        "we are core 1 of dc1 (boot 100), and so are they (boot 100): an address leads back to ourselves",
    );
    refused(
        &ours,
        &Hello { boot: 7, ..ours.clone() },
        "we are core 1 of dc1 (boot 100), and so are they (boot 7): two processes have one identity",
    );
}

#[test]
fn strangers_are_recognised() {
    strange(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", Foreign::Http);
    strange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Foreign::Http);
    strange(b"*1\r\n$4\r\nPING\r\n", Foreign::Redis);
    strange(b"ping\r\n", Foreign::Redis);
    strange(b"HELLO 3\r\n", Foreign::Redis);
    strange(b"\x16\x03\x01\x02\x00", Foreign::Tls);
    strange(b"SSH-2.0-OpenSSH_9.9\r\n", Foreign::Ssh);
    strange(b"\x00\x00", Foreign::Unknown);
    let error = Hello::next(&mut BytesMut::from(&b"GET / HTTP/1.1\r\n"[..])).unwrap_err().to_string();
    assert_eq!(
        error,
        "the other side is not an Ensue peer: it sent \"GET / HTTP/1.1\\r\\n\", which looks like an HTTP request"
    );
}

#[test]
fn one_wrong_byte_is_enough() {
    for length in 1..=MAGIC.len() {
        let mut bytes = MAGIC[..length].to_vec();
        assert_eq!(Hello::next(&mut BytesMut::from(&bytes[..])), Ok(None));
        bytes[length - 1] ^= 1;
        strange(&bytes, Foreign::Unknown);
    }
}

#[test]
fn a_hello_waits_for_its_last_byte() {
    let bytes = hello("dc1", 1).encode();
    for length in 0..HELLO_BYTES {
        let mut buffer = BytesMut::from(&bytes[..length]);
        assert_eq!(Hello::next(&mut buffer), Ok(None));
        assert_eq!(buffer.len(), length);
    }
}

#[test]
fn no_flipped_bit_gets_through() {
    let bytes = hello("dc1", 1).encode();
    for bit in 0..HELLO_BYTES * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Hello::decode(&flipped).is_err(), "bit {bit} got through");
    }
}

/// A hello with bytes of its own and a right checksum.
fn patched(at: usize, patch: &[u8]) -> Result<Hello, HandshakeError> {
    let mut bytes = hello("dc1", 1).encode();
    bytes[at..at + patch.len()].copy_from_slice(patch);
    let checksum = crc32fast::hash(&bytes[..180]);
    bytes[180..].copy_from_slice(&checksum.to_le_bytes());
    Hello::decode(&bytes)
}

#[test]
fn unknown_flags_mean_nothing() {
    let offered = patched(12, &[0, 0x80]).unwrap();
    assert_eq!(offered, Hello { flags: 0x8000, ..hello("dc1", 1) });
    assert_eq!(negotiate(&hello("dc2", 1), &offered), Ok(3));
}

#[test]
fn a_name_that_is_none_is_refused() {
    for patch in [&b"a\0b"[..], b"\0", b"a b", b"\x1b[2J", &[0xff; 64]] {
        for at in [52, 116] {
            assert!(matches!(patched(at, patch), Err(HandshakeError::NoName { .. })), "{patch:?} at {at}");
        }
    }
}

#[test]
fn the_cluster_hash_is_fixed() {
    // The published value of 128-bit FNV-1a for "foobar", little endian.
    let expected = 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18_u128;
    assert_eq!(cluster_hash("foobar"), expected.to_le_bytes());
    assert_ne!(cluster_hash("demo"), cluster_hash("Demo"));
}
