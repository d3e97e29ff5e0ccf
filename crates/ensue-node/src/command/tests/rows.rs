//! Large rows of which one effect removes all columns: they end the same as if each had been removed by itself.

use super::convergence::{all_writes, view};
use super::{Datacenter, Logged, show};
use crate::command::fingerprint::Fingerprint;
use ensue_store::compact::RowRef;
use ensue_store::image;
use ensue_store::keyspace::Keyspace;
use ensue_types::{Column, KeyspaceId, LogicalTime, OperationId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Command {
        datacenter: usize,
        line: String,
    },
    /// The next write of another datacenter arrives.
    Next {
        datacenter: usize,
        from: usize,
    },
    /// A write from anywhere arrives, perhaps again, perhaps before others of its datacenter.
    Any {
        datacenter: usize,
        chosen: usize,
    },
    /// Some columns that were removed are freed.
    Free {
        datacenter: usize,
    },
    /// It begins anew with what a checkpoint holds.
    Restart {
        datacenter: usize,
    },
}

fn command() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec!["a", "b"]);
    let name = prop::sample::select(vec!["f", "g", "h", "i"]);
    (key, name, 0_usize..26, 1_i64..9).prop_map(|(key, name, which, amount)| match which {
        0..=4 => format!("SADD {key} {name} h"),
        5..=7 => format!("HSET {key} {name} {amount} g 4"),
        8 | 9 => format!("ZADD {key} {amount} {name} 2 f"),
        10 => format!("RPUSH {key} {name} {amount}"),
        11 => format!("HINCRBY {key} {name} {amount}"),
        12 => format!("ZINCRBY {key} {amount} {name}"),
        13 => format!("SREM {key} {name}"),
        14 => format!("HDEL {key} {name}"),
        15 => format!("SET {key} {amount}"),
        16 => format!("SUNIONSTORE {key} a b"),
        17 => format!("EXPIRE {key} {amount}"),
        18 => format!("EXPIRE {key} -1"),
        _ => format!("DEL {key}"),
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_usize, command()).prop_map(|(datacenter, line)| Step::Command { datacenter, line }),
        6 => (0..3_usize, 0..3_usize).prop_map(|(datacenter, from)| Step::Next { datacenter, from }),
        1 => (0..3_usize, any::<usize>()).prop_map(|(datacenter, chosen)| Step::Any { datacenter, chosen }),
        2 => (0..3_usize).prop_map(|datacenter| Step::Free { datacenter }),
        1 => (0..3_usize).prop_map(|datacenter| Step::Restart { datacenter }),
    ]
}

fn world(columns_max: u16, removes_rows: bool) -> Vec<Datacenter> {
    let datacenter = |id| Datacenter {
        keyspace: Keyspace::new(false).with_columns_max(columns_max),
        removes_rows,
        ..Datacenter::new(id)
    };
    (0..3).map(datacenter).collect()
}

/// What has arrived where each write was made, before it.
type Pasts = BTreeMap<OperationId, BTreeSet<OperationId>>;

/// What clients were answered. If writes arrive `in_order`, they do after what had arrived where they were made.
fn play(world: &mut [Datacenter], steps: &[Step], in_order: bool) -> Vec<String> {
    let (mut answers, mut pasts) = (Vec::new(), Pasts::new());
    for step in steps {
        match step {
            Step::Command { datacenter, line } => {
                let Datacenter { id, .. } = world[*datacenter];
                answers.push(show(&world[*datacenter].run(line)));
                let Datacenter { applied, log, .. } = &world[*datacenter];
                for logged in log.iter().filter(|logged| logged.write.operation.datacenter == id) {
                    pasts.entry(logged.write.operation).or_insert_with(|| applied.clone());
                }
            }
            Step::Next { datacenter, from } => {
                let Datacenter { id, applied, .. } = &world[*datacenter];
                let is_new = |logged: &&Logged| !applied.contains(&logged.write.operation);
                let next = world[*from].log.iter().find(is_new).filter(|_| datacenter != from).cloned();
                let has =
                    |operation: &OperationId| operation.datacenter == *id || applied.contains(operation);
                let may = |logged: &Logged| !in_order || pasts[&logged.write.operation].iter().all(has);
                let next = next.filter(may);
                next.into_iter().for_each(|logged| world[*datacenter].receive(&logged));
            }
            Step::Any { datacenter, chosen } if !in_order => {
                let logged = all_writes(world);
                let logged = logged.get(chosen % logged.len().max(1));
                logged.into_iter().for_each(|logged| world[*datacenter].receive(logged));
            }
            Step::Any { .. } => {}
            Step::Free { datacenter } => drop(world[*datacenter].keyspace.free_ended()),
            Step::Restart { datacenter } => restart(&mut world[*datacenter]),
        }
        world.iter().for_each(|datacenter| datacenter.keyspace.check_invariants());
    }
    answers
}

/// It has what a checkpoint of its rows holds, and makes rows large that have more than two columns.
fn restart(datacenter: &mut Datacenter) {
    let mut again = Keyspace::new(false).with_columns_max(2);
    again.restore_bounds(datacenter.keyspace.bounds());
    for row in datacenter.keyspace.rows().map(RowRef::whole) {
        for (column, cell) in row.all_cells() {
            for (kind, item) in image::column_items(KeyspaceId(0), row.key(), &column, &cell) {
                let image = image::decode_write(kind, &item.into()).expect("what was written");
                again.restore_image(kind, image);
            }
        }
    }
    datacenter.keyspace = again;
}

/// All that was written arrives everywhere, in an order of its own.
fn exchange(world: &mut [Datacenter], mut random: u64) {
    let writes = all_writes(world);
    for datacenter in world {
        let mut left = writes.clone();
        while !left.is_empty() {
            random = Fingerprint::new().word(random).finish();
            datacenter.receive(&left.swap_remove(random as usize % left.len()));
        }
        datacenter.keyspace.check_invariants();
        while datacenter.keyspace.free_ended() {}
        datacenter.keyspace.check_invariants();
    }
}

fn views(world: &mut [Datacenter]) -> Vec<Vec<String>> {
    let at = world.iter().map(|datacenter| datacenter.clock).max().expect("there are some");
    world.iter_mut().map(|datacenter| view(datacenter, LogicalTime::from_ms(at.ms() + 2))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn rows_removed_at_once_end_as_those_removed_one_by_one(
        columns_max in 1_u16..4,
        steps in prop::collection::vec(step(), 1..70),
        seed in any::<u64>(),
    ) {
        let (mut at_once, mut one_by_one) = (world(columns_max, true), world(columns_max, false));
        prop_assert_eq!(play(&mut at_once, &steps, true), play(&mut one_by_one, &steps, true));
        prop_assert_eq!(views(&mut at_once), views(&mut one_by_one));
        exchange(&mut at_once, seed);
        exchange(&mut one_by_one, seed.wrapping_add(1));
        let views = [views(&mut at_once), views(&mut one_by_one)].concat();
        for (number, other) in views.iter().enumerate() {
            prop_assert_eq!(&views[0], other, "in {} of {}", number % 3, number / 3);
        }
    }

    /// Who has a removal before what its writer had seen may show less meanwhile: it ends what had been removed before.
    #[test]
    fn rows_removed_at_once_end_the_same_in_any_order(
        columns_max in 1_u16..4,
        steps in prop::collection::vec(step(), 1..70),
        seed in any::<u64>(),
    ) {
        let mut world = world(columns_max, true);
        play(&mut world, &steps, false);
        exchange(&mut world, seed);
        let views = views(&mut world);
        for other in &views {
            prop_assert_eq!(&views[0], other);
        }
    }
}

/// One datacenter has a large row.
fn with_row(lines: &[&str]) -> Vec<Datacenter> {
    let mut world = world(3, true);
    lines.iter().for_each(|line| drop(world[0].run(line)));
    world
}

/// A large set.
fn many() -> String {
    (0..40).fold("SADD a f".to_owned(), |line, number| format!("{line} m{number}"))
}

#[test]
fn one_effect_removes_a_large_row_and_its_columns_are_freed_later() {
    for (remove, left) in [
        ("DEL a", "none"),
        ("UNLINK a", "none"),
        ("EXPIRE a -1", "none"),
        ("SET a v", "string"),
        ("SUNIONSTORE a b", "none"),
    ] {
        let mut world = with_row(&[&many()]);
        let before = world[0].keyspace.bytes();
        world[0].run(remove);
        let logged = world[0].log[1].clone();
        let whole = logged.effects.iter().filter(|change| change.column == Column::Row).count();
        assert_eq!((whole, logged.effects.len()), (1, 1 + usize::from(left == "string")), "{remove}");
        assert_eq!(show(&world[0].run("TYPE a")), left);
        assert_eq!(world[0].keyspace.ended_columns(), 41);
        assert!(world[0].keyspace.bytes() > before, "nothing is freed yet");
        while world[0].keyspace.free_ended() {}
        assert_eq!((world[0].keyspace.ended_columns(), world[0].keyspace.cells() < 3), (0, true));
        assert!(world[0].keyspace.bytes() < before, "it is");
        world[0].keyspace.check_invariants();
    }
}

#[test]
fn what_the_remover_had_not_seen_stays() {
    let mut world = with_row(&[&many()]);
    let first = world[0].log[0].clone();
    world[1].receive(&first);
    world[1].run("SADD a n f");
    world[0].run("DEL a");
    exchange(&mut world, 7);
    for datacenter in &mut world {
        assert_eq!(show(&datacenter.run("SMEMBERS a")), "<\"f\" \"n\">", "in {}", datacenter.id);
    }
}

#[test]
fn what_was_removed_stays_removed_when_it_comes_late() {
    let mut world = with_row(&[&many(), "DEL a"]);
    let [put, removal] = [0, 1].map(|at| world[0].log[at].clone());
    for logged in [&removal, &put, &put] {
        world[2].receive(logged);
        assert_eq!(show(&world[2].run("SCARD a")), "0");
    }
    assert_eq!(world[2].keyspace.ended_columns(), 0, "nothing of it was ever there");
}

#[test]
fn a_row_is_removed_column_by_column_while_something_is_missing_before_what_is_seen() {
    let mut world = with_row(&["SADD a y", "SADD a z"]);
    let second = world[0].log[1].clone();
    world[1].receive(&second);
    world[1].run(&many());
    world[1].run("DEL a");
    let removal = world[1].log.last().expect("it was there");
    assert!(removal.effects.iter().all(|change| change.column != Column::Row));
    exchange(&mut world, 7);
    assert_eq!(show(&world[1].run("SMEMBERS a")), "<\"y\">", "it had not come");
}
