//! A node that has another one do something for a backup.

use super::*;
use crate::config::DatacenterTopology;
use crate::{BackupDone, BackupErrand, NodeConfig, ReplicaOptions, Topology};
use bytes::Bytes;
use ensue_types::{DatacenterId, LogicalTime};
use ensue_wire::{Address, Envelope};

const NOW: Now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
const HERE: DatacenterId = DatacenterId(0);

/// One of two nodes of a datacenter without replicas, of a core each, before it has a link.
fn host(core: u16) -> Host {
    let datacenter = DatacenterTopology {
        name: "dc1".into(),
        cores: 2,
        nodes: vec![1, 1],
        placement: vec![CoreId(0), CoreId(1)],
        replicas: Vec::new(),
    };
    let topology = Topology { datacenter: HERE, partitions: 2, datacenters: vec![datacenter] };
    let config = NodeConfig::new(topology, CoreId(core), &ensue_protocol::REGISTRY, vec!["eiger".into()]);
    let mut host = Host::new(config, &ReplicaOptions::default(), NOW).expect("the protocol is known");
    while host.next_output().is_some() {}
    host
}

fn words(words: &[&'static str]) -> Args {
    words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect()
}

fn told(host: &mut Host) -> Vec<(CoreId, Message)> {
    let outputs = std::iter::from_fn(|| host.next_output());
    let message = |output| match output {
        Output::Send { core, envelope, .. } => Some((core, envelope.message)),
        _ => None,
    };
    let is_about_backups = |(_, message): &(CoreId, Message)| {
        matches!(message, Message::BackupAsk { .. } | Message::BackupTold { .. })
    };
    outputs.filter_map(message).filter(is_about_backups).collect()
}

fn from(core: u16, to: u16, message: Message) -> Input {
    let address = |core| Address::Core { datacenter: HERE, core: CoreId(core) };
    let (from, to) = (address(core), address(to));
    Input::Message(Envelope { from, to, time: LogicalTime::ZERO, message })
}

#[test]
fn another_node_is_asked_and_does_what_it_is_asked() {
    let (mut one, mut other) = (host(0), host(1));
    one.on_input(NOW, Input::LinkUp { datacenter: HERE, core: CoreId(1) });
    told(&mut one);
    one.ask_elsewhere((SessionId(5), 3), CoreId(1), words(&["end", "monday"]));
    let asked = told(&mut one);
    let [(CoreId(1), question @ Message::BackupAsk { number, .. })] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    other.on_input(NOW, from(0, 1, question.clone()));
    let errand = std::iter::from_fn(|| other.next_output()).find_map(|output| match output {
        Output::Errand { session: RELAYED, number, errand: Errand::Backup(errand) } => Some((number, errand)),
        _ => None,
    });
    let (errand_number, errand) = errand.expect("it has it done");
    assert_eq!(errand, BackupErrand::End("monday".into()));
    let done = ErrandDone::Backup(Ok(BackupDone::Done));
    other.on_input(NOW, Input::ErrandDone { session: RELAYED, number: errand_number, done: done.clone() });
    let answer = Message::BackupTold { number: *number, reply: Reply::OK };
    assert_eq!(told(&mut other), [(CoreId(0), answer)]);
    other.on_input(NOW, Input::ErrandDone { session: RELAYED, number: errand_number, done });
    assert_eq!(told(&mut other), [], "it is answered once");
    assert_eq!(one.asked.answered(*number), Some((SessionId(5), 3)));
}

#[test]
fn what_cannot_be_asked_is_answered() {
    let (mut one, mut other) = (host(0), host(1));
    one.ask_elsewhere((SessionId(5), 3), CoreId(1), words(&["end", "monday"]));
    let answered = told(&mut one);
    let not_reached = Message::BackupTold { number: 1, reply: backup::NOT_REACHED };
    assert_eq!(answered, [(CoreId(0), not_reached)], "there is no link");
    other.on_input(NOW, from(0, 1, Message::BackupAsk { number: 9, words: words(&["read", "../x"]) }));
    let answered = told(&mut other);
    let [(CoreId(0), Message::BackupTold { number: 9, reply: Reply::Error(why) })] = answered.as_slice()
    else {
        panic!("{answered:?}")
    };
    assert!(why.contains("syntax error"), "{why}");
}
