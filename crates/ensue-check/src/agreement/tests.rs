//! A share of what the example `agree` compares, small enough for every run of the tests.

use super::*;

#[test]
fn both_checkers_say_the_same() {
    let agreement = compare(0..600);
    assert!(agreement.disagreements.is_empty(), "{agreement}");
    assert!(agreement.too_large * 100 < agreement.histories, "{agreement}");
    for (property, verdicts) in &agreement.verdicts {
        // Verdicts that never differ compare nothing.
        assert!(verdicts.holds > 50 && verdicts.violated > 10, "{property}: {agreement}");
    }
}
