//! What a sum says of the pasts of its additions.

use super::*;

#[test]
fn a_sum_in_a_snapshot_has_the_past_of_its_additions() {
    for snapshot in [true, false] {
        let mut m = Maker::default();
        let [a, b] = m.sessions();
        m.write(a, &["x"]);
        m.add(a, 0, 1);
        let torn = m.operation(b, &[("x", Seen::Nothing), ("c", Seen::Bits(1))], &[]);
        m.history.operations[torn].snapshot = snapshot;
        assert_eq!(m.judge(), snapshot.then_some(property::SNAPSHOT), "each by itself may come before");
    }
}

#[test]
fn a_sum_in_a_snapshot_tells_of_the_order_of_values() {
    let mut m = Maker::default();
    let [a, b, c, d] = m.sessions();
    let (v, w) = (m.write(a, &["x"]), m.write(b, &["x"]));
    m.read(a, &[("x", Some(w))]);
    m.read(c, &[("x", Some(w))]);
    m.add(c, 0, 1);
    assert_eq!(m.judge(), None);
    m.operation(d, &[("x", Seen::Value(v)), ("c", Seen::Bits(1))], &[]);
    assert_eq!(m.judge(), Some(property::ORDER), "w came after v, and d knows of w");
}

#[test]
fn an_addition_has_those_of_its_past_beside_it() {
    for snapshot in [true, false] {
        let mut m = Maker::default();
        let [a, b] = m.sessions();
        m.add(a, 0, 1);
        m.add(a, 1, 3);
        let sum = m.sum(b, 2);
        m.history.operations[sum].snapshot = snapshot;
        assert_eq!(m.judge(), Some(property::COUNTER));
    }
}
