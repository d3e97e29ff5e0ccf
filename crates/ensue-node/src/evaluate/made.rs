//! What a command has made that was not there before, if changes are noted: events tell of it.

use super::Evaluation;
use bytes::Bytes;
use std::collections::BTreeMap;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Made {
    /// The rows that the command has changed, and whether they were not there before.
    touched: BTreeMap<Bytes, bool>,
    /// It has made a consumer of a group of a stream.
    consumer: bool,
}

impl Evaluation<'_> {
    /// The rows that the command has made.
    pub fn take_new(&mut self) -> Vec<Bytes> {
        let touched = std::mem::take(&mut self.made.touched);
        touched.into_iter().filter_map(|(key, is_new)| is_new.then_some(key)).collect()
    }

    /// A row is about to be changed.
    pub(super) fn note_if_new(&mut self, key: &Bytes) {
        if self.written_count().is_some() && !self.made.touched.contains_key(key) {
            let is_new = self.is_absent(key);
            self.made.touched.insert(key.clone(), is_new);
        }
    }

    /// A consumer is made, if it is not there.
    pub fn note_consumer(&mut self, is_new: bool) {
        self.made.consumer |= is_new;
    }

    pub fn has_made_consumer(&self) -> bool {
        self.made.consumer
    }
}
