//! What a partition does for one session before others have their turn, and answers that are too long to be made.

use super::World;
use crate::config::Tuning;
use crate::{AppendFsync, Input, NodeConfig};
use bytes::Bytes;
use ensue_types::{Args, SessionId, limits};

const CLIENT: SessionId = SessionId(7);

fn world(tuning: Tuning) -> World {
    let mut world = World::with(NodeConfig { tuning, ..super::config(AppendFsync::EverySecond) });
    let (address, local_address) = (String::new(), String::new());
    world.calm_down();
    world.give(Input::ClientConnected { session: CLIENT, address, local_address });
    world
}

fn words(line: &str) -> Args {
    line.split(' ').map(|word| Bytes::from(word.to_owned())).collect()
}

/// The commands in one arrival; how many are answered after each turn.
fn answered_by_turn(world: &mut World, commands: Vec<Args>) -> Vec<u32> {
    let mut turns = Vec::new();
    let mut commands = Some(commands);
    while commands.is_some() || std::mem::take(&mut world.wants_turn) {
        let commands = commands.take().unwrap_or_default();
        world.give(Input::ClientCommands { session: CLIENT, commands });
        world.give(Input::TurnEnd);
        world.calm_down();
        turns.push(std::mem::take(&mut world.answered));
    }
    turns
}

#[test]
fn a_turn_ends_with_the_answer_that_fills_it() {
    let mut world = world(Tuning { turn_answer_bytes: 200, ..Tuning::default() });
    let set = format!("SET a {}", "x".repeat(100));
    let commands = [set.as_str(), "GET a", "GET a", "GET a", "GET a", "INCR n"].map(words).to_vec();
    assert_eq!(answered_by_turn(&mut world, commands), [3, 2, 1]);
    let text = String::from_utf8(world.replies).expect("text");
    assert!(text.starts_with("+OK") && text.ends_with("\r\n:1\r\n"), "{text}");
}

#[test]
fn a_turn_ends_with_the_cell_that_fills_it() {
    let mut world = world(Tuning { turn_cells: 10, ..Tuning::default() });
    let fields: Vec<String> = (0..8).map(|field| format!("f{field} v")).collect();
    let set = format!("HSET row {}", fields.join(" "));
    let commands = [set.as_str(), "HGETALL row", "HGETALL row", "HGETALL row", "PING", "HLEN row"];
    let turns = answered_by_turn(&mut world, commands.map(words).to_vec());
    assert!(turns.len() > 2 && turns.iter().all(|&answered| answered <= 3), "{turns:?}");
    assert_eq!(turns.iter().sum::<u32>(), 6);
}

#[test]
fn an_answer_that_is_too_long_is_not_made() {
    let mut world = world(Tuning::default());
    let long = Bytes::from(vec![b'x'; limits::ANSWER_BYTES_MAX / 3]);
    let set: Args = vec![Bytes::from_static(b"SET"), Bytes::from_static(b"k"), long];
    let commands = vec![set, words("MGET k k k"), words("MGET k k"), words("PING")];
    world.replies.clear();
    assert_eq!(answered_by_turn(&mut world, commands), [3, 1]);
    let text = String::from_utf8_lossy(&world.replies[..200]);
    assert!(text.starts_with("+OK\r\n-ERR the answer is too long"), "{text}");
    assert!(world.replies.len() > limits::ANSWER_BYTES_MAX / 3 * 2 && world.replies.ends_with(b"+PONG\r\n"));
}
