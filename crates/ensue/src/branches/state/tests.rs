//! Tests of what is read from an answer, and of what is refused.

use super::*;

fn bulk(text: &str) -> Reply {
    Reply::bulk(text.as_bytes().to_vec())
}

fn list(words: &[&str]) -> Reply {
    Reply::Array(words.iter().map(|word| bulk(word)).collect())
}

fn line(id: &str, parents: &[&str], keys: &[&str], flags: &[&str]) -> Reply {
    Reply::Array(vec![bulk(id), list(parents), list(keys), list(flags)])
}

/// States of a hand-made graph: `4.0: 3.0 2.1` a line, newest first; who is nobody's parent is a leaf.
pub(in super::super) fn states(lines: &str) -> Vec<State> {
    let mut states: Vec<State> = Vec::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (id, parents) = line.split_once(':').expect("an id, a colon, its parents");
        let id: StateId = id.parse().expect("an id");
        let parents = parents.split_whitespace().map(|parent| parent.parse().expect("an id")).collect();
        let is_leaf = states.iter().all(|state| !state.parents.contains(&id));
        let flags = if is_leaf { vec!["leaf".into()] } else { Vec::new() };
        states.push(State { id, parents, keys: vec!["k".into()], flags });
    }
    states
}

#[test]
fn an_answer_is_read() {
    let reply = Reply::Array(vec![
        line("12.0.2", &["9.1", "9.0", "9.1"], &["page", "a\nb"], &["leaf", "merge"]),
        line("9.1", &[], &[], &[]),
    ]);
    let states = read_log(&reply).expect("it is a log");
    assert_eq!(states[0].id.to_string(), "12.0.2");
    assert_eq!(states[0].id.site_name(), "dc1");
    assert_eq!(states[0].parents.iter().map(StateId::to_string).collect::<Vec<_>>(), ["9.1", "9.0"]);
    assert_eq!(states[0].keys, ["page", "a\\nb"]);
    assert!(states[0].is_leaf() && states[0].has("merge") && !states[1].is_leaf());
}

#[test]
fn ids_are_ordered_by_counter_then_incarnation_then_site() {
    let ids: Vec<StateId> =
        ["2.1", "3.0", "3.1", "3.0.1"].map(|text| text.parse().expect("an id")).into_iter().collect();
    assert!(ids.is_sorted(), "{ids:?}");
}

#[test]
fn what_is_no_log_is_refused_and_named() {
    let one = |state| read_log(&Reply::Array(vec![state])).expect_err("it is refused").to_string();
    let refused = Reply::Error("NOBRANCHES keyspace 0 has no branches".into());
    assert_eq!(read_log(&refused), Err(LogError::Refused("NOBRANCHES keyspace 0 has no branches".into())));
    assert!(matches!(read_log(&Reply::OK), Err(LogError::NotALog(_))));
    assert!(matches!(read_log(&Reply::Array(vec![list(&["1.0"])])), Err(LogError::NotALog(_))));
    for id in ["12", "12.0.0.0", "x.0", "1.256", ""] {
        assert!(one(line(id, &[], &[], &[])).contains("is no id"), "{id}");
    }
    assert!(one(line("3.0", &["3.0"], &[], &[])).contains("which is not lower"));
    let rising = Reply::Array(vec![line("3.0", &[], &[], &[]), line("4.0", &[], &[], &[])]);
    assert!(matches!(read_log(&rising), Err(LogError::OutOfOrder { .. })));
}
