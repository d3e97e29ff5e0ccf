//! One logical time a datacenter: how far the vector protocols know, need or show what each of them wrote.

use crate::{DatacenterId, LogicalTime};
use std::fmt;

/// A logical time for each datacenter; zero for those that it does not name.
///
/// Trailing zeros are never held, so two vectors that mean the same are equal.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct TimeVector(Vec<LogicalTime>);

impl TimeVector {
    pub const ZERO: TimeVector = TimeVector(Vec::new());

    /// The same time for so many datacenters.
    pub fn uniform(datacenters: usize, time: LogicalTime) -> TimeVector {
        (0..datacenters).map(|_| time).collect()
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub fn at(&self, datacenter: DatacenterId) -> LogicalTime {
        self.0.get(usize::from(datacenter.0)).copied().unwrap_or_default()
    }

    /// Raises one entry; says whether it rose.
    pub fn raise(&mut self, datacenter: DatacenterId, time: LogicalTime) -> bool {
        if time <= self.at(datacenter) {
            return false;
        }
        let index = usize::from(datacenter.0);
        if self.0.len() <= index {
            self.0.resize(index + 1, LogicalTime::ZERO);
        }
        self.0[index] = time;
        true
    }

    /// Raises every entry to the other's; says whether any rose.
    pub fn join(&mut self, other: &TimeVector) -> bool {
        other.entries().fold(false, |rose, (datacenter, time)| self.raise(datacenter, time) || rose)
    }

    /// Lowers every entry to the other's.
    pub fn meet(&mut self, other: &TimeVector) {
        self.0.truncate(other.0.len());
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own = (*own).min(*other));
        self.trim();
    }

    /// Whether every entry is at or above the other's.
    pub fn covers(&self, other: &TimeVector) -> bool {
        other.entries().all(|(datacenter, time)| self.at(datacenter) >= time)
    }

    /// The same without regard to one datacenter.
    pub fn covers_but(&self, own: DatacenterId, other: &TimeVector) -> bool {
        other.entries().all(|(datacenter, time)| datacenter == own || self.at(datacenter) >= time)
    }

    /// The highest entry.
    pub fn highest(&self) -> LogicalTime {
        self.0.iter().copied().max().unwrap_or_default()
    }

    /// Every datacenter up to the last that has a time, with its time.
    pub fn entries(&self) -> impl Iterator<Item = (DatacenterId, LogicalTime)> + '_ {
        self.0.iter().enumerate().map(|(index, time)| (DatacenterId(index as u8), *time))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&LogicalTime::ZERO) {
            self.0.pop();
        }
    }
}

impl FromIterator<LogicalTime> for TimeVector {
    fn from_iter<I: IntoIterator<Item = LogicalTime>>(times: I) -> TimeVector {
        let mut vector = TimeVector(times.into_iter().take(usize::from(u8::MAX)).collect());
        vector.trim();
        vector
    }
}

impl fmt::Debug for TimeVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, time) in self.0.iter().enumerate() {
            write!(f, "{}{time}", if index == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(times: &[u64]) -> TimeVector {
        times.iter().map(|&time| LogicalTime(time)).collect()
    }

    #[test]
    fn join_and_meet_are_the_least_upper_and_the_greatest_lower_bound() {
        let (one, other) = (vector(&[3, 0, 7]), vector(&[1, 5]));
        let mut joined = one.clone();
        assert!(joined.join(&other));
        assert_eq!(joined, vector(&[3, 5, 7]));
        assert!(!joined.join(&other));
        let mut met = one.clone();
        met.meet(&other);
        assert_eq!(met, vector(&[1]));
        assert!(joined.covers(&one) && joined.covers(&other) && one.covers(&met) && other.covers(&met));
    }

    #[test]
    fn an_entry_may_be_left_out_of_the_comparison() {
        let (here, wanted) = (vector(&[3, 5]), vector(&[9, 5]));
        assert!(!here.covers(&wanted));
        assert!(here.covers_but(DatacenterId(0), &wanted));
        assert!(!here.covers_but(DatacenterId(1), &wanted));
    }

    #[test]
    fn trailing_zeros_mean_nothing() {
        assert_eq!(vector(&[1, 0, 0]), vector(&[1]));
        assert_eq!(TimeVector::uniform(3, LogicalTime::ZERO), TimeVector::default());
    }
}
