//! How many different elements registers have probably seen.

use super::registers::{RANK_MAX, REGISTERS, Registers};

/// Ertl's estimator, algorithm 6, for 14 bits of place and 50 bits that are looked at for zeros.
pub(super) fn cardinality(registers: &Registers) -> u64 {
    /// 1 / (2 ln 2).
    const ALPHA: f64 = 0.721_347_520_444_481_7;
    let mut histogram = [0_u32; RANK_MAX as usize + 1];
    registers.values().for_each(|value| histogram[usize::from(value)] += 1);
    let all = REGISTERS as f64;
    let mut sum = all * tau((all - f64::from(histogram[usize::from(RANK_MAX)])) / all);
    for count in histogram[1..usize::from(RANK_MAX)].iter().rev() {
        sum += f64::from(*count);
        sum *= 0.5;
    }
    sum += all * sigma(f64::from(histogram[0]) / all);
    (ALPHA * all * all / sum).round() as u64
}

/// The share of registers that are still zero, for small numbers of elements.
fn sigma(mut share: f64) -> f64 {
    if share == 1.0 {
        return f64::INFINITY;
    }
    let (mut factor, mut sum) = (1.0, share);
    loop {
        share *= share;
        let before = sum;
        sum += share * factor;
        factor += factor;
        if sum == before {
            return sum;
        }
    }
}

/// The share of registers that are not at their highest, for very large numbers of elements.
fn tau(mut share: f64) -> f64 {
    if share == 0.0 || share == 1.0 {
        return 0.0;
    }
    let (mut factor, mut sum) = (1.0, 1.0 - share);
    loop {
        share = share.sqrt();
        let before = sum;
        factor *= 0.5;
        sum -= (1.0 - share).powi(2) * factor;
        if sum == before {
            return sum / 3.0;
        }
    }
}
