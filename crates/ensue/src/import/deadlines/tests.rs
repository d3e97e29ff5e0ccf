//! Commands with deadlines, and what they are a day later.

use super::*;

#[test]
fn deadlines_count_from_when_they_were_received() {
    for (sent, expected) in [
        ("EXPIRE k 100", "PEXPIREAT k 101000"),
        ("expire k 100 GT", "PEXPIREAT k 101000 GT"),
        ("PEXPIRE k 100", "PEXPIREAT k 1100"),
        ("SETEX k 5 v", "SET k v PXAT 6000"),
        ("PSETEX k 5 v", "SET k v PXAT 1005"),
        ("SET k v EX 5 NX", "SET k v PXAT 6000 NX"),
        ("SET k EX", "SET k EX"),
        ("SET k v px 5", "SET k v PXAT 1005"),
        ("GETEX k EX 5", "GETEX k PXAT 6000"),
        ("RESTORE k 5 dump REPLACE", "RESTORE k 1005 dump REPLACE ABSTTL"),
        ("RESTORE k 5 dump ABSTTL", "RESTORE k 5 dump ABSTTL"),
        ("RESTORE k 0 dump", "RESTORE k 0 dump"),
        ("PEXPIREAT k 5", "PEXPIREAT k 5"),
        ("SET k v PXAT 5", "SET k v PXAT 5"),
        ("EXPIRE k x", "EXPIRE k x"),
        ("EXPIRE k 9223372036854775807", "EXPIRE k 9223372036854775807"),
        ("SET k v EX", "SET k v EX"),
        ("PING", "PING"),
    ] {
        let command = sent.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        let found = absolute(command, 1_000);
        let words: Vec<String> =
            found.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        assert_eq!(words.join(" "), expected);
    }
}
