//! What a file may say, and what is said of a file that is wrong.

use super::*;
use crate::format::ReadError;
use crate::history::{History, Operation, Outcome, TransactionIndex, Value};
use expect_test::{Expect, expect};

fn parsed(text: &str) -> History {
    read(&mut text.as_bytes()).expect("this is a history")
}

fn check_error(text: &str, expected: Expect) {
    let error: ReadError = read(&mut text.as_bytes()).expect_err("this is no history");
    expected.assert_eq(&error.to_string());
}

/// Reads, writes, and compares with the expected text; then once more, which must change nothing.
fn check_written(text: &str, expected: Expect) {
    let history = parsed(text);
    let mut written = Vec::new();
    write(&history, &mut written).expect("a vector takes everything");
    let written = String::from_utf8(written).expect("JSON is UTF-8");
    expected.assert_eq(&written);
    let mut again = Vec::new();
    write(&parsed(&written), &mut again).expect("a vector takes everything");
    assert_eq!(written.as_bytes(), again);
}

#[test]
fn every_kind_of_operation_and_outcome() {
    check_written(
        r#"
{"session":"a","datacenter":"dc1","start":1,"end":5,"operations":[{"write":"x","value":"1"},{"write":"y","value":2}]}
{"session":"b","datacenter":"dc2","start":2,"end":null,"operations":[{"add":"n","delta":-3},{"read":"x"}]}
{"session":"b","status":"failed","operations":[{"write":"x","value":null}]}
{"session":"c","final":true,"operations":[{"read":"x","value":null},{"count":"n","value":-3}]}
"#,
        expect![[r#"
            {"event":"history","version":1}
            {"session":"a","datacenter":"dc1","start":1,"end":5,"operations":[{"write":"x","value":"1"},{"write":"y","value":"2"}]}
            {"session":"b","datacenter":"dc2","start":2,"end":null,"status":"unknown","operations":[{"add":"n","delta":-3}]}
            {"session":"b","status":"failed","operations":[{"write":"x","value":null}]}
            {"session":"c","final":true,"operations":[{"read":"x","value":null},{"count":"n","value":-3}]}
            {"event":"end","transactions":4}
        "#]],
    );
}

#[test]
fn sessions_end_and_tokens_move() {
    check_written(
        r#"
{"session":"a","token":"T1","operations":[{"write":"x","value":"1"}]}
{"event":"session","session":"a"}
{"session":"a","operations":[{"read":"x","value":null}]}
{"session":"b","merges":["T1"],"operations":[]}
"#,
        expect![[r#"
            {"event":"history","version":1}
            {"session":"a","transaction":0,"operations":[{"write":"x","value":"1"}]}
            {"session":"a#2","operations":[{"read":"x","value":null}]}
            {"session":"b","merges":[0],"operations":[]}
            {"event":"end","transactions":3}
        "#]],
    );
}

#[test]
fn lines_with_one_name_are_one_transaction() {
    let history = parsed(
        r#"{"session":"a","transaction":"t","start":3,"end":4,"operations":[{"read":"x","version":"7"}]}
{"session":"b","operations":[{"write":"x","version":"8"}]}
{"session":"a","transaction":"t","start":3,"end":9,"operations":[{"read":"y","version":null}]}"#,
    );
    assert_eq!(history.transactions.len(), 2);
    let transaction = history.transaction(TransactionIndex(0));
    assert_eq!((transaction.line, transaction.start_us, transaction.end_us), (1, 3, 9));
    assert_eq!(transaction.outcome, Outcome::Committed);
    assert_eq!(transaction.operations.len(), 2);
    assert!(matches!(transaction.operations[1], Operation::Read { value: Value::ABSENT, .. }));
}

#[test]
fn tokens_and_transactions_have_names_of_their_own() {
    let history = parsed(
        r#"
{"session":"a","transaction":"1","token":"2","operations":[{"write":"x","value":"1"}]}
{"session":"a","transaction":"2","token":"1","operations":[{"write":"x","value":"2"}]}
{"session":"b","transaction":"3","token":"3","operations":[{"write":"y","value":"1"}]}
{"session":"b","transaction":"3","token":"3","operations":[{"write":"z","value":"1"}]}
{"session":"c","merges":["3"],"operations":[]}
"#,
    );
    assert_eq!(history.transactions.len(), 4);
    assert_eq!(history.transactions[3].merges, [TransactionIndex(2)]);
    check_error(
        "{\"session\":\"a\",\"transaction\":\"1\",\"operations\":[]}\n\
         {\"session\":\"a\",\"token\":\"1\",\"operations\":[]}\n\
         {\"session\":\"b\",\"merges\":[\"1\"],\"operations\":[]}\n",
        expect!["line 3, column 1: merges `1`, which is one transaction and the token of another"],
    );
}

#[test]
fn a_token_that_was_handed_out_twice_is_refused() {
    check_error(
        "{\"session\":\"a\",\"token\":\"T7\",\"operations\":[{\"write\":\"x\",\"value\":\"1\"}]}\n\
         {\"session\":\"b\",\"merges\":[\"T7\"],\"operations\":[{\"read\":\"x\",\"value\":\"1\"}]}\n\
         {\"session\":\"b\",\"token\":\"T7\",\"operations\":[{\"read\":\"y\",\"value\":null}]}\n",
        expect![
            "line 3, column 1: the token `T7` is that of line 1: what is handed out again needs another name each time"
        ],
    );
}

#[test]
fn a_transaction_that_merges_itself_is_refused() {
    check_error(
        "{\"session\":\"a\",\"merges\":[\"T\"],\"token\":\"T\",\"operations\":[{\"read\":\"x\",\"value\":null}]}\n",
        expect!["line 1, column 1: merges `T`, which is this transaction itself"],
    );
    check_error(
        "{\"session\":\"a\",\"operations\":[]}\n\
         {\"session\":\"a\",\"merges\":[1],\"transaction\":1,\"operations\":[]}\n",
        expect!["line 2, column 1: merges `1`, which is this transaction itself"],
    );
}

#[test]
fn a_file_that_breaks_off_is_truncated_and_not_wrong() {
    let history = parsed("{\"session\":\"a\",\"operations\":[]}\n{\"session\":\"a\",\"oper");
    assert_eq!(history.truncated_at_line, Some(2));
    let history = parsed("{\"event\":\"history\"}\n{\"session\":\"a\",\"operations\":[]}\n");
    assert_eq!(history.truncated_at_line, Some(2));
    let history =
        parsed("{\"event\":\"history\"}\n{\"session\":\"a\",\"operations\":[]}\n{\"event\":\"end\"}\n");
    assert_eq!(history.truncated_at_line, None);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    check_error("{}\n", expect!["line 1, column 1: `session` is missing"]);
    check_error(
        "\n{\"session\":\"a\",\"operation\":[]}\n",
        expect![
            "line 2, column 26: unknown field `operation`, expected one of `event`, `session`, `transaction`, `token`, `merges`, `datacenter`, `start`, `end`, `status`, `final`, `operations`, `version`, `transactions`, `key`, `reason`"
        ],
    );
    check_error(
        "{\"session\":\"a\",\"operations\":[{\"read\":\"x\"}]}\n",
        expect!["line 1, column 1: a read has a `value` or a `version`"],
    );
    check_error(
        "{\"session\":\"a\",\"operations\":[{\"read\":\"x\",\"value\":1,\"write\":\"x\"}]}\n",
        expect![
            "line 1, column 1: an operation has exactly one of `read`, `write`, `add`, `count`, `rename`, `flush`, `row`, `push`, `pop` and `hold`"
        ],
    );
    check_error(
        "{\"session\":\"a\",\"end\":null,\"status\":\"ok\",\"operations\":[]}\n",
        expect!["line 1, column 1: `status` is `ok`, but `end` is null, which says that no answer came"],
    );
    check_error(
        "{\"session\":\"a\",\"merges\":[\"T\"],\"operations\":[]}\n",
        expect!["line 1, column 1: merges `T`, which is no transaction and no token of this file"],
    );
    check_error(
        "{\"session\":\"a\",\"operations\":[{\"write\":\"x\",\"value\":1}]}\n\
         {\"session\":\"a\",\"operations\":[{\"read\":\"x\",\"version\":1}]}\n",
        expect!["line 2, column 1: this key has a `value` on one line and a `version` on another"],
    );
    check_error("{\"session\":\"a\",\"operations\":[}\n", expect!["line 1, column 30: expected value"]);
    check_error(
        "{\"event\":\"end\",\"transactions\":3}\n",
        expect!["line 1, column 1: the file says that it has 3 transactions, but it has 0"],
    );
}

#[test]
fn a_transaction_that_ends_before_it_starts_is_refused() {
    check_error(
        r#"{"session":"a","start":1,"end":1,"operations":[]}
{"session":"a","start":100,"end":50,"operations":[{"write":"x","value":1}]}
"#,
        expect!["line 2, column 1: this transaction ends before it starts: `end` is less than `start`"],
    );
    let in_parts = r#"{"session":"a","transaction":"t","start":100,"operations":[]}
{"session":"a","transaction":"t","end":50,"operations":[{"write":"x","value":1}]}
"#;
    check_error(
        in_parts,
        expect!["line 2, column 1: this transaction ends before it starts: `end` is less than `start`"],
    );
    assert_eq!(parsed(&in_parts.replace("50", "150")).transactions[0].end_us, 150);
    assert_eq!(parsed(r#"{"session":"a","start":100,"end":null,"operations":[]}"#).transactions.len(), 1);
}

#[test]
fn what_queues_got_and_gave_is_written_as_it_was_read() {
    check_written(
        r#"
{"session":"a","operations":[{"push":"q","value":7},{"pop":"q","value":"7"},{"pop":"q","value":null}]}
{"session":"b","status":"unknown","operations":[{"push":"q","value":"x"},{"push":"q"},{"pop":"q","value":"y"},{"hold":"q"}]}
{"session":"c","status":"failed","operations":[{"pop":"q"},{"hold":"q"}]}
{"session":"d","final":true,"operations":[{"hold":"q","value":"x"},{"hold":"q","value":null}]}
"#,
        expect![[r#"
            {"event":"history","version":1}
            {"session":"a","operations":[{"push":"q","value":"7"},{"pop":"q","value":"7"},{"pop":"q","value":null}]}
            {"session":"b","status":"unknown","operations":[{"push":"q","value":"x"},{"push":"q"},{"pop":"q"}]}
            {"session":"c","status":"failed","operations":[{"pop":"q"}]}
            {"session":"d","final":true,"operations":[{"hold":"q","value":"x"},{"hold":"q","value":null}]}
            {"event":"end","transactions":4}
        "#]],
    );
    check_error(
        r#"{"session":"a","operations":[{"push":"q"}]}
"#,
        expect!["line 1, column 1: a push, a pop or a hold has a `value`, the element"],
    );
    check_error(
        r#"{"session":"a","operations":[{"push":"q","value":null}]}
"#,
        expect!["line 1, column 1: what is pushed has a `value` that is not null"],
    );
    check_error(
        r#"{"session":"a","operations":[{"push":"q","value":1,"pop":"q"}]}
"#,
        expect![
            "line 1, column 1: an operation has exactly one of `read`, `write`, `add`, `count`, `rename`, `flush`, `row`, `push`, `pop` and `hold`"
        ],
    );
}
