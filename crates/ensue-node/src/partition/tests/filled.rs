//! Transactions of which a part is in the copy of one partition, and the rest comes to others with the stream.

use super::PARTITION;
use super::identity::answer;
use super::previous::OTHER;
use super::versions::World;
use super::votes::{NEIGHBOUR, neighbour_says, own_key, receive_part, said, transaction, world};
use ensue_store::entry::{Change, Entry};
use ensue_store::layout;
use ensue_types::{Breaking, Causes, Incarnation, KeyspaceId, LogicalTime, Position, Rule, Stamp};
use ensue_wire::{Address, Envelope, Message, StreamAcknowledge};

const ELSEWHERE: Address = Address::Partition { datacenter: OTHER, partition: PARTITION };

/// A partition that has a neighbour, and whose directory is filled.
fn filled() -> World {
    let mut world = world();
    world.partition.others.note_filled(true);
    world
}

fn time(world: &World) -> LogicalTime {
    LogicalTime::from_ms(world.now.wall_ms)
}

/// The entry that names a transaction comes: this partition coordinates it, and the neighbour takes part.
fn receive_transaction(world: &mut World) {
    let stamp = Stamp { time: time(world), datacenter: OTHER, partition: PARTITION };
    let change =
        Change::Transaction { keyspace: KeyspaceId(0), begun_as: None, participants: vec![NEIGHBOUR] };
    let dependencies = Causes::Nothing;
    let entry = Entry { position: Position(1), stamp, dependencies, change, previous: Vec::new() };
    let (incarnation, first) = (Incarnation(1), entry.position);
    let entries = vec![layout::encode_entry(&entry)];
    world.message(ELSEWHERE, Message::StreamEntries { incarnation, first, entries });
}

/// A second later.
fn wait(world: &mut World) {
    world.now.monotonic_us += 1_000_000;
    world.partition.on_timer(world.now);
    world.work();
}

/// The other datacenter says where its stream ends at a time.
fn say_end(world: &mut World, end: Position, time: LogicalTime) {
    let nothing = Position(0);
    let message = Message::StreamAcknowledge(StreamAcknowledge {
        incarnation: Incarnation(1),
        received: nothing,
        synced: nothing,
        applied: Vec::new(),
        end,
        shown: LogicalTime::ZERO,
    });
    let to = Address::Partition { datacenter: super::previous::HERE, partition: PARTITION };
    world.partition.on_message(world.now, Envelope { from: ELSEWHERE, to, time, message });
    world.work();
}

fn is_applied(world: &World) -> bool {
    world.partition.others.replication.applied.contains(OTHER, Position(1))
}

#[test]
fn a_coordinator_that_is_filled_asks_for_the_part_that_does_not_come() {
    for (is_filled, broken, asks) in
        [(true, None, true), (true, Some(Rule::FindPartsInCopies), false), (false, None, false)]
    {
        let _breaking = Breaking::only(broken);
        let mut world = if is_filled { filled() } else { world() };
        receive_transaction(&mut world);
        said(&mut world);
        wait(&mut world);
        let (transaction, time) = (transaction(PARTITION), time(&world));
        let asked = said(&mut world);
        assert_eq!(asked.contains(&Message::FindPart { transaction, time }), asks, "{broken:?}: {asked:?}");
        assert!(!is_applied(&world));
        // Nobody is left to vote. Who has the part need not remember it any more.
        neighbour_says(&mut world, Message::PartHeld { transaction });
        assert!(is_applied(&world));
        let told = said(&mut world);
        assert!(told.contains(&Message::PartsForgotten { operations: vec![transaction] }), "{told:?}");
        assert_eq!(world.partition.transactions.len(), 0, "nothing is waited for");
    }
}

#[test]
fn a_participant_says_that_it_has_its_part_when_no_part_can_come_any_more() {
    let mut world = world();
    let (transaction, time) = (transaction(NEIGHBOUR), time(&world));
    let find = Message::FindPart { transaction, time };
    let held = [Message::PartHeld { transaction }];
    neighbour_says(&mut world, find.clone());
    assert_eq!(said(&mut world), [], "nobody has said where the stream ends");
    let before = LogicalTime(time.0 - 1);
    for (end, told) in [(Position(0), before), (Position(1), time)] {
        say_end(&mut world, end, told);
        neighbour_says(&mut world, find.clone());
        assert_eq!(said(&mut world), [], "it may come yet: {end:?} {told:?}");
    }
    world.receive_after(1, own_key(), super::versions::put("2"), &[]);
    neighbour_says(&mut world, find);
    assert_eq!(said(&mut world), held);
}

#[test]
fn a_participant_whose_part_waits_says_so_again() {
    let mut world = filled();
    let (transaction, time) = (transaction(NEIGHBOUR), time(&world));
    receive_part(&mut world, transaction, Causes::Nothing);
    said(&mut world);
    say_end(&mut world, Position(1), time.next());
    neighbour_says(&mut world, Message::FindPart { transaction, time });
    assert_eq!(said(&mut world), [Message::Notify { transaction }]);
}

#[test]
fn a_coordinator_says_of_what_its_copy_has_that_it_is_over() {
    for (broken, is_said) in [(None, true), (Some(Rule::CommitWhatCopiesHave), false)] {
        let _breaking = Breaking::only(broken);
        let transaction = transaction(PARTITION);
        for word in [Message::Notify { transaction }, Message::Vote { transaction }] {
            let mut world = filled();
            let replication = &mut world.partition.others.replication;
            replication.receiver_mut(OTHER).expect("it is known").restore(Position(1));
            replication.applied.through(OTHER, Position(1));
            neighbour_says(&mut world, word);
            let told = said(&mut world);
            assert_eq!(told.contains(&Message::TransactionOver { transaction }), is_said, "{told:?}");
        }
    }
}

/// In any other directory the place of the transaction was taken by another entry.
#[test]
fn a_part_of_what_is_over_is_committed_in_a_directory_that_is_filled_and_in_no_other() {
    for (is_filled, read) in [(true, "\"1\""), (false, "Nil")] {
        let mut world = if is_filled { filled() } else { world() };
        let transaction = transaction(NEIGHBOUR);
        receive_part(&mut world, transaction, Causes::Nothing);
        assert_eq!(said(&mut world), [Message::Notify { transaction }]);
        assert!(!is_applied(&world));
        neighbour_says(&mut world, Message::TransactionOver { transaction });
        assert_eq!(is_applied(&world), is_filled);
        let answer = answer(&mut world, &format!("GET {}", own_key()));
        assert!(answer.contains(read), "{answer}");
    }
}
