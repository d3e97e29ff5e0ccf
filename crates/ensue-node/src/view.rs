//! What a protocol lets a read see, as the store asks for it: version by version.

use crate::evaluate::Observed;
use ensue_protocol::{Choice, Protocol, VisibilityPredicate};
use ensue_store::view::View;
use ensue_types::{Beyond, LogicalTime, Source, Within};

/// The versions that a visibility predicate lets a reader see.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) protocol: &'a dyn Protocol,
    pub(crate) predicate: &'a VisibilityPredicate,
}

impl<'a> Shown<'a> {
    /// Nothing where the newest is shown whatever it is.
    pub(crate) fn of(protocol: &'a dyn Protocol, choice: &'a Choice) -> Option<Shown<'a>> {
        match choice {
            Choice::Shown(predicate) | Choice::NewestIfWhole(predicate) => {
                Some(Shown { protocol, predicate })
            }
            Choice::Newest | Choice::Wait => None,
        }
    }
}

impl ensue_types::Visibility for Shown<'_> {
    fn is_visible(&self, source: &Source, _since: LogicalTime) -> bool {
        self.protocol.is_visible(self.predicate, source)
    }

    /// What is within the times of a predicate is visible in every protocol: its contract says so.
    fn shows_all(&self, within: &Within) -> bool {
        self.predicate.times.covers(&within.times)
    }

    /// What was written after the time of a predicate is hidden, unless the own datacenter wrote it: so says the same
    /// contract.
    fn hides_all(&self, beyond: &Beyond) -> bool {
        let may_be_local = beyond.datacenter == self.predicate.datacenter && !self.predicate.whole;
        !may_be_local && self.predicate.times.at(beyond.datacenter) < beyond.time
    }
}

/// The same, and all that the own datacenter wrote.
pub(crate) struct OwnToo<'a>(pub(crate) Shown<'a>);

impl ensue_types::Visibility for OwnToo<'_> {
    fn is_visible(&self, source: &Source, since: LogicalTime) -> bool {
        source.operation.datacenter == self.0.predicate.datacenter || self.0.is_visible(source, since)
    }

    fn shows_all(&self, within: &Within) -> bool {
        self.0.shows_all(within)
    }

    fn hides_all(&self, beyond: &Beyond) -> bool {
        beyond.datacenter != self.0.predicate.datacenter && self.0.hides_all(beyond)
    }
}

/// Whether a predicate lets its reader see all that was read, or it was one version.
pub(crate) fn is_whole(shown: &Shown<'_>, observed: &Observed) -> bool {
    observed.pieces <= 1
        || observed.sources.iter().all(|source| shown.protocol.is_visible(shown.predicate, source))
}

/// The view of what is shown, or another one where the newest is.
pub(crate) fn view_of<'a>(shown: &'a Option<Shown<'a>>, newest: View<'a>) -> View<'a> {
    match shown {
        Some(shown) => View::Visibility(shown),
        None => newest,
    }
}
