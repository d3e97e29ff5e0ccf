//! Peers that are not what they say, or say what is not theirs, against a whole node over a real socket.

use super::*;
use bytes::BytesMut;
use ensue_types::{KeyspaceId, LogicalTime, PartitionId, RequestId};
use ensue_wire::{Address, Envelope, Handshake, Joined, Message, SharedKey};
use std::io::ErrorKind;

/// The first core of dc1, in our hands.
struct Impostor {
    stream: TcpStream,
    joined: Joined,
}

/// Dials the node of dc2 as dc1, with this configuration's settings and these keys.
fn dial(world: &World, config: &Config, keys: Keys) -> Result<Impostor, String> {
    let cluster = config.cluster().unwrap();
    let own = CoreName { datacenter: cluster.own, core: CoreId(0) };
    let settings = settings::settings(config, &cluster);
    let Stance { identity, .. } = stance(config, &cluster, own, &world.machine, (&settings, &keys, None));
    let mut stream = TcpStream::connect(("127.0.0.1", world.nodes[1].port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let (mut out, mut input) = (Vec::new(), BytesMut::new());
    let to = CoreName { datacenter: DatacenterId(1), core: CoreId(0) };
    let mut handshake = Handshake::dial(&identity, secret::random().unwrap(), to, &mut out);
    loop {
        stream.write_all(&std::mem::take(&mut out)).map_err(|error| error.to_string())?;
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(0) => return Err("closed".into()),
            Ok(length) => input.extend_from_slice(&bytes[..length]),
            Err(error) => return Err(error.to_string()),
        }
        let result = handshake.advance(&identity, &mut input, &mut out);
        stream.write_all(&std::mem::take(&mut out)).map_err(|error| error.to_string())?;
        if let Some(joined) = result.map_err(|error| error.to_string())? {
            return Ok(Impostor { stream, joined });
        }
    }
}

impl Impostor {
    fn say(&mut self, from: Address, to: Address, message: Message) {
        let envelope = Envelope { from, to, time: LogicalTime::ZERO, message };
        let mut out = Vec::new();
        self.joined.writer.write_envelope(&envelope, &mut out).unwrap();
        self.stream.write_all(&out).unwrap();
    }

    /// Whether the other side hangs up.
    fn is_put_out(&mut self) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::ConnectionReset,
            }
        }
    }
}

fn keys_of(world: &World, index: usize) -> Keys {
    keys(&world.config(index), &world.config(index).cluster().unwrap()).unwrap()
}

fn partition(datacenter: u8) -> Address {
    Address::Partition { datacenter: DatacenterId(datacenter), partition: PartitionId(0) }
}

fn dead(datacenter: u8) -> Message {
    let datacenter = DatacenterId(datacenter);
    Message::DatacenterFailed {
        datacenter,
        received: Default::default(),
        time: LogicalTime::ZERO,
        ended: None,
    }
}

/// dc2 runs, and dc1 does not: its place can be taken.
fn world() -> World {
    let mut world = World::planned(3, true);
    world.start(1);
    world
}

#[test]
fn a_peer_speaks_for_its_own_datacenter_and_no_other() {
    let world = world();
    let sessions = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    let read = || Message::ReadFirst {
        request: RequestId::default(),
        keyspace: KeyspaceId(0),
        commands: vec![vec!["GET".into(), "a".into()]],
    };
    for (from, to, message, words) in [
        (sessions, partition(1), read(), "says to another datacenter what is only said within one"),
        (partition(2), partition(1), dead(0), "speaks for partition p0 of datacenter 2"),
        (partition(0), partition(2), dead(2), "speaks to partition p0 of datacenter 2"),
        (partition(0), partition(1), dead(0), "speaks of a stream that is not one for it to speak of"),
    ] {
        let mut impostor = dial(&world, &world.config(0), keys_of(&world, 0)).unwrap();
        world.wait_for_info(1, "ensue_link_dc1", "up");
        impostor.say(from, to, message);
        assert!(impostor.is_put_out(), "{words}");
        world.wait_for_info(1, "ensue_link_dc1", "refused");
        world.wait_for_info(1, "ensue_link_dc1_reason", words);
    }
    assert_eq!(ask(&mut world.connect(1), "SET a 1"), "+OK\r\n", "the node goes on");
    world.stop();
}

#[test]
fn a_frame_that_comes_again_ends_the_link() {
    let world = world();
    let mut impostor = dial(&world, &world.config(0), keys_of(&world, 0)).unwrap();
    let mut out = Vec::new();
    let envelope =
        Envelope { from: partition(0), to: partition(1), time: LogicalTime::ZERO, message: Message::AskTime };
    impostor.joined.writer.write_envelope(&envelope, &mut out).unwrap();
    impostor.stream.write_all(&[&out[..], &out].concat()).unwrap();
    assert!(impostor.is_put_out());
    world.wait_for_info(1, "ensue_link_dc1_reason", "forged, changed, repeated or moved");
    world.stop();
}

#[test]
fn who_cannot_prove_it_is_refused_and_told_of() {
    let world = world();
    let Keys::Secret(mut stolen) = keys_of(&world, 2) else { panic!("there is a secret") };
    let other = stolen["dc2"].clone();
    stolen.insert("dc1".into(), other);
    let words = "they say they are of dc1, and do not prove it";
    let verdict = dial(&world, &world.config(0), Keys::Secret(stolen));
    assert!(verdict.map(|_| ()).unwrap_err().contains("they say they are of dc2, and do not prove it"));
    world.wait_for_info(1, "ensue_link_dc1", "refused");
    world.wait_for_info(1, "ensue_link_dc1_reason", words);
    let verdict = dial(&world, &world.config(0), Keys::Open);
    assert_eq!(verdict.map(|_| ()), Err("they have a `cluster-secret`, and we have none".into()));
    world.wait_for_info(1, "ensue_link_dc1_reason", "we have a `cluster-secret`, and they have none");
    let guessed = SharedKey::new([7; 32]).unwrap();
    let guessed = Keys::Secret(["dc1", "dc2", "dc3"].map(|name| (name.into(), guessed.clone())).into());
    assert!(dial(&world, &world.config(0), guessed).is_err());
    world.stop();
}

#[test]
fn unequal_settings_are_refused_with_both_values() {
    let world = world();
    let mut config = world.config(0);
    config.protocols[1] = "cure".into();
    let verdict = dial(&world, &config, keys_of(&world, 0));
    let verdict = verdict.map(|_| ()).unwrap_err();
    assert_eq!(verdict, "keyspace 1 protocol: cure here, eiger there");
    world.wait_for_info(1, "ensue_link_dc1_reason", "keyspace 1 protocol: eiger here, cure there");
    assert_eq!(world.info(1, "ensue_ready"), "0");
    world.stop();
}
