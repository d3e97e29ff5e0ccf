//! How an interrupted import ends.

use super::*;

#[test]
fn an_interruption_is_the_end_only_where_the_source_was() {
    let stopping = |source| Stopping { since: Instant::now(), source };
    let (early, late) = (Duration::ZERO, STOP_PATIENCE);
    assert_eq!(stopping(Some(100)).end_after(early, 100, 100), Some(End::Whole));
    assert_eq!(stopping(Some(100)).end_after(early, 120, 120), Some(End::Whole));
    assert_eq!(stopping(Some(100)).end_after(early, 40, 100), None);
    let behind = |rest: &str| Some(End::Behind(rest.into()));
    assert_eq!(
        stopping(Some(100)).end_after(late, 40, 100),
        behind("60 bytes of the source are not applied")
    );
    assert_eq!(stopping(None).end_after(early, 40, 50), None);
    let unknown = "the source did not answer: it is not known how much of it is missing, 10 bytes at least";
    assert_eq!(stopping(None).end_after(late, 40, 50), behind(unknown));
    let nothing = "the source did not answer: it is not known whether something is missing";
    assert_eq!(stopping(None).end_after(early, 50, 50), behind(nothing));
}
