//! One logical time a datacenter: how far the vector protocols know, need or show what each of them wrote.

use crate::{DatacenterId, LogicalTime};
use std::fmt;
use std::hash::{Hash, Hasher};

/// Of so many datacenters the times stand in the vector itself: it is copied for each write and each read, and most
/// clusters have no more.
const INLINE: usize = 3;

/// A logical time for each datacenter; zero for those that it does not name.
///
/// Trailing zeros are never held, so two vectors that mean the same are equal.
#[derive(Clone)]
pub struct TimeVector(Times);

/// Times, those of few datacenters without an allocation. What is behind the length is zero.
#[derive(Clone)]
enum Times {
    Few(u8, [LogicalTime; INLINE]),
    Many(Vec<LogicalTime>),
}

impl Times {
    fn as_slice(&self) -> &[LogicalTime] {
        match self {
            Times::Few(length, times) => &times[..usize::from(*length)],
            Times::Many(times) => times,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [LogicalTime] {
        match self {
            Times::Few(length, times) => &mut times[..usize::from(*length)],
            Times::Many(times) => times,
        }
    }

    /// Makes it longer, by zeros.
    fn extend_to(&mut self, length: usize) {
        match self {
            Times::Few(known, _) if length <= INLINE => *known = length as u8,
            Times::Few(..) => {
                let mut times = self.as_slice().to_vec();
                times.resize(length, LogicalTime::ZERO);
                *self = Times::Many(times);
            }
            Times::Many(times) => times.resize(length, LogicalTime::ZERO),
        }
    }

    fn truncate(&mut self, length: usize) {
        match self {
            Times::Few(known, times) if length < usize::from(*known) => {
                times[length..].fill(LogicalTime::ZERO);
                *known = length as u8;
            }
            Times::Few(..) => {}
            Times::Many(times) => times.truncate(length),
        }
    }
}

impl Default for TimeVector {
    fn default() -> TimeVector {
        TimeVector::ZERO
    }
}

impl PartialEq for TimeVector {
    fn eq(&self, other: &TimeVector) -> bool {
        self.0.as_slice() == other.0.as_slice()
    }
}

impl Eq for TimeVector {}

impl Hash for TimeVector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_slice().hash(state);
    }
}

impl TimeVector {
    pub const ZERO: TimeVector = TimeVector(Times::Few(0, [LogicalTime::ZERO; INLINE]));

    /// The same time for so many datacenters.
    pub fn uniform(datacenters: usize, time: LogicalTime) -> TimeVector {
        (0..datacenters).map(|_| time).collect()
    }

    pub fn is_zero(&self) -> bool {
        self.is_empty()
    }

    pub fn at(&self, datacenter: DatacenterId) -> LogicalTime {
        self.0.as_slice().get(usize::from(datacenter.0)).copied().unwrap_or_default()
    }

    /// Raises one entry; says whether it rose.
    pub fn raise(&mut self, datacenter: DatacenterId, time: LogicalTime) -> bool {
        if time <= self.at(datacenter) {
            return false;
        }
        let index = usize::from(datacenter.0);
        if self.len() <= index {
            self.0.extend_to(index + 1);
        }
        self.0.as_mut_slice()[index] = time;
        true
    }

    /// Raises every entry to the other's; says whether any rose.
    pub fn join(&mut self, other: &TimeVector) -> bool {
        other.entries().fold(false, |rose, (datacenter, time)| self.raise(datacenter, time) || rose)
    }

    /// Lowers every entry to the other's.
    pub fn meet(&mut self, other: &TimeVector) {
        self.0.truncate(other.len());
        let pairs = self.0.as_mut_slice().iter_mut().zip(other.0.as_slice());
        pairs.for_each(|(own, other)| *own = (*own).min(*other));
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
        self.0.as_slice().iter().copied().max().unwrap_or_default()
    }

    /// Every datacenter up to the last that has a time, with its time.
    pub fn entries(&self) -> impl Iterator<Item = (DatacenterId, LogicalTime)> + '_ {
        self.0.as_slice().iter().enumerate().map(|(index, time)| (DatacenterId(index as u8), *time))
    }

    pub fn len(&self) -> usize {
        self.0.as_slice().len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn trim(&mut self) {
        let times = self.0.as_slice();
        let length = times.iter().rposition(|time| *time != LogicalTime::ZERO).map_or(0, |last| last + 1);
        self.0.truncate(length);
    }
}

impl FromIterator<LogicalTime> for TimeVector {
    fn from_iter<I: IntoIterator<Item = LogicalTime>>(times: I) -> TimeVector {
        let mut vector = TimeVector::ZERO;
        for (index, time) in times.into_iter().take(usize::from(u8::MAX)).enumerate() {
            // A zero at the end is never held.
            vector.raise(DatacenterId(index as u8), time);
        }
        vector
    }
}

impl fmt::Debug for TimeVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, time) in self.0.as_slice().iter().enumerate() {
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
    fn many_datacenters_are_told_apart_as_few_are() {
        let many = vector(&[1, 0, 3, 0, 5, 0]);
        assert_eq!(many.entries().map(|(_, time)| time.0).collect::<Vec<_>>(), [1, 0, 3, 0, 5]);
        let mut met = many.clone();
        met.meet(&vector(&[9, 9, 2, 9]));
        assert_eq!(met, vector(&[1, 0, 2]));
        assert!(met.raise(DatacenterId(4), LogicalTime(5)) && !met.raise(DatacenterId(4), LogicalTime(5)));
        assert_eq!(met, vector(&[1, 0, 2, 0, 5]));
        met.meet(&vector(&[9]));
        met.raise(DatacenterId(2), LogicalTime(4));
        assert_eq!(met, vector(&[1, 0, 4]), "what was cut off is zero");
    }

    #[test]
    fn trailing_zeros_mean_nothing() {
        assert_eq!(vector(&[1, 0, 0]), vector(&[1]));
        assert_eq!(TimeVector::uniform(3, LogicalTime::ZERO), TimeVector::default());
    }
}
