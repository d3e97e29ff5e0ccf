//! Windows that were taken out of their order, and what mends them.

use super::*;

fn window(lines: &[&str]) -> Vec<(u8, Words)> {
    let command = |line: &&str| line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
    lines.iter().map(|line| (0, command(line))).collect()
}

/// What is executed once more, and which keys stay different, where the first command was taken last.
fn check(lines: &[&str], again: &[&str], disordered: &[&str]) {
    let window = window(lines);
    let places: Vec<usize> =
        (0..lines.len()).map(|index| if index == 0 { lines.len() } else { index }).collect();
    let repair = repair(&window, &places);
    let line = |words: &Words| {
        words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>()
    };
    let found: Vec<String> = repair.again.iter().map(|(_, _, words)| line(words).join(" ")).collect();
    assert_eq!(found, again, "{lines:?}");
    let keys: Vec<String> =
        repair.disordered.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
    assert_eq!(keys, disordered, "{lines:?}");
}

#[test]
fn the_last_command_that_sets_a_key_whole_decides() {
    check(&["SET k v", "DEL k"], &["DEL k"], &[]);
    check(&["SET k 1", "SET k 2 PXAT 9"], &["SET k 2 PXAT 9"], &[]);
    check(&["RPUSH k 1", "DEL k", "RPUSH k 2", "LPOP k"], &["DEL k", "RPUSH k 2", "LPOP k"], &[]);
    check(&["INCR k", "unlink j k", "INCR k"], &["DEL k", "INCR k"], &[]);
    check(&["SET k 1", "INCR k"], &["SET k 1", "INCR k"], &[]);
}

#[test]
fn what_sets_parts_is_executed_again_from_the_first_on() {
    check(&["HSET k f 1", "PEXPIREAT k 9"], &["HSET k f 1", "PEXPIREAT k 9"], &[]);
    check(&["HSET k f 1", "HSET k f 2"], &["HSET k f 1", "HSET k f 2"], &[]);
    check(&["ZADD k 1 a", "ZADD k 2 a"], &["ZADD k 1 a", "ZADD k 2 a"], &[]);
    check(&["SET k v KEEPTTL", "PERSIST k"], &["SET k v KEEPTTL", "PERSIST k"], &[]);
}

#[test]
fn what_goes_by_what_was_there_is_told() {
    check(&["RPUSH k 1", "LPOP k"], &[], &["k"]);
    check(&["SADD k a", "SREM k a"], &[], &["k"]);
    check(&["ZADD k 1 a", "ZADD k GT 2 a"], &[], &["k"]);
    check(&["SET k 1", "SET k 2 NX"], &["SET k 1", "SET k 2 NX"], &[]);
    check(&["HSET k f 1", "SET k 2 NX"], &[], &["k"]);
    check(&["SADD a 1", "SUNIONSTORE b a c"], &[], &["a"]);
    check(&["SET a 1", "RENAME a b"], &[], &["a"]);
    check(&["SET a 1", "SOMETHING.NEW x a"], &[], &["a"]);
}

#[test]
fn keys_in_their_order_are_left_alone() {
    check(&["SET a 1", "LPOP b", "INCR c"], &[], &[]);
    let mut window = window(&["SET k 1", "INCR k"]);
    window[0].0 = 1;
    assert_eq!(repair(&window, &[2, 1]), Repair::default(), "they are of two keyspaces");
}

#[test]
fn answers_before_the_last_setting_say_nothing() {
    let window = window(&["HSET k f 1", "SET k 2", "APPEND k x"]);
    let repair = repair(&window, &[3, 1, 2]);
    assert_eq!(repair.replaced, BTreeSet::from([0]));
    assert_eq!(repair.again.iter().map(|(index, _, _)| *index).collect::<Vec<_>>(), [1, 2]);
}
