//! Which keys a datacenter gets, and which files are refused.

use super::*;
use crate::temporary::Temporary;
use std::fs;

fn names(words: &str) -> Vec<String> {
    words.split(' ').map(String::from).collect()
}

fn keys(folder: &Temporary, own: &str, all: &str) -> BTreeMap<String, SharedKey> {
    read(&path_of(folder.path(), own), own, &names(all)).unwrap()
}

#[test]
fn each_pair_has_a_key_of_its_own() {
    let folder = Temporary::new();
    let all = "lisbon oslo turin";
    assert_eq!(make(folder.path(), &names(all)).unwrap().1, 6);
    let [lisbon, oslo, turin] = ["lisbon", "oslo", "turin"].map(|own| keys(&folder, own, all));
    assert_eq!(lisbon["oslo"], oslo["lisbon"]);
    assert_eq!(oslo["turin"], turin["oslo"]);
    let mut different = vec![
        &lisbon["lisbon"],
        &lisbon["oslo"],
        &lisbon["turin"],
        &oslo["oslo"],
        &oslo["turin"],
        &turin["turin"],
    ];
    while let Some(key) = different.pop() {
        assert!(!different.contains(&key), "two pairs have one key");
    }
    let mode = fs::metadata(path_of(folder.path(), "oslo")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_datacenter_is_added_without_a_change_for_the_others() {
    let folder = Temporary::new();
    make(folder.path(), &names("lisbon oslo")).unwrap();
    let before = keys(&folder, "oslo", "lisbon oslo");
    // The files of the others are far away; one of a pair is enough to know its key.
    fs::remove_file(path_of(folder.path(), "lisbon")).unwrap();
    assert_eq!(make(folder.path(), &names("lisbon oslo turin")).unwrap().1, 4);
    let after = keys(&folder, "oslo", "lisbon oslo turin");
    assert_eq!((&after["oslo"], &after["lisbon"]), (&before["oslo"], &before["lisbon"]));
    assert_eq!(keys(&folder, "lisbon", "oslo")["oslo"], before["lisbon"]);
    assert_eq!(make(folder.path(), &names("lisbon oslo turin")).unwrap().1, 0);
}

#[test]
fn what_is_no_secret_is_refused() {
    let folder = Temporary::new();
    let path = folder.path().join("file");
    let key = "ab".repeat(32);
    for (text, words) in [
        (String::new(), "it is empty"),
        ("oslo aa".into(), "the first line must be"),
        (format!("ensue-secret 1 oslo\noslo {key}ab"), "64 hexadecimal digits"),
        (format!("ensue-secret 1 oslo\noslo {}", "0".repeat(64)), "not all of them 0"),
        (format!("ensue-secret 1 oslo\noslo {key}\noslo {key}"), "a second key"),
        (format!("ensue-secret 1 oslo\n\n# x\noslo {key}\n"), "has no key for lisbon"),
        (
            format!("ensue-secret 1 lisbon\nlisbon {key}"),
            "is the cluster-secret of lisbon, and this node is of oslo",
        ),
    ] {
        fs::write(&path, &text).unwrap();
        let error = read(&path, "oslo", &names("lisbon oslo")).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
        assert!(!error.contains(&key), "{error}");
    }
    assert!(matches!(make(folder.path(), &names("oslo oslo")), Err(SecretError::Name { .. })));
}

#[test]
fn keys_that_do_not_fit_are_told() {
    let folder = Temporary::new();
    for (own, other, digits) in [("lisbon", "oslo", "ab"), ("oslo", "lisbon", "cd")] {
        let text = format!("ensue-secret 1 {own}\n{other} {}\n", digits.repeat(32));
        fs::write(path_of(folder.path(), own), text).unwrap();
    }
    assert!(matches!(make(folder.path(), &names("lisbon oslo")), Err(SecretError::Unequal { .. })));
}

#[test]
fn all_files_have_one_key_for_tokens_which_can_be_replaced() {
    let folder = Temporary::new();
    make(folder.path(), &names("lisbon oslo")).unwrap();
    let of = |name: &str| token_keys(&path_of(folder.path(), name)).unwrap();
    assert_eq!((of("lisbon").len(), of("lisbon")), (1, of("oslo")));
    // An operator adds a new one, behind the present one, to one file; the command brings it to all.
    let path = path_of(folder.path(), "oslo");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}@tokens {}\n", "ab".repeat(32))).unwrap();
    make(folder.path(), &names("lisbon oslo turin")).unwrap();
    assert_eq!((of("turin").len(), of("turin")), (2, of("lisbon")));
    assert_eq!(of("turin")[1], TokenKey([0xab; 32]));
}
