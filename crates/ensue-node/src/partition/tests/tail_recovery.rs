//! What a partition does for another datacenter that has lost the end of its stream.

use super::PARTITION;
use super::versions::{OTHER, World, put};
use ensue_store::disk::FileName;
use ensue_store::superblock::Superblock;
use ensue_types::{DatacenterId, Dependency, Extent, Incarnation, LogicalTime, Now, OperationId, Position};
use ensue_wire::{Address, Envelope, Message};
use std::collections::BTreeMap;

const HERE: Address = Address::Partition { datacenter: DatacenterId(0), partition: PARTITION };
const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };

/// A partition that has received three entries.
fn world() -> World {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::new(BTreeMap::new(), now, u64::MAX);
    for position in 1..=3 {
        world.receive(position, "a", put("1"));
    }
    world
}

#[test]
fn a_question_that_is_asked_anew_is_answered_once() {
    let mut world = world();
    for after in [0, 1].map(Position) {
        let time = LogicalTime::from_ms(world.now.wall_ms);
        let message = Message::TailFetch { after };
        world.partition.on_message(world.now, Envelope { from: ELSEWHERE, to: HERE, time, message });
    }
    world.work();
    let sent = std::iter::from_fn(|| world.partition.cx.outbox.next());
    let answers = sent.filter_map(|envelope| match envelope.message {
        Message::TailFetched { after, received, entries } => Some((after, received, entries.len())),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [(Position(1), Position(3), 2)]);
}

#[test]
fn what_depends_on_what_was_lost_waits_for_nothing_and_is_counted() {
    let mut world = world();
    let declared = Position::before(Incarnation(2)).next();
    let receiver = world.partition.others.replication.receiver_mut(OTHER);
    receiver.expect("it replicates to here").received_at(declared);
    world.partition.visibility().lose(OTHER, Position(3), Position::before(Incarnation(2)));
    for (number, lost) in [(3, 0), (4, 1)] {
        let position = Position(number);
        let operation =
            OperationId { datacenter: OTHER, incarnation: Incarnation(1), partition: PARTITION, position };
        let dependencies = vec![Dependency { operation, extent: Extent::Exact }];
        world.message(HERE, Message::CheckDependencies { check: number, dependencies });
        let is_answer =
            |message| matches!(message, Message::DependenciesMet { check, .. } if check == number);
        assert!(std::iter::from_fn(|| world.partition.cx.outbox.next()).any(|sent| is_answer(sent.message)));
        let counted = ("lost_dependencies".to_owned(), lost);
        assert!(world.partition.metrics().contains(&counted), "{number}");
    }
}

/// The disk was full before the first entry of a new incarnation was there, and the partition was killed.
#[test]
fn an_incarnation_that_was_to_begin_is_not_taken_for_begun() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eiger", BTreeMap::new(), now, u64::MAX).started();
    world.run("SET a 1");
    let end = world.partition.cx.position;
    let mut files = world.files.clone();
    let superblock = files.get_mut(&FileName::Superblock).expect("it was opened");
    let mut said = Superblock::decode(superblock).expect("it is sound");
    said.incarnation = Incarnation(2);
    *superblock = said.encode().to_vec();
    let mut again = World::under("eiger", files, now, u64::MAX).started();
    let asked = std::iter::from_fn(|| again.partition.cx.outbox.next());
    let asks = asked.filter(|sent| sent.message == Message::TailFetch { after: end }).count();
    assert_eq!(asks, 1, "what others have of the lost entries comes first");
    again.message(ELSEWHERE, Message::TailFetched { after: end, received: end, entries: Vec::new() });
    let next = again.partition.cx.next_operation();
    assert_eq!((next.incarnation, next.position.incarnation()), (Incarnation(3), Incarnation(3)));
}
