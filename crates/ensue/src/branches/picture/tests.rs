//! What must be in the picture, whatever it looks like.

use super::super::state::tests::states;
use super::*;

fn drawn(states: &[State]) -> String {
    svg("here <1>", "all of them", states, &Layout::of(states))
}

#[test]
fn each_state_is_a_circle_in_the_colour_of_its_site_and_has_its_id() {
    let states = states("4.0: 3.0 3.1\n 3.1: 2.0\n 3.0: 2.0\n 2.0:");
    let svg = drawn(&states);
    // One more for the legend.
    let circles = |site: usize| svg.matches(&format!(r#"fill="{}""#, SITES[site])).count();
    assert_eq!((circles(0), circles(1)), (4, 2), "{svg}");
    for state in &states {
        assert!(svg.contains(&format!(">{}  ", state.id)), "{svg}");
    }
    // Four edges, and the through line beside the second state.
    assert_eq!(svg.matches("class=\"strand\"").count(), 6, "{svg}");
    assert!(svg.contains(">dc1<") && svg.contains(">dc2<") && !svg.contains(">dc3<"), "{svg}");
}

#[test]
fn leaves_and_ceilings_are_marked_and_text_is_escaped() {
    let mut states = states("2.0: 1.0\n 1.0:");
    states[1].flags.push("ceiling".into());
    states[1].keys = vec!["a&b".into()];
    let svg = drawn(&states);
    assert_eq!(svg.matches("class=\"leaf\"").count(), 2, "one state and the legend: {svg}");
    assert_eq!(svg.matches("class=\"ceiling\"").count(), 2, "one state and the legend: {svg}");
    assert!(svg.contains("a&amp;b") && svg.contains("here &lt;1&gt;"), "{svg}");
}

#[test]
fn lines_to_states_that_are_not_shown_are_dotted() {
    let svg = drawn(&states("9.1: 7.0\n 8.0: 6.1"));
    assert_eq!(svg.matches("strand further").count(), 2, "{svg}");
    assert!(svg.contains("older states are not shown"), "{svg}");
}

#[test]
fn no_states_are_a_picture_too() {
    assert!(drawn(&[]).ends_with("</svg>\n"));
}
