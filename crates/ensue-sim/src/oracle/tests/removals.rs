//! When a removal explains what was read.

use super::*;

#[test]
fn a_delete_that_is_sent_later_explains_no_empty_answer() {
    let mut m = Maker::default();
    let [a, b, c] = m.sessions();
    m.write(a, &["x"]);
    m.delete(a, "x");
    m.write(b, &["x"]);
    m.read(b, &[("x", None)]);
    assert_eq!(m.judge(), Some(property::STALE), "what was written after a delete does not end by it");
    m.delete(c, "x");
    assert_eq!(m.judge(), Some(property::STALE), "another one was sent after the answer");
    m.read(b, &[("x", None)]);
    m.history.operations[3].reads.clear();
    assert_eq!(m.judge(), None);
}

#[test]
fn a_delete_that_is_sent_later_brings_nothing_back() {
    for later in [true, false] {
        let mut m = Maker::default();
        let [a, b, c, d, e] = m.sessions();
        let (v, w) = (m.write(a, &["x"]), m.write(b, &["x"]));
        m.read(c, &[("x", Some(v))]);
        m.read(d, &[("x", Some(w))]);
        m.read(e, &[("x", Some(w))]);
        if !later {
            m.delete(e, "x");
        }
        m.read(c, &[("x", Some(w))]);
        m.read(d, &[("x", Some(v))]);
        if later {
            m.delete(e, "x");
        }
        assert_eq!(m.judge(), later.then_some(property::ORDER));
    }
}

#[test]
fn without_causality_a_value_does_not_end_by_what_was_answered_before_it() {
    for before in [true, false] {
        let mut m = Maker::default();
        m.history.promises = Promises::CONVERGENCE;
        let [a, b] = m.sessions();
        m.write(a, &["x"]);
        if before {
            m.delete(a, "x");
        }
        let v = m.write(b, &["x"]);
        m.read(b, &[("x", Some(v))]);
        if !before {
            m.delete(a, "x");
        }
        m.read(b, &[("x", None)]);
        assert_eq!(m.judge(), before.then_some(property::WENT_BACK));
    }
}

#[test]
fn something_is_found_only_where_something_may_be() {
    let mut m = Maker::default();
    let [a] = m.sessions();
    m.delete(a, "x");
    assert_eq!(m.judge(), Some(property::THIN_AIR), "nobody had written there");
    let mut m = Maker::default();
    let [c, d] = m.sessions();
    m.write(c, &["x"]);
    m.delete(c, "x");
    assert_eq!(m.judge(), None);
    let w = m.write(d, &["x"]);
    m.delete(c, "x");
    assert_eq!(m.judge(), None, "it may be the other one's");
    m.history.operations[w].outcome = Outcome::Refused;
    assert_eq!(m.judge(), Some(property::STALE), "what was deleted came back");
    m.history.promises = Promises::CONVERGENCE;
    assert_eq!(m.judge(), None, "no session knows that its deletes were seen");
    m.history.operations.iter_mut().for_each(|operation| operation.recent = true);
    assert_eq!(m.judge(), Some(property::HIDDEN), "but its datacenter does");
}
