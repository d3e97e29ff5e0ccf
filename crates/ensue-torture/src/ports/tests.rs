//! Rows are passed over when somebody listens on one of their ports, and two runs do not share one.

use super::{Ports, bind};

#[test]
fn a_row_in_use_is_passed_over() {
    let one = Ports::take(None).expect("six rows are not all taken");
    let other = Ports::take(None).expect("six rows are not all taken");
    assert_ne!(one.first, other.first);
    assert!(Ports::take(Some(one.first)).is_err(), "it is ours");
    let first = one.first;
    drop(one);
    let stranger = bind(first + 7).expect("the row was free");
    let next = Ports::take(None).expect("six rows are not all taken");
    assert_ne!(next.first, first);
    drop(stranger);
}
