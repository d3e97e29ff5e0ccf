//! The recorded table is read as it is written.

use super::{of, of_table};
use ensue_sim::world::work::Work;

#[test]
fn a_table_is_read_by_the_names_of_its_columns() {
    let table =
        "words\n\n| protocol | entry | get-command |\n|---|--:|--:|\n| `a-b` |  | 12 |\n| `a` | 300 | 7 |\n";
    let prices = of_table(table, "a").unwrap();
    assert_eq!((prices.of(Work::Entries), prices.of(Work::GetCommand), prices.of(Work::Timer)), (300, 7, 0));
    assert_eq!(of_table(table, "a-b").unwrap().of(Work::Entries), 0);
    assert!(of_table(table, "b").is_err() && of_table("", "a").is_err());
    assert!(of_table(&table.replace("entry", "entries"), "a").is_err());
}

#[test]
fn every_protocol_has_prices_of_what_always_occurs() {
    for protocol in ensue_protocol::NAMES {
        let prices = of(protocol).unwrap();
        for work in [Work::GetCommand, Work::SetCommand, Work::Entries, Work::TurnEnd] {
            assert!(prices.of(work) > 100, "{protocol}: {work:?}");
        }
    }
}
