//! Whole handshakes in memory: who gets in, who does not, and in which words both sides say so.

use super::super::{
    CoreName, DATACENTERS, FLAG_SECRET, HELLO_BYTES, Handshake, HandshakeError, Hello, Identity, Joined,
    Keys, NONCE_BYTES, OF_A_DATACENTER, PROOF_BYTES, Scope, Settings, SharedKey,
};
use super::hello;
use bytes::{Bytes, BytesMut};
use ensue_types::{CoreId, DatacenterId};

const NAMES: [&str; 3] = ["dc1", "dc2", "dc3"];

/// The key that two datacenters share.
fn shared(one: &str, other: &str) -> SharedKey {
    let place = |name| NAMES.iter().position(|known| *known == name).unwrap() as u8;
    let (low, high) = (place(one).min(place(other)), place(one).max(place(other)));
    SharedKey::new([16 * low + high + 1; 32]).unwrap()
}

fn keys(of: &str) -> Keys {
    Keys::Secret(NAMES.iter().map(|name| (name.to_string(), shared(of, name))).collect())
}

fn identity(datacenter: &str, core: u16, keys: Keys) -> Identity {
    let flags = if keys == Keys::Open { 0 } else { FLAG_SECRET };
    let mut settings = Settings::default();
    settings.add(Scope::Cluster, "keyspace 1 protocol", "eiger");
    settings.add(Scope::Datacenter, "appendfsync", "always");
    let datacenters = NAMES.map(|name| (name.to_owned(), 2)).into();
    Identity { hello: Hello { flags, ..hello(datacenter, core) }, settings, keys, datacenters }
}

fn secret(datacenter: &str) -> Identity {
    identity(datacenter, 0, keys(datacenter))
}

fn with(mut identity: Identity, name: &str, value: &str) -> Identity {
    let mut settings = Settings::default();
    for setting in identity.settings.iter() {
        let value = if setting.name == name { value } else { &setting.value };
        settings.add(setting.scope, setting.name.clone(), value);
    }
    identity.settings = settings;
    identity
}

type Verdict = Result<Option<Joined>, HandshakeError>;

/// One side and what it has sent.
struct Party<'a> {
    identity: &'a Identity,
    handshake: Handshake,
    sent: Vec<u8>,
    verdict: Verdict,
}

impl<'a> Party<'a> {
    fn dialler(identity: &'a Identity, nonce: u8, to: CoreName) -> Party<'a> {
        let mut sent = Vec::new();
        let handshake = Handshake::dial(identity, [nonce; NONCE_BYTES], to, &mut sent);
        Party { identity, handshake, sent, verdict: Ok(None) }
    }

    fn accepter(identity: &'a Identity, nonce: u8) -> Party<'a> {
        let handshake = Handshake::accept(identity, [nonce; NONCE_BYTES]);
        Party { identity, handshake, sent: Vec::new(), verdict: Ok(None) }
    }

    fn hears(&mut self, bytes: &[u8]) {
        if matches!(self.verdict, Ok(None)) && !bytes.is_empty() {
            let mut input = BytesMut::from(bytes);
            self.verdict = self.handshake.advance(self.identity, &mut input, &mut self.sent);
        }
    }
}

/// Both verdicts, the dialler's first.
fn meet(one: &Identity, other: &Identity) -> (Verdict, Verdict) {
    let place = NAMES.iter().position(|name| *name == other.hello.datacenter).unwrap_or(0) as u8;
    let to = CoreName { datacenter: DatacenterId(place), core: other.hello.core };
    let (mut dialler, mut accepter) = (Party::dialler(one, 1, to), Party::accepter(other, 2));
    for _ in 0..3 {
        let bytes = std::mem::take(&mut dialler.sent);
        accepter.hears(&bytes);
        let bytes = std::mem::take(&mut accepter.sent);
        dialler.hears(&bytes);
    }
    (dialler.verdict, accepter.verdict)
}

#[track_caller]
fn joined(one: &Identity, other: &Identity) -> (Joined, Joined) {
    match meet(one, other) {
        (Ok(Some(here)), Ok(Some(there))) => (here, there),
        (here, there) => panic!("{here:?}, {there:?}"),
    }
}

#[track_caller]
fn parted(one: &Identity, other: &Identity, here: &str, there: &str) {
    let (dialler, accepter) = meet(one, other);
    let words = |verdict: Verdict| match verdict {
        Err(error) => error.to_string(),
        Ok(None) => String::new(),
        Ok(Some(_)) => panic!("it was let in"),
    };
    assert_eq!((words(dialler).as_str(), words(accepter).as_str()), (here, there));
}

#[test]
fn both_know_each_other_and_their_frames() {
    let (one, other) = (secret("dc1"), secret("dc3"));
    let (mut here, mut there) = joined(&one, &other);
    assert_eq!(here.peer, CoreName { datacenter: DatacenterId(2), core: CoreId(0) });
    assert_eq!(there.peer, CoreName { datacenter: DatacenterId(0), core: CoreId(0) });
    assert_eq!((here.version, there.version), (3, 3));
    let mut out = Vec::new();
    here.writer.write(b"to there", &mut out).unwrap();
    let reflected = here.reader.next(&mut BytesMut::from(&out[..]));
    assert!(reflected.is_err(), "a frame that came back was taken");
    let taken = there.reader.next(&mut BytesMut::from(&out[..])).unwrap();
    assert_eq!(taken, Some(Bytes::from_static(b"to there")));
    joined(&identity("dc1", 0, Keys::Open), &identity("dc2", 1, Keys::Open));
    joined(&secret("dc2"), &identity("dc2", 1, keys("dc2")));
}

#[test]
fn a_wrong_key_is_refused_by_both() {
    let stolen = identity("dc1", 0, keys("dc2"));
    parted(
        &stolen,
        &secret("dc3"),
        "they say they are of dc3, and do not prove it: the key of dc1 and dc3 is another one here than there",
        "they say they are of dc1, and do not prove it: the key of dc3 and dc1 is another one here than there",
    );
    // With the file of dc2 one is dc2 for everybody, and nobody else for a third.
    joined(&identity("dc2", 0, keys("dc2")), &secret("dc3"));
    parted(
        &identity("dc1", 1, keys("dc2")),
        &secret("dc1"),
        "they say they are of dc1, and do not prove it: the key of dc1 and dc1 is another one here than there",
        "they say they are of dc1, and do not prove it: the key of dc1 and dc1 is another one here than there",
    );
}

#[test]
fn who_has_no_secret_is_refused_by_who_has_one() {
    let open = identity("dc1", 0, Keys::Open);
    parted(
        &open,
        &secret("dc2"),
        "they have a `cluster-secret`, and we have none",
        "we have a `cluster-secret`, and they have none",
    );
    let Keys::Secret(mut known) = keys("dc2") else { unreachable!() };
    known.remove("dc1");
    let forgetful = identity("dc2", 0, Keys::Secret(known));
    parted(&secret("dc1"), &forgetful, "", "our `cluster-secret` has no key for dc1");
}

#[test]
fn unequal_settings_are_named_by_both_with_both_values() {
    let cure = with(secret("dc2"), "keyspace 1 protocol", "cure");
    parted(
        &secret("dc1"),
        &cure,
        "keyspace 1 protocol: eiger here, cure there",
        "keyspace 1 protocol: cure here, eiger there",
    );
    // How a datacenter syncs its log is its own affair.
    joined(&secret("dc1"), &with(secret("dc2"), "appendfsync", "no"));
    parted(
        &secret("dc1"),
        &with(identity("dc1", 1, keys("dc1")), "appendfsync", "no"),
        "appendfsync: always here, no there",
        "appendfsync: no here, always there",
    );
}

/// One that knows these datacenters, each with so many cores.
fn knowing(datacenter: &str, known: &[(&str, &str)]) -> Identity {
    let mut identity = identity(datacenter, 0, Keys::Open);
    identity.datacenters = known.iter().map(|(name, _)| (name.to_string(), 2)).collect();
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    identity.settings.add(Scope::Cluster, DATACENTERS, names.join(" "));
    for (name, cores) in known {
        identity.settings.add(Scope::Cluster, format!("{}{name}", OF_A_DATACENTER[0]), cores);
    }
    identity
}

#[test]
fn who_knows_one_datacenter_more_is_let_in_by_all_but_those_who_do_not_know_it() {
    let short = [("dc1", "2"), ("dc2", "2")];
    let long = [("dc1", "2"), ("dc2", "2"), ("dc3", "2")];
    joined(&knowing("dc1", &short), &knowing("dc2", &long));
    joined(&knowing("dc1", &long), &knowing("dc2", &short));
    joined(&knowing("dc3", &long), &knowing("dc2", &long));
    let stranger = "they say they are of dc3, and our `node` lines know only dc1, dc2";
    parted(&knowing("dc3", &long), &knowing("dc2", &short), "", stranger);
    // What both know is compared, and new ones stand behind those that both know.
    let wide = [("dc1", "4"), ("dc2", "2"), ("dc3", "2")];
    parted(
        &knowing("dc1", &wide),
        &knowing("dc2", &short),
        "cores of the nodes of dc1: 4 here, 2 there",
        "cores of the nodes of dc1: 2 here, 4 there",
    );
    let before = [("dc3", "2"), ("dc2", "2"), ("dc1", "2")];
    parted(
        &knowing("dc1", &before),
        &knowing("dc2", &short),
        "datacenters: dc3 dc2 dc1 here, dc1 dc2 there",
        "datacenters: dc1 dc2 here, dc3 dc2 dc1 there",
    );
}

#[test]
fn who_is_not_known_is_refused() {
    let stranger = Identity { hello: hello("dc9", 0), ..identity("dc1", 0, Keys::Open) };
    let ours = identity("dc2", 0, Keys::Open);
    parted(&stranger, &ours, "", "they say they are of dc9, and our `node` lines know only dc1, dc2, dc3");
    parted(
        &identity("dc1", 2, Keys::Open),
        &ours,
        "",
        "they say they are core 2 of dc1, and by our `node` lines there is no such core",
    );
}

/// What a dialler and an accepter said to each other when they had met before.
fn overheard(one: &Identity, other: &Identity) -> (Vec<u8>, Vec<u8>) {
    let to = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };
    let (mut dialler, mut accepter) = (Party::dialler(one, 1, to), Party::accepter(other, 2));
    accepter.hears(&dialler.sent);
    dialler.hears(&accepter.sent.clone());
    accepter.hears(&dialler.sent[HELLO_BYTES..]);
    assert!(matches!(accepter.verdict, Ok(Some(_))));
    (dialler.sent, accepter.sent)
}

#[test]
fn what_was_overheard_opens_nothing() {
    let (one, other) = (secret("dc1"), secret("dc2"));
    let (said, answered) = overheard(&one, &other);
    // The same bytes again, to another connection of the same core.
    let mut accepter = Party::accepter(&other, 3);
    accepter.hears(&said);
    assert!(matches!(accepter.verdict, Err(HandshakeError::NotProven { .. })), "{:?}", accepter.verdict);
    let to = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };
    let mut dialler = Party::dialler(&one, 4, to);
    dialler.hears(&answered);
    assert!(matches!(dialler.verdict, Err(HandshakeError::NotProven { .. })), "{:?}", dialler.verdict);
}

#[test]
fn a_proof_that_is_sent_back_proves_nothing() {
    // Somebody in between lets the accepter's proof count as the dialler's.
    let other = secret("dc2");
    let mut accepter = Party::accepter(&other, 2);
    accepter.hears(&hello_of("dc1").encode());
    let proof = accepter.sent[HELLO_BYTES..].to_vec();
    assert_eq!(proof.len(), PROOF_BYTES);
    accepter.hears(&proof);
    assert!(matches!(accepter.verdict, Err(HandshakeError::NotProven { .. })), "{:?}", accepter.verdict);
}

fn hello_of(datacenter: &str) -> Hello {
    Hello { flags: FLAG_SECRET, ..hello(datacenter, 0) }
}

#[test]
fn settings_are_shown_to_nobody_who_has_proved_nothing() {
    let other = secret("dc2");
    let mut accepter = Party::accepter(&other, 2);
    accepter.hears(&hello_of("dc1").encode());
    accepter.hears(&[0; PROOF_BYTES]);
    assert!(accepter.verdict.is_err());
    assert_eq!(accepter.sent.len(), HELLO_BYTES + PROOF_BYTES);
}

#[test]
fn a_handshake_may_arrive_byte_by_byte() {
    let (one, other) = (secret("dc1"), secret("dc2"));
    let (said, _) = overheard(&one, &other);
    let mut accepter = Party::accepter(&other, 2);
    let (mut input, mut joined) = (BytesMut::new(), 0);
    for &byte in &said {
        input.extend_from_slice(&[byte]);
        let verdict = accepter.handshake.advance(&other, &mut input, &mut accepter.sent);
        joined += usize::from(verdict.unwrap().is_some());
    }
    assert_eq!((joined, input.len()), (1, 0));
}

#[test]
fn settings_come_back_from_their_text() {
    let mut settings = Settings::default();
    settings.add(Scope::Cluster, "keyspace 1 conflicts", "a\tb\nc\\ union, é");
    settings.add(Scope::Datacenter, "none", "");
    assert_eq!(Settings::parse(&settings.text()), Some(settings.clone()));
    assert_eq!(settings.text().lines().count(), 2);
    for wrong in [
        "cluster\ta\n",
        "planet\ta\tb\n",
        "cluster\ta\tb\tc\n",
        "cluster\ta\t1\ncluster\ta\t2\n",
        "cluster\ta\t\x1b\n",
    ] {
        assert_eq!(Settings::parse(wrong), None, "{wrong:?}");
    }
}

#[test]
fn keys_are_never_shown() {
    let shown = format!("{:?}", secret("dc1"));
    assert!(shown.contains("SharedKey(hidden)") && !shown.contains("[1, 1"), "{shown}");
    assert_eq!(SharedKey::new([0; 32]), None, "the key of clusters without a secret");
}
