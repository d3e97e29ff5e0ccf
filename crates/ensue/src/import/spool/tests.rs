//! What the spool keeps, and for whom.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn nobody_else_reads_it_or_makes_it_beforehand() {
    let spool = Spool::temporary(Progress::default()).expect("there is room for what is temporary");
    let other = Spool::temporary(Progress::default()).expect("there is room for what is temporary");
    assert_ne!(spool.folder, other.folder);
    other.remove().expect("it can be removed");
    spool.create_snapshot().expect("it can be written");
    let mut appender = spool.appender().expect("it can be written");
    spool.append(&mut appender, b"PING").expect("it can be written");
    assert_eq!(mode(&spool.folder), 0o700);
    let modes: Vec<u32> = fs::read_dir(&spool.folder)
        .expect("it can be read")
        .map(|file| mode(&file.expect("it is one").path()))
        .collect();
    assert_eq!(modes, [0o600; 3]);
    let link = spool.folder.join("link");
    symlink(std::env::temp_dir(), &link).expect("a link can be made");
    let refused = Spool::open(&link, Progress::default()).err().expect("it leads elsewhere").to_string();
    assert!(refused.ends_with("is there already, and no folder of this user"), "{refused}");
    fs::remove_file(link).expect("it can be removed");
    spool.remove().expect("it can be removed");
}

#[test]
fn it_is_known_when_what_arrived() {
    let spool = Spool::temporary(Progress::default()).expect("there is room for what is temporary");
    for (offset, now_ms) in [(100, 5_000), (200, 5_900), (300, 6_000)] {
        spool.note_time(offset, now_ms).expect("it can be written");
    }
    let seen = |spool: &Spool| [101, 300, 301, 9_000].map(|offset| spool.received_at(offset));
    assert_eq!(seen(&spool), [5_000, 5_000, 6_000, 6_000]);
    let mut bytes = fs::read(spool.times_path()).expect("it is there");
    bytes.extend_from_slice(b"cut");
    fs::write(spool.times_path(), bytes).expect("it can be written");
    let progress = Progress { has_snapshot: true, ..Progress::default() };
    let again = Spool::open(&spool.folder, progress).expect("it is there");
    assert_eq!(seen(&again), [5_000, 5_000, 6_000, 6_000]);
    again.note_time(400, 9_000).expect("it can be written");
    again.applied(350).expect("nothing is in the way");
    assert_eq!((again.received_at(360), again.received_at(401)), (6_000, 9_000));
    let third = Spool::open(&spool.folder, Progress { has_snapshot: true, ..Progress::default() });
    assert_eq!(third.expect("it is there").received_at(401), 9_000);
    spool.remove().expect("it can be removed");
}
