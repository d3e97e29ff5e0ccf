//! A node of one partition with a disk that carries out one operation after another, at the test's word: what may be
//! said, and what may count, before what it rests on is durable.

mod ahead;
mod branches;
mod buffered;
mod catch_up;
mod chains;
mod changes;
mod checkpoints;
mod closing;
mod collecting;
mod conflicts;
mod contexts;
mod copies;
mod decisions;
mod evictions;
mod expiries;
mod filled;
mod forgetting;
mod gone;
mod growing;
mod held;
mod homes;
mod identity;
mod issued;
mod joining;
mod metrics;
mod moving;
mod nonsense;
mod parts;
mod pops;
mod previous;
mod replicas;
mod retiring;
mod rights;
mod room;
mod scripts;
mod snapshot_reads;
mod strangers;
mod streams;
mod tail_recovery;
mod times;
mod turns;
mod versions;
mod votes;
mod watched;

use crate::config::{DatacenterTopology, Tuning};
use crate::{AppendFsync, Input, Node, NodeConfig, Output, Topology, Trace};
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{
    Args, Breaking, Causes, Column, CoreId, DatacenterId, Effect, Incarnation, KeyspaceId, LogicalTime, Now,
    PartitionId, Position, RowEffect, Rule, SessionId, Stamp,
};
use ensue_wire::{Address, Envelope, Message};
use std::collections::VecDeque;

const PARTITION: PartitionId = PartitionId(0);

/// A datacenter whose only neighbour has never been heard of: its log is kept from the beginning.
pub(crate) fn config(append_fsync: AppendFsync) -> NodeConfig {
    let datacenter = |name: &str| DatacenterTopology {
        replicas: Vec::new(),
        name: name.into(),
        cores: 1,
        nodes: vec![1],
        placement: vec![CoreId(0)],
    };
    let datacenters = vec![datacenter("dc1"), datacenter("dc2")];
    let topology = Topology { datacenter: DatacenterId(0), partitions: 1, datacenters };
    NodeConfig {
        append_fsync,
        tuning: Tuning { checkpoint_bytes: 1, ..Tuning::default() },
        ..NodeConfig::new(topology, CoreId(0), &ensue_protocol::REGISTRY, vec!["eiger".into()])
    }
}

/// A node alone with its disk, whose operations wait until they are carried out.
struct World {
    node: Node,
    now: Now,
    asked: VecDeque<DiskOp>,
    answered: u32,
    wants_turn: bool,
    /// What clients were answered, as it is written to them.
    replies: Vec<u8>,
    sent: Vec<Message>,
    traces: Vec<Trace>,
    stopped: bool,
}

impl World {
    fn new(append_fsync: AppendFsync) -> World {
        World::with(config(append_fsync))
    }

    fn with(config: NodeConfig) -> World {
        let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
        let node = Node::new(config, now).expect("the protocol is known");
        let (asked, replies, sent, traces) = (VecDeque::new(), Vec::new(), Vec::new(), Vec::new());
        let mut world =
            World { node, now, asked, answered: 0, wants_turn: false, replies, sent, traces, stopped: false };
        world.drain();
        world
    }

    fn connect(&mut self, session: SessionId) {
        let (address, local_address) = (String::new(), String::new());
        self.give(Input::ClientConnected { session, address, local_address });
    }

    /// What a command of a client is answered; `|` stands for the ends of lines.
    fn answer(&mut self, session: SessionId, args: &[&str]) -> String {
        let args: Args = args.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        self.give(Input::ClientCommands { session, commands: vec![args] });
        self.give(Input::TurnEnd);
        self.calm_down();
        let replies = std::mem::take(&mut self.replies);
        String::from_utf8_lossy(&replies).replace("\r\n", "|")
    }

    /// The same of a command of words between blanks.
    fn words(&mut self, session: SessionId, line: &str) -> String {
        self.answer(session, &line.split(' ').collect::<Vec<_>>())
    }

    fn give(&mut self, input: Input) {
        self.node.on_input(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.node.next_output() {
            match output {
                // Carried out at once, and not answered.
                Output::Disk { op: DiskOp::Overwrite { .. }, .. } => {}
                Output::Disk { op, .. } => self.asked.push_back(op),
                Output::Reply { answered, bytes, wants_turn, .. } => {
                    self.answered += answered;
                    self.wants_turn = wants_turn;
                    self.replies.extend_from_slice(&bytes);
                }
                Output::Push { bytes, .. } => self.replies.extend_from_slice(&bytes),
                Output::Send { envelope, .. } => self.sent.push(envelope.message),
                Output::Trace(trace) => self.traces.push(trace),
                Output::Stopped => self.stopped = true,
                _ => {}
            }
        }
    }

    /// One command of a new client, and the end of its turn.
    fn run(&mut self, session: SessionId, line: &str) {
        self.connect(session);
        let args = line.split(' ').map(|word| Bytes::from(word.to_owned())).collect();
        self.give(Input::ClientCommands { session, commands: vec![args] });
        self.give(Input::TurnEnd);
    }

    fn increment(&mut self, session: SessionId) {
        self.run(session, "INCR x");
    }

    /// Carries out the oldest operation; says which it was.
    fn carry_out(&mut self) -> Option<DiskOp> {
        let op = self.asked.pop_front()?;
        let done = match op.clone() {
            DiskOp::List => DiskDone::Listed { files: Vec::new() },
            DiskOp::Append { file, .. } => DiskDone::Appended { file },
            DiskOp::Sync { file } => DiskDone::Synced { file },
            DiskOp::Replace { file, .. } => DiskDone::Replaced { file },
            DiskOp::Delete { file } => DiskDone::Deleted { file },
            other => panic!("{other:?} of a fresh directory"),
        };
        self.give(Input::Disk { partition: PARTITION, done });
        self.give(Input::TurnEnd);
        Some(op)
    }

    fn calm_down(&mut self) {
        while self.carry_out().is_some() {}
    }
}

#[test]
fn a_checkpoint_is_named_only_when_the_log_holds_what_is_in_it() {
    let mut world = World::new(AppendFsync::Always);
    world.calm_down();
    // Until the next timer no checkpoint begins. The second command waits for the append of the first.
    world.increment(SessionId(1));
    world.increment(SessionId(2));
    world.now.monotonic_us += 1_000_000;
    world.give(Input::Timer);
    world.give(Input::TurnEnd);
    let checkpoint = |op: &DiskOp| matches!(op, DiskOp::Append { file: FileName::Checkpoint(_), .. });
    assert!(world.answered == 0 && world.asked.iter().any(checkpoint), "{:?}", world.asked);

    // A write is answered when it is durable; the superblock names the checkpoint, which holds both, only then.
    let named = |op: &DiskOp| matches!(op, DiskOp::Replace { file: FileName::Superblock, .. });
    while !world.asked.iter().any(named) {
        world.carry_out().expect("the checkpoint comes to its end");
    }
    assert_eq!(world.answered, 2);
    world.calm_down();
}

/// The entry at this place of the other datacenter's stream, and the end of its turn.
fn receive(world: &mut World, position: Position) {
    receive_columns(world, position, &[(Column::Text, b"1")]);
}

/// The same of an entry that puts these columns of the row `x`.
fn receive_columns(world: &mut World, position: Position, columns: &[(Column, &[u8])]) {
    let put = |(column, value): &(Column, &[u8])| RowEffect {
        key: Bytes::from_static(b"x"),
        column: column.clone(),
        effect: Effect::Put { value: Bytes::copy_from_slice(value), seen: Vec::new(), over: None },
    };
    receive_effects(world, position, columns.iter().map(put).collect());
}

/// The next entry of the other datacenter's stream has these effects.
fn receive_effects(world: &mut World, position: Position, effects: Vec<RowEffect>) {
    let other = DatacenterId(1);
    let time = LogicalTime::from_ms(world.now.wall_ms);
    let entry = Entry {
        position,
        stamp: Stamp { time, datacenter: other, partition: PARTITION },
        dependencies: Causes::Nothing,
        change: Change::Effects { keyspace: KeyspaceId(0), transaction: None, effects },
        previous: Vec::new(),
    };
    let entries = vec![layout::encode_entry(&entry)];
    let message = Message::StreamEntries { incarnation: Incarnation(1), first: position, entries };
    let from = Address::Partition { datacenter: other, partition: PARTITION };
    let to = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
    world.give(Input::Message(Envelope { from, to, time, message }));
    world.give(Input::TurnEnd);
}

/// What the last acknowledgement says: received, synced.
fn acknowledged(world: &World) -> (u64, u64) {
    let acknowledge = world.sent.iter().rev().find_map(|message| match message {
        Message::StreamAcknowledge(acknowledge) => Some(acknowledge),
        _ => None,
    });
    let acknowledge = acknowledge.expect("something was acknowledged");
    (acknowledge.received.0, acknowledge.synced.0)
}

#[test]
fn what_was_received_is_called_synced_only_when_it_is() {
    let mut world = World::new(AppendFsync::EverySecond);
    world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
    world.calm_down();
    receive(&mut world, Position(1));
    world.calm_down();
    assert_eq!(acknowledged(&world), (1, 0), "it is written and no more");

    world.now.monotonic_us += 1_000_000;
    world.give(Input::Timer);
    world.give(Input::TurnEnd);
    assert!(world.asked.iter().any(|op| matches!(op, DiskOp::Sync { file: FileName::Segment(_) })));
    assert_eq!(acknowledged(&world), (1, 0), "the sync is not over");
    world.calm_down();
    assert_eq!(acknowledged(&world), (1, 1));
}

#[test]
fn what_was_received_while_the_log_was_synced_is_not_called_synced() {
    let mut world = World::new(AppendFsync::EverySecond);
    world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
    world.calm_down();
    receive(&mut world, Position(1));
    world.calm_down();
    world.now.monotonic_us += 1_000_000;
    world.give(Input::Timer);
    world.give(Input::TurnEnd);

    // The sync is under way: what comes now is written after it, and only the next one proves it.
    receive(&mut world, Position(2));
    let synced = |op: &DiskOp| matches!(op, DiskOp::Sync { file: FileName::Segment(_) });
    while !synced(&world.carry_out().expect("a sync is under way")) {}
    let appended = |op: &DiskOp| matches!(op, DiskOp::Append { file: FileName::Segment(_), .. });
    // A checkpoint has begun, and logged the clock's bound before.
    while !appended(&world.carry_out().expect("the clock's bound is to be written")) {}
    while !appended(&world.carry_out().expect("the second entry is to be written")) {}
    assert_eq!(acknowledged(&world), (2, 1));
}

/// While an append waits for the one before it, a sync begins that does not cover it, and more is received.
#[test]
fn what_came_last_is_called_synced_in_the_end() {
    let mut world = World::new(AppendFsync::Always);
    world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
    world.calm_down();
    receive(&mut world, Position(1));
    let is_append = |op: Option<DiskOp>| matches!(op, Some(DiskOp::Append { .. }));
    assert!(is_append(world.carry_out()), "it is written, and being synced");
    receive(&mut world, Position(2));
    receive(&mut world, Position(3));
    assert!(matches!(world.carry_out(), Some(DiskOp::Sync { .. })));
    receive(&mut world, Position(4));
    world.calm_down();
    assert_eq!(acknowledged(&world), (4, 4));
}

/// Records that the log takes in for an entry, and for the same entry when it comes again.
fn logged_of_an_entry_that_comes_twice() -> (usize, usize) {
    let mut world = World::new(AppendFsync::EverySecond);
    world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
    world.calm_down();
    let mut logged = || {
        receive(&mut world, Position(1));
        let appended = |op: &&DiskOp| matches!(op, DiskOp::Append { file: FileName::Segment(_), .. });
        let count = world.asked.iter().filter(appended).count();
        world.calm_down();
        count
    };
    (logged(), logged())
}

#[test]
fn an_entry_that_comes_again_is_not_taken_again() {
    assert_eq!(logged_of_an_entry_that_comes_twice(), (1, 0));
    let _breaking = Breaking::only(Some(Rule::ApplyOnce));
    assert_eq!(logged_of_an_entry_that_comes_twice(), (1, 1));
}
