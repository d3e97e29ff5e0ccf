//! The form of other checkers, there and back.

use super::*;
use expect_test::{Expect, expect};

fn parsed(text: &str) -> History {
    read(&mut text.as_bytes()).expect("this is a history")
}

fn check_error(text: &str, expected: Expect) {
    expected.assert_eq(&read(&mut text.as_bytes()).expect_err("this is no history").to_string());
}

#[test]
fn lines_of_a_transaction_stand_together() {
    let history = parsed("w(7,1,0,1)\nw(8,2,0,1)\nr(7,1,1,2)\nr(8,0,1,2)\nw(7,9,1,-1)\n");
    assert_eq!(history.transactions.len(), 3);
    assert_eq!(history.sessions.len(), 2);
    assert_eq!(history.transactions[1].line, 3);
    assert!(matches!(history.transactions[1].operations[1], Operation::Read { value: Value::ABSENT, .. }));
    assert_eq!(history.transactions[2].outcome, Outcome::Failed);
    let mut written = Vec::new();
    write(&history, &mut written).expect("a vector takes everything");
    let expected = "w(0,1,0,0)\nw(1,2,0,0)\nr(0,1,1,1)\nr(1,0,1,1)\nw(0,3,1,-1)\n";
    assert_eq!(String::from_utf8(written).expect("digits are UTF-8"), expected);
}

#[test]
fn a_line_that_breaks_off_is_a_truncated_history() {
    assert_eq!(parsed("w(1,1,0,1)\nr(1,1,").truncated_at_line, Some(2));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    check_error("x(1,2,3,4)\n", expect!["line 1, column 1: expected `r(` or `w(`"]);
    check_error(
        "w(1,2,3,4)\nw(1,two,3,4)\n",
        expect!["line 2, column 5: `two` is no unsigned integer of 64 bits"],
    );
    check_error(
        "w(1,2,3)\n",
        expect!["line 1, column 3: expected key, value, session and transaction, found 3 numbers"],
    );
    check_error(
        "w(1,2,3,-2)\n",
        expect!["line 1, column 9: `-2` is no transaction: expected -1 or an unsigned integer below 2^63"],
    );
    check_error("w(1,2,3,4\n", expect!["line 1, column 9: expected `)` at the end"]);
    check_error(
        "w(1,1,0,1)\nw(1,2,0,2)\nw(1,3,0,1)\n",
        expect!["line 3, column 1: the lines of transaction 1 do not stand together"],
    );
}

#[test]
fn what_the_form_cannot_say_is_refused() {
    let mut builder = Builder::new();
    let count = builder.count("n", 1);
    builder.commit("a", vec![count]);
    let error = write(&builder.finish(), &mut Vec::new()).expect_err("there are no counters in it");
    expect!["line 0: a counter cannot be said in this form"].assert_eq(&error.to_string());
}
