//! The same hand-made graphs as text.

use super::super::state::tests::states;
use super::*;

fn check(graph_of: &str, expected: &str) {
    let states = states(graph_of);
    let drawn = graph(&states, &Layout::of(&states), 80, Paint::off());
    let lines = |text: &str| text.lines().map(|line| line.trim_end().to_string()).collect::<Vec<_>>();
    // The expected text stands between bars, so that its left edge can be seen.
    let expected: Vec<String> =
        expected.lines().filter_map(|line| Some(line.split_once('!')?.1.trim_end().to_string())).collect();
    assert_eq!(lines(&drawn), expected, "\n{drawn}");
}

#[test]
fn a_line() {
    check(
        "2.0: 1.0\n 1.0: 0.0\n 0.0:",
        "!* 2.0 dc1 (leaf) k
         !* 1.0 dc1 k
         !* 0.0 root k",
    );
}

#[test]
fn a_fork_and_a_merge() {
    check(
        "4.0: 3.0 3.1\n 3.1: 2.0\n 3.0: 2.0\n 2.0:",
        "!* 4.0 dc1 (leaf) k
         !|\\
         !| * 3.1 dc2 k
         !* | 3.0 dc1 k
         !|/
         !* 2.0 dc1 k",
    );
}

#[test]
fn a_criss_cross() {
    check(
        "3.1: 2.0 2.1\n 3.0: 2.0 2.1\n 2.1: 1.0\n 2.0: 1.0\n 1.0:",
        "!* 3.1 dc2 (leaf) k
         !|\\
         !| | * 3.0 dc1 (leaf) k
         !| |/|
         !|/|/
         !| * 2.1 dc2 k
         !* | 2.0 dc1 k
         !|/
         !* 1.0 dc1 k",
    );
}

#[test]
fn three_branches_and_a_merge_of_them() {
    check(
        "4.0: 3.0 3.1 3.2\n 3.2: 2.2\n 3.1: 1.0\n 3.0: 1.0\n 2.2: 1.0\n 1.0:",
        "!* 4.0 dc1 (leaf) k
         !|\\_
         !| |\\
         !| | * 3.2 dc3 k
         !| * | 3.1 dc2 k
         !* | | 3.0 dc1 k
         !|/ /
         !| * 2.2 dc3 k
         !|/
         !* 1.0 dc1 k",
    );
}

#[test]
fn a_far_lane_passes_below_those_between() {
    check(
        "5.2: 1.0\n 5.1: 4.1\n 5.0: 4.0\n 4.3: 1.0\n 4.1: 1.0\n 4.0: 1.0\n 1.0:",
        "!* 5.2 dc3 (leaf) k
         !| * 5.1 dc2 (leaf) k
         !| | * 5.0 dc1 (leaf) k
         !| | | * 4.3 dc4 (leaf) k
         !| |_|/
         !|/| |
         !| * | 4.1 dc2 k
         !|/ /
         !| * 4.0 dc1 k
         !|/
         !* 1.0 dc1 k",
    );
}

#[test]
fn where_the_list_ends_the_lines_go_on() {
    check(
        "9.1: 7.0\n 8.0: 6.1",
        "!* 9.1 dc2 (leaf) k
         !| * 8.0 dc1 (leaf) k
         !: : older states are not shown",
    );
}

#[test]
fn keys_are_shortened_to_the_room() {
    let keys: Vec<String> = ["alpha", "beta", "gamma"].map(String::from).into();
    assert_eq!(shortened(&keys, 16), "alpha beta gamma");
    assert_eq!(shortened(&keys, 15), "alpha beta +1");
    assert_eq!(shortened(&keys, 12), "alpha +2");
    assert_eq!(shortened(&keys, 7), "+3");
    assert_eq!(shortened(&keys, 1), "");
    assert_eq!(shortened(&[], 10), "");
}

#[test]
fn no_line_is_wider_than_the_screen() {
    let mut wide = states("3.1: 1.0\n 2.0: 1.0\n 1.0:");
    for state in &mut wide {
        state.keys = (0..40).map(|number| format!("key:{number}")).collect();
    }
    let drawn = graph(&wide, &Layout::of(&wide), 40, Paint::off());
    assert!(drawn.lines().all(|line| line.chars().count() <= 40), "{drawn}");
    assert!(drawn.contains("key:0") && drawn.contains('+'), "{drawn}");
}
