//! Which bytes of the log are known to be durable by what the log itself says later: damage there must be found.
//!
//! A batch tells what was known to be synced when it was made. Once it is synced itself, it is a witness that even a
//! power failure leaves. Damage behind the last witness looks like a torn tail to anybody. A batch that found no room
//! is written later as it was made, and tells no more than it did at first.

use ensue_store::disk::FileName;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How far each segment is synced.
type Lengths = Arc<BTreeMap<FileName, usize>>;

#[derive(Clone, Debug, Default)]
pub(super) struct Witnesses {
    /// As it was answered.
    synced: Lengths,
    /// What the appends in flight tell of.
    planned: VecDeque<Lengths>,
    /// What the batch tells of that found no room: the next append is this one again.
    refused: Option<Lengths>,
    /// Appended and not yet synced: where they end, and what they tell of.
    written: VecDeque<(FileName, usize, Lengths)>,
    proven: Lengths,
}

impl Witnesses {
    pub(super) fn planned(&mut self) {
        let told = self.refused.take().unwrap_or_else(|| Arc::clone(&self.synced));
        self.planned.push_back(told);
    }

    /// The oldest append in flight ends here in its file, or has failed.
    pub(super) fn written(&mut self, file: FileName, end: Option<usize>) {
        let told = self.planned.pop_front();
        match (told, end) {
            (Some(told), Some(end)) => self.written.push_back((file, end, told)),
            (told, _) => self.refused = told,
        }
    }

    pub(super) fn synced(&mut self, file: FileName, length: usize) {
        Arc::make_mut(&mut self.synced).insert(file, length);
        let covered = |(written, end, _): &(FileName, usize, Lengths)| {
            *written < file || (*written == file && *end <= length)
        };
        while self.written.front().is_some_and(covered) {
            if let Some((_, _, told)) = self.written.pop_front() {
                self.proven = told;
            }
        }
    }

    /// A file is only so long any more; 0 is gone.
    pub(super) fn cut(&mut self, file: FileName, length: usize) {
        for lengths in [&mut self.synced, &mut self.proven] {
            if lengths.get(&file).is_some_and(|known| *known > length) {
                Arc::make_mut(lengths).insert(file, length);
            }
        }
        self.written.retain(|(written, end, _)| *written != file || *end <= length);
    }

    /// The next process knows no more than the log proves.
    pub(super) fn on_death(&mut self) {
        self.planned.clear();
        self.refused = None;
        self.synced = Arc::clone(&self.proven);
    }

    pub(super) fn on_power_loss(&mut self) {
        self.written.clear();
    }

    /// Segments and how much of each is proven.
    pub(super) fn proven(&self) -> impl Iterator<Item = (FileName, usize)> + '_ {
        self.proven.iter().map(|(&file, &length)| (file, length)).filter(|(_, length)| *length > 0)
    }
}
