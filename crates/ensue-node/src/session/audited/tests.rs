//! Tests of what is recorded of which commands.

use super::*;

fn shown(line: &str) -> Option<String> {
    let args: Vec<Bytes> = line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
    let spec = ensue_resp::lookup(&args[0]).expect("a known command");
    let audited = Audited::of(spec, spec.subcommand(&args), &args, None)?;
    let words: Vec<_> = audited.words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    Some(words.join(" "))
}

#[test]
fn no_secret_is_shown() {
    for (line, expected) in [
        ("AUTH pw", "AUTH (hidden)"),
        ("AUTH app pw", "AUTH app (hidden)"),
        ("AUTH app pw more", "AUTH (hidden) (hidden) (hidden)"),
        ("HELLO 3 AUTH app pw SETNAME n", "HELLO 3 AUTH app (hidden) SETNAME n"),
        ("HELLO 3 SETNAME auth AUTH app pw", "HELLO 3 SETNAME auth AUTH app (hidden)"),
        ("HELLO 3 AUTH auth pw AUTH app pw", "HELLO 3 AUTH auth (hidden) AUTH app (hidden)"),
        ("HELLO AUTH app pw", "HELLO AUTH app (hidden)"),
        ("HELLO 3 AUTH pw", "HELLO 3 AUTH (hidden)"),
        ("HELLO 3 AUTO auth pw", "HELLO 3 AUTO (hidden) (hidden)"),
        (
            "ACL SETUSER app on >pw #00 <old !00 pw ~k:* +@all db=0 (~x +get)",
            "ACL SETUSER app on (hidden) (hidden) (hidden) (hidden) (hidden) ~k:* +@all db=0 (~x +get)",
        ),
        ("ACL SETUSER app (>pw +get)", "ACL SETUSER app (hidden) +get)"),
        ("ACL DRYRUN app AUTH pw", "ACL DRYRUN app AUTH (hidden)"),
        ("CONFIG SET requirepass pw maxmemory 1", "CONFIG SET requirepass (hidden) maxmemory 1"),
        ("CONFIG SET masterauth pw MASTERUSER u", "CONFIG SET masterauth (hidden) MASTERUSER (hidden)"),
        ("CONFIG SET tls-auth-clients no", "CONFIG SET tls-auth-clients no"),
    ] {
        assert_eq!(shown(line).as_deref(), Some(expected), "{line}");
    }
}

#[test]
fn commands_of_operators_are_recorded_and_those_of_applications_are_not() {
    for line in [
        "ACL LIST",
        "CAUSAL DEAD dc2",
        "CLIENT KILL ID 3",
        "CLIENT LIST",
        "CAUSAL BACKUP BEGIN b",
        "CAUSAL BACKUP NODE 1 BEGIN read HOLD 20",
        "CAUSAL MOVE 0 0 1",
        "CONFIG GET *",
        "DEBUG SLEEP 0",
        "FLUSHALL",
        "FLUSHDB",
        "SLOWLOG GET",
    ] {
        assert!(shown(line).is_some(), "{line}");
    }
    for line in [
        "ACL WHOAMI",
        "CAUSAL BACKUP READ b shape 0 5",
        "CAUSAL BACKUP NODE 1 READ b shape 0 5",
        "CLIENT ID",
        "GET k",
        "HELLO 3",
        "INFO",
        "KEYS *",
        "RESTORE k 0 v",
        "SORT k",
    ] {
        assert_eq!(shown(line), None, "{line}");
    }
}

#[test]
fn what_a_long_command_leaves_is_bounded() {
    let mut args = vec![Bytes::from_static(b"CONFIG"), Bytes::from_static(b"GET")];
    args.extend((0..100).map(|_| Bytes::from(vec![b'x'; 1_000])));
    let spec = ensue_resp::lookup(b"config").expect("a known command");
    let audited = Audited::of(spec, Some("get"), &args, None).expect("it is recorded");
    assert_eq!((audited.words.len(), audited.left_out), (AUDITED_WORDS_MAX, 102 - AUDITED_WORDS_MAX));
    assert!(audited.words.iter().all(|word| word.len() <= AUDITED_WORD_BYTES_MAX));
}
