//! Callgrind's format is read as it is written.

use super::{inclusive, prices, record, units};

const PROFILE: &str = "events: Ir\n\nfn=(1) main\n12 5\ncfn=(2) ensue_sim::world::work::measured_get_command\n\
                       calls=3 8\n+2 300\ncfn=(3) other\ncalls=1 1\n5 7\n\nfn=(2)\n8 30\ncfn=(4) node\ncalls=3 1\n9 270\n\n\
                       fn=(5) elsewhere\ncfn=(2)\ncalls=1 8\n4 100\ncfn=(6) \
                       ensue_sim::world::work::measured_entry::h0123\ncalls=2 4\n* 50\n";

#[test]
fn calls_of_a_counted_function_are_added_up_wherever_they_are_made() {
    let sums = inclusive(PROFILE);
    assert_eq!(
        sums.iter().map(|(kind, sum)| (kind.as_str(), *sum)).collect::<Vec<_>>(),
        [("entry", 50), ("get-command", 400)]
    );
}

#[test]
fn a_price_is_of_one_unit_and_what_did_not_occur_has_none() {
    let units = units(b"get-command\t4\nentry\t5\ntimer\t0\n").unwrap();
    let row = prices(&units, &inclusive(PROFILE));
    let kinds: Vec<String> = units.into_iter().map(|(kind, _)| kind).collect();
    let text = record("rustc 1", &kinds, &[("a".into(), row)]);
    assert!(text.contains("\n| protocol | get-command | entry | timer |\n|---|--:|--:|--:|\n"), "{text}");
    assert!(text.ends_with("\n| `a` | 100 | 10 |  |\n"), "{text}");
}
