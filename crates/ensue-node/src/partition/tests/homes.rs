//! Keys with a home at their rows: a whole request of another datacenter, and what a partition refuses and leaves.

use super::{World, config};
use crate::{AppendFsync, Home, Input, NodeConfig};
use bytes::Bytes;
use ensue_types::{
    Args, Causes, Context, CoreId, DatacenterId, KeyspaceId, LogicalTime, Mode, Reply, RequestId, SessionId,
    Vector,
};
use ensue_wire::{Address, Envelope, HomeOutcome, HomeRequest, Message};

const OWN: DatacenterId = DatacenterId(0);
const FAR: DatacenterId = DatacenterId(1);
const BOOT: u32 = 9;

/// `own:*` is at home here, and `away:*` in the other datacenter.
pub(super) fn with_homes(config: NodeConfig) -> NodeConfig {
    let home = |pattern: &'static str, datacenter| Home {
        keyspace: KeyspaceId(0),
        pattern: pattern.into(),
        datacenter,
    };
    NodeConfig { homes: vec![home("own:*", OWN), home("away:*", FAR)], ..config }
}

fn world(protocol: &str) -> World {
    let mut config = with_homes(config(AppendFsync::EverySecond));
    config.protocols = vec![protocol.into()];
    config.topology.datacenters[0].cores = 2;
    let mut world = World::with(config);
    world.calm_down();
    world
}

fn args(line: &str) -> Args {
    line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

fn from_far(world: &mut World, message: Message) {
    let from = Address::Core { datacenter: FAR, core: CoreId(0) };
    let to = Address::Core { datacenter: OWN, core: CoreId(0) };
    world.give(Input::Message(Envelope { from, to, time: LogicalTime::ZERO, message }));
    world.give(Input::TurnEnd);
    world.calm_down();
}

/// What a request of the other datacenter is answered.
fn asked(world: &mut World, number: u64, commands: &[&str]) -> Reply {
    world.sent.clear();
    from_far(world, Message::HomeReady { boot: BOOT });
    let request = HomeRequest {
        boot: BOOT,
        number,
        home_boot: 1,
        below: number,
        keyspace: KeyspaceId(0),
        context: Context::default(),
        transaction: commands.len() > 1,
        waits_ms: 0,
        abandoned: false,
        commands: commands.iter().map(|line| args(line)).collect(),
    };
    from_far(world, Message::HomeRequest(request));
    let answers = world.sent.iter().filter_map(|message| match message {
        Message::HomeAnswer { boot: BOOT, number: of, outcome } if *of == number => Some(outcome.clone()),
        _ => None,
    });
    match answers.collect::<Vec<_>>().as_slice() {
        [HomeOutcome::Executed { reply, .. } | HomeOutcome::Refused { reply }] => reply.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_of_another_datacenter_takes_the_path_of_every_command() {
    for registration in ensue_protocol::REGISTRY.iter().filter(|one| one.name != "tardis") {
        let mut world = world(registration.name);
        assert_eq!(asked(&mut world, 1, &["SET own:lock a NX"]), Reply::OK, "{}", registration.name);
        assert_eq!(asked(&mut world, 2, &["SET own:lock b NX"]), Reply::Nil);
        world.run(SessionId(1), "SET own:lock c NX");
        world.calm_down();
        assert_eq!(std::mem::take(&mut world.replies), b"$-1\r\n", "nor does a client of this datacenter");
        let both = asked(&mut world, 3, &["INCR own:n", "PING", "INCR own:n"]);
        let pong = Reply::Status("PONG".into());
        assert_eq!(both, Reply::Array(vec![Reply::Integer(1), pong, Reply::Integer(2)]));
        assert_eq!(asked(&mut world, 4, &["EVAL return{redis.call('DEL',KEYS[1])} 1 own:lock"]), {
            Reply::Array(vec![Reply::Integer(1)])
        });
    }
}

#[test]
fn a_script_that_writes_a_key_of_another_home_without_naming_it_changes_nothing() {
    let mut world = world("eiger");
    let script = "redis.call('SET',KEYS[1],'1')redis.call('SET','away:x','1')";
    world.run(SessionId(1), &format!("EVAL {script} 1 a"));
    world.calm_down();
    let refused = String::from_utf8(std::mem::take(&mut world.replies)).expect("text");
    assert!(refused.starts_with("-CROSSHOME the script writes a key"), "{refused}");
    world.run(SessionId(2), "EXISTS a away:x");
    world.calm_down();
    assert_eq!(world.replies, b":0\r\n");
}

#[test]
fn a_session_that_reads_what_is_stable_writes_nothing_at_home() {
    let mut world = world("ha-pocc");
    let stable = Vector { mode: Mode::Stable, ..Vector::default() };
    let mut execute = |keys: &str| {
        let message = Message::Execute {
            request: RequestId { core: CoreId(1), boot: 1, session: SessionId(1), sequence: 1 },
            keyspace: KeyspaceId(0),
            context: Context { time: LogicalTime::ZERO, causes: Causes::from(stable.clone()) },
            commands: vec![args(&format!("SET {keys} 1 NX"))],
            together: false,
        };
        let from = Address::Core { datacenter: OWN, core: CoreId(1) };
        let to = Address::Partition { datacenter: OWN, partition: super::PARTITION };
        world.sent.clear();
        world.give(Input::Message(Envelope { from, to, time: LogicalTime::ZERO, message }));
        world.give(Input::TurnEnd);
        world.calm_down();
        let replies = world.sent.iter().find_map(|message| match message {
            Message::Executed { replies, .. } => Some(replies.clone()),
            _ => None,
        });
        replies.expect("an answer")
    };
    assert!(matches!(&execute("own:x")[..], [Reply::Error(words)] if words.starts_with("BLOCKED ")));
    assert_eq!(execute("other"), [Reply::OK]);
}
