//! A state that was saved is the one that is loaded.

use super::*;

#[test]
fn what_is_saved_is_loaded() {
    let folder = std::env::temp_dir().join(format!("ensue-import-state-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let path = folder.join("state");
    let mut state = State::load(Some(&path), "a to b".into()).expect("none is there");
    state.done = 7;
    state.window_end = 9;
    state.existing = vec![b"k\xff".to_vec(), vec![]];
    state.replica = Replica { id: "abc".into(), base: 1, has_snapshot: true, applied: u64::MAX };
    state.report.count_key("hash");
    state.save().expect("it can be written");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).expect("it is there").permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(State::load(Some(&path), "a to b".into()).expect("it is one"), state);
    let other = State::load(Some(&path), "a to c".into()).expect_err("it is of another import");
    assert!(other.to_string().contains("belongs to another import: a to b"), "{other}");
    fs::write(&path, "{}").expect("it can be written");
    assert!(State::load(Some(&path), "a to b".into()).is_err());
    fs::remove_dir_all(&folder).expect("it can be removed");
}
