//! Hand-made graphs and the lanes that they are given: `lane | from>to …` a row.

use super::super::state::tests::states;
use super::*;

fn check(graph: &str, expected: &[&str]) {
    let states = states(graph);
    let rows = Layout::of(&states).rows.iter().map(described).collect::<Vec<_>>();
    assert_eq!(rows, expected, "{graph}");
}

fn described(row: &Row) -> String {
    let mut strands: Vec<(usize, usize)> =
        row.strands.iter().map(|strand| (strand.from, strand.to)).collect();
    strands.sort_unstable();
    let strands: Vec<String> = strands.iter().map(|(from, to)| format!("{from}>{to}")).collect();
    format!("{} | {}", row.lane, strands.join(" ")).trim_end().into()
}

#[test]
fn a_line_stays_in_one_lane() {
    check("2.0: 1.0\n 1.0: 0.0\n 0.0:", &["0 | 0>0", "0 | 0>0", "0 |"]);
}

#[test]
fn a_fork_joins_at_once_above_its_fork_point() {
    check("3.1: 1.0\n 2.0: 1.0\n 1.0: 0.0\n 0.0:", &["0 | 0>0", "1 | 0>0 1>0", "0 | 0>0", "0 |"]);
}

#[test]
fn a_merge_opens_a_lane_for_its_second_parent() {
    check(
        "4.0: 3.0 3.1\n 3.1: 2.0\n 3.0: 2.0\n 2.0:",
        // Its own lane goes on to the first parent that it names.
        &["0 | 0>0 0>1", "1 | 0>0 1>1", "0 | 0>0 1>0", "0 |"],
    );
}

#[test]
fn a_criss_cross_needs_three_lanes() {
    check(
        "3.1: 2.0 2.1\n 3.0: 2.0 2.1\n 2.1: 1.0\n 2.0: 1.0\n 1.0:",
        &["0 | 0>0 0>1", "2 | 0>0 1>1 2>0 2>1", "1 | 0>0 1>1", "0 | 0>0 1>0", "0 |"],
    );
}

#[test]
fn three_leaves_of_one_state() {
    check(
        "2.2: 1.0\n 2.1: 1.0\n 2.0: 1.0\n 1.0:",
        // The second joins before the third begins, so two lanes are enough.
        &["0 | 0>0", "1 | 0>0 1>0", "1 | 0>0 1>0", "0 |"],
    );
}

#[test]
fn three_branches_side_by_side() {
    check(
        "3.2: 2.2\n 3.1: 2.1\n 3.0: 2.0\n 2.2: 1.0\n 2.1: 1.0\n 2.0: 1.0\n 1.0:",
        &[
            "0 | 0>0",
            "1 | 0>0 1>1",
            "2 | 0>0 1>1 2>2",
            "0 | 0>0 1>1 2>2",
            // The second joins the first, and the third closes the gap.
            "1 | 0>0 1>0 2>1",
            "1 | 0>0 1>0",
            "0 |",
        ],
    );
}

#[test]
fn a_lane_is_pulled_to_the_left_and_the_next_leaf_begins_beside_it() {
    check(
        "6.0: 5.0\n 5.1: 2.0\n 5.0: 2.0\n 4.2: 2.0\n 2.0:",
        &["0 | 0>0", "1 | 0>0 1>1", "0 | 0>0 1>0", "1 | 0>0 1>0", "0 |"],
    );
}

#[test]
fn the_topmost_of_what_was_collected_has_no_parents() {
    check("9.1: 7.0\n 8.0: 7.0\n 7.0:", &["0 | 0>0", "1 | 0>0 1>0", "0 |"]);
}

#[test]
fn what_is_not_shown_is_waited_for_to_the_end() {
    check("9.1: 7.0\n 8.0: 6.1", &["0 | 0>0", "1 | 0>0 1>1"]);
}

#[test]
fn each_lane_has_its_colour_and_a_line_keeps_it() {
    let layout = Layout::of(&states("4.0: 3.0 3.1\n 3.1: 2.0\n 3.0: 2.0\n 2.0:"));
    assert_eq!(layout.rows.iter().map(|row| row.colour).collect::<Vec<_>>(), [0, 1, 0, 0]);
    assert_eq!(layout.width(), 2);
    // Above the fork point, the first line goes on and the second one ends.
    let joining: Vec<(usize, usize)> =
        layout.rows[2].strands.iter().map(|strand| (strand.from, strand.colour)).collect();
    assert_eq!(joining, [(1, 1), (0, 0)]);
}
