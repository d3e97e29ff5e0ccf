//! Which cores of the datacenter can be asked: a node that is known to be down is answered for at once.
//!
//! - On a command that needs a partition of a core without a link: `UNAVAILABLE`, before anything of it is sent
//!   anywhere (`Cx::refusal`). So nothing of it is executed, a write neither.
//! - On a link that breaks while an answer is waited for: `exchange`.

use ensue_types::CoreId;
use std::collections::BTreeSet;

/// The cores besides the own one to which there is a link.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    up: BTreeSet<CoreId>,
}

impl Links {
    pub(super) fn on_up(&mut self, core: CoreId) {
        self.up.insert(core);
    }

    pub(super) fn on_down(&mut self, core: CoreId) {
        self.up.remove(&core);
    }

    pub(super) fn reaches(&self, own: CoreId, core: CoreId) -> bool {
        core == own || self.up.contains(&core)
    }
}
