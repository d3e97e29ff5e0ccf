//! What is recorded is what is compared.

use super::*;

fn counts(all: &[(&str, u64)]) -> Vec<Count> {
    let count = |&(name, instructions): &(&str, u64)| Count {
        name: name.into(),
        title: name.to_uppercase(),
        instructions,
    };
    all.iter().map(count).collect()
}

#[test]
fn a_rise_beyond_the_bound_is_named_and_a_new_operation_is_none() {
    let recorded = record("rustc 1", &counts(&[("get", 1_000), ("set", 2_000)]));
    let now = counts(&[("get", 1_050), ("set", 2_101), ("new", 5)]);
    assert_eq!(risen(&recorded, &now), ["set"]);
    let table = table(&recorded, &now);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["get", "1000", "1050", "+5.0", "%"]);
    assert_eq!(rows[3], ["new", "-", "5", "-"]);
}

#[test]
fn a_record_of_another_compiler_is_told_apart() {
    let recorded = record("rustc 1", &counts(&[("get", 1_000)]));
    assert_eq!([is_of(&recorded, "rustc 1"), is_of(&recorded, "rustc 10")], [true, false]);
}
