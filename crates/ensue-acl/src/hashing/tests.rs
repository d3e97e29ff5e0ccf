//! Work that is done before the rules are applied, and what is applied with it.

use super::*;
use crate::users::Users;

fn salts() -> impl FnMut() -> Salt {
    let mut next = 0;
    move || {
        next += 1;
        Salt([next; 16])
    }
}

#[test]
fn prepared_rules_are_applied_as_immediate_ones() {
    let rules = [">a", "on", "<a", ">b"];
    assert!(needs_hashing(&rules) && !needs_hashing(&["on", "#a", "~>"]));
    let mut users = Users::new();
    let work = Work::of(&rules, None).expect("few passwords");
    assert!(!work.is_empty());
    let user = users.set(b"alice", &rules, &mut work.run(salts())).expect("rules");
    assert_eq!(user.verifiers().len(), 1);
    assert!(user.accepts(b"b") && !user.accepts(b"a") && user.is_costly());
    // A password that the user has is not added again, and one that it has can be removed.
    let rules = [">b", ">c", "<b"];
    let work = Work::of(&rules, Some(&user)).expect("few passwords");
    let user = users.set(b"alice", &rules, &mut work.run(salts())).expect("rules");
    assert_eq!(user.verifiers().len(), 1);
    assert!(user.accepts(b"c") && !user.accepts(b"b"));
    let user = users.set(b"alice", &["<c", ">d"], &mut Immediate(salts())).expect("rules");
    assert!(user.accepts(b"d") && user.verifiers().len() == 1);
}

#[test]
fn what_was_not_prepared_is_refused() {
    let mut user = User::new(bytes::Bytes::from_static(b"alice"));
    assert_eq!(user.apply(b">a", &mut Prepared::default()), Err(RuleError::NotHashed));
    let many: Vec<String> = (0..=PASSWORDS_NAMED_MAX).map(|nth| format!(">{nth}")).collect();
    assert_eq!(Work::of(&many, None).err(), Some(RuleError::TooManyPasswordsNamed));
}
