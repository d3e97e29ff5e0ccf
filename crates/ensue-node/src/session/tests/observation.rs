//! What whoever watches a node is shown, who is no client of it.

use super::*;
use crate::observation::Scope;

const WATCHER: SessionId = SessionId(77);

/// A link to datacenter 1 of which half is up, and one that is.
const HALF: &str = "1\t2\t1\t1\t7\tno way\n";
const UP: &str = "1\t2\t2\t0\t7\t\n";

/// Answers every question that was asked, in turn with these figures, and what cores say of a link; says how many
/// there were.
fn answer_all(world: &mut World, link: &'static str, metrics: &[&[(&str, i64)]]) -> usize {
    let mut asked = 0;
    while let Some(envelope) = world.sent.pop_front() {
        let figures = metrics[asked % metrics.len()];
        let metrics = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let message = match envelope.message {
            Message::MetricsQuery { request } => Message::MetricsAnswer { request, metrics },
            Message::CoreQuery { request, .. } => Message::CoreAnswer { request, text: link.into(), metrics },
            ref other => panic!("{other:?}"),
        };
        world.answer(&envelope, 1, message);
        asked += 1;
    }
    asked
}

#[test]
fn figures_are_added_up_but_for_those_of_which_the_largest_counts() {
    let mut world = World::new();
    world.sessions.on_observe(world.now, WATCHER, Scope::Datacenter);
    world.drain();
    let asked = answer_all(
        &mut world,
        HALF,
        &[
            &[("log_bytes", 10), ("lag_dc2_ms_max", 3), ("ahead_dc2_ms_max", -20), ("errorstat_x_max", 1)],
            &[("log_bytes", 1), ("lag_dc2_ms_max", 5), ("ahead_dc2_ms_max", -30), ("errorstat_x_max", 1)],
        ],
    );
    assert_eq!(asked, 6, "two cores and four partitions");
    let [(watcher, observation)] = &world.observed[..] else { panic!("{:?}", world.observed) };
    assert_eq!(*watcher, WATCHER);
    let names = ["log_bytes", "lag_dc2_ms_max", "ahead_dc2_ms_max", "errorstat_x_max", "silent_peers"];
    assert_eq!(names.map(|name| observation.metric(name)), [33, 5, -20, 6, 0]);
    let link = &observation.links[0];
    assert_eq!((link.datacenter.as_str(), link.links, link.up, link.refused), ("dc2", 4, 2, 2));
    assert_eq!(observation.not_serving, Vec::<String>::new());
    assert_eq!(observation.not_ready, ["the link to dc2 is partial: no way"]);
}

#[test]
fn of_one_node_only_its_cores_and_their_partitions_are_asked() {
    let mut world = World::new();
    world.sessions.on_observe(world.now, WATCHER, Scope::Node);
    world.drain();
    let owners = world.sent.iter().map(|envelope| envelope.to).collect::<Vec<_>>();
    let datacenter = DatacenterId(0);
    let partition = |number| Address::Partition { datacenter, partition: PartitionId(number) };
    assert_eq!(owners, [Address::Core { datacenter, core: CoreId(0) }, partition(0), partition(1)]);
    answer_all(&mut world, UP, &[&[], &[("linked_dc2", 1)]]);
    assert_eq!(world.observed[0].1.not_ready, ["not every partition replicates to dc2 yet"]);

    world.sessions.on_observe(world.now, WATCHER, Scope::Node);
    world.drain();
    answer_all(&mut world, UP, &[&[], &[("linked_dc2", 1)], &[("linked_dc2", 1)]]);
    assert_eq!(world.observed[1].1.not_ready, Vec::<String>::new());
}

#[test]
fn who_watches_is_no_client_needs_no_password_and_leaves_nothing_behind() {
    let mut world = World::with(NodeConfig { users: users_with_password("secret"), ..config() });
    for number in 0..3 {
        world.sessions.on_observe(world.now, SessionId(100 + number), Scope::Node);
        world.drain();
        answer_all(&mut world, UP, &[&[]]);
    }
    assert_eq!(world.observed.len(), 3);
    assert_eq!(world.sessions.sessions.len(), 1, "that of the client");
    assert_eq!(world.sessions.core.clients(), 1);
    assert_eq!(world.bytes, "");
}

#[test]
fn who_is_silent_is_counted_and_keeps_nobody_waiting() {
    let mut world = World::new();
    world.sessions.on_observe(world.now, WATCHER, Scope::Datacenter);
    world.drain();
    world.sent.truncate(4);
    answer_all(&mut world, UP, &[&[("log_bytes", 1)]]);
    assert_eq!(world.observed, []);
    world.now.monotonic_us += 1_000 * limits::REQUEST_TIMEOUT_MS;
    world.sessions.on_timer(world.now);
    world.drain();
    let observation = &world.observed[0].1;
    assert_eq!((observation.metric("log_bytes"), observation.metric("silent_peers")), (4, 2));
    assert_eq!(observation.not_serving, ["2 cores and partitions do not answer"]);
    assert_eq!(world.sessions.sessions.len(), 1);
}
