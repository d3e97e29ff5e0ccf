//! The scripts whose texts this core has sent to every partition of the datacenter.
//!
//! If a script is missing here, its text is sent once more. If a partition has lost a script that is listed here, a
//! client that names it by its digest is answered `NOSCRIPT`, and sends the text.

use bytes::Bytes;
use ensue_types::limits;
use std::collections::BTreeSet;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownScripts {
    texts: BTreeSet<Bytes>,
    bytes: usize,
}

impl KnownScripts {
    pub(super) fn contains(&self, text: &Bytes) -> bool {
        self.texts.contains(text)
    }

    /// Every partition was told of a text.
    pub(super) fn insert(&mut self, text: &Bytes) {
        if self.texts.len() >= limits::SCRIPTS_MAX || self.bytes + text.len() > limits::SCRIPT_TEXTS_BYTES_MAX
        {
            self.forget();
        }
        // Of its own, so that it does not keep a client's whole read buffer alive.
        if self.texts.insert(Bytes::copy_from_slice(text)) {
            self.bytes += text.len();
        }
    }

    pub(super) fn forget(&mut self) {
        *self = KnownScripts::default();
    }
}
