//! Transactions of very many keys: what one key costs must not grow with their number, or these tests do not end.

use super::*;
use crate::builder::Builder;
use crate::history::Transaction;

const KEYS: usize = 200_000;
const DATACENTERS: usize = 3;

/// One transaction writes all registers and adds to all counters; then each datacenter reads all in one transaction,
/// and the last of them finds the last keys as the first transaction left them, or as if it had never been.
fn all_read_at_rest(last_keys_are_seen: bool) -> History {
    let mut builder = Builder::new();
    let names: Vec<(String, String)> = (0..KEYS).map(|key| (format!("r{key}"), format!("n{key}"))).collect();
    let mut written = Vec::new();
    for (register, counter) in &names {
        written.push(builder.write(register, Some("1")));
        written.push(builder.add_to(counter, 1));
    }
    builder.commit("writer", written);
    for datacenter in 0..DATACENTERS {
        let mut operations = Vec::new();
        for (key, (register, counter)) in names.iter().enumerate() {
            let is_seen = last_keys_are_seen || datacenter + 1 < DATACENTERS || key + 1 < KEYS;
            operations.push(builder.read(register, is_seen.then_some("1")));
            operations.push(builder.count(counter, i64::from(is_seen)));
        }
        let session = builder.session(&format!("last{datacenter}"));
        let datacenter = Some(builder.datacenter(&format!("dc{datacenter}")));
        let reader =
            Transaction { operations, datacenter, is_final: true, ..Transaction::committed(session) };
        builder.add(reader);
    }
    builder.finish()
}

#[test]
fn final_reads_of_many_keys_hold() {
    let report = check(&all_read_at_rest(true), &Options::default());
    for (property, verdict) in report.verdicts {
        assert_eq!(verdict, Verdict::Holds, "{property}");
    }
}

#[test]
fn one_stale_key_among_many_is_found_and_explained() {
    let report = check(&all_read_at_rest(false), &Options::default());
    let violations = report.violations().map(|(property, violation)| (property, violation.pattern));
    let expected = [
        (Property::ReadAtomic, Pattern::WriteCOInitRead),
        (Property::Causal, Pattern::WriteCOInitRead),
        (Property::CausalConvergent, Pattern::WriteCOInitRead),
        (Property::SnapshotReads, Pattern::WriteCOInitRead),
        (Property::Counters, Pattern::CounterLostAddition),
        (Property::Convergence, Pattern::Diverged),
    ];
    assert_eq!(violations.collect::<Vec<_>>(), expected);
}
