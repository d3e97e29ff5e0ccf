//! The log: what counts together, and what is shown.

use super::*;

fn refusal(reason: Reason, object: &str) -> Refusal {
    Refusal {
        reason,
        context: Context::Toplevel,
        object: Bytes::copy_from_slice(object.as_bytes()),
        username: Bytes::from_static(b"antirez"),
        client_info: Bytes::from_static(b"id=1 cmd=get"),
    }
}

fn field(reply: &Reply, entry: usize, name: &str) -> Reply {
    let Reply::Array(entries) = reply else { panic!("an array") };
    let Reply::Map(fields) = &entries[entry] else { panic!("a map") };
    fields.iter().find(|(known, _)| *known == Reply::bulk(name.to_owned())).expect("a field").1.clone()
}

fn count(log: &Log) -> usize {
    let Reply::Array(entries) = log.latest(usize::MAX, 0) else { panic!("an array") };
    entries.len()
}

#[test]
fn equal_ones_count_together_for_a_minute() {
    let mut log = Log::default();
    log.record(refusal(Reason::Command, "get"), 1_000, 128);
    log.record(refusal(Reason::Command, "set"), 1_500, 128);
    log.record(refusal(Reason::Command, "get"), 61_000, 128);
    let shown = log.latest(10, 62_500);
    assert_eq!(count(&log), 2);
    for (name, expected) in [
        ("count", Reply::Integer(2)),
        ("reason", Reply::bulk("command")),
        ("context", Reply::bulk("toplevel")),
        ("object", Reply::bulk("get")),
        ("username", Reply::bulk("antirez")),
        ("age-seconds", Reply::Double(1.5)),
        ("client-info", Reply::bulk("id=1 cmd=get")),
        ("entry-id", Reply::Integer(0)),
        ("timestamp-created", Reply::Integer(1_000)),
        ("timestamp-last-updated", Reply::Integer(61_000)),
    ] {
        assert_eq!(field(&shown, 0, name), expected, "{name}");
    }
    assert_eq!(field(&shown, 1, "object"), Reply::bulk("set"));
    assert_eq!(field(&shown, 1, "entry-id"), Reply::Integer(1));
    // A minute and a millisecond later it is another one.
    log.record(refusal(Reason::Command, "get"), 121_001, 128);
    assert_eq!(count(&log), 3);
    assert_eq!(field(&log.latest(1, 0), 0, "entry-id"), Reply::Integer(2));
    assert_eq!(log.counts().command, 4);
}

#[test]
fn what_differs_does_not_count_together() {
    let mut log = Log::default();
    log.record(refusal(Reason::Key, "a"), 0, 128);
    log.record(refusal(Reason::Channel, "a"), 0, 128);
    log.record(Refusal { context: Context::Multi, ..refusal(Reason::Key, "a") }, 0, 128);
    log.record(Refusal { username: Bytes::from_static(b"bob"), ..refusal(Reason::Key, "a") }, 0, 128);
    assert_eq!(count(&log), 4);
    // An equal one behind ten others is not found.
    (0..10).for_each(|nth| log.record(refusal(Reason::Auth, &nth.to_string()), 0, 128));
    log.record(refusal(Reason::Key, "a"), 0, 128);
    assert_eq!(count(&log), 15);
    let RefusalCounts { auth, command, key, channel, database } = log.counts();
    assert_eq!([auth, command, key, channel, database], [10, 0, 4, 1, 0]);
}

#[test]
fn it_is_bounded() {
    let mut log = Log::default();
    (0..10).for_each(|nth| log.record(refusal(Reason::Key, &nth.to_string()), 0, 5));
    assert_eq!(count(&log), 5);
    assert_eq!(field(&log.latest(1, 0), 0, "object"), Reply::bulk("9"));
    log.record(refusal(Reason::Key, "x"), 0, 0);
    assert_eq!(count(&log), 0);
    log.record(refusal(Reason::Key, &"x".repeat(5_000)), 0, 5);
    assert_eq!(field(&log.latest(1, 0), 0, "object"), Reply::bulk("x".repeat(LOG_TEXT_BYTES_MAX)));
    log.reset();
    assert_eq!(count(&log), 0);
}
