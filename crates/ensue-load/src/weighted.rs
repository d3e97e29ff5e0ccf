//! A choice among values, each with a weight.

use crate::random::Random;

/// Values and the share in which each is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighted<T> {
    values: Vec<T>,
    /// For each value its weight and those of all before it.
    sums: Vec<u64>,
}

impl<T> Weighted<T> {
    /// Nothing if no weight is above zero. Values of weight zero are never drawn.
    pub fn new(choices: impl IntoIterator<Item = (T, u32)>) -> Option<Weighted<T>> {
        let (mut values, mut sums, mut sum) = (Vec::new(), Vec::new(), 0);
        for (value, weight) in choices.into_iter().filter(|(_, weight)| *weight > 0) {
            sum += u64::from(weight);
            values.push(value);
            sums.push(sum);
        }
        (sum > 0).then_some(Weighted { values, sums })
    }

    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The place of a value among `values`.
    pub fn draw_place(&self, random: &mut Random) -> usize {
        let total = self.sums.last().copied().unwrap_or(1);
        let drawn = random.below(total);
        self.sums.partition_point(|sum| *sum <= drawn)
    }

    pub fn draw(&self, random: &mut Random) -> &T {
        &self.values[self.draw_place(random)]
    }
}
