//! The bytes of every sample are those in `golden/`: a change of the layout without a new version fails here.
//!
//! `UPDATE_GOLDEN=1 cargo test -p ensue-wire` writes the files anew; the difference is reviewed like code.

// The one place of this crate that reads and writes files: the golden ones.
#![allow(clippy::disallowed_methods)]

use super::samples;
use crate::codec::{self, WIRE_VERSION};
use crate::frame::{FrameKey, FrameWriter};
use crate::handshake::{CoreName, FLAG_SECRET, Handshake, Hello, Identity, Keys, Scope, Settings, SharedKey};
use bytes::{Bytes, BytesMut};
use ensue_types::{CoreId, DatacenterId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const BYTES_A_LINE: usize = 16;

#[test]
fn bytes_are_golden_and_understood() {
    let folder = folder();
    let expected: BTreeMap<String, String> =
        files().into_iter().map(|(name, bytes)| (format!("{name}.hex"), text_of(&bytes))).collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::create_dir_all(&folder).unwrap();
        for stray in names_in(&folder).into_iter().filter(|name| !expected.contains_key(name)) {
            fs::remove_file(folder.join(stray)).unwrap();
        }
        for (name, text) in &expected {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    for (name, text) in &expected {
        let golden = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert_eq!(
            &golden, text,
            "{name} changed (left: golden, right: now). If the layout may change, raise the version or, before the \
             first release, run with UPDATE_GOLDEN=1 and review the difference"
        );
    }
    let names: BTreeSet<String> = expected.into_keys().collect();
    assert_eq!(names_in(&folder), names, "a golden file without a sample, or the other way round");
    check_golden_bytes_are_understood();
}

/// Not a test of its own: it would read the files while they are being updated.
fn check_golden_bytes_are_understood() {
    for (name, envelope) in samples::envelopes() {
        let golden = fs::read_to_string(folder().join(format!("{name}.hex"))).unwrap();
        assert_eq!(codec::decode(&Bytes::from(bytes_of(&golden))), Ok(envelope), "{name}");
    }
}

#[test]
fn every_message_has_a_sample() {
    let sampled: BTreeSet<u16> =
        samples::envelopes().iter().map(|(_, envelope)| codec::tag_of(&envelope.message)).collect();
    let all: BTreeSet<u16> = codec::TAGS.iter().map(|(tag, _)| *tag).collect();
    assert_eq!(all.len(), codec::TAGS.len(), "two messages share a tag");
    for (tag, name) in codec::TAGS {
        assert!(sampled.contains(tag), "{name} has no sample");
    }
}

#[test]
fn the_manual_lists_every_message() {
    let manual = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wire.md")).unwrap();
    for (tag, name) in codec::TAGS {
        let row = format!("| `{tag:04x}` | `{name}` |");
        assert!(manual.contains(&row), "docs/wire.md lacks the row {row}");
    }
}

/// Name and bytes of every golden file: the samples, one of them in a frame, two hellos, and a whole handshake.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (name, envelope) in samples::envelopes() {
        let mut bytes = Vec::new();
        codec::encode(&envelope, &mut bytes).unwrap();
        if name == "vote" {
            let mut framed = Vec::new();
            FrameWriter::new(FrameKey([0xab; 32])).write_envelope(&envelope, &mut framed).unwrap();
            files.push(("frame-vote".to_owned(), framed));
        }
        files.push((name.to_owned(), bytes));
    }
    let hello = Hello { flags: 0, ..identity("dc3").hello };
    files.push(("hello".to_owned(), hello.encode().to_vec()));
    files.push(("hello-with-secret".to_owned(), Hello { flags: FLAG_SECRET, ..hello }.encode().to_vec()));
    files.extend(handshake());
    files
}

fn identity(datacenter: &str) -> Identity {
    let mut settings = Settings::default();
    settings.add(Scope::Cluster, "partitions", "64");
    settings.add(Scope::Datacenter, "appendfsync", "everysec");
    let key = SharedKey::new([0xcd; 32]).unwrap();
    Identity {
        hello: Hello {
            wire_version_min: 1,
            wire_version_max: 2,
            cluster: "demo".into(),
            datacenter: datacenter.into(),
            core: CoreId(0x0506),
            boot: 0x1112_1314,
            nonce: [0x5a; 32],
            flags: FLAG_SECRET,
        },
        settings,
        keys: Keys::Secret(["dc1", "dc3"].map(|name| (name.to_owned(), key.clone())).into()),
        datacenters: vec![("dc1".into(), 0x600), ("dc3".into(), 0x600)],
    }
}

/// Everything that a dialler and an accepter say before the first message.
fn handshake() -> [(String, Vec<u8>); 2] {
    let (one, other) = (identity("dc1"), identity("dc3"));
    let (mut dialled, mut accepted) = (Vec::new(), Vec::new());
    let to = CoreName { datacenter: DatacenterId(1), core: CoreId(0x0506) };
    let mut dialler = Handshake::dial(&one, [1; 32], to, &mut dialled);
    let mut accepter = Handshake::accept(&other, [2; 32]);
    let (mut read_there, mut read_here) = (0, 0);
    for _ in 0..2 {
        accepter.advance(&other, &mut BytesMut::from(&dialled[read_there..]), &mut accepted).unwrap();
        read_there = dialled.len();
        dialler.advance(&one, &mut BytesMut::from(&accepted[read_here..]), &mut dialled).unwrap();
        read_here = accepted.len();
    }
    [("handshake-dialler".to_owned(), dialled), ("handshake-accepter".to_owned(), accepted)]
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(format!("v{WIRE_VERSION}"))
}

fn names_in(folder: &PathBuf) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A hash to compare at a glance, then the bytes.
fn text_of(bytes: &[u8]) -> String {
    let mut text = format!("# crc32 {:08x}, {} bytes\n", crc32fast::hash(bytes), bytes.len());
    for line in bytes.chunks(BYTES_A_LINE) {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", digits.join(" ")).unwrap();
    }
    text
}

fn bytes_of(text: &str) -> Vec<u8> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}
