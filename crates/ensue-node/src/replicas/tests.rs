//! Which replicas are counted as what, and when a group is said to lack some.

use super::*;
use ensue_replica::MemberReport;

const HEARD: (bool, bool) = (true, true);
const SILENT: (bool, bool) = (true, false);
const LEARNS: (bool, bool) = (false, true);

/// A group whose members have votes and are heard, or not; each lacks five entries less than the one after it.
fn group(members: &[(bool, bool)]) -> Report {
    let member = |(node, (votes, is_heard)): (usize, &(bool, bool))| MemberReport {
        node: node as u16,
        votes: *votes,
        is_heard: *is_heard,
        has: 100 - 5 * node as u64,
    };
    let members = members.iter().enumerate().map(member).collect();
    Report { leader: 0, term: 1, committed: 100, changes: false, members }
}

#[track_caller]
fn check(wanted: usize, members: &[(bool, bool)], expected: [i64; 3]) {
    let mut figures = ReplicaFigures::default();
    figures.add(Role::Leader, Some(&group(members)), wanted);
    let names = ["replica_votes_missing", "replica_fragile_partitions", "replica_lag_entries_max"];
    let metrics = figures.metrics();
    let found = names.map(|name| metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value));
    assert_eq!(found, expected.map(Some), "{members:?}");
}

#[test]
fn a_group_lacks_the_votes_that_are_silent_or_not_given() {
    check(3, &[HEARD, HEARD, HEARD], [0, 0, 10]);
    check(3, &[HEARD, HEARD, SILENT], [1, 1, 5]);
    check(3, &[HEARD, HEARD, LEARNS], [1, 1, 10]);
    // One moves: a learner beside three, then both have votes while the members change.
    check(3, &[HEARD, HEARD, HEARD, LEARNS], [0, 0, 15]);
    check(3, &[HEARD, HEARD, HEARD, HEARD], [0, 0, 15]);
    // Five can lose two, so one that is silent is no danger yet.
    check(5, &[HEARD, HEARD, HEARD, HEARD, SILENT], [1, 0, 15]);
    check(5, &[HEARD, HEARD, HEARD, SILENT, SILENT], [2, 1, 10]);
}

#[test]
fn replicas_are_counted_by_their_roles_and_only_leaders_speak_of_their_groups() {
    let mut figures = ReplicaFigures::default();
    for role in [Role::Leader, Role::Follower, Role::Follower, Role::Leaderless, Role::Stopped] {
        figures.add(role, None, 3);
    }
    let metrics = figures.metrics();
    let counted: Vec<_> = metrics.iter().filter(|(_, value)| *value > 0).collect();
    let expected = [("follower", 2), ("leader", 1), ("leaderless", 1), ("stopped", 1)]
        .map(|(role, count)| (format!("replica_{role}_partitions"), count));
    let mut counted: Vec<_> = counted.into_iter().cloned().collect();
    counted.sort();
    assert_eq!(counted, expected);
    // All are told, with 0 too, so that an alert on one of them is over when it is over.
    assert_eq!(metrics.len(), ROLES.len() + 3);
}
