//! Who caches what it has read, or subscribes to keyspace events, is told of changes, and not before readers see them.

use super::pops::{Clients, each};
use super::{receive_columns, receive_effects};
use bytes::Bytes;
use ensue_types::{
    Column, DatacenterId, Effect, LogicalTime, Observed, PartitionId, Position, RowEffect, Stamp,
};

const TOLD: &str = ">2|$10|invalidate|*1|$1|x|";

/// A client of RESP3 that is told of what it reads.
fn tracking(protocol: &str, options: &str) -> Clients {
    let mut clients = Clients::new(protocol);
    clients.ask(1, "HELLO 3");
    assert_eq!(clients.ask(1, &format!("CLIENT TRACKING ON{options}")), "+OK|");
    clients
}

#[test]
fn a_key_that_was_read_is_told_of_once() {
    for registration in ensue_protocol::REGISTRY.iter().filter(|one| one.name != "tardis") {
        let mut clients = tracking(registration.name, "");
        clients.ask(1, "GET x");
        assert_eq!(clients.ask(9, "SET y 1"), "+OK|", "{}", registration.name);
        let told = clients.ask(9, "SET x 1");
        assert_eq!(told.replace("+OK|", ""), TOLD, "{}", registration.name);
        assert_eq!(clients.ask(9, "SET x 2"), "+OK|", "it has not been read since");
        assert_eq!(clients.ask(1, "GET x"), "$1|2|");
        assert_eq!(clients.ask(9, "DEL x").replace(":1|", ""), TOLD);
        assert_eq!(clients.ask(1, "MULTI; GET x; EXEC"), "+OK|+QUEUED|*1|_|");
        assert_eq!(clients.ask(9, "FLUSHDB").replace("+OK|", ""), ">2|$10|invalidate|_|");
    }
}

#[test]
fn a_row_whose_time_is_over_is_told_of() {
    each(|mut clients| {
        clients.ask(1, "HELLO 3");
        clients.ask(1, "CLIENT TRACKING ON");
        clients.ask(9, "SET x 1 PX 50");
        clients.ask(1, "GET x");
        let mut told = String::new();
        for _ in 0..100 {
            told += &clients.pass_ms(100);
        }
        assert_eq!(told, TOLD);
    });
}

#[test]
fn what_a_client_writes_itself_is_told_unless_it_does_not_want_that() {
    for (options, own) in [("", TOLD), (" NOLOOP", "")] {
        let mut clients = tracking("eiger", options);
        clients.ask(1, "GET x");
        assert_eq!(clients.ask(1, "SET x 1").replace("+OK|", ""), own);
        clients.ask(1, "GET x");
        assert_eq!(clients.ask(9, "SET x 2").replace("+OK|", ""), TOLD);
    }
}

#[test]
fn what_another_datacenter_writes_is_told_when_readers_see_it() {
    for protocol in ["eiger", "eventual", "cure", "pocc", "ha-pocc"] {
        let mut clients = tracking(protocol, "");
        assert_eq!(clients.ask(1, "GET x"), "_|");
        receive_columns(&mut clients.0, Position(1), &[(Column::Text, b"far")]);
        let mut told = clients.answers();
        for _ in 0..100 {
            if told.contains(TOLD) {
                break;
            }
            told += &clients.pass_ms(10);
        }
        assert_eq!(told, TOLD, "{protocol}");
        assert_eq!(clients.ask(9, "GET x"), "$3|far|", "{protocol}");
    }
}

#[test]
fn a_removal_in_another_datacenter_is_told_as_one() {
    for protocol in ["eiger", "eventual"] {
        let mut clients = Clients::new(protocol);
        clients.ask(1, "CONFIG SET notify-keyspace-events KEA");
        clients.ask(1, "PSUBSCRIBE __keyevent@0__:*");
        clients.ask(9, "SET x 1");
        clients.answers();
        let time = LogicalTime::from_ms(clients.0.now.wall_ms);
        let through = Stamp { time, datacenter: DatacenterId(1), partition: PartitionId(0) };
        let effect = Effect::Remove { observed: Observed::all_through(through), seen: Vec::new() };
        let removal = RowEffect { key: Bytes::from_static(b"x"), column: Column::Text, effect };
        receive_effects(&mut clients.0, Position(1), vec![removal]);
        let told = clients.answers();
        assert!(told.contains(":del|") && !told.contains(":set|"), "{protocol}: {told}");
    }
}

#[test]
fn what_had_come_before_anybody_wanted_to_be_told_is_told_when_readers_see_it() {
    for protocol in ["cure", "pocc", "ha-pocc"] {
        let mut clients = Clients::new(protocol);
        receive_columns(&mut clients.0, Position(1), &[(Column::Text, b"far")]);
        clients.ask(1, "HELLO 3");
        clients.ask(1, "CLIENT TRACKING ON");
        clients.ask(1, "GET x");
        let mut told = clients.answers();
        for _ in 0..100 {
            told += &clients.pass_ms(10);
        }
        assert_eq!(told, ">2|$10|invalidate|_|", "{protocol}");
    }
}

#[test]
fn keyspace_events() {
    let mut clients = Clients::new("eiger");
    clients.ask(1, "PSUBSCRIBE __key*");
    assert_eq!(clients.ask(9, "SET x 1"), "+OK|", "nobody has asked for events");
    assert_eq!(clients.ask(9, "CONFIG SET notify-keyspace-events KA"), "+OK|");
    let mut events = |lines: &str| {
        let answers = clients.ask(9, lines);
        let events = answers.split("$8|pmessage|$6|__key*|").skip(1);
        let word = |event: &str| {
            event.split('|').filter(|word| !word.starts_with(['$', '*', ':', '+'])).nth(1).map(str::to_owned)
        };
        events.filter_map(word).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(events("SET x 1"), "set");
    assert_eq!(events("SET x 1 EX 100"), "set expire");
    assert_eq!(events("INCR x; APPEND x 1; SETRANGE x 0 5; SETBIT x 1 1"), "incrby append setrange setbit");
    assert_eq!(events("EXPIRE x 10; PERSIST x; DEL x"), "expire persist del");
    assert_eq!(events("RPUSH l a b; LPUSH l c; LPOP l; RPOP l; LSET l 0 z"), "rpush lpush lpop rpop lset");
    assert_eq!(events("LPOP l"), "lpop del");
    assert_eq!(events("HSET h f 1; HINCRBY h f 1; HDEL h f"), "hset hincrby hdel del");
    assert_eq!(events("SADD s a b; SREM s a; SPOP s"), "sadd srem spop del");
    assert_eq!(events("ZADD z 1 a 2 b; ZINCRBY z 1 a; ZPOPMIN z; ZREM z a b"), "zadd zincr zpopmin zrem del");
    assert_eq!(events("XADD t 1-1 f v; XDEL t 1-1"), "xadd xdel");
    assert_eq!(events("MULTI; SET x 1; INCR x; EXEC"), "set incrby");
    assert_eq!(events("GET x; SETNX x 2; LPUSHX none 1"), "");
    assert_eq!(
        events("XADD g 1-1 f v; XGROUP CREATE g h 0; XGROUP CREATECONSUMER g h bob"),
        "xadd xgroup-create xgroup-createconsumer"
    );
    assert_eq!(events("XREADGROUP GROUP h ann STREAMS g >; XAUTOCLAIM g h bob 0 0"), "xgroup-createconsumer");
    assert_eq!(events("CONFIG SET notify-keyspace-events KAn"), "");
    assert_eq!(events("SET fresh 1; SET fresh 2; RPUSH many a b; DEL fresh"), "new set set new rpush del");
    assert_eq!(events("MSET x 1 one 1 two 2"), "set new set new set");
    assert_eq!(events("CONFIG SET notify-keyspace-events Kn"), "");
    assert_eq!(events("SET fresh 1; SET fresh 2; INCR number"), "new new");
}
