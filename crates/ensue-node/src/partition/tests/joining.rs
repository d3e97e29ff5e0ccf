//! A partition that starts for the first time, and asks: what the answers say, and what does not count as one.

use super::PARTITION;
use super::identity::{THEIRS, answer, asking, beginning, introduce, introduction, knowing, sent};
use super::versions::{OTHER, put};
use crate::partition::Stage;
use ensue_types::{CoreId, DatacenterId, DirectoryId, LogicalTime, Position};
use ensue_wire::{Address, Introduction, Message};
use std::collections::BTreeMap;

/// Its process was ended after others had heard of it, and before it served.
#[test]
fn a_directory_that_others_know_already_is_the_first_unless_they_have_more() {
    let mut world = asking(BTreeMap::new(), 1);
    let own = world.partition.peers.identity.own();
    introduce(&mut world, knowing(own, 0, LogicalTime::ZERO));
    assert!(matches!(world.partition.stage, Stage::Serving), "{:?}", world.partition.stage);

    let mut world = asking(BTreeMap::new(), 1);
    introduce(&mut world, knowing(own, 3, LogicalTime(5)));
    assert!(matches!(world.partition.stage, Stage::RecoveringTail(_)), "{:?}", world.partition.stage);
    assert!(sent(&mut world).contains(&Message::TailFetch { after: Position(0) }));
}

#[test]
fn whoever_answered_before_the_first_serving_is_known_from_then_on() {
    let mut world = asking(BTreeMap::new(), 1);
    introduce(&mut world, introduction());
    assert_eq!(world.partition.peers.identity.known(OTHER), THEIRS);
    introduce(&mut world, Introduction { directory: DirectoryId(0x78), ..introduction() });
    assert!(world.partition.peers.identity.refusal(OTHER).is_some(), "it runs on another directory now");
}

#[test]
fn what_comes_from_no_datacenter_is_no_answer() {
    let mut world = asking(BTreeMap::new(), 1);
    let nowhere = Address::Partition { datacenter: DatacenterId(9), partition: PARTITION };
    world.message(nowhere, Message::Introduce(knowing(DirectoryId(0x99), 3, LogicalTime(5))));
    introduce(&mut world, beginning());
    assert!(answer(&mut world, "GET a").contains("Nil"));
}

#[test]
fn what_others_send_before_the_first_serving_is_not_kept() {
    let mut world = asking(BTreeMap::new(), 1);
    world.receive(1, "c", put("3"));
    introduce(&mut world, beginning());
    introduce(&mut world, introduction());
    assert!(answer(&mut world, "GET c").contains("Nil"));
    world.receive(1, "c", put("3"));
    assert!(answer(&mut world, "GET c").contains('3'), "they send it again");
}

/// A core says once that it wants to be told of changes.
#[test]
fn who_wants_to_be_told_of_changes_is_told_from_the_first_serving_on() {
    let mut world = asking(BTreeMap::new(), 1);
    let sessions = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    world.message(sessions, Message::ReportChanges { wanted: true });
    introduce(&mut world, beginning());
    sent(&mut world);
    world.run("SET x 1");
    let is_told = |message: &Message| matches!(message, Message::Changed { event, .. } if event == "set");
    assert!(sent(&mut world).iter().any(is_told));
}

#[test]
fn a_datacenter_that_there_is_not_is_not_dead() {
    let mut world = asking(BTreeMap::new(), 1);
    let (datacenter, received, time) = (DatacenterId(16), Position(0), LogicalTime::ZERO);
    let from = Address::Partition { datacenter: OTHER, partition: PARTITION };
    world.message(from, Message::DatacenterFailed { datacenter, received, time, ended: None });
    assert!(answer(&mut world, "GET a").contains("LOADING"));
    introduce(&mut world, beginning());
    assert!(answer(&mut world, "GET a").contains("Nil"));
}
