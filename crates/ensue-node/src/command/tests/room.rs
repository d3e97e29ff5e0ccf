//! Writes that would not fit into one entry of a stream: refused before they change anything.

use super::{Datacenter, show};
use crate::evaluate::{Evaluation, TOO_MUCH, Writer};
use bytes::Bytes;
use ensue_resp::Request;
use ensue_store::entry::{Change, Entry};
use ensue_store::layout::encoded_entry_bytes;
use ensue_store::view::View;
use ensue_types::{Causes, Column, DatacenterId, KeyspaceId, Position, Reply, limits};

/// Keys are shared in memory and repeated in an entry, once a field.
const KEY_BYTES: usize = limits::KEY_BYTES_MAX;
/// So many fields of such a key fit.
const FIELDS_FIT: usize = limits::ENTRY_BYTES_MAX / KEY_BYTES - 1;

fn words(words: &[&str], key: &Bytes, names: std::ops::Range<usize>, values: bool) -> Vec<Bytes> {
    let mut args: Vec<Bytes> = words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
    args.push(key.clone());
    for name in names {
        args.push(Bytes::from(format!("{name:06}")));
        args.extend(values.then(|| Bytes::from_static(b"v")));
    }
    args
}

impl Datacenter {
    fn ask(&mut self, args: &[Bytes]) -> Reply {
        self.run_all(&[Request::parse(args).unwrap()]).remove(0)
    }

    fn longest_entry(&self) -> usize {
        let bytes = |logged: &super::Logged| {
            let change = Change::Effects {
                keyspace: KeyspaceId(0),
                transaction: None,
                effects: logged.effects.clone(),
            };
            let (position, stamp) = (Position(1), logged.write.stamp);
            let dependencies = Causes::Nothing;
            encoded_entry_bytes(&Entry { position, stamp, dependencies, change, previous: Vec::new() })
        };
        self.log.iter().map(bytes).max().unwrap_or_default()
    }
}

fn long_key() -> Bytes {
    Bytes::from(vec![b'k'; KEY_BYTES])
}

#[test]
fn what_does_not_fit_into_an_entry_is_refused_whole() {
    let mut datacenter = Datacenter::new(0);
    let key = long_key();
    for (command, values) in [("HSET", true), ("HMSET", true), ("SADD", false)] {
        let too_much = words(&[command], &key, 0..FIELDS_FIT + 2, values);
        assert_eq!(datacenter.ask(&too_much), TOO_MUCH, "{command}");
    }
    assert!(datacenter.log.is_empty(), "nothing was changed");
    assert_eq!(datacenter.ask(&words(&["EXISTS"], &key, 0..0, false)), Reply::Integer(0));
    let fits = words(&["HSET"], &key, 0..FIELDS_FIT - 1, true);
    assert_eq!(datacenter.ask(&fits), Reply::Integer(FIELDS_FIT as i64 - 1));
    let longest = datacenter.longest_entry();
    assert!(
        longest > limits::ENTRY_BYTES_MAX - 4 * KEY_BYTES && longest < limits::ENTRY_BYTES_MAX,
        "{longest}"
    );
}

#[test]
fn commands_of_one_transaction_share_an_entry() {
    let mut datacenter = Datacenter::new(0);
    let (half, key) = (FIELDS_FIT / 2, long_key());
    let parts = [(0..half), (half..2 * half - 2), (2 * half..2 * half + 20)];
    let requests = parts.map(|names| Request::parse(&words(&["HSET"], &key, names, true)).unwrap());
    let replies = datacenter.run_all(&requests);
    assert_eq!(replies[0], Reply::Integer(half as i64));
    assert_eq!((&replies[1], &replies[2]), (&Reply::Integer(half as i64 - 2), &TOO_MUCH));
    let zeroes = |n: usize| Request::parse(&super::arguments(&format!("SETRANGE {n} 67108863 x"))).unwrap();
    let replies = datacenter.run_all(&[zeroes(1), zeroes(2), zeroes(3)]);
    assert_eq!(show(&replies[1]), "67108864");
    assert_eq!(replies[2], TOO_MUCH);
    assert!(datacenter.longest_entry() < limits::ENTRY_BYTES_MAX);
}

/// A datacenter with a hash that took several writes, and takes more than an entry to delete.
fn with_large_hash(key: &Bytes) -> Datacenter {
    let mut datacenter = Datacenter::new(0);
    for part in 0..3 {
        let names = part * FIELDS_FIT / 2..(part + 1) * FIELDS_FIT / 2;
        assert!(matches!(datacenter.ask(&words(&["HSET"], key, names, true)), Reply::Integer(_)));
    }
    datacenter
}

#[test]
fn a_row_that_is_too_large_is_not_overwritten_at_once() {
    let key = long_key();
    let mut datacenter = with_large_hash(&key);
    let fields = datacenter.ask(&words(&["HLEN"], &key, 0..0, false));
    let small = Bytes::from_static(b"small");
    datacenter.ask(&[Bytes::from_static(b"SET"), small.clone(), small.clone()]);
    let logged = datacenter.log.len();
    let at_once = [
        [words(&["SET"], &key, 0..0, false), vec![small.clone()]].concat(),
        [words(&["MSET", "small", "other"], &key, 0..0, false), vec![small.clone()]].concat(),
    ];
    for args in at_once {
        assert_eq!(datacenter.ask(&args), TOO_MUCH, "{}", args[0].escape_ascii());
    }
    assert_eq!(datacenter.log.len(), logged, "nothing was changed");
    assert_eq!(datacenter.ask(&words(&["HLEN"], &key, 0..0, false)), fields);
    assert_eq!(show(&datacenter.run("GET small")), "\"small\"");
}

#[test]
fn a_row_that_is_too_large_expires_when_it_is_deleted() {
    for delete in [&["DEL"][..], &["UNLINK"], &["EXPIRE", "-1"]] {
        let key = long_key();
        let mut datacenter = with_large_hash(&key);
        let mut command = words(&delete[..1], &key, 0..0, false);
        command.extend(delete[1..].iter().map(|word| Bytes::from(word.to_string())));
        let logged = datacenter.log.len();
        assert_eq!(datacenter.ask(&command), Reply::Integer(1));
        assert_eq!(datacenter.log.len(), logged + 1);
        assert_eq!(datacenter.log[logged].effects.len(), 1, "a deadline, whatever is in the row");
        assert_eq!(datacenter.ask(&words(&["EXISTS"], &key, 0..0, false)), Reply::Integer(0));
        assert_eq!(datacenter.ask(&words(&["HLEN"], &key, 0..0, false)), Reply::Integer(0));
        clear_in_parts(&mut datacenter, &key);
        assert_eq!(datacenter.ask(&words(&["HSET"], &key, 0..1, true)), Reply::Integer(1));
        assert_eq!(datacenter.ask(&words(&["HLEN"], &key, 0..0, false)), Reply::Integer(1));
        assert_eq!(datacenter.ask(&words(&["TTL"], &key, 0..0, false)), Reply::Integer(-1));
    }
}

/// Deletes an expired row as its partition does; answers in how many turns.
fn clear_in_parts(datacenter: &mut Datacenter, key: &Bytes) -> usize {
    let (mut parts, mut place) = (0, 0);
    loop {
        let writer = Writer::new(datacenter.write(), DatacenterId(0), false);
        let mut writer = writer.with_bytes_max(datacenter.entry_bytes_max);
        let mut evaluation = Evaluation::writing(&mut datacenter.keyspace, &mut writer, View::Newest);
        let is_over = !evaluation.is_cleared_in_parts(key) && evaluation.begin_write(key).is_ok();
        if !is_over {
            place = evaluation.clear_some_expired(key, place).unwrap_or_default();
        }
        datacenter.log.push(super::Logged { write: writer.write, effects: writer.changes.effects });
        parts += 1;
        assert_eq!(datacenter.ask(&words(&["EXISTS"], key, 0..0, false)), Reply::Integer(0));
        if is_over {
            return parts;
        }
    }
}

#[test]
fn a_row_of_many_columns_that_has_expired_goes_some_a_turn() {
    let key = Bytes::from_static(b"many");
    let mut datacenter = Datacenter::new(0);
    assert_eq!(datacenter.ask(&words(&["SADD"], &key, 0..2_500, false)), Reply::Integer(2_500));
    assert_eq!(datacenter.ask(&words(&["SREM"], &key, 0..300, false)), Reply::Integer(300));
    let mut expire = words(&["PEXPIRE"], &key, 0..0, false);
    expire.push(Bytes::from_static(b"10"));
    datacenter.ask(&expire);
    datacenter.advance(20);
    let logged = datacenter.log.len();
    assert_eq!(clear_in_parts(&mut datacenter, &key), 4, "three for the columns, one for the deadline");
    let effects = datacenter.log[logged..].iter().map(|logged| logged.effects.len());
    assert_eq!(effects.collect::<Vec<_>>(), [700, 1_000, 500, 1]);
    assert_eq!(datacenter.ask(&words(&["SADD"], &key, 0..1, false)), Reply::Integer(1));
    assert_eq!(datacenter.ask(&words(&["SCARD"], &key, 0..0, false)), Reply::Integer(1));
}

#[test]
fn a_row_that_is_too_large_goes_in_parts_when_its_deadline_has_passed() {
    let key = long_key();
    let mut datacenter = with_large_hash(&key);
    let mut expire = words(&["PEXPIRE"], &key, 0..0, false);
    expire.push(Bytes::from_static(b"10"));
    assert_eq!(datacenter.ask(&expire), Reply::Integer(1));
    datacenter.advance(20);
    assert_eq!(datacenter.ask(&words(&["HSET"], &key, 0..1, true)), TOO_MUCH, "it would come back");
    assert_eq!(clear_in_parts(&mut datacenter, &key), 2);
    assert!(datacenter.longest_entry() < limits::ENTRY_BYTES_MAX);
    assert_eq!(datacenter.ask(&words(&["HSET"], &key, 0..1, true)), Reply::Integer(1));
    assert_eq!(datacenter.ask(&words(&["HLEN"], &key, 0..0, false)), Reply::Integer(1));
}

/// Of each of three datacenters, which all have added to so many counters, and may log so much at once.
fn with_additions_of_three(command: &str, count: usize, entry_bytes_max: usize) -> Datacenter {
    let mut datacenters = [0, 1, 2].map(Datacenter::new);
    for datacenter in &mut datacenters {
        for number in 0..count {
            datacenter.run(&format!("{command}{number} 1"));
        }
    }
    let [mut first, others @ ..] = datacenters;
    others.iter().flat_map(|other| &other.log).for_each(|logged| first.receive(logged));
    first.log.clear();
    Datacenter { entry_bytes_max, ..first }
}

/// What removals cover, and puts, of each datacenter takes more than their names.
#[test]
fn what_is_covered_of_each_datacenter_counts() {
    let numbers = || 0..300;
    let names = || numbers().map(|number| format!(" f{number}")).collect::<String>();
    let pairs = || numbers().map(|number| format!(" f{number} 7")).collect::<String>();
    let keys = || numbers().map(|number| format!(" k{number}")).collect::<String>();
    let most = 40_000;
    let fields = || with_additions_of_three("HINCRBY h f", 300, most);
    for line in [format!("HDEL h{}", names()), format!("HSET h{}", pairs()), format!("HMSET h{}", pairs())] {
        let mut datacenter = fields();
        assert_eq!(datacenter.run(&line), TOO_MUCH, "{line}");
        assert!(datacenter.log.is_empty() && datacenter.run("HLEN h") == Reply::Integer(300), "{line}");
    }
    assert_eq!(fields().run("SET h text"), TOO_MUCH);
    let mut datacenter = with_additions_of_three("INCRBY k", 300, most);
    assert_eq!(datacenter.run(&format!("DEL{}", keys())), TOO_MUCH);
    assert_eq!(datacenter.run(&format!("DEL{}", keys().split(" k100").next().unwrap())), Reply::Integer(100));
    assert!(datacenter.longest_entry() < most);

    // As what is too large to be deleted at once.
    let mut datacenter = fields();
    assert_eq!(datacenter.run("DEL h"), Reply::Integer(1));
    assert_eq!(datacenter.log[0].effects.len(), 1, "a deadline");
    assert!(clear_in_parts(&mut datacenter, &Bytes::from_static(b"h")) > 1);
    // Its own head, of some bytes, is beside what its changes take.
    assert!(datacenter.longest_entry() < most + 64, "{}", datacenter.longest_entry());
}

#[test]
fn an_entry_that_nobody_had_foreseen_ends_where_it_is_full() {
    let mut datacenter = Datacenter::new(0);
    let mut writer = Writer::new(datacenter.write(), DatacenterId(0), false).with_bytes_max(100);
    let mut evaluation = Evaluation::writing(&mut datacenter.keyspace, &mut writer, View::Newest);
    let put = |evaluation: &mut Evaluation<'_>, name: &'static str, bytes: usize| {
        evaluation.put(&Bytes::from_static(b"k"), Column::Field(name.into()), Bytes::from(vec![b'v'; bytes]));
    };
    put(&mut evaluation, "a", 40);
    put(&mut evaluation, "b", 40);
    put(&mut evaluation, "c", 1);
    assert!(evaluation.take_is_full(), "the second does not fit beside the first");
    assert!(!evaluation.take_is_full(), "that is said once");
    put(&mut evaluation, "d", 1);
    let changed: Vec<Column> = writer.changes.effects.iter().map(|change| change.column.clone()).collect();
    assert_eq!(changed, ["a", "d"].map(|name| Column::Field(name.into())), "nothing of a command after it");
    datacenter.log.push(super::Logged { write: writer.write, effects: writer.changes.effects });
    assert_eq!(show(&datacenter.run("HGETALL k")).matches(':').count(), 2, "nor is that merged");
}
