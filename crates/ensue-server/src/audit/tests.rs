//! Tests of the lines of the record, and of what becomes of them when nobody takes them.

use super::*;
use bytes::Bytes;
use ensue_types::{CoreId, DatacenterId, KeyspaceId, SessionId};

const CORE: CoreName = CoreName { datacenter: DatacenterId(0), core: CoreId(1) };

fn audit(words: &[&'static str], outcome: AuditOutcome) -> Box<Audit> {
    Box::new(Audit {
        user: Bytes::from_static(b"app"),
        address: "10.0.0.1:5000".into(),
        client: SessionId(7),
        client_name: Bytes::new(),
        keyspace: KeyspaceId(0),
        words: words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect(),
        left_out: 2,
        outcome,
    })
}

#[test]
fn a_record_is_one_line_whatever_its_words_are() {
    let words = ["CONFIG", "SET", "a\"b\nc", "d"];
    let item = Item { wall_ms: 0, core: CORE, audit: audit(&words, AuditOutcome::Failed("ERR".into())) };
    let core = CORE.to_string();
    assert_eq!(
        line(Format::Text, &item),
        format!(
            "1970-01-01T00:00:00.000Z audit   core=\"{core}\" user=\"app\" address=\"10.0.0.1:5000\" client=7 \
             client-name=\"\" keyspace=0 outcome=\"failed\" error=\"ERR\" \
             command=[\"CONFIG\",\"SET\",\"a\\\"b\\nc\",\"d\",\"... (2 more arguments)\"]\n"
        )
    );
    let json = line(Format::Json, &item);
    assert!(json.ends_with("}\n") && json.matches('\n').count() == 1, "{json}");
    let read: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(read["level"], "audit");
    assert_eq!(read["time"], "1970-01-01T00:00:00.000Z");
    assert_eq!(read["command"][2], "a\"b\nc");
    assert_eq!(read["client"], 7);
}

#[test]
fn what_a_full_disk_does_not_take_is_counted_and_nobody_waits() {
    let target = AuditTarget::File("/dev/full".into());
    let (audit_log, writer) = AuditLog::start(&target).expect("it can be opened").expect("it records");
    for _ in 0..3 {
        audit_log.record(CORE, audit(&["FLUSHALL"], AuditOutcome::Done));
    }
    let lost = Arc::clone(&audit_log.lost);
    drop(audit_log);
    writer.0.join().expect("the thread ends");
    assert_eq!(lost.load(Ordering::Relaxed), 3);
}

#[test]
fn what_is_beyond_the_bound_is_counted_and_nobody_waits() {
    // Nobody takes any.
    let (items, _arriving) = sync_channel(2);
    let audit_log = AuditLog { items, lost: Arc::default(), opens_again: Arc::default() };
    for _ in 0..5 {
        audit_log.record(CORE, audit(&["FLUSHALL"], AuditOutcome::Done));
    }
    assert_eq!(audit_log.take_lost(), 3);
    assert_eq!(audit_log.take_lost(), 0);
}

#[test]
fn a_file_that_was_moved_away_is_made_again_when_the_operator_asks() {
    let folder = crate::temporary::Temporary::new();
    let (path, moved) = (folder.path().join("audit.log"), folder.path().join("audit.log.1"));
    let lines = |path: &Path| std::fs::read_to_string(path).unwrap_or_default().lines().count();
    let (audit_log, writer) =
        AuditLog::start(&AuditTarget::File(path.clone())).expect("it can be opened").expect("it records");
    audit_log.record(CORE, audit(&["FLUSHALL"], AuditOutcome::Done));
    while lines(&path) == 0 {
        thread::yield_now();
    }
    std::fs::rename(&path, &moved).expect("it is there");
    audit_log.open_again();
    audit_log.record(CORE, audit(&["FLUSHDB"], AuditOutcome::Done));
    drop(audit_log);
    writer.0.join().expect("the thread ends");
    assert_eq!((lines(&moved), lines(&path)), (1, 1));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).expect("a file").permissions());
    assert_eq!(mode & 0o777, 0o600);
}
