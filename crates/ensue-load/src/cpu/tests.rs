//! The processor time of this very process, and the line of the kernel.

use super::*;

#[test]
fn own_time_grows_with_work() {
    let own = std::process::id();
    let before = processor_ns(&[own]).expect("this process exists");
    let mut sum = 0u64;
    while processor_ns(&[own]).expect("this process exists") < before + 20_000_000 {
        sum = std::hint::black_box(sum.wrapping_add(1));
    }
    assert_eq!(processor_ns(&[]).expect("none is asked"), 0);
}

#[test]
fn a_process_that_is_none_is_an_error() {
    assert!(matches!(processor_ns(&[u32::MAX]), Err(LoadError::Process { pid: u32::MAX, .. })));
}

#[test]
fn ticks_are_the_fields_behind_the_name() {
    let stat = "7 (a (strange) name) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0";
    assert_eq!(ticks(stat).expect("the line is whole"), 3_000_000_000);
    assert!(ticks("7 (short) S 1").is_err());
}
