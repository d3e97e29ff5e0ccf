//! The list is read and applied as cargo-mutants means it, and a seed always draws the same sample.

use super::{list, shuffle};

const LIST: &str = "\
crates/ensue-store/src/a.rs:2:5: replace f -> u8 with 0
--- crates/ensue-store/src/a.rs
+++ replace f -> u8 with 0
@@ -1,3 +1,3 @@
 fn f() -> u8 {
-    7
+    0 /* ~ changed by cargo-mutants ~ */
 }

crates/ensue-node/src/b.rs:2:9: replace + with - in g
--- crates/ensue-node/src/b.rs
+++ replace + with - in g
@@ -2,2 +2,2 @@
-    a + b
+    a - b
 }

";

#[test]
fn the_list_is_read_and_applied() {
    let mutants = list::parse(LIST).unwrap();
    assert_eq!(mutants.len(), 2);
    assert_eq!(mutants[0].package(), "ensue-store");
    assert_eq!(mutants[0].place(), "crates/ensue-store/src/a.rs:2:5");
    assert_eq!(mutants[0].change(), "replace f -> u8 with 0");
    let changed = mutants[0].apply("fn f() -> u8 {\n    7\n}\n").unwrap();
    assert_eq!(changed, "fn f() -> u8 {\n    0 /* ~ changed by cargo-mutants ~ */\n}\n");
    let changed = mutants[1].apply("fn g(a: u8, b: u8) -> u8 {\n    a + b\n}\n\nfn h() {}\n").unwrap();
    assert_eq!(changed, "fn g(a: u8, b: u8) -> u8 {\n    a - b\n}\n\nfn h() {}\n");
}

#[test]
fn another_file_is_refused() {
    let mutants = list::parse(LIST).unwrap();
    assert!(mutants[0].apply("fn f() -> u8 {\n    8\n}\n").is_err());
    assert!(mutants[0].apply("").is_err());
}

#[test]
fn a_seed_draws_the_same_sample_every_time() {
    let drawn = |seed| {
        let mut mutants: Vec<_> = (0..20).flat_map(|_| list::parse(LIST).unwrap()).collect();
        for (number, mutant) in mutants.iter_mut().enumerate() {
            mutant.name = number.to_string();
        }
        shuffle(&mut mutants, seed);
        mutants.into_iter().map(|mutant| mutant.name).collect::<Vec<_>>()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    let mut all = drawn(1);
    all.sort_by_key(|name| name.parse::<usize>().unwrap());
    assert_eq!(all, (0..40).map(|n| n.to_string()).collect::<Vec<_>>());
}
