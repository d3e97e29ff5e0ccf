//! The words of Redis 7.0.15, byte for byte.

use super::*;

fn args(words: &[&str]) -> Vec<Bytes> {
    words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

#[track_caller]
fn check_unknown(words: &[&str], expected: &str) {
    assert_eq!(CommandError::unknown_command(&args(words)).to_string(), expected);
}

#[test]
fn unknown_command() {
    check_unknown(&["FOO"], "ERR unknown command 'FOO', with args beginning with: ");
    check_unknown(&["foo", "a", "b"], "ERR unknown command 'foo', with args beginning with: 'a' 'b' ");
    check_unknown(&["FOO", "\0x"], "ERR unknown command 'FOO', with args beginning with: '' ");
    check_unknown(&[], "ERR unknown command '', with args beginning with: ");
}

#[test]
fn what_is_repeated_is_bounded() {
    check_unknown(
        &["FOO", &"x".repeat(110), "yyyyyyyyyyyyyyyyyyyyyyy", "zz"],
        &format!(
            "ERR unknown command 'FOO', with args beginning with: '{}' '{}' ",
            "x".repeat(110),
            "y".repeat(15)
        ),
    );
    check_unknown(
        &[&"F".repeat(200), "a"],
        &format!("ERR unknown command '{}', with args beginning with: 'a' ", "F".repeat(128)),
    );
}

#[test]
fn unknown_subcommand() {
    let error = CommandError::unknown_subcommand("client", b"FOO");
    assert_eq!(error.to_string(), "ERR unknown subcommand 'FOO'. Try CLIENT HELP.");
}

#[test]
fn an_error_answers_its_words() {
    let error = CommandError::wrong_arity("get");
    assert_eq!(error.reply(), Reply::Error("ERR wrong number of arguments for 'get' command".into()));
    assert_eq!(
        ParseError::ExpectedBulk { got: b'x' }.reply(),
        Reply::Error("ERR Protocol error: expected '$', got 'x'".into())
    );
}
