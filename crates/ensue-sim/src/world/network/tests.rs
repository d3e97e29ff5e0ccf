//! Order, loss by prefix, and the order of the news about a connection.

use super::{Break, EndNews, Network};
use crate::world::options::LinkOptions;
use crate::world::shape::{Shape, Site};

const A: Site = Site(0);
const B: Site = Site(1);

fn network(seed: u64) -> Network {
    let shape = Shape { replicas: 1, datacenters: 2, cores: 1, partitions: 1, one_process: false };
    let options = LinkOptions {
        local_us: (5, 9),
        delay_us: vec![vec![0, 10_000], vec![10_000, 0]],
        jitter_us: 3_000,
        tail: 0,
    };
    Network::new(shape, options, seed)
}

/// Connects the two, and both have heard of it.
fn connect(network: &mut Network, now: u64) -> Vec<EndNews> {
    let news = network.connect(now, A, B).unwrap();
    for one in &news {
        assert_eq!(network.news(one.site, one.peer, true, one.epoch), [true]);
    }
    news
}

#[test]
fn messages_keep_their_order() {
    let mut network = network(1);
    assert_eq!(network.send(0, A, B), None);
    connect(&mut network, 1);
    let mut last = 0;
    for now in 2..500 {
        let (at, epoch) = network.send(now, A, B).unwrap();
        assert!(at >= last && at >= now + 10_000);
        assert!(network.receives(at, A, B, epoch));
        last = at;
    }
}

#[test]
fn a_break_delivers_a_prefix_then_tells_both_ends() {
    for seed in 0..200 {
        let mut network = network(seed);
        connect(&mut network, 1);
        let sent: Vec<_> = (2..40).map(|i| network.send(i * 500, A, B).unwrap()).collect();
        let news = network.sever(20_000, A, B, Break::Silent);
        assert_eq!(news.len(), 2);
        assert_eq!(network.send(20_001, A, B), None);
        let down_at_b = news.iter().find(|n| n.site == B).unwrap().at;
        let mut lost = false;
        for (at, epoch) in sent {
            let arrives = network.receives(at, A, B, epoch);
            if at > 20_000 {
                assert!(!(lost && arrives), "not a prefix");
                assert!(!arrives || at < down_at_b, "a message after the news");
                lost |= !arrives;
            }
        }
        let dialler_knows = news.iter().find(|n| n.site == A).unwrap().at;
        let again = network.connect(20_002, A, B).unwrap_err().unwrap();
        assert!(again > dialler_knows, "dialled before the dialler saw it go");
        assert!(network.connect(again, A, B).is_ok());
    }
}

#[test]
fn an_end_that_missed_the_break_hears_of_it_with_the_next_connection() {
    let mut network = network(1);
    connect(&mut network, 1);
    let first = network.sever(20_000, A, B, Break::Silent);
    assert_eq!(network.news(A, B, false, first[0].epoch), [false]);
    let again = network.connect(20_002, A, B).unwrap_err().unwrap();
    let second = network.connect(again, A, B).unwrap();
    assert_eq!(network.send(again, B, A), None, "still the earlier connection, as far as this end knows");
    assert_eq!(network.news(B, A, true, second[1].epoch), [false, true]);
    assert!(network.send(again, B, A).is_some());
    let late: [bool; 0] = [];
    assert_eq!(network.news(B, A, false, first[1].epoch), late, "news of a life that is long over");
}

#[test]
fn a_mute_direction_delays_and_keeps_the_order() {
    let mut network = network(1);
    connect(&mut network, 1);
    let (before, _) = network.send(1_000, A, B).unwrap();
    network.mute(A, B, before + 50_000);
    assert_eq!(network.held_until(before, A, B), Some(before + 50_000));
    assert_eq!(network.held_until(before, B, A), None);
    let (after, _) = network.send(before + 1, A, B).unwrap();
    assert!(after > before + 50_000);
    assert_eq!(network.held_until(after, A, B), None);
}

#[test]
fn a_message_never_overtakes_the_news_that_its_connection_is_up() {
    for seed in 0..100 {
        let mut network = network(seed);
        let news = connect(&mut network, 1);
        let (at, _) = network.send(1, A, B).unwrap();
        assert!(at >= news[1].at);
    }
}

#[test]
fn a_block_holds_until_it_is_lifted() {
    let mut network = network(1);
    network.block(A, B, true);
    network.block(A, B, true);
    assert_eq!(network.connect(5, A, B), Err(None));
    assert!(!network.block(A, B, false));
    assert!(network.block(A, B, false));
    assert!(network.connect(5, A, B).is_ok());
}
