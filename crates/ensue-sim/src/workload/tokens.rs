//! Errors to who shows a token: which of them a healthy datacenter may give.
//!
//! A good token may name what has not arrived yet, unless it was made in the same datacenter, which shows all that it
//! names, or in a world in which nothing comes late. One that has folded names everything up to an operation, of which
//! its session has not seen all. A protocol that shows what it has received may have shown the token's session what the
//! past of that is still missing of, so that there a token of the same datacenter may have to wait, too. What was lost
//! with a directory, a clock that is wild, or a datacenter that is lost for good may be named, too. A forged one is
//! refused for what is wrong with it; whether this datacenter has issued a time, all its partitions say, and each when
//! the rest of the token has arrived.

use super::Workload;
use super::client::Request;
use super::command::Expect;
use crate::oracle::history::{Operation, OperationIndex};
use crate::world::World;
use ensue_protocol::{Availability, Promises};

/// What has become of the world that a token is shown in.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    is_wild: bool,
    has_lost_writes: bool,
    has_lost_one: bool,
    /// The token was made here, and nothing was wrong here since.
    is_from_here: bool,
    comes_late: ComesLate,
}

/// Whether something of another datacenter may come later than an error of this kind allows for.
#[derive(Clone, Copy, Debug, Default)]
struct ComesLate {
    not_yet: bool,
    blocked: bool,
    fallback: bool,
}

impl Workload {
    /// Whether a token may be answered this error in a datacenter in which nothing is wrong.
    pub(super) fn excuses_token(
        &self,
        world: &mut World,
        request: &Request,
        of: OperationIndex,
        error: &str,
    ) -> bool {
        let shown = &self.history.operations[request.operation];
        let token = &self.history.operations[of];
        let healthy_since = world.healthy_since(shown.datacenter);
        let is_here = |token: &Operation| {
            let was_healthy = healthy_since.is_some_and(|since| since <= token.invoked_us);
            token.datacenter == shown.datacenter && was_healthy
        };
        let all = usize::from(world.options.shape.datacenters);
        let options = &world.options;
        let comes_late = ComesLate {
            not_yet: options.may_wait(options.workload.merge_timeout_ms),
            blocked: options.may_wait(options.tuning.request_timeout_ms),
            fallback: options.may_wait(options.tuning.block_ms_max),
        };
        let known = Known {
            is_wild: world.options.clock.wild_ms > 0,
            has_lost_writes: !world.power_losses.is_empty() || world.options.faults.loses_directories,
            has_lost_one: world.survivors().len() < all,
            is_from_here: is_here(token),
            comes_late,
        };
        let refused_for = request.commands.iter().find_map(|command| match command.expect {
            Expect::Refused(why) => Some(why),
            _ => None,
        });
        excuses(&self.history.promises, known, refused_for, error)
    }
}

fn excuses(promises: &Promises, known: Known, refused_for: Option<&str>, error: &str) -> bool {
    let is = |name: &str| error.starts_with(name);
    let late = known.comes_late;
    let blocks = is("BLOCKED ") && late.blocked;
    let waits = match promises.availability {
        Availability::Always => false,
        Availability::Blocks => blocks,
        Availability::FallsBack => blocks || is("FALLBACK ") && late.fallback,
    };
    if waits || is("DISCARDED ") && known.has_lost_one {
        return true;
    }
    match refused_for {
        Some(why) if why == "NEVERISSUED " && promises.goes_by_times && !known.is_from_here => {
            is(why) || is("NOTYET ")
        }
        Some(why) => is(why),
        None if is("NOTYET ") => {
            let may_be_lacking = promises.availability != Availability::Always
                || !known.is_from_here
                || waits_for_folded(error);
            may_be_lacking && late.not_yet
        }
        None => is("CLOCKAHEAD ") && known.is_wild || is("NEVERISSUED ") && known.has_lost_writes,
    }
}

/// Whether an error names everything up to an operation among what is waited for.
fn waits_for_folded(error: &str) -> bool {
    let awaited = error.split_once("waiting for ").map_or("", |(_, awaited)| awaited);
    awaited.split(", ").any(|name| name.starts_with("up to "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: ComesLate = ComesLate { not_yet: true, blocked: true, fallback: true };

    #[test]
    fn a_good_token_is_refused_only_for_what_has_not_come_or_was_lost() {
        let promises = Promises::CAUSAL_WITH_TRANSACTIONS;
        let excuses = |known, error: &str| excuses(&promises, known, None, error);
        let calm = Known { comes_late: LATE, ..Known::default() };
        let here = Known { is_from_here: true, ..calm };
        assert!(excuses(calm, "NOTYET the timeout passed"));
        assert!(!excuses(here, "NOTYET the timeout passed"), "everything that it names is here");
        for (awaited, may_be_lacking) in [
            ("dc2/p1/1.63, up to dc4/p1/1.99", true),
            ("dc2/p1/1.63", false),
            ("updates up to [5, 7] at 1", false),
        ] {
            let error = format!("NOTYET the token depends on: waiting for {awaited}");
            assert_eq!(excuses(here, &error), may_be_lacking, "{error}");
        }
        for error in ["NEVERISSUED the token names", "CLOCKAHEAD the token is", "ERR no token", "BLOCKED for"]
        {
            assert!(!excuses(calm, error), "{error}");
        }
        assert!(excuses(Known { is_wild: true, ..calm }, "CLOCKAHEAD the token is"));
        assert!(excuses(Known { has_lost_writes: true, ..calm }, "NEVERISSUED the token names"));
        assert!(excuses(Known { has_lost_one: true, ..calm }, "DISCARDED with"));
        assert!(!excuses(calm, "DISCARDED with"));
        let blocks = Promises { availability: Availability::Blocks, ..promises };
        assert!(
            super::excuses(&blocks, here, None, "NOTYET the timeout passed"),
            "it shows before all is there"
        );
    }

    #[test]
    fn where_nothing_comes_late_no_good_token_waits() {
        let falls_back = Promises::of("ha-pocc").expect("it is one");
        for error in ["NOTYET the timeout passed", "BLOCKED for", "FALLBACK for"] {
            for (comes_late, excused) in [(LATE, true), (ComesLate::default(), false)] {
                let known = Known { comes_late, ..Known::default() };
                assert_eq!(excuses(&falls_back, known, None, error), excused, "{error}");
            }
        }
        let elsewhere = Known::default();
        let promises = Promises::CAUSAL_WITH_TRANSACTIONS;
        assert!(!excuses(&promises, elsewhere, None, "NOTYET the timeout passed"));
    }

    #[test]
    fn a_forged_token_is_refused_for_what_is_wrong_with_it() {
        let promises = Promises::CAUSAL_WITH_TRANSACTIONS;
        let (elsewhere, here) = (Known::default(), Known { is_from_here: true, ..Known::default() });
        let by_times = Promises::CAUSAL_BY_TIMES;
        let excuses = |promises, known, why, error| excuses(&promises, known, Some(why), error);
        for (promises, known) in [(promises, elsewhere), (by_times, here)] {
            assert!(excuses(promises, known, "NEVERISSUED ", "NEVERISSUED the token names"));
            for error in ["NOTYET the timeout passed", "UNAVAILABLE for now"] {
                assert!(!excuses(promises, known, "NEVERISSUED ", error), "{error}");
            }
        }
        assert!(excuses(by_times, elsewhere, "NEVERISSUED ", "NOTYET the timeout passed"));
        assert!(!excuses(by_times, elsewhere, "CLOCKAHEAD ", "NOTYET the timeout passed"));
    }
}
