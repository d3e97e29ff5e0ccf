//! What an operator and a client are told of conflicts: the values beside each other, and a list of bounded length.

use super::previous::{HERE, OTHER, partition, written_elsewhere};
use super::versions::World;
use bytes::Bytes;
use ensue_types::{Context, CoreId, KeyspaceId, Reply, RequestId};
use ensue_wire::{Address, Message};

/// Asks a partition, and says what it answers and what past the answer has.
fn ask(world: &mut World, line: &str) -> (Vec<String>, Context) {
    while world.partition.cx.outbox.next().is_some() {}
    let args = line.split(' ').map(|word| Bytes::from(word.to_owned())).collect();
    let from = Address::Core { datacenter: HERE, core: CoreId(0) };
    let (request, keyspace) = (RequestId::default(), KeyspaceId(0));
    world.message(
        from,
        Message::Execute {
            request,
            keyspace,
            context: Context::default(),
            commands: vec![args],
            together: false,
        },
    );
    let answer =
        std::iter::from_fn(|| world.partition.cx.outbox.next()).find_map(|sent| match sent.message {
            Message::Executed { context, mut replies, .. } => Some((replies.remove(0), context)),
            _ => None,
        });
    let Some((Reply::Array(lines), context)) = answer else { panic!("{line}: no array") };
    let text = |line: Reply| match line {
        Reply::Bulk(bytes) => String::from_utf8(bytes.to_vec()).expect("JSON"),
        other => panic!("{other:?}"),
    };
    (lines.into_iter().map(text).collect(), context)
}

#[test]
fn values_in_conflict_are_listed_until_a_write_replaces_them() {
    let (mut world, mut elsewhere) = (partition("cops-cd"), partition("cops-cd"));
    world.run("SET x mine");
    written_elsewhere(&mut world, &mut elsewhere, "SET x \"theirs");
    let (lines, context) = ask(&mut world, "causal conflicts x");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let has = |words: &str| lines.iter().any(|line| line.contains(words));
    assert!(
        has("{\"key\":\"x\",\"handler\":\"newest\",\"write\":{\"operation\":\"dc1/p0/1.1\""),
        "{lines:?}"
    );
    assert!(has("\"value\":\"mine\"}}") && has("\"value\":\"\\\"theirs\"}}"), "{lines:?}");
    // Who was told of both depends on both.
    let past = context.causes.operations().expect("a list").to_vec();
    let of = |datacenter| past.iter().any(|one| one.operation.datacenter == datacenter);
    assert!(of(HERE) && of(OTHER), "{past:?}");
    let (listed, _) = ask(&mut world, "causal conflicts");
    assert_eq!(listed.len(), 1);
    let line = &listed[0];
    assert!(line.starts_with("{\"keyspace\":0,\"key\":\"x\",\"at\":"), "{line}");
    assert!(
        line.contains("\"arrived\":{") && line.contains("\"met\":[{") && line.contains("\"shows\":\""),
        "{line}"
    );
    world.run("SET x both");
    assert_eq!(ask(&mut world, "causal conflicts x").0, Vec::<String>::new());
    assert_eq!(ask(&mut world, "causal conflicts").0, listed);
    assert_eq!(ask(&mut world, "causal conflicts nothing").0, Vec::<String>::new());
}

#[test]
fn fields_and_deletes_are_named() {
    let (mut world, mut elsewhere) = (partition("cops-cd"), partition("cops-cd"));
    written_elsewhere(&mut world, &mut elsewhere, "HSET h f 1");
    world.run("HDEL h f");
    written_elsewhere(&mut world, &mut elsewhere, "HSET h f 2 g 3");
    let (lines, _) = ask(&mut world, "causal conflicts h");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.starts_with("{\"key\":\"h\",\"field\":\"f\"")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("\"delete\":true")), "{lines:?}");
}

#[test]
fn the_list_is_bounded_and_what_it_dropped_is_counted() {
    let (mut world, mut elsewhere) = (partition("orbe-dm"), partition("orbe-dm"));
    for number in 0..1_003 {
        let line = format!("SET x{number} {}", "v".repeat(200));
        world.run(&line);
        written_elsewhere(&mut world, &mut elsewhere, &line);
    }
    let (lines, _) = ask(&mut world, "causal conflicts");
    assert_eq!(lines.len(), 1_000);
    assert!(lines[0].contains("\"key\":\"x3\""), "{}", lines[0]);
    let shown = format!("\"value\":\"{}\",\"bytes\":200", "v".repeat(128));
    assert!(lines.iter().all(|line| line.contains(&shown)), "{}", lines[0]);
    let metrics = world.partition.metrics();
    let metric = |name: &str| metrics.iter().find(|(metric, _)| metric == name).map(|(_, count)| *count);
    assert_eq!((metric("conflicts_0"), metric("unlisted_conflicts")), (Some(1_003), Some(3)));
}
