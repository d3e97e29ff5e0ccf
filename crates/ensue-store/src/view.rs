//! How a reader looks at rows: at a logical time, at that and some writes more, at the newest, or at those writes that
//! it may see.

use crate::cell::State;
use ensue_types::{Beyond, LogicalTime, Source, Stamp, Visibility, Within};
use std::ops::Deref;

/// What a reader looks at.
#[derive(Clone, Copy)]
pub enum View<'a> {
    /// Everything that was visible in this datacenter at this time.
    At(LogicalTime),
    /// That, and of what has come later the writes that this shows. Only where versions are kept.
    With(LogicalTime, &'a dyn Visibility),
    /// Everything that is here.
    Newest,
    /// What has been settled, and of the rest what this shows.
    Visibility(&'a dyn Visibility),
    /// The same for a write, which also sees its own earlier effects: those of this stamp.
    Writer(&'a dyn Visibility, Stamp),
}

impl<'a> View<'a> {
    /// The view of a write of this stamp.
    pub fn of_writer(self, stamp: Stamp) -> View<'a> {
        match self {
            View::Visibility(visibility) => View::Writer(visibility, stamp),
            other => other,
        }
    }

    /// Whether an unsettled write that has been here since a time is shown.
    pub fn is_visible(&self, source: &Source, since: LogicalTime) -> bool {
        match self {
            View::At(at) => since <= *at,
            View::With(at, visibility) => since <= *at || visibility.is_visible(source, since),
            View::Newest => true,
            View::Visibility(visibility) => visibility.is_visible(source, since),
            View::Writer(visibility, own) => source.stamp == *own || visibility.is_visible(source, since),
        }
    }

    /// Whether it is known to show every write within these bounds.
    pub fn shows_all(&self, within: &Within) -> bool {
        match self {
            View::Newest => true,
            View::Visibility(visibility) | View::Writer(visibility, _) => visibility.shows_all(within),
            View::At(at) | View::With(at, _) => within.since <= *at,
        }
    }

    /// Whether it is known to hide every write from this one on.
    pub fn hides_all(&self, beyond: &Beyond) -> bool {
        match self {
            View::At(at) => beyond.since > *at,
            View::With(at, visibility) => beyond.since > *at && visibility.hides_all(beyond),
            View::Newest => false,
            View::Visibility(visibility) => visibility.hides_all(beyond),
            View::Writer(visibility, own) => {
                let is_before_own = own.datacenter == beyond.datacenter && beyond.time <= own.time;
                !is_before_own && visibility.hides_all(beyond)
            }
        }
    }

    /// The past time that is looked at, if it is one.
    pub fn time(&self) -> Option<LogicalTime> {
        match self {
            View::At(at) | View::With(at, _) => Some(*at),
            View::Newest | View::Visibility(_) | View::Writer(..) => None,
        }
    }
}

/// What a view shows of one location.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    /// All of it has been here since then.
    pub since: LogicalTime,
    pub state: ShownState<'a>,
    /// A write with a higher stamp than any that is shown is here, and is not shown.
    pub stale: bool,
}

/// A state that is kept as it is shown, or that was merged to be shown. Small, because almost all are kept.
#[derive(Clone, Debug)]
pub enum ShownState<'a> {
    Kept(&'a State),
    Merged(Box<State>),
}

impl Deref for ShownState<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        match self {
            ShownState::Kept(state) => state,
            ShownState::Merged(state) => state,
        }
    }
}
