//! The table beside a naive model, its size, and what eviction must not lose.

use super::*;
use crate::random::Random;
use crate::sketch::{KeyedSketch, Sketching};

fn sketch(number: u64) -> KeyedSketch {
    Sketching::keyed(&[7; 32]).request(&number.to_le_bytes())
}

fn response(number: u64) -> KeyedSketch {
    Sketching::keyed(&[7; 32]).response(&number.to_le_bytes())
}

#[test]
fn an_entry_takes_44_bytes_and_22_million_fit_into_a_gigabyte() {
    assert_eq!(HistoryTable::<16>::ENTRY_BYTES, 44);
    assert_eq!(HistoryTable::<32>::ENTRY_BYTES, 76);
    let table = HistoryTable::<16>::new(100_000, Broken::none()).unwrap();
    assert_eq!(table.allocated_bytes(), table.capacity() * 44, "an entry takes more than its slot");
    assert!(table.capacity() < 100_000 + TABLE_WAYS);
    assert_eq!(22_000_000 * HistoryTable::<16>::ENTRY_BYTES, 968_000_000);
}

#[test]
fn a_table_of_no_or_too_many_entries_is_refused() {
    for entries in [0, TABLE_ENTRIES_MAX + 1] {
        let error = HistoryTable::<16>::new(entries, Broken::none()).unwrap_err();
        assert_eq!(error, TableError::Entries(entries));
    }
}

#[test]
fn every_field_of_an_entry_is_kept() {
    let mut table = HistoryTable::<16>::new(4, Broken::none()).unwrap();
    for (number, list, changed) in [(1, List::White, true), (2, List::Black, true), (3, List::Neither, false)]
    {
        table.enlist(&sketch(number), list);
        assert_eq!(table.lookup(&sketch(number)).unwrap().response, None);
        let sequence = Sequence(number << 40 | 5);
        table.update(&sketch(number), response(number), sequence).unwrap();
        let before = table.lookup(&sketch(number)).unwrap();
        assert_eq!((before.response, before.sequence), (Some(response(number)), sequence));
        assert_eq!((before.list, before.outcomes.changes()), (list, 0));
        table.record(&sketch(number), changed);
        let entry = table.lookup(&sketch(number)).unwrap();
        assert_eq!((entry.response, entry.sequence), (before.response, sequence));
        assert_eq!(entry.outcomes.changes(), u32::from(changed));
        assert_eq!(entry.list, list);
    }
}

#[test]
fn only_a_newer_sequence_number_changes_an_entry() {
    let mut table = HistoryTable::<16>::new(4, Broken::none()).unwrap();
    assert!(table.update(&sketch(1), response(1), Sequence(5)).is_some());
    assert!(table.update(&sketch(1), response(2), Sequence(5)).is_none());
    assert!(table.update(&sketch(1), response(2), Sequence(4)).is_none());
    assert_eq!(table.lookup(&sketch(1)).unwrap().response, Some(response(1)));
    let before = table.update(&sketch(1), response(2), Sequence(6)).unwrap();
    assert_eq!(before.response, Some(response(1)));
}

#[test]
fn a_new_entry_is_above_all_that_was_evicted() {
    let mut table = HistoryTable::<16>::new(1, Broken::none()).unwrap();
    table.update(&sketch(1), response(1), Sequence(10));
    table.update(&sketch(2), response(2), Sequence(11));
    assert_eq!((table.evicted(), table.floor()), (1, Sequence(10)));
    assert!(table.update(&sketch(1), response(3), Sequence(9)).is_none(), "older than what was evicted");
    assert_eq!(table.below_floor(), 1);
    assert!(table.update(&sketch(1), response(1), Sequence(12)).is_some());
    table.forget(|_| true);
    assert!(table.is_empty());
    assert_eq!(table.floor(), Sequence(12));
}

/// One set is an exact LRU: the same as a list of requests, most recently used first.
#[test]
fn a_set_evicts_the_least_recently_used() {
    let mut random = Random::new(3);
    for capacity in [1, 2, 5, 16] {
        let mut table = HistoryTable::<16>::new(capacity, Broken::none()).unwrap();
        let mut model: Vec<(u64, u64)> = Vec::new();
        for turn in 1..2_000 {
            let key = random.below(capacity as u64 * 2);
            let found = model.iter().position(|(other, _)| *other == key);
            if random.chance(500) {
                let seen = table.lookup(&sketch(key)).map(|entry| entry.sequence.0);
                assert_eq!(seen, found.map(|at| model[at].1));
            } else {
                table.update(&sketch(key), response(turn), Sequence(turn)).unwrap();
            }
            let (at, sequence) = match found {
                Some(at) => (at, table.lookup(&sketch(key)).unwrap().sequence.0),
                None if table.lookup(&sketch(key)).is_none() => continue,
                None => (model.len(), turn),
            };
            if at < model.len() {
                model.remove(at);
            }
            model.insert(0, (key, sequence));
            model.truncate(capacity);
            assert_eq!(table.len(), model.len());
        }
        assert!(table.evicted() > 0);
    }
}

#[test]
fn a_table_of_many_sets_fills_almost_wholly() {
    let mut table = HistoryTable::<16>::new(16_000, Broken::none()).unwrap();
    for number in 0..32_000 {
        table.update(&sketch(number), response(number), Sequence(number + 1));
    }
    assert!(table.len() > 15_900, "{} of 16000 entries after twice as many requests", table.len());
}
