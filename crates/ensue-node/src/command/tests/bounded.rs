//! Bounded counters: what is refused in one datacenter, and what several end up with.

use super::{Datacenter, Logged, check, run, show};
use crate::evaluate::{Evaluation, Writer, shown_escrow};
use bytes::Bytes;
use ensue_resp::Request;
use ensue_resp::request::Bounded;
use ensue_store::view::View;
use ensue_types::{DatacenterId, Reply, Source};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn in_one_datacenter_a_value_stays_within_its_bounds() {
    check(
        "BGET stock => nil
         BDECRBY stock 1 => -ERR no such key
         BCREATE stock 10 MIN 0 => 1
         BCREATE stock 99 MIN 0 => 0
         TYPE stock => bcounter
         EXISTS stock => 1
         BDECRBY stock 4 => 6
         BINCRBY stock 1 => 7
         BDECRBY stock 8 => -SPENT 7 rights to lower the counter are here, 8 are needed; as known here, none elsewhere
         BDECRBY stock 7 => 0
         BDECRBY stock 0 => 0
         BINCRBY stock -1 => -SPENT 0 rights to lower the counter are here, 1 are needed; as known here, none elsewhere
         BINCRBY stock 1000000 => 1000000
         BINCRBY stock 9223372036854775807 => -ERR increment or decrement would overflow
         BGET stock => 1000000
         BCREATE seats 5 MAX 8 MIN -1 => 1
         BINCRBY seats 4 => -SPENT 3 rights to raise the counter are here, 4 are needed; as known here, none elsewhere
         BINCRBY seats 3 => 8
         BDECRBY seats 9 => -1
         BGET seats rights => {\"value\":-1 \"min\":-1 \"max\":8 \"down\":0 \"up\":9 \
         \"datacenters\":{\"dc1\":[0 9] \"dc2\":[0 0] \"dc3\":[0 0]}}
         BGET stock rights => {\"value\":1000000 \"min\":0 \"max\":nil \"down\":1000000 \"up\":nil \
         \"datacenters\":{\"dc1\":[1000000 nil] \"dc2\":[0 nil] \"dc3\":[0 nil]}}",
    );
}

#[test]
fn arguments_are_looked_at_first() {
    check(
        "BCREATE k x MIN 0 => -ERR value is not an integer or out of range
         BCREATE k 1 MIN 2 => -ERR the initial value is not within the bounds
         BCREATE k 1 MIN => -ERR wrong number of arguments for 'bcreate' command
         BCREATE k 1 LEAST 0 => -ERR syntax error
         BCREATE k 1 MIN 0 MIN 1 => -ERR syntax error
         BCREATE k 1 MIN 0 MAX => -ERR syntax error
         BCREATE k 1 MAX 9223372036854775807 => -ERR initial value and bounds must be between -2^62 and 2^62
         BCREATE k 1 MIN 0 => 1
         BMOVE k dc2 0 => -ERR amount must be positive
         BMOVE k dc9 1 => -ERR no such datacenter
         BMOVE k dc1 1 => -ERR the rights are of this datacenter already
         BMOVE k dc2 1 UP => -ERR the counter has no bound on that side, and nobody needs rights for it
         BMOVE k dc2 1 SIDEWAYS => -ERR syntax error
         BGET k LEFT => -ERR syntax error",
    );
}

#[test]
fn it_is_a_type_of_its_own() {
    const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    const NO_COPY: &str = "-ERR a bounded counter is not copied, dumped or renamed: rights to change it are in every \
                           datacenter; BCREATE makes another one";
    check(&format!(
        "BCREATE k 3 MIN 0 => 1
         GET k => {WRONG}
         INCR k => {WRONG}
         HGETALL k => {WRONG}
         SET text 1 => OK
         BGET text => {WRONG}
         BCREATE text 3 MIN 0 => {WRONG}
         BDECRBY text 1 => {WRONG}
         HSET hash a 1 => 1
         BGET hash => {WRONG}
         DUMP k => {NO_COPY}
         COPY k other => {NO_COPY}
         OBJECT ENCODING k => \"int\"
         SCAN 0 TYPE bcounter => [\"0\" [\"k\"]]
         BDECRBY k 1 => 2
         SET k 7 => OK
         GET k => \"7\"
         DEL k => 1
         BGET k => nil
         BCREATE k 4 MIN 0 => 1
         BDECRBY k 1 => 3
         PEXPIRE k 1000 => 1
         BDECRBY k 1 => 2
         + 999
         BGET k => 2
         + 2
         BGET k => nil
         BDECRBY k 1 => -ERR no such key
         BCREATE k 8 MIN 0 => 1
         BGET k => 8
         BCREATE a 5 MIN 0; BDECRBY a 2; BDECRBY a 4; DEL a; BCREATE a 6 MIN 0; BDECRBY a 1 => 1; 3; -SPENT 3 rights \
         to lower the counter are here, 4 are needed; as known here, none elsewhere; 1; 1; 5
         BGET a => 5"
    ));
}

/// Several datacenters, and what each of them has received of the others.
struct Cluster {
    datacenters: Vec<Datacenter>,
    received: Vec<Vec<usize>>,
}

impl Cluster {
    fn new(count: u8) -> Cluster {
        let datacenters: Vec<Datacenter> = (0..count).map(Datacenter::new).collect();
        let received = vec![vec![0; datacenters.len()]; datacenters.len()];
        Cluster { datacenters, received }
    }

    fn run(&mut self, at: usize, line: &str) -> String {
        show(&self.datacenters[at].run(line))
    }

    /// What one has written comes to another one, all of it or the next write.
    fn deliver(&mut self, from: usize, to: usize, all: bool) {
        let done = self.received[to][from];
        let log = &self.datacenters[from].log;
        let end = if all { log.len() } else { log.len().min(done + 1) };
        let writes: Vec<Logged> = log[done.min(end)..end].to_vec();
        if from != to {
            writes.iter().for_each(|logged| self.datacenters[to].receive(logged));
            self.received[to][from] = end;
        }
    }

    fn exchange(&mut self) {
        for from in 0..self.datacenters.len() {
            (0..self.datacenters.len()).for_each(|to| self.deliver(from, to, true));
        }
    }

    /// What the owner does by itself.
    fn balance(&mut self, at: usize, home: Option<u8>) {
        let others = (0..self.datacenters.len()).filter(|other| *other != at);
        let others = others.map(|other| DatacenterId(other as u8)).collect();
        let request = Bounded::Balance { key: KEY, others, home: home.map(DatacenterId) };
        self.datacenters[at].run_all(&[Request::Bounded(request)]);
    }

    /// The counter that a datacenter shows.
    fn shown(&self, at: usize) -> Option<Bytes> {
        let row = self.datacenters[at].keyspace.row(&KEY)?;
        shown_escrow(&row.whole(), View::Newest).map(|(name, _)| name)
    }
}

const KEY: Bytes = Bytes::from_static(b"k");

#[test]
fn rights_go_to_who_needs_them_and_count_where_they_have_arrived() {
    let mut cluster = Cluster::new(2);
    cluster.run(0, "BCREATE k 10 MIN 0");
    cluster.exchange();
    let refused = "-SPENT 0 rights to lower the counter are here, 1 are needed; as known here, 10 in dc1";
    assert_eq!(cluster.run(1, "BDECRBY k 1"), refused);
    assert_eq!(cluster.run(0, "BMOVE k dc2 4"), "6");
    assert_eq!(cluster.run(0, "BDECRBY k 7").split(" rights").next(), Some("-SPENT 6"));
    assert_eq!(cluster.run(1, "BDECRBY k 1"), refused, "they have not arrived");
    cluster.exchange();
    assert_eq!(cluster.run(1, "BDECRBY k 4"), "6");
    assert_eq!(cluster.run(0, "BDECRBY k 6"), "4");
    cluster.exchange();
    assert_eq!((cluster.run(0, "BGET k"), cluster.run(1, "BGET k")), ("0".to_owned(), "0".to_owned()));

    cluster.run(0, "BINCRBY k 8");
    cluster.balance(0, None);
    cluster.exchange();
    assert_eq!(cluster.run(1, "BDECRBY k 4"), "4");
    // At its home all of them are of use, and its home gives none.
    cluster.run(0, "BINCRBY k 3");
    cluster.balance(0, Some(1));
    cluster.balance(1, Some(1));
    cluster.exchange();
    assert_eq!(cluster.run(1, "BDECRBY k 7"), "0");
}

/// `DEL` ends the counter, whatever others do to it meanwhile. What is made later begins anew.
#[test]
fn a_deleted_counter_does_not_come_back() {
    let mut cluster = Cluster::new(2);
    cluster.run(0, "BCREATE k 10 MIN 0");
    cluster.run(0, "BMOVE k dc2 5");
    cluster.exchange();
    assert_eq!(cluster.run(0, "DEL k"), "1");
    assert_eq!(cluster.run(1, "BDECRBY k 3"), "7");
    cluster.exchange();
    for at in [0, 1] {
        assert_eq!(cluster.run(at, "BGET k"), "nil");
        assert_eq!(cluster.run(at, "EXISTS k"), "0");
        assert_eq!(cluster.run(at, "DBSIZE"), "0");
        assert_eq!(cluster.run(at, "TYPE k"), "none");
    }
    // What the second datacenter had written is removed by itself, and by nobody else.
    let writes = |cluster: &Cluster| cluster.datacenters.iter().map(|d| d.log.len()).collect::<Vec<_>>();
    let before = writes(&cluster);
    cluster.balance(0, None);
    assert_eq!(writes(&cluster), before);
    cluster.balance(1, None);
    assert_eq!(writes(&cluster), [before[0], before[1] + 1]);
    cluster.balance(1, None);
    assert_eq!(writes(&cluster), [before[0], before[1] + 1], "once");
    cluster.exchange();
    assert_eq!(cluster.run(1, "BCREATE k 2 MIN 0"), "1");
    assert_eq!(cluster.run(1, "BDECRBY k 3").split(" rights").next(), Some("-SPENT 2"));
}

#[test]
fn of_two_that_are_made_at_the_same_time_the_later_is_shown() {
    let mut cluster = Cluster::new(2);
    cluster.datacenters[1].advance(5);
    cluster.run(0, "BCREATE k 10 MIN 0");
    cluster.run(1, "BCREATE k 7 MIN 0");
    cluster.run(0, "BDECRBY k 4");
    cluster.run(1, "BDECRBY k 5");
    cluster.exchange();
    assert_eq!((cluster.run(0, "BGET k"), cluster.run(1, "BGET k")), ("2".to_owned(), "2".to_owned()));
    assert_eq!(cluster.run(0, "DEL k"), "1");
    cluster.exchange();
    assert_eq!((cluster.run(0, "BGET k"), cluster.run(1, "BGET k")), ("nil".to_owned(), "nil".to_owned()));
}

/// A session that reads only what is stable goes on from nothing that it does not see; others go on from all that their
/// datacenter has done, and depend on it.
#[test]
fn what_is_hidden_is_spent_all_the_same() {
    let mut datacenter = Datacenter::with_versions(0);
    datacenter.run("BCREATE k 5 MIN 0");
    datacenter.run("BDECRBY k 2");
    let hidden = datacenter.log[1].write.operation;
    datacenter.hidden.insert(hidden);
    assert_eq!(show(&datacenter.run("BGET k")), "5");

    let write = datacenter.write();
    let mut writer = Writer::new(write, DatacenterId(0).adder(true), false);
    let visibility = |source: &Source| source.operation != hidden;
    let view = View::Visibility(&visibility);
    let mut evaluation = Evaluation::writing(&mut datacenter.keyspace, &mut writer, view);
    let request = Bounded::Change { key: KEY, amount: -1 };
    let answer = run(&Request::Bounded(request), &mut evaluation).expect("the present");
    assert!(show(&answer).starts_with("-BLOCKED "), "{answer:?}");
    assert_eq!(writer.changes.effects, []);

    assert_eq!(show(&datacenter.run("BDECRBY k 4")).split(" rights").next(), Some("-SPENT 3"));
    assert_eq!(show(&datacenter.run("BDECRBY k 3")), "0");
    let continued: Vec<_> = datacenter.observed.continued.iter().map(|source| source.operation).collect();
    assert_eq!(continued, [hidden]);
}

/// What has no column of a counter left need not be looked at any more.
#[test]
fn a_counter_is_looked_at_until_nothing_is_left_of_it() {
    let mut datacenter = Datacenter::with_versions(0);
    let balance = || Request::Bounded(Bounded::Balance { key: KEY, others: Vec::new(), home: None });
    let looked_at = |datacenter: &mut Datacenter| datacenter.keyspace.take_escrows(9, &Bytes::new(), 9).len();
    datacenter.run("BCREATE k 5 MIN 0");
    datacenter.run("BDECRBY k 2");
    assert_eq!(looked_at(&mut datacenter), 1);
    assert_eq!(datacenter.keyspace.escrow_after(&Bytes::new(), 1), KEY);
    datacenter.run("DEL k");
    assert_eq!(datacenter.run_all(&[balance()]), [Reply::Integer(1)]);
    (0..3).for_each(|_| datacenter.collect());
    assert_eq!(datacenter.run_all(&[balance()]), [Reply::Integer(0)]);
    datacenter.keyspace.forget_escrow(&KEY);
    looked_at(&mut datacenter);
    assert_eq!(looked_at(&mut datacenter), 0);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Create,
    Change(i64),
    Delete,
    Balance,
    Deliver(usize, bool),
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let step = prop_oneof![
        1 => Just(Step::Create),
        6 => (-4..3_i64).prop_map(Step::Change),
        1 => Just(Step::Delete),
        3 => Just(Step::Balance),
        5 => (0..3_usize, any::<bool>()).prop_map(|(from, all)| Step::Deliver(from, all)),
    ];
    (0..3_usize, step)
}

proptest! {
    /// Streams arrive in their order, those of different datacenters in any. Of each counter that ever was, what was
    /// acknowledged stays above the bound, and so does whatever anybody is shown.
    #[test]
    fn no_counter_passes_its_bound(steps in proptest::collection::vec(step(), 0..120)) {
        let mut cluster = Cluster::new(3);
        let mut left: BTreeMap<Bytes, i64> = BTreeMap::new();
        for (at, step) in steps {
            match step {
                Step::Create => drop(cluster.run(at, "BCREATE k 6 MIN 0")),
                Step::Delete => drop(cluster.run(at, "DEL k")),
                Step::Balance => cluster.balance(at, None),
                Step::Deliver(from, all) => cluster.deliver(from, at, all),
                Step::Change(amount) => {
                    let name = cluster.shown(at);
                    let answer = cluster.datacenters[at].run(&format!("BINCRBY k {amount}"));
                    if let (Some(name), Reply::Integer(value)) = (name, answer) {
                        *left.entry(name).or_insert(6) += amount;
                        prop_assert!(value >= 0);
                    }
                }
            }
            let shown = cluster.datacenters[at].run("BGET k");
            prop_assert!(shown == Reply::Nil || matches!(shown, Reply::Integer(0..)), "{}", show(&shown));
            // What others have added counts for those who have received it.
            prop_assert!(left.values().all(|left| *left >= 0), "{left:?}");
        }
        (0..2).for_each(|_| cluster.exchange());
        let ends: Vec<String> = (0..3).map(|at| cluster.run(at, "BGET k")).collect();
        prop_assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
        if let Some(left) = cluster.shown(0).and_then(|name| left.get(&name)) {
            prop_assert_eq!(&ends[0], &left.to_string());
        }
        let clock = cluster.datacenters.iter().map(|d| d.clock).max().unwrap_or_default();
        let digests: Vec<u64> = cluster.datacenters.iter().map(|d| d.digest(clock)).collect();
        prop_assert!(digests.iter().all(|digest| *digest == digests[0]));
    }
}
