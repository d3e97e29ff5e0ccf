//! Who may talk to whom, in which version, and what strangers are told apart by.

use super::{
    CoreName, Foreign, HELLO_BYTES, HandshakeError, Hello, MAGIC, SecretProof, cluster_hash, negotiate,
    negotiate_dialled,
};
use bytes::BytesMut;
use ensue_types::{CoreId, DatacenterId};
use proptest::prelude::*;

fn hello(datacenter: u8, core: u16) -> Hello {
    Hello {
        wire_version_min: 1,
        wire_version_max: 3,
        cluster: cluster_hash("demo"),
        datacenter: DatacenterId(datacenter),
        core: CoreId(core),
        boot: 100,
        partitions: 64,
        datacenters: 3,
        secret_proof: None,
    }
}

fn name(datacenter: u8, core: u16) -> CoreName {
    CoreName { datacenter: DatacenterId(datacenter), core: CoreId(core) }
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
        cluster in any::<[u8; 16]>(),
        datacenter in any::<u8>(),
        core in any::<u16>(),
        boot in any::<u32>(),
        partitions in any::<u16>(),
        datacenters in any::<u8>(),
        proof in any::<Option<[u8; 32]>>(),
    ) -> Hello {
        Hello {
            wire_version_min: versions.0,
            wire_version_max: versions.1,
            cluster,
            datacenter: DatacenterId(datacenter),
            core: CoreId(core),
            boot,
            partitions,
            datacenters,
            secret_proof: proof.map(SecretProof),
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
            cluster: ours.cluster,
            wire_version_min: if pick(0) { ours.wire_version_min } else { changes.wire_version_min },
            partitions: if pick(1) { ours.partitions } else { changes.partitions },
            datacenters: if pick(2) { ours.datacenters } else { changes.datacenters },
            datacenter: if pick(3) { ours.datacenter } else { changes.datacenter },
            secret_proof: if pick(4) { ours.secret_proof } else { changes.secret_proof },
            ..changes
        };
        if let (Ok(here), Ok(there)) = (negotiate(&ours, &theirs), negotiate(&theirs, &ours)) {
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
    assert_eq!(negotiate(&hello(0, 1), &hello(2, 1)), Ok(3));
    let older = Hello { wire_version_min: 1, wire_version_max: 2, ..hello(2, 1) };
    assert_eq!(negotiate(&hello(0, 1), &older), Ok(2));
    assert_eq!(negotiate(&older, &hello(0, 1)), Ok(2));
    assert_eq!(negotiate_dialled(&hello(0, 1), &older, name(2, 1)), Ok(2));
}

#[test]
fn every_mismatch_names_both_sides() {
    let ours = hello(0, 1);
    let theirs = hello(2, 1);
    refused(
        &Hello { cluster: [0x1f; 16], ..ours.clone() },
        &Hello { cluster: [0xab; 16], ..theirs.clone() },
        "clusters of other names: ours hashes to 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f, theirs to \
         abababababababababababababababab",
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
    refused(&ours, &Hello { partitions: 32, ..theirs.clone() }, "we have 64 partitions, they have 32");
    refused(&ours, &Hello { datacenters: 5, ..theirs.clone() }, "we know 3 datacenters, they know 5");
    let error = negotiate(&ours, &hello(3, 1)).unwrap_err().to_string();
    assert_eq!(error, "they say they are dc4, and we know 3 datacenters");
    let error = negotiate_dialled(&ours, &theirs, name(2, 7)).unwrap_err().to_string();
    assert_eq!(error, "we dialled core 7 of dc3, and core 1 of dc3 answered");
}

#[test]
fn we_do_not_talk_to_ourselves() {
    let ours = hello(0, 1);
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
fn secrets_are_compared_and_never_shown() {
    let with = |hello: Hello, byte| Hello { secret_proof: Some(SecretProof([byte; 32])), ..hello };
    let (ours, theirs) = (with(hello(0, 1), 0xaa), with(hello(2, 1), 0xaa));
    assert_eq!(negotiate(&ours, &theirs), Ok(3));
    refused(&ours, &with(hello(2, 1), 0xab), "their secret is another one than ours");
    refused(&ours, &hello(2, 1), "we have a secret, and they showed no proof of it: it is not set there");
    let error = negotiate(&hello(0, 1), &theirs).unwrap_err();
    assert_eq!(error, HandshakeError::SecretMissingHere);
    assert!(!format!("{ours:?}").contains("170"), "a proof in a log: {ours:?}");
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
    let bytes = hello(0, 1).encode();
    for length in 0..HELLO_BYTES {
        let mut buffer = BytesMut::from(&bytes[..length]);
        assert_eq!(Hello::next(&mut buffer), Ok(None));
        assert_eq!(buffer.len(), length);
    }
}

#[test]
fn no_flipped_bit_gets_through() {
    let bytes = hello(0, 1).encode();
    for bit in 0..HELLO_BYTES * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Hello::decode(&flipped).is_err(), "bit {bit} got through");
    }
}

#[test]
fn unknown_flags_are_ignored() {
    let mut bytes = hello(0, 1).encode();
    bytes[39] = 0x80;
    let checksum = crc32fast::hash(&bytes[..72]);
    bytes[72..].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(Hello::decode(&bytes), Ok(hello(0, 1)));
}

#[test]
fn the_cluster_hash_is_fixed() {
    // The published value of 128-bit FNV-1a for "foobar", little endian.
    let expected = 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18_u128;
    assert_eq!(cluster_hash("foobar"), expected.to_le_bytes());
    assert_ne!(cluster_hash("demo"), cluster_hash("Demo"));
}
