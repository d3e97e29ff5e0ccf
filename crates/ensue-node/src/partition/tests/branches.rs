//! Ordinary commands in transactions on branches: what counts as read, and keys that nobody names.

use super::versions::{OTHER, World};
use super::{PARTITION, config};
use crate::AppendFsync;
use crate::config::NodeConfig;
use crate::evaluate::ANSWER_TOO_LONG;
use crate::partition::failover::failed::StreamEnd;
use bytes::Bytes;
use ensue_branch::{Commit, Note, Rebuilt, StateId, Write};
use ensue_types::{
    Context, CoreId, DatacenterId, Incarnation, KeyspaceId, LogicalTime, Now, Part, PartitionId, Position,
    Reply, RequestId, SessionId,
};
use ensue_wire::{Address, Message};
use std::collections::{BTreeMap, BTreeSet};

/// Sessions with a partition of their own.
struct Sessions {
    world: World,
    contexts: BTreeMap<SessionId, Context>,
}

const ALICE: SessionId = SessionId(1);
const BOB: SessionId = SessionId(2);

impl Sessions {
    fn new() -> Sessions {
        Sessions::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut NodeConfig)) -> Sessions {
        let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
        let mut config = config(AppendFsync::Always);
        config.tuning.checkpoint_bytes = u64::MAX;
        change(&mut config);
        let world = World::configured(config, "tardis", BTreeMap::new(), now).started();
        Sessions { world, contexts: BTreeMap::new() }
    }

    /// The commands of a `MULTI`: its answers, or the one that it was refused with.
    fn ask_at_once(&mut self, session: SessionId, lines: &[&str]) -> Result<Vec<Reply>, Reply> {
        let args = |line: &&str| line.split(' ').map(|word| Bytes::from(word.to_owned())).collect();
        let commands = lines.iter().enumerate().map(|(place, line)| (place as u32, args(line))).collect();
        let request = RequestId { session, ..RequestId::default() };
        let context = self.contexts.get(&session).cloned().unwrap_or_default();
        let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
        let parts = vec![Part { partition: PARTITION, commands }];
        self.world.message(from, Message::Transact { request, keyspace: KeyspaceId(0), context, parts });
        let mut sent = std::iter::from_fn(|| self.world.partition.cx.outbox.next());
        let answer = sent.find_map(|envelope| match envelope.message {
            Message::Transacted { context, replies, .. } => Some(Ok((context, replies))),
            Message::Refused { reply, .. } => Some(Err(reply)),
            _ => None,
        });
        let (context, replies) = answer.expect("one transaction, one answer")?;
        self.contexts.insert(session, context);
        Ok(replies.into_iter().map(|(_, reply)| reply).collect())
    }

    fn ask(&mut self, session: SessionId, line: &str) -> Reply {
        let command = line.split(' ').map(|word| Bytes::from(word.to_owned())).collect();
        let request = RequestId { session, ..RequestId::default() };
        let (context, commands) = (self.contexts.remove(&session).unwrap_or_default(), vec![command]);
        let from = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
        let message =
            Message::Execute { request, keyspace: KeyspaceId(0), context, commands, together: false };
        self.world.message(from, message);
        let mut sent = std::iter::from_fn(|| self.world.partition.cx.outbox.next());
        let answer = sent.find_map(|envelope| match envelope.message {
            Message::Executed { context, mut replies, .. } => Some((context, replies.remove(0))),
            _ => None,
        });
        let (context, reply) = answer.expect("one command, one answer");
        self.contexts.insert(session, context);
        reply
    }

    /// What comes of the other datacenter below a state that is collected here.
    fn come_late(&mut self) -> Commit {
        assert_eq!(self.ask(ALICE, "SET a 1"), Reply::OK);
        let branches = self.world.partition.keyspaces.branching.branches(KeyspaceId(0));
        let leaves = branches.leaves();
        branches.place_ceilings(&leaves).unwrap();
        branches.offer_ceiling(OTHER, leaves[0]);
        assert_eq!(branches.collect(|_| true), 1);
        Commit {
            id: StateId::new(1, OTHER, Incarnation(1)),
            parents: vec![StateId::ROOT],
            writes: vec![Write { key: Bytes::from_static(b"b"), value: None }],
        }
    }

    /// How many branches there are when Bob has committed what he did below a state that Alice's write then followed.
    fn branches_after(mut self, bob: &[&str], alice: &str) -> usize {
        assert_eq!(self.ask(ALICE, "SET a 1"), Reply::OK);
        self.ask(BOB, "BRANCH BEGIN");
        for line in bob {
            self.ask(BOB, line);
        }
        assert_eq!(self.ask(ALICE, alice), Reply::OK);
        assert_eq!(self.ask(BOB, "BRANCH COMMIT"), Reply::bulk("3.0"));
        let Reply::Array(leaves) = self.ask(ALICE, "BRANCH LIST") else { panic!("a list") };
        leaves.len()
    }
}

#[test]
fn a_key_is_read_when_it_is_looked_at_though_nothing_is_there() {
    let forks = |bob: &[&str], alice: &str| Sessions::new().branches_after(bob, alice) == 2;
    assert!(forks(&["GET a", "SET own 1"], "SET a 2"));
    assert!(forks(&["GET none", "SET own 1"], "SET none 2"), "that it was absent was read");
    assert!(forks(&["SETNX none 3"], "SET none 2"));
    assert!(!forks(&["SET a 3"], "SET a 2"), "a blind write has read nothing");
    assert!(!forks(&["SET none 3"], "SET none 2"));
    assert!(!forks(&["GET a", "SET own 1"], "SET other 2"));
}

#[test]
fn every_key_of_a_branch_is_found_by_chance() {
    let mut sessions = Sessions::new();
    assert_eq!(sessions.ask(ALICE, "MSET a 1 b 1 c 1 d 1"), Reply::OK);
    let mut found = BTreeSet::new();
    for _ in 0..64 {
        let Reply::Array(drawn) = sessions.ask(ALICE, "RANDOMKEY") else { panic!("there are keys") };
        let [Reply::Bulk(key), Reply::Integer(4)] = &drawn[..] else { panic!("a key of four") };
        found.insert(key.clone());
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
}

#[test]
fn what_sort_would_look_at_is_not_known_beforehand() {
    let mut sessions = Sessions::new();
    sessions.ask(ALICE, "RPUSH l 1 2 3");
    let Reply::Error(words) = sessions.ask(ALICE, "SORT l BY w_*") else { panic!("it is refused") };
    assert!(words.contains("no patterns"), "{words}");
    assert!(matches!(sessions.ask(ALICE, "SORT l DESC"), Reply::Array(sorted) if sorted.len() == 3));
}

/// Only the site that made a state was asked for it: what another one sends under its name is not that state.
#[test]
fn a_state_is_taken_whole_from_whom_it_was_asked_of() {
    let mut sessions = Sessions::new();
    let late = sessions.come_late();
    let (world, keyspace) = (&mut sessions.world, KeyspaceId(0));
    world.partition.visibility().arrive_on_branch(
        OTHER,
        keyspace,
        Position(1),
        &Note::Commit(late.clone()).encode(),
    );
    let parents = world.partition.keyspaces.branching.branches(keyspace).leaves();
    let versions = late.writes.iter().map(|write| (late.id, write.clone())).collect();
    let rebuilt = Rebuilt { id: late.id, equals: Vec::new(), parents, versions }.encode();
    for (datacenter, count) in [(DatacenterId(2), 1), (OTHER, 0)] {
        let from = Address::Partition { datacenter, partition: PARTITION };
        world.message(from, Message::BranchFetched { keyspace, rebuilt: rebuilt.clone() });
        let late = world.partition.keyspaces.branching.branches(keyspace).late();
        assert_eq!(late.len(), count, "{datacenter}");
    }
}

/// Each question makes the other datacenter look at all keys.
#[test]
fn what_came_late_is_asked_for_once_until_an_answer_is_overdue() {
    let mut sessions = Sessions::new();
    let late = sessions.come_late();
    let (world, keyspace) = (&mut sessions.world, KeyspaceId(0));
    let questions = |world: &mut World| {
        let sent = std::iter::from_fn(|| world.partition.cx.outbox.next());
        sent.filter(|envelope| matches!(envelope.message, Message::BranchFetch { .. })).count()
    };
    let wait = |world: &mut World, ms: u64| {
        world.now.monotonic_us += 1_000 * ms;
        world.partition.on_timer(world.now);
        world.work();
    };
    world.partition.visibility().arrive_on_branch(OTHER, keyspace, Position(1), &Note::Commit(late).encode());
    assert_eq!(questions(world), 1);
    for _ in 0..10 {
        wait(world, 100);
    }
    assert_eq!(questions(world), 0, "an answer may be on its way");
    world.partition.on_link_up(world.now, OTHER, &|_: PartitionId| true);
    wait(world, 100);
    assert_eq!(questions(world), 1, "the question may not have arrived");
    wait(world, world.partition.cx.config.tuning.request_timeout_ms);
    assert_eq!(questions(world), 1, "the answer is overdue");
}

/// Each branch would have all rights, and two that are merged would have spent them twice.
#[test]
fn bounded_counters_are_refused() {
    let mut sessions = Sessions::new();
    for line in ["BCREATE a 5 MIN 0", "BDECRBY a 1", "BGET a", "BMOVE a dc2 1"] {
        let answer = sessions.ask(ALICE, line);
        let Reply::Error(words) = &answer else { panic!("{line}: {answer:?}") };
        assert!(words.starts_with("ERR bounded counters are refused in a keyspace with branches"), "{words}");
    }
    assert_eq!(sessions.ask(ALICE, "EXISTS a"), Reply::Integer(0));
}

/// Of one value of ten megabytes many answers can be made.
#[test]
fn an_answer_of_a_branch_is_no_longer_than_one_of_rows() {
    let mut sessions = Sessions::new();
    let value = "v".repeat(10 << 20);
    assert_eq!(sessions.ask(ALICE, &format!("SET k {value}")), Reply::OK);
    let times = |words: &str, count: usize| words.repeat(count);
    for (few, many) in [
        (format!("BRANCH GET k{}", times(" 1.0", 12)), format!("BRANCH GET k{}", times(" 1.0", 13))),
        (format!("MGET{}", times(" k", 12)), format!("MGET{}", times(" k", 13))),
    ] {
        assert!(matches!(sessions.ask(ALICE, &few), Reply::Array(values) if values.len() == 12));
        assert_eq!(sessions.ask(ALICE, &many), ANSWER_TOO_LONG);
    }
    let answers = sessions.ask_at_once(ALICE, &["GET k"; 13]).unwrap();
    assert_eq!(
        (&answers[12], answers.iter().filter(|answer| **answer == ANSWER_TOO_LONG).count()),
        (&ANSWER_TOO_LONG, 1)
    );
    let sets: Vec<String> = (0..13).map(|number| format!("SET k{number} {value}")).collect();
    sets.iter().for_each(|set| assert_eq!(sessions.ask(ALICE, set), Reply::OK));
    assert_eq!(sessions.ask(ALICE, "BRANCH DIFF 0.0 14.0"), ANSWER_TOO_LONG);
    assert!(matches!(sessions.ask(ALICE, "BRANCH DIFF 0.0 12.0"), Reply::Array(keys) if keys.len() == 12));
}

/// It could not be told later whether what it has read was written meanwhile.
#[test]
fn a_command_whose_reads_cannot_be_remembered_writes_nothing() {
    let mut sessions = Sessions::new();
    sessions.ask(ALICE, "BRANCH BEGIN");
    let key = |number: usize| format!("{number:>2}{}", "k".repeat((1 << 20) - 2));
    let read = (0..20).find(|number| {
        let line = format!("SETNX {} v", key(*number).replace(' ', "0"));
        matches!(sessions.ask(ALICE, &line), Reply::Error(words) if words.starts_with("TOOLONG"))
    });
    assert!(matches!(read, Some(14..16)), "{read:?}");
    assert_eq!(sessions.ask(ALICE, "BRANCH COMMIT"), Reply::bulk("1.0"));
    assert_eq!(sessions.ask(BOB, "DBSIZE"), Reply::Integer(read.unwrap() as i64));
}

fn is_refused(reply: &Reply, word: &str) -> bool {
    matches!(reply, Reply::Error(words) if words.starts_with(word))
}

/// A merge is what gives memory back, and who has written nothing asks for none.
#[test]
fn without_memory_a_merge_and_what_wrote_nothing_are_committed() {
    let mut sessions = Sessions::with(|config| config.maxmemory = 2 << 20);
    let value = "v".repeat(1 << 20);
    assert_eq!(sessions.ask(ALICE, "SET a 0"), Reply::OK);
    sessions.ask(BOB, "BRANCH BEGIN");
    sessions.ask(BOB, "GET a");
    assert_eq!(sessions.ask(BOB, &format!("SET a 1{value}")), Reply::OK);
    assert_eq!(sessions.ask(ALICE, "SET a 2"), Reply::OK);
    assert_eq!(sessions.ask(BOB, "BRANCH COMMIT"), Reply::bulk("3.0"));
    sessions.ask(ALICE, "BRANCH BEGIN");
    sessions.ask(ALICE, &format!("SET b {value}"));
    assert!(is_refused(&sessions.ask(ALICE, "SET c 1"), "OOM"), "there is no memory");
    assert!(is_refused(&sessions.ask_at_once(ALICE, &["GET a", "SET c 1"]).unwrap_err(), "OOM"));
    assert_eq!(sessions.ask_at_once(ALICE, &["GET a"]), Ok(vec![Reply::bulk("2")]));
    assert!(is_refused(&sessions.ask(ALICE, "BRANCH COMMIT"), "OOM"));
    assert_eq!(
        sessions.ask_at_once(BOB, &["GET c"]),
        Ok(vec![Reply::Nil]),
        "a session without a transaction"
    );
    sessions.ask(BOB, "BRANCH BEGIN");
    assert_eq!(sessions.ask(BOB, "BRANCH COMMIT"), Reply::bulk("3.0"));
    assert!(matches!(sessions.ask(BOB, "BRANCH MERGE"), Reply::Array(states) if states.len() == 2));
    assert_eq!(sessions.ask(BOB, "BRANCH COMMIT"), Reply::bulk("4.0"));
}

/// At the bound no state comes in any more, so that none would be counted.
#[test]
fn ceilings_are_placed_before_there_are_too_many_states() {
    let mut sessions = Sessions::with(|config| config.tuning.branching.states_max = 10);
    for number in 0..30 {
        assert_eq!(sessions.ask(ALICE, &format!("SET a {number}")), Reply::OK, "{number}");
        let branches = sessions.world.partition.keyspaces.branching.branches(KeyspaceId(0));
        let leaves = branches.leaves();
        // The other datacenter promises as much as this one does.
        if branches.log(None).unwrap().any(|state| state.is_above) {
            branches.offer_ceiling(OTHER, leaves[0]);
            branches.collect(|_| true);
        }
    }
}

/// Else branches would be merged nowhere, until there are too many.
#[test]
fn the_others_merge_once_the_merging_datacenter_is_dead() {
    let mut sessions = Sessions::with(|config| config.tuning.branching.merging_datacenter = Some(OTHER));
    sessions.ask(ALICE, "SET a 1");
    assert!(is_refused(&sessions.ask(ALICE, "BRANCH MERGE"), "NOTMERGER"));
    let failed = &mut sessions.world.partition.others.failover.failed;
    failed.declare(OTHER, LogicalTime(1), 0);
    assert!(is_refused(&sessions.ask(ALICE, "BRANCH MERGE"), "NOTMERGER"), "what it did last may come");
    let failed = &mut sessions.world.partition.others.failover.failed;
    let end = StreamEnd { whole: LogicalTime(1), failed: [OTHER].into_iter().collect(), everywhere: true };
    failed.restore_end(OTHER, end);
    assert!(is_refused(&sessions.ask(ALICE, "BRANCH MERGE"), "ABORT"), "there is one branch");
}

/// There is room for 64, and the lowest may be the session's own.
#[test]
fn of_states_that_a_session_took_over_the_owner_keeps_those_that_no_other_comes_from() {
    let mut sessions = Sessions::new();
    for number in 0..3 {
        sessions.ask(ALICE, &format!("SET a {number}"));
    }
    sessions.ask(BOB, "BRANCH CHECKOUT 1.0");
    sessions.ask(BOB, "BRANCH BEGIN PARENT");
    sessions.ask(BOB, "SET b 1");
    assert_eq!(sessions.ask(BOB, "BRANCH COMMIT PARENT"), Reply::bulk("4.0"));
    let state = |counter| StateId::new(counter, DatacenterId(0), Incarnation(1)).bits();
    let context = sessions.contexts.get_mut(&BOB).unwrap();
    let mut anchor = context.causes.states().unwrap().clone();
    anchor.states = vec![state(4), state(3), state(2), state(1)];
    context.causes = anchor.into();
    sessions.ask(BOB, "BRANCH LIST");
    let left = sessions.contexts[&BOB].causes.states().unwrap().states.clone();
    assert_eq!(left, [state(4), state(3)]);
}

/// A long merge may be made of nothing else.
#[test]
fn a_transaction_is_not_idle_while_its_session_asks_about_states() {
    let asked =
        [(ALICE, "BRANCH GET a 1.0", true), (ALICE, "BRANCH LIST", true), (BOB, "BRANCH LIST", false)];
    for (asking, question, lives) in asked {
        let mut sessions = Sessions::new();
        sessions.ask(ALICE, "SET a 1");
        sessions.ask(ALICE, "BRANCH BEGIN");
        for _ in 0..3 {
            sessions.world.now.monotonic_us += 40_000_000;
            sessions.ask(asking, question);
            sessions.world.partition.visibility().maintain_branches();
        }
        let committed = sessions.ask(ALICE, "BRANCH COMMIT");
        assert_eq!(!is_refused(&committed, "NOTRANSACTION"), lives, "{question}: {committed:?}");
    }
}
