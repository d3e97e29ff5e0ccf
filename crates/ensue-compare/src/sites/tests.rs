//! Tests that one more datacenter is seen in the figures, and that it is not seen in the latency of the first.

use super::{Scale, chart, run, table};
use crate::Span;
use crate::cost::percentile;
use ensue_sim::stopwatch::Stopwatch;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every call of a node takes a nanosecond.
fn ticks() -> u64 {
    static TICKS: AtomicU64 = AtomicU64::new(0);
    TICKS.fetch_add(1, Ordering::Relaxed)
}

fn scale(sites: u8) -> Scale {
    let span = Span { warmup_us: 200_000, counted_us: 400_000 };
    run(sites, 1, span, Stopwatch::new(ticks, 0)).unwrap()
}

#[test]
fn another_datacenter_adds_its_transactions_and_leaves_the_latency_of_the_first() {
    let (one, three) = (scale(1), scale(3));
    assert!(
        one.committed() > 200 && three.merges > 0,
        "{} committed, {} merged",
        one.committed(),
        three.merges
    );
    assert!(three.commits.iter().all(|commits| commits * 10 > one.commits[0] * 8), "{:?}", three.commits);
    assert!(three.leaves > one.leaves, "they do not hear of each other at once");
    let median = |scale: &Scale| scale.transaction_ms(50);
    assert!(median(&three) * 10.0 < median(&one) * 12.0, "{} ms and {} ms", median(&one), median(&three));
    assert!(three.spent_ns > one.spent_ns && three.capacity() > 0.0);
    let of = |percent| percentile(&[1, 2, 9], percent);
    assert_eq!((percentile(&[], 50), of(50), of(100)), (None, Some(2), Some(9)));
    let scales = [one, three];
    assert_eq!(table::table(&scales).lines().count(), 4);
    assert_eq!(chart::svg("sites", &scales).matches("<rect").count(), 1 + 2 * 4);
}
