//! Commands in keyspaces that keep versions: reads and writes of sessions that do not see everything that is here.

use super::{Datacenter, Logged, arguments, show};
use crate::command::fingerprint::Fingerprint;
use crate::command::tests::convergence;
use crate::evaluate::{Evaluation, Writer};
use ensue_resp::Request;
use ensue_store::keyspace::Expiry;
use ensue_store::view::View;
use ensue_types::{LogicalTime, OperationId};
use proptest::prelude::*;

impl Datacenter {
    /// Takes a write that its sessions do not see yet.
    pub(super) fn receive_hidden(&mut self, logged: &Logged) {
        self.hidden.insert(logged.write.operation);
        self.receive(logged);
    }

    /// Everything is settled, tombstones are collected, and rows whose deadline has passed are deleted.
    pub(super) fn collect(&mut self) {
        self.hidden.clear();
        self.keyspace.settle(&|_: &ensue_types::Source| true, usize::MAX);
        for spent in self.keyspace.take_spent() {
            self.keyspace.collect(&spent);
        }
        self.expiries.extend(self.keyspace.take_expiries());
        let (due, to_come) =
            std::mem::take(&mut self.expiries).into_iter().partition(|l| l.deadline_ms <= self.clock.ms());
        self.expiries = to_come;
        let due: Vec<Expiry> = due;
        for expiry in due.into_iter().filter(|expiry| self.keyspace.expires(expiry)).collect::<Vec<_>>() {
            let mut writer = Writer::new(self.write(), self.id, false);
            let mut evaluation = Evaluation::writing(&mut self.keyspace, &mut writer, View::Newest);
            match &expiry.field {
                Some(name) => {
                    crate::command::clear_expired_field(&mut evaluation, &expiry.key, name).unwrap()
                }
                None => evaluation.begin_write(&expiry.key).unwrap(),
            }
            self.log.push(Logged { write: writer.write, effects: writer.changes.effects });
        }
    }
}

/// Two datacenters that begin alike. Then the second acts, hidden from the first, which acts too.
struct Apart {
    first: Datacenter,
    second: Datacenter,
}

impl Apart {
    fn after(common: &str, hidden: &str) -> Apart {
        let (mut first, mut second) = (Datacenter::with_versions(0), Datacenter::with_versions(1));
        common.split(';').for_each(|line| drop(first.run(line)));
        first.log.iter().for_each(|logged| second.receive(logged));
        hidden.split(';').for_each(|line| drop(second.run(line)));
        second.log.iter().for_each(|logged| first.receive_hidden(logged));
        Apart { first, second }
    }

    /// Runs lines, ` => ` and their answers, with the first datacenter's sessions.
    fn check(mut self, script: &str) -> Apart {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (command, expected) = line.split_once(" => ").expect("command => answer");
            let answer = match command.contains(';') {
                true => self.first.transaction(command),
                false => show(&self.first.run(command)),
            };
            assert_eq!(answer, expected, "{command}");
        }
        self
    }

    /// Everything has arrived and is seen.
    fn ends(mut self, script: &str) {
        self.first.hidden.clear();
        self.first.log.iter().for_each(|logged| self.second.receive(logged));
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (command, expected) = line.split_once(" => ").expect("command => answer");
            assert_eq!(show(&self.first.run(command)), expected, "{command} in the first datacenter");
            assert_eq!(show(&self.second.run(command)), expected, "{command} in the second datacenter");
        }
    }
}

#[test]
fn reads_show_what_the_view_shows() {
    let apart = Apart::after(
        "SET a 1;HSET h f 1 g 2;SADD s m;SET gone x",
        "SET a 2;HSET h f 3;HDEL h g;SREM s m;SET new 1;DEL gone;EXPIRE a 100;SET s text",
    );
    apart
        .check(
            "GET a => \"1\"
             TTL a => -1
             HGETALL h => {\"f\":\"1\" \"g\":\"2\"}
             HLEN h => 2
             SMEMBERS s => <\"m\">
             TYPE s => set
             EXISTS a new gone => 2
             KEYS * => [\"a\" \"h\" \"s\" \"gone\"]
             DBSIZE => 4
             SCAN 0 => [\"0\" [\"a\" \"h\" \"s\" \"gone\"]]",
        )
        .ends(
            "GET a => \"2\"
             HGETALL h => {\"f\":\"3\"}
             HLEN h => 1
             TYPE s => string
             EXISTS a new gone => 2",
        );
}

#[test]
fn a_read_that_misses_something_newer_is_stale() {
    let stale = |common: &str, hidden: &str, line: &str| {
        let mut apart = Apart::after(common, hidden);
        apart.first.run(line);
        apart.first.observed.stale
    };
    assert!(stale("SET a 1", "SET a 2", "GET a"));
    assert!(stale("SET b 1", "SET a 2", "GET a"), "of a row that nothing is seen of");
    assert!(stale("SET a 1", "DEL a", "GET a"));
    assert!(stale("SET a 1", "PEXPIRE a 100", "GET a"));
    assert!(stale("INCR a", "INCR a", "GET a"));
    assert!(stale("HSET h f 1", "HSET h g 1", "HGETALL h"));
    assert!(!stale("HSET h f 1", "HSET h g 1", "HGET h f"), "another field");
    assert!(!stale("SET a 1", "SET b 2", "GET a"));
    let mut apart = Apart::after("SET a 1", "SET a 2");
    apart.first.run("SET a 3");
    apart.first.run("GET a");
    assert!(!apart.first.observed.stale, "what is hidden is older");
}

#[test]
fn a_hidden_deadline_of_a_field_ends_nothing() {
    let apart = Apart::after("HSET h f 1 g 2", "HPEXPIRE h 1 FIELDS 2 f g;HSET h g 3");
    let mut apart = apart.check("HTTL h FIELDS 2 f g => [-1 -1]");
    apart.first.advance(5);
    apart.second.advance(5);
    apart
        .check(
            "HGETALL h => {\"f\":\"1\" \"g\":\"2\"}
             HLEN h => 2
             HINCRBY h n 1 => 1",
        )
        .ends("HGETALL h => {\"g\":\"3\" \"n\":\"1\"}");
}

#[test]
fn what_has_expired_is_deleted_and_what_was_put_meanwhile_stays() {
    for (meanwhile, ends) in [
        ("HGET h f", "{}"),
        ("HSET h f 2", "{\"f\":\"2\"}"),
        ("HSET h g 2", "{\"g\":\"2\"}"),
        ("HDEL h f", "{}"),
    ] {
        let (mut first, mut second) = (Datacenter::new(0), Datacenter::new(1));
        first.run("HSETEX h PX 10 FIELDS 1 f 1");
        first.log.iter().for_each(|logged| second.receive(logged));
        // Put before it expires where it is put, and after it is deleted where that is done.
        second.run(meanwhile);
        first.advance(20);
        first.collect();
        assert_eq!(first.log.len(), 2, "it has been deleted by a write");
        let (of_first, of_second) = (first.log.clone(), second.log.clone());
        of_first.iter().for_each(|logged| second.receive(logged));
        of_second.iter().for_each(|logged| first.receive(logged));
        second.advance(20);
        for datacenter in [&mut first, &mut second] {
            assert_eq!(show(&datacenter.run("HGETALL h")), ends, "{meanwhile} in {}", datacenter.id);
            datacenter.collect();
            datacenter.collect();
            assert_eq!(datacenter.keyspace.take_expiries(), []);
        }
        assert_eq!(first.digest(first.clock), second.digest(first.clock));
        let cells = ends.matches(':').count() as u64;
        assert_eq!((first.keyspace.cells(), second.keyspace.cells()), (cells, cells), "{meanwhile}");
    }
}

#[test]
fn a_write_sees_its_own_effects_and_nothing_hidden() {
    let apart = Apart::after("SET a 1;SET n 5", "SET a 2;SET n 50");
    apart.check(
        "GET a; SET a 3; APPEND a 4; GET a; INCR n; INCR n; GET n => \"1\"; OK; 2; \"34\"; 6; 7; \"7\"
         GET a => \"34\"
         GET n => \"7\"",
    );
}

#[test]
fn a_value_and_an_addition_of_one_write_are_seen_together() {
    let mut apart = Apart::after("SET n 1", "SET other 1");
    apart.second.transaction("SET n 5; INCR n; INCR n");
    let logged = apart.second.log.last().expect("written").clone();
    apart.first.receive_hidden(&logged);
    apart.first.hidden.clear();
    // A later one is hidden, so that what is seen is merged from versions.
    apart.second.run("SET n 9");
    let hidden = apart.second.log.last().expect("written").clone();
    apart.first.receive_hidden(&hidden);
    apart.check("GET n => \"7\"").ends("GET n => \"9\"");
}

#[test]
fn a_new_value_covers_what_its_session_saw() {
    let apart = Apart::after("INCRBY n 5", "INCRBY n 10");
    apart.check("SET n 100 => OK\n GET n => \"100\"").ends("GET n => \"110\"");
    let apart = Apart::after("INCRBY n 5", "INCRBY n 10");
    apart.check("DEL n => 1\n GET n => nil").ends("GET n => \"10\"");
    let apart = Apart::after("HSET h f 1", "HSET h g 2");
    apart.check("DEL h => 1\n EXISTS h => 0").ends("HGETALL h => {\"g\":\"2\"}");
}

#[test]
fn additions_go_on_from_a_hidden_one_of_their_own_datacenter() {
    let mut datacenter = Datacenter::with_versions(0);
    datacenter.run("INCRBY n 5");
    datacenter.run("INCRBY n 10");
    let hidden = datacenter.log[1].write.operation;
    datacenter.hidden.insert(hidden);
    assert_eq!(show(&datacenter.run("INCRBY n 1")), "6");
    let operations = |sources: &[ensue_types::Source]| -> Vec<OperationId> {
        sources.iter().map(|source| source.operation).collect()
    };
    assert_eq!(operations(&datacenter.observed.continued), [hidden]);
    assert_eq!(operations(&datacenter.observed.sources), [datacenter.log[0].write.operation]);
    datacenter.hidden.clear();
    assert_eq!(show(&datacenter.run("GET n")), "\"16\"");
    datacenter.run("INCR n");
    assert_eq!(operations(&datacenter.observed.continued), []);
}

/// The deletion may be collected elsewhere, and with it what it deleted.
#[test]
fn an_addition_to_a_counter_that_something_hidden_deleted_keeps_what_its_session_sees() {
    let mut apart = Apart::after("INCRBY n 5", "DEL n");
    apart.second.collect();
    apart.check("INCRBY n 1 => 6\n GET n => \"6\"").ends("GET n => \"6\"");
}

#[test]
fn a_value_over_a_hidden_deletion_covers_what_that_deleted() {
    // The first datacenter has neither seen the addition nor the deletion; the second has collected both.
    let mut apart = Apart::after("SET a 1", "INCRBY n 5;DEL n");
    apart.second.collect();
    apart.check("SET n 7 => OK\n INCR n => 8").ends("GET n => \"8\"");
}

/// Elsewhere the row may have been deleted when its deadline had passed.
#[test]
fn a_write_to_a_row_that_a_hidden_deadline_has_ended_begins_anew() {
    let mut apart = Apart::after("HSET h f 1;HINCRBY h n 5", "PEXPIRE h 100");
    for datacenter in [&mut apart.first, &mut apart.second] {
        datacenter.advance(200);
    }
    apart.second.collect();
    apart.check("HSET h g 2 => 1").ends("HGETALL h => {\"g\":\"2\"}");
}

#[test]
fn a_flush_is_seen_when_the_view_shows_it() {
    let mut datacenter = Datacenter::with_versions(0);
    datacenter.run("SET a 1");
    let flush = datacenter.write();
    datacenter.hidden.insert(flush.operation);
    datacenter.keyspace.flush(&flush);
    assert_eq!(show(&datacenter.run("GET a")), "\"1\"");
    assert!(datacenter.observed.stale);
    datacenter.run("SET b 1");
    datacenter.hidden.clear();
    assert_eq!(show(&datacenter.run("KEYS *")), "[\"b\"]");
    datacenter.collect();
    assert_eq!(show(&datacenter.run("KEYS *")), "[\"b\"]");
    assert_eq!(datacenter.keyspace.rows_count(), 1);
}

/// A step of a random history with views.
#[derive(Clone, Debug)]
enum Step {
    Run {
        datacenter: usize,
        line: String,
    },
    Transaction {
        datacenter: usize,
        lines: Vec<String>,
    },
    /// A write from anywhere arrives, and is hidden if so chosen.
    Arrive {
        datacenter: usize,
        chosen: usize,
        hidden: bool,
    },
    /// What was hidden is seen, some of it or all.
    See {
        datacenter: usize,
        chosen: Option<usize>,
    },
    /// Everything seen by the sessions of a datacenter is settled there.
    Settle {
        datacenter: usize,
    },
    /// Everything has arrived everywhere, at the same time, and is seen there; one datacenter has settled it, collects
    /// tombstones and deletes rows whose deadline has passed.
    Collect {
        datacenter: usize,
    },
    Pause {
        datacenter: usize,
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0_usize..3;
    let line = convergence::command;
    prop_oneof![
        6 => (place(), line()).prop_map(|(datacenter, line)| Step::Run { datacenter, line }),
        1 => (place(), prop::collection::vec(line(), 2..4))
            .prop_map(|(datacenter, lines)| Step::Transaction { datacenter, lines }),
        5 => (place(), any::<usize>(), prop::bool::weighted(0.7))
            .prop_map(|(datacenter, chosen, hidden)| Step::Arrive { datacenter, chosen, hidden }),
        1 => (place(), prop::option::weighted(0.7, any::<usize>()))
            .prop_map(|(datacenter, chosen)| Step::See { datacenter, chosen }),
        1 => place().prop_map(|datacenter| Step::Settle { datacenter }),
        1 => place().prop_map(|datacenter| Step::Collect { datacenter }),
        1 => (place(), 0_u64..2500).prop_map(|(datacenter, ms)| Step::Pause { datacenter, ms }),
    ]
}

fn play(datacenters: &mut [Datacenter], steps: &[Step]) {
    for step in steps {
        match step {
            Step::Run { datacenter, line } => drop(datacenters[*datacenter].run(line)),
            Step::Transaction { datacenter, lines } => {
                let parsed = lines.iter().map(|line| Request::parse(&arguments(line)).expect(line));
                datacenters[*datacenter].run_all(&parsed.collect::<Vec<_>>());
            }
            Step::Arrive { datacenter, chosen, hidden } => {
                let missing = missing(datacenters, *datacenter);
                let Some(logged) = missing.get(chosen % missing.len().max(1)) else { continue };
                match hidden {
                    true => datacenters[*datacenter].receive_hidden(logged),
                    false => datacenters[*datacenter].receive(logged),
                }
            }
            Step::See { datacenter, chosen } => {
                let hidden = &mut datacenters[*datacenter].hidden;
                let mut index = 0;
                hidden.retain(|_| {
                    index += 1;
                    chosen.is_some_and(|chosen| chosen % 7 != index % 7)
                });
            }
            Step::Settle { datacenter } => {
                let Datacenter { hidden, keyspace, .. } = &mut datacenters[*datacenter];
                keyspace.settle(&|source: &ensue_types::Source| !hidden.contains(&source.operation), 2);
            }
            Step::Collect { datacenter } => {
                exchange(datacenters, 0);
                let latest = datacenters.iter().map(|d| d.clock).max().expect("there are some");
                for datacenter in datacenters.iter_mut() {
                    datacenter.clock = latest;
                    datacenter.hidden.clear();
                }
                datacenters[*datacenter].collect();
            }
            Step::Pause { datacenter, ms } => datacenters[*datacenter].advance(*ms),
        }
    }
}

/// What has not arrived in a datacenter; nothing arrives twice there, because streams count.
fn missing(datacenters: &[Datacenter], datacenter: usize) -> Vec<Logged> {
    let here = &datacenters[datacenter];
    let is_missing = |logged: &Logged| {
        let operation = logged.write.operation;
        operation.datacenter != here.id && !here.applied.contains(&operation)
    };
    convergence::all_writes(datacenters).into_iter().filter(is_missing).collect()
}

/// Every write arrives wherever it is missing, in any order, and is not seen there yet.
fn exchange(datacenters: &mut [Datacenter], seed: u64) {
    let mut random = seed;
    for datacenter in 0..datacenters.len() {
        let mut left = missing(datacenters, datacenter);
        while !left.is_empty() {
            random = Fingerprint::new().word(random).finish();
            let logged = left.swap_remove(random as usize % left.len());
            datacenters[datacenter].receive_hidden(&logged);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Whatever sessions see when they write, and whatever is collected meanwhile, all ends the same.
    #[test]
    fn writers_that_see_little_end_the_same(
        steps in prop::collection::vec(step(), 1..60),
        seed in any::<u64>(),
        keeps_versions in prop::bool::weighted(0.7),
    ) {
        let new = if keeps_versions { Datacenter::with_versions } else { Datacenter::new };
        let mut datacenters: Vec<_> = (0..3).map(new).collect();
        play(&mut datacenters, &steps);
        exchange(&mut datacenters, seed);
        datacenters.iter_mut().for_each(|datacenter| datacenter.hidden.clear());
        let at = datacenters.iter().map(|d| d.clock).max().expect("there are some");
        for at in [at, LogicalTime::from_ms(at.ms() + 2000), LogicalTime::from_ms(at.ms() + 100_000)] {
            let views: Vec<_> = datacenters.iter_mut().map(|d| convergence::view(d, at)).collect();
            let digests: Vec<_> = datacenters.iter().map(|d| d.digest(at)).collect();
            for other in 1..datacenters.len() {
                prop_assert_eq!(&views[0], &views[other]);
                prop_assert_eq!(digests[0], digests[other]);
            }
        }
    }
}

#[test]
fn of_the_time_before_a_restart_nobody_says_that_a_row_was_absent() {
    let mut datacenter = Datacenter::new(0);
    let before = datacenter.clock;
    datacenter.advance(1);
    datacenter.keyspace.forget_past(datacenter.clock);
    let mut read = |at| {
        let request = Request::parse(&arguments("GET a")).expect("a command");
        let mut evaluation = Evaluation::reading(&mut datacenter.keyspace, at, View::At(at));
        crate::command::run(&request, &mut evaluation).ok()
    };
    assert_eq!((read(before), read(datacenter.clock)), (None, Some(ensue_types::Reply::Nil)));
}

/// A command may come to the same place twice, or look at what it has just put.
#[test]
fn no_write_depends_on_itself() {
    let twice = [
        "SET a 1",
        "MSET a 1 a 2",
        "HSET h f 1 f 2",
        "HINCRBY h n 1",
        "SADD s m m",
        "SPOP s",
        "SMOVE s s2 m",
        "ZADD z 1 m 2 m",
        "GEOADD g 1 1 m 2 2 m",
        "RPUSH l a a",
        "LINSERT l BEFORE a b",
        "LMOVE l l LEFT RIGHT",
        "XADD x MAXLEN 3 * a b",
        "XADD x MAXLEN 0 * a b",
        "XADD x MINID ~ 0-1 * a b",
        "MULTI; XADD x * a b; XREAD STREAMS x 0",
        "MULTI; SADD s a; SMEMBERS s; SADD s a",
        "HSET h f 1; HGETALL h; HDEL h f; HGET h f",
        "DEL s s h h z x",
    ];
    for begun in [0, 600] {
        let mut datacenter = Datacenter::new(0);
        for number in 0..begun {
            datacenter.run(&format!("HSET h f{number} 1"));
            datacenter.run(&format!("SADD s m{number}"));
            datacenter.run("XADD x * a b");
        }
        for line in twice {
            let written = datacenter.log.len();
            match line.contains(';') {
                true => drop(datacenter.transaction(line.trim_start_matches("MULTI; "))),
                false => drop(datacenter.run(line)),
            }
            let Some(last) = datacenter.log.get(written) else { continue };
            let own = last.write.operation;
            assert!(datacenter.observed.sources.iter().all(|source| source.operation != own), "{line}");
        }
    }
}

fn run(datacenter: usize, line: &str) -> Step {
    Step::Run { datacenter, line: line.into() }
}

fn arrive(datacenter: usize, chosen: usize, hidden: bool) -> Step {
    Step::Arrive { datacenter, chosen, hidden }
}

/// Plays this, has everything arrive everywhere, and looks at a key in each datacenter.
fn ends_with(new: fn(u8) -> Datacenter, steps: &[Step], line: &str) -> Vec<String> {
    let mut datacenters: Vec<_> = (0..3).map(new).collect();
    play(&mut datacenters, steps);
    exchange(&mut datacenters, 0);
    datacenters.iter_mut().for_each(|datacenter| datacenter.hidden.clear());
    let request = Request::parse(&arguments(line)).expect("a command");
    let shown = datacenters.iter_mut().map(|datacenter| {
        let at = datacenter.clock;
        let mut evaluation = Evaluation::reading(&mut datacenter.keyspace, at, View::Newest);
        format!("{:?}", crate::command::run(&request, &mut evaluation).ok())
    });
    shown.collect()
}

/// A value had seen an addition that has not come; it lost, and is removed: the addition goes with it.
#[test]
fn a_removal_covers_an_addition_that_only_a_value_beside_had_seen() {
    let steps = [
        Step::Pause { datacenter: 2, ms: 1 },
        run(2, "SET a 7"),
        run(1, "INCRBY a 1"),
        run(1, "SET a 1"),
        // The value alone.
        arrive(2, 1, false),
        run(2, "DEL a"),
    ];
    assert_eq!(ends_with(Datacenter::new, &steps, "GET a"), ["Some(Nil)"; 3]);
}

/// A removal has forgotten by name what a view that hides it still shows: who writes there names it.
#[test]
fn a_value_names_what_a_hidden_removal_had_forgotten() {
    let steps = [
        Step::Pause { datacenter: 0, ms: 1 },
        run(1, "SET b 1"),
        run(0, "SET b 2"),
        Step::Collect { datacenter: 1 },
        run(1, "DEL b"),
        arrive(0, 0, true),
        run(0, "APPEND b 3"),
    ];
    let shown = ends_with(Datacenter::with_versions, &steps, "GET b");
    assert_eq!(shown, ["Some(Bulk(b\"23\"))"; 3]);
}
