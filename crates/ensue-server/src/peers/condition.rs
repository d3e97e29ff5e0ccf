//! What operators are told of the links: which are up, since when, and why not.

use crate::clock::wall_ms;
use ensue_node::LinkReport;
use ensue_types::DatacenterId;

/// How one link is.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) is_up: bool,
    /// Somebody has to change something before it comes up.
    is_refused: bool,
    since_s: u64,
    reason: String,
}

impl Condition {
    /// Of a link that has never been up.
    pub(super) fn new() -> Condition {
        Condition {
            is_up: false,
            is_refused: false,
            since_s: now_s(),
            reason: "it was not reached yet".into(),
        }
    }

    /// It came up. True if that is news.
    pub(super) fn rise(&mut self) -> bool {
        self.become_so(true, false, String::new())
    }

    /// It went down, or could not come up. True if that is news.
    pub(super) fn fall(&mut self, is_refused: bool, reason: String) -> bool {
        self.become_so(false, is_refused, reason)
    }

    fn become_so(&mut self, is_up: bool, is_refused: bool, reason: String) -> bool {
        if (self.is_up, self.is_refused) != (is_up, is_refused) {
            self.since_s = now_s();
        } else if self.reason == reason {
            return false;
        }
        (self.is_up, self.is_refused, self.reason) = (is_up, is_refused, reason);
        true
    }
}

/// All links of a core to one datacenter.
pub(super) fn report<'a>(
    datacenter: DatacenterId,
    conditions: impl Iterator<Item = &'a Condition> + Clone,
) -> LinkReport {
    let count = |which: fn(&Condition) -> bool| conditions.clone().filter(|one| which(one)).count() as u32;
    let (links, up) = (count(|_| true), count(|one| one.is_up));
    let same = conditions.clone().filter(|one| one.is_up == (up == links));
    // What is refused is told before what is only down.
    let worst = same.clone().max_by_key(|one| one.is_refused);
    let since = same.map(|one| one.since_s);
    LinkReport {
        datacenter,
        links,
        up,
        refused: count(|one| one.is_refused),
        since_s: if up == links { since.max() } else { since.min() }.unwrap_or(0),
        reason: worst.map(|one| one.reason.clone()).unwrap_or_default(),
    }
}

fn now_s() -> u64 {
    wall_ms() / 1_000
}
