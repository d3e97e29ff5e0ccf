//! What no node of ours sends: it is answered or refused, and the partition goes on.

use super::versions::World;
use ensue_types::{Now, Reply};
use ensue_wire::Message;
use std::collections::BTreeMap;

/// The answer to one command that a session's core asks for.
fn answer(world: &mut World, line: &str) -> Reply {
    world.run(line);
    let replies =
        std::iter::from_fn(|| world.partition.outbox.next()).find_map(|envelope| match envelope.message {
            Message::Executed { replies, .. } => Some(replies),
            _ => None,
        });
    let [reply] = &replies.expect("it was answered")[..] else { panic!("one command, one answer") };
    reply.clone()
}

#[test]
fn a_command_without_its_subcommand_is_an_error() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::new(BTreeMap::new(), now, u64::MAX);
    let reply = answer(&mut world, "causal");
    assert_eq!(reply, Reply::error("ERR wrong number of arguments for 'causal' command"));
    assert_eq!(answer(&mut world, "SET a 1"), Reply::OK);
}
