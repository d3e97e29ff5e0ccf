//! What is remembered, and until when.

use super::*;
use crate::user::tests::{Quick, user};
use crate::users::Users;

#[test]
fn a_change_of_the_user_forgets() {
    let mut users = Users::new();
    let mut proven = Proven::new([1; 32], 2);
    let alice = users.set(b"alice", &[">a"], &mut Quick).expect("rules");
    assert!(!proven.knows(&alice, b"a"));
    proven.remember(&alice, b"a");
    assert!(proven.knows(&alice, b"a") && !proven.knows(&alice, b"b"));
    let bob = users.set(b"bob", &[">a"], &mut Quick).expect("rules");
    assert!(proven.knows(&alice, b"a") && !proven.knows(&bob, b"a"));
    let later = users.set(b"alice", &["resetpass"], &mut Quick).expect("rules");
    assert!(!proven.knows(&later, b"a"));
    users.delete(&["alice"]).expect("not the default user");
    let again = users.set(b"alice", &[">b"], &mut Quick).expect("rules");
    assert!(!proven.knows(&again, b"a"));
}

#[test]
fn the_oldest_is_forgotten() {
    let (user, mut proven) = (user(""), Proven::new([1; 32], 2));
    for password in [&b"a"[..], b"b", b"b", b"c"] {
        proven.remember(&user, password);
    }
    let known = |proven: &Proven| [&b"a"[..], b"b", b"c"].map(|password| proven.knows(&user, password));
    assert_eq!(known(&proven), [false, true, true]);
    proven.clear();
    assert_eq!(known(&proven), [false, false, false]);
    let mut none = Proven::new([1; 32], 0);
    none.remember(&user, b"a");
    assert!(!none.knows(&user, b"a"));
}
