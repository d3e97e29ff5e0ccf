//! Rows that are evicted: which, when, and that they lose against nobody.

use super::PARTITION;
use super::pops::Clients;
use super::receive_columns;
use super::versions::{OTHER, World};
use ensue_types::{Column, Dependency, Effect, Extent, Incarnation, KeyspaceId, Now, OperationId, Position};
use std::collections::BTreeMap;

/// What is left of a row that was evicted is small beside it: the other datacenter never says that it has had it.
const VALUE_BYTES: usize = 20_000;

fn set_policy(clients: &mut Clients, policy: &str) {
    let set = format!("CONFIG SET maxmemory 2000000 maxmemory-policy {policy}");
    assert_eq!(clients.ask(9, &set), "+OK|");
}

/// Sets keys of this beginning, with what follows the value; how many were refused.
fn fill(clients: &mut Clients, prefix: &str, options: &str) -> usize {
    let value = "v".repeat(VALUE_BYTES);
    let mut refused = 0;
    for number in 0..300 {
        let answer = clients.ask(9, &format!("SET {prefix}{number} {value}{options}"));
        refused += usize::from(answer.starts_with("-OOM"));
        clients.pass_ms(10);
    }
    refused
}

fn count(clients: &mut Clients, pattern: &str) -> usize {
    let keys = clients.ask(9, &format!("KEYS {pattern}"));
    let count = keys.split('|').next().and_then(|header| header.strip_prefix('*'));
    count.and_then(|count| count.parse().ok()).expect("an array")
}

#[test]
fn rows_are_evicted_and_no_write_is_refused() {
    // Where versions are kept, what is evicted stays in memory until it is stable.
    for protocol in ["eiger", "cops", "eventual", "log"] {
        let mut clients = Clients::new(protocol);
        set_policy(&mut clients, "allkeys-random");
        assert_eq!(fill(&mut clients, "k", ""), 0, "{protocol}");
        let left = count(&mut clients, "k*");
        assert!((20..110).contains(&left), "{protocol}: {left} of 300");
    }
}

/// What is counted for a small row, but for its key.
const SMALL_ROW_BYTES: usize = 84 + 10;

/// Small rows of which the first so many fit, while the other datacenter has had none of what was evicted.
fn with_small_rows(protocol: &str, count: usize) -> Clients {
    let mut clients = Clients::new(protocol);
    (0..count).for_each(|number| drop(clients.ask(9, &format!("SET k{number} {}", "v".repeat(10)))));
    let rows: usize = (0..count).map(|number| SMALL_ROW_BYTES + format!("k{number}").len()).sum();
    // A partition takes something itself.
    let set = format!("CONFIG SET maxmemory {} maxmemory-policy allkeys-random", rows + 4_096);
    assert_eq!(clients.ask(9, &set), "+OK|");
    clients
}

/// Sets so many small rows more; how many were refused.
fn add_small_rows(clients: &mut Clients, count: usize) -> usize {
    let set = |number| format!("SET more{number} {}", "v".repeat(10));
    (0..count).filter(|number| clients.ask(9, &set(*number)).starts_with("-OOM")).count()
}

#[test]
fn of_small_rows_as_many_are_evicted_as_come() {
    for protocol in ["eiger", "cops", "eventual", "log"] {
        let mut clients = with_small_rows(protocol, 3_000);
        assert_eq!(add_small_rows(&mut clients, 250), 0, "{protocol}");
        let left = count(&mut clients, "k*") + count(&mut clients, "more*");
        assert!((2_980..=3_001).contains(&left), "{protocol}: {left} rows");
    }
}

#[test]
fn what_is_left_of_small_rows_empties_no_cache() {
    let mut clients = with_small_rows("eiger", 1_000);
    assert!(add_small_rows(&mut clients, 3_000) > 1_000, "nothing that was evicted is forgotten");
    let left = count(&mut clients, "k*") + count(&mut clients, "more*");
    assert!(left > 800, "{left} rows");
}

#[test]
fn transactions_make_room_as_single_writes_do() {
    let mut clients = Clients::new("eiger");
    set_policy(&mut clients, "allkeys-random");
    let value = "v".repeat(VALUE_BYTES);
    for number in 0..300 {
        let answer = clients.ask(9, &format!("MULTI; SET k{number} {value}; EXEC"));
        assert_eq!(answer, "+OK|+QUEUED|*1|+OK|", "{number}");
        clients.pass_ms(10);
    }
    let left = count(&mut clients, "k*");
    assert!((20..110).contains(&left), "{left} of 300");
}

#[test]
fn without_a_policy_writes_are_refused() {
    let mut clients = Clients::new("eiger");
    set_policy(&mut clients, "noeviction");
    let refused = fill(&mut clients, "k", "");
    assert!(refused > 150, "{refused}");
    assert_eq!(count(&mut clients, "k*"), 300 - refused);
}

/// The other datacenter says nothing: what has expired is not deleted, though there is never much that has not.
#[test]
fn what_has_expired_goes_before_what_is_used() {
    for policy in ["allkeys-lru", "allkeys-lfu", "volatile-ttl", "volatile-lru"] {
        let mut clients = Clients::new("eiger");
        set_policy(&mut clients, policy);
        let value = "v".repeat(VALUE_BYTES);
        for number in 0..20 {
            clients.ask(9, &format!("SET kept{number} {value} EX 1000"));
        }
        for part in 0..4 {
            let prefix = format!("k{part}_");
            assert_eq!(fill(&mut clients, &prefix, " PX 100"), 0, "{policy}");
            (0..20).for_each(|number| drop(clients.ask(9, &format!("GET kept{number}"))));
        }
        let kept = count(&mut clients, "kept*");
        assert!(kept >= 18, "{policy}: {kept} of 20, though 1,200 others came");
        let stats = clients.ask(9, "INFO stats");
        let expired = stats.split('|').find_map(|line| line.strip_prefix("expired_keys:"));
        let expired: u64 = expired.and_then(|count| count.parse().ok()).expect("a line of the section");
        assert!(expired > 1_000, "{policy}: {stats}");
    }
}

#[test]
fn without_a_policy_what_has_expired_goes_when_it_is_not_deleted_in_time() {
    let mut clients = Clients::new("eiger");
    set_policy(&mut clients, "noeviction");
    let kept = format!("SET kept {}", "v".repeat(VALUE_BYTES));
    clients.ask(9, &kept);
    assert!(fill(&mut clients, "early", " PX 100") > 0, "who is silent for a second may be heard of soon");
    for _ in 0..5 {
        clients.pass_ms(1_000);
    }
    let refused = fill(&mut clients, "late", " PX 100");
    assert!(refused < 20, "{refused} of 300");
    assert_eq!(clients.ask(9, "EXISTS kept"), ":1|");
    assert!(fill(&mut clients, "more", "") > 150, "what has not expired stays");
    // Where versions are kept, a row that is deleted gives nothing back.
    let mut clients = Clients::new("cure");
    set_policy(&mut clients, "noeviction");
    clients.ask(9, "SET first 1 PX 1");
    for _ in 0..5 {
        clients.pass_ms(1_000);
    }
    assert!(fill(&mut clients, "late", " PX 100") > 150);
}

#[test]
fn deadlines_count_as_memory_and_those_set_anew_once() {
    let mut clients = Clients::new("eiger");
    let memory = |clients: &mut Clients| {
        let info = clients.ask(9, "INFO memory");
        let used = info.split('|').find_map(|line| line.strip_prefix("used_memory:"));
        used.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or_else(|| panic!("{info}"))
    };
    clients.ask(9, "SET k v");
    clients.pass_ms(1_000);
    let before = memory(&mut clients);
    clients.ask(9, "EXPIRE k 10000");
    clients.pass_ms(1_000);
    let with_deadline = memory(&mut clients);
    assert!(with_deadline > before + 100, "a deadline and its place: {before}, {with_deadline}");
    let mut most = 0;
    for _ in 0..20 {
        let lines: Vec<String> = (0..250).map(|second| format!("EXPIRE k {}", 20_000 + second)).collect();
        clients.ask(9, &lines.join("; "));
        clients.pass_ms(1_000);
        clients.pass_ms(0);
        most = most.max(memory(&mut clients));
    }
    assert!(most > with_deadline + 20_000, "they count: {with_deadline}, {most}");
    assert!(most < with_deadline + 150_000, "5,000 deadlines: {with_deadline}, {most}");
}

#[test]
fn volatile_policies_leave_what_has_no_deadline() {
    for policy in ["volatile-ttl", "volatile-lru", "volatile-lfu", "volatile-random"] {
        let mut clients = Clients::new("eiger");
        for number in 0..20 {
            clients.ask(9, &format!("SET kept{number} {}", "v".repeat(VALUE_BYTES)));
        }
        set_policy(&mut clients, policy);
        assert_eq!(fill(&mut clients, "k", " EX 1000"), 0, "{policy}");
        assert_eq!(count(&mut clients, "kept*"), 20, "{policy}");
        assert!(fill(&mut clients, "more", "") > 150, "{policy}: what has no deadline is refused in the end");
    }
}

#[test]
fn volatile_policies_find_the_few_rows_with_a_deadline() {
    for policy in ["volatile-ttl", "volatile-lru", "volatile-lfu", "volatile-random"] {
        let mut clients = Clients::new("eiger");
        for number in 0..5_000 {
            clients.ask(9, &format!("SET kept{number} v"));
        }
        clients.ask(9, &format!("SET persists {} EX 1000", "v".repeat(VALUE_BYTES)));
        clients.ask(9, "PERSIST persists");
        set_policy(&mut clients, policy);
        assert_eq!(fill(&mut clients, "k", " EX 1000"), 0, "{policy}");
        assert_eq!(count(&mut clients, "kept*"), 5_000, "{policy}");
        assert_eq!(clients.ask(9, "EXISTS persists"), ":1|", "{policy}");
    }
}

#[test]
fn what_is_used_stays() {
    for policy in ["allkeys-lru", "allkeys-lfu"] {
        let mut clients = Clients::new("eiger");
        set_policy(&mut clients, policy);
        let value = "v".repeat(VALUE_BYTES);
        clients.ask(9, &format!("SET used {value}"));
        for number in 0..300 {
            clients.ask(9, &format!("SET k{number} {value}"));
            clients.ask(9, "GET used");
            clients.pass_ms(200);
        }
        assert_eq!(clients.ask(9, "EXISTS used"), ":1|", "{policy}");
    }
}

#[test]
fn an_eviction_loses_against_a_write_that_it_had_not_seen() {
    let mut clients = Clients::new("eiger");
    clients.ask(9, &format!("SET x {}", "v".repeat(VALUE_BYTES)));
    set_policy(&mut clients, "allkeys-random");
    let mut number = 0;
    while clients.ask(9, "EXISTS x") == ":1|" {
        clients.ask(9, &format!("SET k{number} {}", "v".repeat(VALUE_BYTES)));
        number += 1;
        assert!(number < 5_000, "it is never drawn");
    }
    receive_columns(&mut clients.0, Position(1), &[(Column::Text, b"far")]);
    clients.pass_ms(10);
    assert_eq!(clients.ask(9, "GET x"), "$3|far|");
}

#[test]
fn a_bound_below_what_is_there_evicts_as_much_as_that_and_no_more() {
    let mut clients = Clients::new("eiger");
    for number in 0..100 {
        clients.ask(9, &format!("SET k{number} {}", "v".repeat(VALUE_BYTES)));
    }
    assert_eq!(clients.ask(9, "CONFIG SET maxmemory 1000000"), "+OK|");
    clients.pass_ms(1_000);
    assert_eq!(count(&mut clients, "k*"), 100, "nothing is evicted without a policy");
    assert_eq!(clients.ask(9, "CONFIG SET maxmemory-policy allkeys-lru"), "+OK|");
    for _ in 0..50 {
        clients.pass_ms(100);
    }
    let left = count(&mut clients, "k*");
    assert!((30..70).contains(&left), "{left} of 100 rows of 20 KB stay under 1 MB");
}

#[test]
fn object_tells_of_uses_where_the_policy_has_them_kept() {
    let mut clients = Clients::new("eiger");
    let ask = |clients: &mut Clients, line: &str| clients.ask(9, line);
    ask(&mut clients, "SET a 1");
    clients.pass_ms(3_000);
    assert_eq!(ask(&mut clients, "OBJECT IDLETIME a"), ":0|", "nobody keeps it");
    assert!(ask(&mut clients, "OBJECT FREQ a").starts_with("-ERR An LFU maxmemory policy is not selected"));
    set_policy(&mut clients, "allkeys-lru");
    ask(&mut clients, "GET a");
    clients.pass_ms(3_000);
    for line in ["TTL a", "TYPE a", "EXISTS a", "OBJECT ENCODING a"] {
        ask(&mut clients, line);
    }
    assert_eq!(ask(&mut clients, "OBJECT IDLETIME a"), ":3|");
    assert_eq!(ask(&mut clients, "OBJECT IDLETIME none"), "$-1|");
    ask(&mut clients, "TOUCH a");
    assert_eq!(ask(&mut clients, "OBJECT IDLETIME a"), ":0|");
    set_policy(&mut clients, "allkeys-lfu");
    ask(&mut clients, "SET b 1");
    assert_eq!(ask(&mut clients, "OBJECT FREQ b"), ":6|");
    assert!(ask(&mut clients, "OBJECT IDLETIME b").starts_with("-ERR An LFU maxmemory policy is selected"));
}

#[test]
fn what_has_arrived_and_waits_counts_as_memory_until_it_is_a_row() {
    let now = Now { monotonic_us: 1_000_000, wall_ms: 1_700_000_000_000 };
    let mut world = World::under("eiger", BTreeMap::new(), now, u64::MAX).started();
    let empty = world.partition.keyspaces.memory_bytes();
    let (datacenter, incarnation, partition) = (OTHER, Incarnation(1), PARTITION);
    let next = OperationId { datacenter, incarnation, partition, position: Position(2) };
    let put = |byte| Effect::Put { value: vec![byte; 100_000].into(), seen: Vec::new(), over: None };
    world.receive_after(1, "a", Some(put(b'v')), &[Dependency { operation: next, extent: Extent::Exact }]);
    let waiting = world.partition.keyspaces.memory_bytes() - empty;
    assert!((100_000..101_000).contains(&waiting), "{waiting}");
    world.receive_after(2, "b", Some(put(b'w')), &[]);
    assert_eq!(world.partition.keyspaces.rows(KeyspaceId(0)).map(|rows| rows.rows_count()), Some(2));
    let rows = world.partition.keyspaces.memory_bytes() - empty;
    assert!((200_000..202_000).contains(&rows), "{rows}: once, as rows");
}
