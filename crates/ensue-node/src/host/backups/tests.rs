//! A node that has another one do something for a backup.

use super::*;
use crate::config::DatacenterTopology;
use crate::{BackupDone, BackupErrand, NodeConfig, ReplicaOptions, Topology};
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp};
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

/// A disk of which every directory is empty.
fn done(op: DiskOp) -> Option<DiskDone> {
    Some(match op {
        DiskOp::List => DiskDone::Listed { files: Vec::new() },
        DiskOp::Append { file, .. } => DiskDone::Appended { file },
        DiskOp::Sync { file } => DiskDone::Synced { file },
        DiskOp::Replace { file, .. } => DiskDone::Replaced { file },
        DiskOp::Rewrite { file } => DiskDone::Rewritten { file },
        DiskOp::Overwrite { .. } => return None,
        DiskOp::Read { file, offset, .. } => DiskDone::Read { file, offset, bytes: Bytes::new() },
        DiskOp::Truncate { file, .. } => DiskDone::Truncated { file },
        DiskOp::Delete { file } => DiskDone::Deleted { file },
    })
}

#[test]
fn a_partition_that_reads_its_log_is_not_kept() {
    let topology = host(0).seat.config.topology;
    let config = NodeConfig::new(topology, CoreId(0), &ensue_protocol::REGISTRY, vec!["eiger".into()]);
    let mut host = Host::new(config, &ReplicaOptions::default(), NOW).expect("the protocol is known");
    assert_eq!(host.reading(), Some(PartitionId(0)));
    while let Some(output) = host.next_output() {
        if let Output::Disk { partition, op } = output {
            done(op).into_iter().for_each(|done| host.on_input(NOW, Input::Disk { partition, done }));
        }
    }
    assert_eq!(host.reading(), None);
    assert!(host.standings().is_none());
}

#[test]
fn an_owner_that_reads_its_log_does_not_say_that_it_leads() {
    let datacenter = DatacenterTopology {
        name: "dc1".into(),
        cores: 3,
        nodes: vec![1; 3],
        placement: vec![CoreId(0)],
        replicas: vec![(0..3).map(CoreId).collect()],
    };
    let topology = Topology { datacenter: HERE, partitions: 1, datacenters: vec![datacenter] };
    let mut hosts: Vec<Host> = (0..3)
        .map(|core| {
            let topology = topology.clone();
            let mut config =
                NodeConfig::new(topology, CoreId(core), &ensue_protocol::REGISTRY, vec!["eiger".into()]);
            config.identity_seed = u128::from(core) + 1;
            Host::new(config, &ReplicaOptions::default(), NOW).expect("the protocol is known")
        })
        .collect();
    let mut now = NOW;
    for (one, other) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        hosts[one].on_input(now, Input::LinkUp { datacenter: HERE, core: CoreId(other) });
    }
    let (mut read, mut leads) = (false, false);
    for _ in 0..400 {
        now.monotonic_us += 20_000;
        for host in &mut hosts {
            host.on_input(now, Input::Timer);
        }
        let mut worked = true;
        while std::mem::take(&mut worked) {
            for at in 0..hosts.len() {
                while let Some(output) = hosts[at].next_output() {
                    worked = true;
                    match output {
                        Output::Send { core, envelope, .. } => {
                            hosts[usize::from(core.0)].on_input(now, Input::Message(envelope));
                        }
                        Output::Disk { partition, op } => {
                            let inputs = done(op).into_iter().map(|done| Input::Disk { partition, done });
                            inputs.for_each(|input| hosts[at].on_input(now, input));
                        }
                        Output::Trace(Trace::Leads { .. }) => {
                            let standings = hosts[at].standings().expect("it is replicated");
                            assert!(standings[0].leads.is_none(), "nothing was read yet");
                            read = true;
                        }
                        _ => {}
                    }
                }
            }
        }
        leads |= hosts.iter().any(|host| host.standings().is_some_and(|all| all[0].leads.is_some()));
    }
    assert!(read && leads);
}
