//! What Redis does about its files and its replicas, as far as that means something here.

use super::*;

fn asked(world: &mut World, command: &str, question: &str, replies: [Reply; 4]) -> String {
    world.send(&[command]);
    for reply in replies {
        assert_eq!(executes(&world.sent[0]), [question], "{command}");
        world.executed(vec![reply]);
    }
    world.received()
}

#[test]
fn every_partition_is_asked_for_a_checkpoint() {
    let mut world = World::new();
    let started = || Reply::Status("Background saving started".into());
    let (busy, saved) = (Reply::error("ERR Background save already in progress"), [9, 7, 8, 9]);
    let all = || [started(), started(), started(), started()];
    let answer = asked(&mut world, "BGSAVE", "causal checkpoint bgsave", all());
    assert_eq!(answer, "+Background saving started|");
    let replies = [started(), busy, started(), started()];
    let answer = asked(&mut world, "BGSAVE", "causal checkpoint bgsave", replies);
    assert_eq!(answer, "-ERR Background save already in progress|");
    asked(&mut world, "bgsave schedule", "causal checkpoint schedule", all());
    asked(&mut world, "SAVE", "causal checkpoint save", all());
    asked(&mut world, "BGREWRITEAOF", "causal checkpoint bgrewriteaof", all());
    let answer = asked(&mut world, "LASTSAVE", "causal checkpoint when", saved.map(Reply::Integer));
    assert_eq!(answer, ":7|", "all is on the disk that was there then");
    for (command, answer) in [
        ("BGSAVE FOO", "-ERR syntax error|"),
        ("BGSAVE SCHEDULE x", "-ERR syntax error|"),
        ("SAVE x", "-ERR wrong number of arguments for 'save' command|"),
        ("LASTSAVE x", "-ERR wrong number of arguments for 'lastsave' command|"),
        ("CAUSAL CHECKPOINT when", "-ERR unknown subcommand 'CHECKPOINT'. Try CAUSAL HELP.|"),
    ] {
        assert_eq!(world.ask(command), answer, "{command}");
    }
    world.send(&["MULTI", "LASTSAVE", "EXEC"]);
    (0..4).for_each(|_| world.executed(vec![Reply::Integer(5)]));
    assert_eq!(world.received(), "+OK|+QUEUED|*1|:5|");
    world.send(&["MULTI", "SAVE", "EXEC"]);
    assert!(world.received().starts_with("+OK|-ERR Command not allowed inside a transaction|-EXECABORT "));
}

#[test]
fn nobody_follows_another_server() {
    let mut world = World::new();
    for (command, answer) in [
        ("REPLICAOF NO ONE", "+OK|"),
        ("slaveof no one", "+OK|"),
        ("REPLICAOF NO", "-ERR wrong number of arguments for 'replicaof' command|"),
        ("ASKING", "+OK|"),
        ("FAILOVER ABORT", "-ERR No failover in progress.|"),
        ("SCRIPT DEBUG NO", "+OK|"),
        ("SCRIPT DEBUG", "-ERR wrong number of arguments for 'script|debug' command|"),
        ("SCRIPT DEBUG x", "-ERR Use SCRIPT DEBUG YES/SYNC/NO|"),
        ("SCRIPT DEBUG YES", "-ERR SCRIPT DEBUG is refused: this server has no debugger of scripts|"),
    ] {
        assert_eq!(world.ask(command).replace("'script||debug'", "'script|debug'"), answer, "{command}");
    }
    for command in ["REPLICAOF 10.0.0.1 6379", "SLAVEOF 10.0.0.1 6379"] {
        let name = command.split(' ').next().unwrap_or_default();
        let answer = world.ask(command);
        assert!(answer.starts_with(&format!("-ERR {name} is refused: ")), "{answer}");
        assert!(answer.contains("'ensue import --from'"), "{answer}");
    }
    assert!(world.ask("FAILOVER").starts_with("-ERR FAILOVER is refused: "));
    world.send(&["MULTI", "REPLICAOF NO ONE", "ASKING", "EXEC"]);
    assert_eq!(world.received(), "+OK|+QUEUED|+QUEUED|*2|+OK|+OK|");
}
