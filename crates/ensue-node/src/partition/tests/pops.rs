//! Pops that wait: who is served, in which order, and what becomes of those whose client does not wait any longer.

use super::{World, receive_columns};
use crate::partition::reads::pops::WaitingPops;
use crate::{AppendFsync, Input, NodeConfig};
use bytes::Bytes;
use ensue_types::element::{self, Author};
use ensue_types::{
    Args, Column, CoreId, DatacenterId, LogicalTime, PartitionId, Position, RequestId, SessionId, Stamp,
    limits,
};
use ensue_wire::Address;
use std::collections::BTreeSet;

pub(super) struct Clients(pub(super) World, BTreeSet<u64>);

impl Clients {
    pub(super) fn new(protocol: &str) -> Clients {
        let mut world = World::with(NodeConfig {
            protocols: vec![protocol.into(); usize::from(limits::KEYSPACES)],
            ..super::config(AppendFsync::EverySecond)
        });
        world.give(Input::LinkUp { datacenter: DatacenterId(1), core: CoreId(0) });
        world.calm_down();
        Clients(world, BTreeSet::new())
    }

    /// Commands of a client, which is connected by its first ones; semicolons stand between them.
    pub(super) fn ask(&mut self, client: u64, lines: &str) -> String {
        let (session, address, local_address) = (SessionId(client), String::new(), String::new());
        if self.1.insert(client) {
            self.0.give(Input::ClientConnected { session, address, local_address });
        }
        let words =
            |line: &str| -> Args { line.split(' ').map(|word| Bytes::from(word.to_owned())).collect() };
        let commands = lines.split("; ").map(words).collect();
        self.0.give(Input::ClientCommands { session, commands });
        self.0.give(Input::TurnEnd);
        self.answers()
    }

    /// What all clients were answered since the last call; `|` stands for the ends of lines.
    pub(super) fn answers(&mut self) -> String {
        self.0.calm_down();
        let replies = std::mem::take(&mut self.0.replies);
        String::from_utf8_lossy(&replies).replace("\r\n", "|")
    }

    fn leave(&mut self, client: u64) {
        self.0.give(Input::ClientGone { session: SessionId(client) });
        self.0.give(Input::TurnEnd);
    }

    pub(super) fn pass_ms(&mut self, ms: u64) -> String {
        self.0.now.monotonic_us += 1_000 * ms;
        self.0.now.wall_ms += ms;
        self.0.give(Input::Timer);
        self.0.give(Input::TurnEnd);
        self.answers()
    }
}

/// Every protocol in which keys have rows.
pub(super) fn each(check: impl Fn(Clients)) {
    for registration in ensue_protocol::REGISTRY.iter().filter(|one| one.name != "tardis") {
        check(Clients::new(registration.name));
    }
}

#[test]
fn what_is_there_is_popped_at_once() {
    each(|mut clients| {
        clients.ask(9, "RPUSH q a b c; ZADD z 1 m 2 n 3 o");
        assert_eq!(clients.ask(1, "BLPOP none q 0"), "*2|$1|q|$1|a|");
        assert_eq!(clients.ask(1, "BRPOP q 0"), "*2|$1|q|$1|c|");
        assert_eq!(clients.ask(1, "BLMOVE q r LEFT LEFT 0; LLEN q; LRANGE r 0 -1"), "$1|b|:0|*1|$1|b|");
        assert_eq!(clients.ask(1, "BLMPOP 0 2 q r LEFT COUNT 5"), "*2|$1|r|*1|$1|b|");
        assert_eq!(clients.ask(1, "BZPOPMIN z 0; BZPOPMAX z 0"), "*3|$1|z|$1|m|$1|1|*3|$1|z|$1|o|$1|3|");
        assert_eq!(clients.ask(1, "BZMPOP 0 1 z MIN"), "*2|$1|z|*1|*2|$1|n|$1|2|");
    });
}

#[test]
fn those_that_wait_are_served_in_the_order_in_which_they_came() {
    each(|mut clients| {
        for client in 1..=4 {
            assert_eq!(clients.ask(client, &format!("BLPOP none{client} q 0; ECHO {client}")), "");
        }
        let served = "*2|$1|q|$1|a|$1|1|*2|$1|q|$1|b|$1|2|";
        let answers = clients.ask(9, "RPUSH q a b");
        assert_eq!(answers.replace(":2|", ""), served);
        // The third one waits at another key, too, where something comes first.
        assert_eq!(clients.ask(9, "RPUSH none3 x").replace(":1|", ""), "*2|$5|none3|$1|x|$1|3|");
        // A pop that comes behind the push in the same pipeline comes too late.
        let answers = clients.ask(9, "LPUSH q y; LPOP q");
        assert!(answers.contains("*2|$1|q|$1|y|$1|4|") && answers.contains("$-1|"), "{answers}");
        assert_eq!(clients.ask(9, "EXISTS q none3"), ":0|");
    });
}

#[test]
fn rows_that_change_together_serve_in_the_order_of_their_changes() {
    each(|mut clients| {
        for client in 1..=2 {
            assert_eq!(clients.ask(client, &format!("BLMPOP 0 2 z a LEFT COUNT 9; ECHO {client}")), "");
        }
        let answers = clients.ask(9, "MULTI; RPUSH z 1 2; RPUSH a 3 4; EXEC");
        let served = answers.replace("+OK|+QUEUED|+QUEUED|*2|:2|:2|", "");
        assert_eq!(served, "*2|$1|z|*2|$1|1|$1|2|$1|1|*2|$1|a|*2|$1|3|$1|4|$1|2|");
    });
}

#[test]
fn readers_of_a_stream_wait_each_for_itself() {
    each(|mut clients| {
        clients.ask(9, "XGROUP CREATE s g $ MKSTREAM; XADD s 1-1 a 1");
        let one = "*1|*2|$1|s|*1|*2|$3|1-1|*2|$1|a|$1|1|";
        assert_eq!(clients.ask(1, "XREAD BLOCK 0 STREAMS s 0"), one);
        assert_eq!(clients.ask(1, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), one);
        // The first waits for a higher id than comes, the second for what comes behind the last one now.
        assert_eq!(clients.ask(1, "XREAD BLOCK 5000 STREAMS s 9-9"), "");
        assert_eq!(clients.ask(2, "XREAD BLOCK 0 STREAMS s $; ECHO 2"), "");
        assert_eq!(clients.ask(3, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >; ECHO 3"), "");
        assert_eq!(clients.ask(4, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >; ECHO 4"), "");
        let two = "*1|*2|$1|s|*1|*2|$3|1-2|*2|$1|a|$1|2|";
        let answers = clients.ask(9, "XADD s 1-2 a 2");
        assert_eq!(answers.matches(two).count(), 2, "{answers}");
        let has_gone_on = |number: u8| answers.contains(&format!("{two}$1|{number}|"));
        assert!(has_gone_on(2) && has_gone_on(3) && !has_gone_on(4), "{answers}");
        let answers = clients.ask(9, "XGROUP DESTROY s g");
        assert!(answers.contains("-NOGROUP ") && answers.contains("$1|4|"), "{answers}");
        assert_eq!(clients.pass_ms(6_000), "*-1|");
        assert_eq!(clients.ask(1, "MULTI; XREAD BLOCK 0 STREAMS s $; EXEC"), "+OK|+QUEUED|*1|*-1|");
    });
}

/// Executions of reads, each of which has found a stream.
fn hits(clients: &mut Clients) -> u64 {
    let info = clients.ask(99, "INFO stats");
    let line = info.split('|').find_map(|line| line.strip_prefix("keyspace_hits:"));
    line.and_then(|hits| hits.parse().ok()).expect("a figure")
}

#[test]
fn readers_of_a_stream_that_have_read_all_are_not_executed_again() {
    each(|mut clients| {
        clients.ask(98, "XGROUP CREATE s g 0 MKSTREAM; XADD s 1-1 a 1; XREADGROUP GROUP g c STREAMS s >");
        for reader in 1..=20 {
            assert_eq!(clients.ask(reader, "XREAD BLOCK 0 STREAMS s $"), "");
            assert_eq!(clients.ask(20 + reader, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), "");
        }
        let before = hits(&mut clients);
        clients.ask(50, "XREAD BLOCK 0 STREAMS s $");
        clients.ask(51, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
        clients.pass_ms(1_000);
        let after = hits(&mut clients);
        assert!(after - before <= 4, "{before} {after}");
        let answers = clients.ask(98, "XADD s 1-2 a 2");
        assert_eq!(answers.matches("$3|1-2|*2|$1|a|$1|2|").count(), 22, "each reader, and one of the group");
    });
}

#[test]
fn what_is_pushed_in_a_transaction_or_a_script_wakes() {
    each(|mut clients| {
        clients.ask(1, "BLPOP q 0");
        clients.ask(2, "BZPOPMAX z 0");
        let answers = clients.ask(9, "MULTI; RPUSH q a; LPUSH q b; ZADD z 1 m; EXEC");
        assert!(answers.contains("*2|$1|q|$1|b|") && answers.contains("*3|$1|z|$1|m|$1|1|"), "{answers}");
        clients.ask(1, "BRPOP s 0");
        let args = ["EVAL", "return redis.call('RPUSH', KEYS[1], 'x')", "1", "s"];
        let args: Args = args.map(|word| Bytes::copy_from_slice(word.as_bytes())).to_vec();
        clients.0.give(Input::ClientCommands { session: SessionId(9), commands: vec![args] });
        clients.0.give(Input::TurnEnd);
        let answers = clients.answers();
        assert!(answers.contains("*2|$1|s|$1|x|") && answers.contains(":1|"), "{answers}");
    });
}

#[test]
fn nobody_waits_in_a_transaction() {
    each(|mut clients| {
        let answers = clients.ask(1, "MULTI; BLPOP q 0; BLMOVE q r LEFT LEFT 0; BZMPOP 0 1 z MIN; EXEC");
        assert_eq!(answers, "+OK|+QUEUED|+QUEUED|+QUEUED|*3|*-1|$-1|*-1|");
    });
}

#[test]
fn a_move_feeds_whoever_waits_at_its_target() {
    each(|mut clients| {
        clients.ask(1, "BLPOP b 0");
        clients.ask(2, "BLMOVE a b LEFT RIGHT 0");
        let answers = clients.ask(9, "RPUSH a x");
        assert!(answers.contains("$1|x|") && answers.contains("*2|$1|b|$1|x|"), "{answers}");
        assert_eq!(clients.ask(9, "EXISTS a b"), ":0|");
    });
}

#[test]
fn another_kind_of_value_wakes_nobody() {
    each(|mut clients| {
        clients.ask(1, "BZPOPMIN k 0");
        clients.ask(2, "BLPOP k 0");
        assert_eq!(clients.ask(9, "SET k v; DEL k"), "+OK|:1|");
        assert_eq!(clients.ask(9, "RPUSH k a").replace(":1|", ""), "*2|$1|k|$1|a|");
        assert_eq!(clients.ask(9, "ZADD k 1 m").replace(":1|", ""), "*3|$1|k|$1|m|$1|1|");
        clients.ask(9, "SET k v");
        assert!(clients.ask(1, "BLPOP k 0").starts_with("-WRONGTYPE "));
    });
}

#[test]
fn a_wait_that_is_over_is_answered_with_nothing() {
    each(|mut clients| {
        assert_eq!(clients.ask(1, "BLPOP q 0.05; PING"), "");
        assert_eq!(clients.ask(2, "BLMOVE q r LEFT LEFT 0.1"), "");
        assert_eq!(clients.pass_ms(50), "*-1|+PONG|");
        assert_eq!(clients.pass_ms(50), "*-1|");
        assert_eq!(clients.ask(9, "RPUSH q a; LLEN q"), ":1|:1|");
        for (timeout, words) in
            [("x", "is not a float or out of range"), ("-1", "is negative"), ("inf", "is out of range")]
        {
            assert_eq!(clients.ask(1, &format!("BLPOP q {timeout}")), format!("-ERR timeout {words}|"));
        }
    });
}

#[test]
fn nothing_is_lost_with_a_client_that_waited() {
    each(|mut clients| {
        clients.ask(1, "BLPOP q 0");
        clients.ask(2, "BLPOP q 0");
        clients.leave(1);
        assert_eq!(clients.ask(9, "RPUSH q a").replace(":1|", ""), "*2|$1|q|$1|a|");
        clients.ask(2, "BLPOP q 0");
        clients.leave(2);
        assert_eq!(clients.ask(9, "RPUSH q b; LRANGE q 0 -1"), ":1|*1|$1|b|");
    });
}

#[test]
fn a_pop_that_is_withdrawn_before_it_waits_never_does() {
    let core = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
    let request =
        |session, sequence| RequestId { session: SessionId(session), sequence, ..RequestId::default() };
    let mut pops = WaitingPops::default();
    pops.withdraw(core, request(1, 5));
    assert!(!pops.is_withdrawn(core, request(2, 4)), "of another session");
    assert!(pops.is_withdrawn(core, request(1, 4)));
    assert!(!pops.is_withdrawn(core, request(1, 4)), "it is over");
    pops.withdraw(core, request(1, 5));
    assert!(!pops.is_withdrawn(core, request(1, 6)), "the next one waits");
    pops.withdraw(core, request(1, 9));
    pops.forget_withdrawn_of(core);
    assert!(!pops.is_withdrawn(core, request(1, 8)));
}

#[test]
fn an_element_from_another_datacenter_wakes() {
    for protocol in ["eiger", "eventual", "cure", "pocc", "ha-pocc"] {
        let mut clients = Clients::new(protocol);
        clients.ask(1, "BLPOP x 0");
        let stamp = Stamp { time: LogicalTime(7), datacenter: DatacenterId(1), partition: PartitionId(0) };
        let name = element::name_between(None, None, Author { stamp, number: 1 }).expect("there is room");
        receive_columns(&mut clients.0, Position(1), &[(Column::Element(name), b"far")]);
        let mut answers = clients.answers();
        // Where sessions read it later, the pop has it then, and nobody before.
        for _ in 0..100 {
            if !answers.is_empty() {
                break;
            }
            let answer = clients.ask(9, "LLEN x");
            answers += answer.strip_suffix(":0|").expect("nobody sees it before");
            answers += &clients.pass_ms(10);
        }
        assert_eq!(answers, "*2|$1|x|$3|far|", "{protocol}");
        assert_eq!(clients.ask(9, "LLEN x"), ":0|", "{protocol}");
    }
}

#[test]
fn a_flush_ends_the_wait_for_a_group_of_a_stream() {
    each(|mut clients| {
        assert_eq!(clients.ask(9, "XGROUP CREATE s g $ MKSTREAM"), "+OK|");
        assert_eq!(clients.ask(1, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), "");
        let answers = clients.ask(9, "FLUSHALL");
        assert!(answers.contains("-NOGROUP "), "{answers}");
    });
}

#[test]
fn who_waits_where_the_partition_stops_is_told() {
    each(|mut clients| {
        assert_eq!(clients.ask(1, "BLPOP q 0"), "");
        assert_eq!(clients.ask(2, "XREAD BLOCK 0 STREAMS s $"), "");
        let (op, file, full) = ("sync", Some(ensue_store::disk::FileName::Segment(0)), false);
        let done = ensue_store::disk::DiskDone::Failed { op, file, full, reason: "no disk".into() };
        clients.0.give(Input::Disk { partition: PartitionId(0), done });
        clients.0.give(Input::TurnEnd);
        let answers = clients.answers();
        assert_eq!(answers.matches("-STOPPED partition p0 has stopped").count(), 2, "{answers}");
    });
}
