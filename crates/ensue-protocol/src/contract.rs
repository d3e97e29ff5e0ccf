//! What every protocol must keep, whichever it is, wherever it is registered: `check` panics where one does not.
//!
//! A protocol with branches keeps less: much of this is asked of rows.

use crate::{
    Again, Availability, Capabilities, Choice, Loss, Options, Past, Protocol, Registration, Share,
    SnapshotCheck, SnapshotReads, StabilityState, Visibility, VisibilityPredicate,
};
use ensue_types::causes::EXTENSION;
use ensue_types::{
    Anchor, Carried, Causes, DatacenterId, Dependency, Extent, Incarnation, Lists, LogicalTime, Opaque,
    OperationId, PartitionId, Position, Reply, Source, Stamp, TimeVector, TimedMatrix, Vector,
};
use std::sync::Arc;

/// Declares the checks once, as a list; here, each is a test of every protocol of this crate.
macro_rules! checks {
    ($($name:ident,)*) => {
        const CHECKS: &[fn(&Registration)] = &[$($name,)*];

        #[cfg(test)]
        mod tests {
            $(
                #[test]
                fn $name() {
                    crate::NAMES.iter().filter_map(|name| crate::find(name)).for_each(super::$name);
                }
            )*
        }
    };
}

checks! {
    what_is_registered_agrees_with_itself,
    an_empty_past_waits_for_nothing,
    a_session_remembers_what_it_read_and_wrote,
    who_asks_for_what_was_replaced_has_causality_and_no_write_transactions,
    who_has_one_stream_carries_nothing_and_refuses_nothing,
    forgetting_what_is_everywhere_keeps_the_rest,
    what_a_write_itself_read_goes_with_it,
    a_long_context_stays_bounded_and_forgets_nothing,
    joining_is_monotone_and_refuses_other_families,
    a_session_sees_its_own_write_and_never_less_than_its_past,
    what_is_within_the_times_of_a_predicate_is_visible,
    what_others_wrote_after_the_times_of_a_predicate_is_hidden,
    a_cut_is_served_when_everything_within_it_is_there,
    who_may_have_seen_what_is_lost_begins_anew_once,
    a_read_says_what_is_missing_before_its_client_gives_up,
    no_cut_is_beyond_the_present_where_nothing_more_is_expected,
    a_session_that_cannot_wait_gets_an_error_and_can_go_on_where_that_is_promised,
    shares_valid_at_one_time_belong_together,
    shares_without_a_common_time_are_read_again,
    a_pending_share_is_always_read_again,
}

/// Runs every check on a protocol.
pub fn check(registration: &Registration) {
    CHECKS.iter().for_each(|check| check(registration));
}

fn options() -> Options {
    Options { context_operations_max: 8, datacenters: 2, dependency_cleaning: false, ..Options::default() }
}

fn each(registration: &Registration, check: impl Fn(&dyn Protocol)) {
    check((registration.make)(options()).as_ref());
}

fn causal(registration: &Registration, check: impl Fn(&dyn Protocol)) {
    each(registration, |protocol| {
        if protocol.capabilities().causality {
            check(protocol);
        }
    });
}

fn operation(datacenter: u8, partition: u16, position: u64) -> OperationId {
    OperationId {
        datacenter: DatacenterId(datacenter),
        incarnation: Incarnation(1),
        partition: PartitionId(partition),
        position: Position(position),
    }
}

/// A write at a time, at the position of that number.
fn write(datacenter: u8, partition: u16, time: u64) -> Source {
    let stamp = Stamp {
        time: LogicalTime(time),
        datacenter: DatacenterId(datacenter),
        partition: PartitionId(partition),
    };
    Source { operation: operation(datacenter, partition, time), stamp, dependencies: None }
}

fn after(source: Source, dependencies: Causes) -> Source {
    Source { dependencies: Some(Arc::new(Carried::new(dependencies))), ..source }
}

/// Whether a past holds a write.
fn holds(past: &Past, write: &Source) -> bool {
    match past {
        Past::Operations(list) => list.iter().any(|dependency| covers(dependency, &write.operation)),
        Past::Times(times) => times.at(write.stamp.datacenter) >= write.stamp.time,
    }
}

fn covers(dependency: &Dependency, wanted: &OperationId) -> bool {
    let (has, stream) = (dependency.operation, |o: &OperationId| (o.datacenter, o.partition, o.incarnation));
    has == *wanted
        || (dependency.extent == Extent::Through
            && stream(&has) == stream(wanted)
            && has.position >= wanted.position)
}

fn past_of(protocol: &dyn Protocol, context: &Causes) -> Past {
    protocol.past(context).expect("own bytes")
}

/// A partition of the second datacenter that has received and applied what the first one wrote up to a time.
fn at<'a>(now: u64, received: &'a TimeVector, stable: &'a TimeVector) -> StabilityState<'a> {
    let (datacenter, now) = (DatacenterId(1), LogicalTime::from_ms(now));
    StabilityState { datacenter, datacenters: 2, now, received, applied: received, stable }
}

fn times(first: u64, second: u64) -> TimeVector {
    [first, second].into_iter().map(LogicalTime::from_ms).collect()
}

/// What is registered, what the protocol says of itself, and how it remembers, do not contradict each other.
fn what_is_registered_agrees_with_itself(registration: &Registration) {
    each(registration, |protocol| {
        let (offers, needs, promises) = (protocol.capabilities(), protocol.needs(), registration.promises);
        assert_eq!((protocol.name(), offers), (registration.name, registration.capabilities));
        assert_eq!(promises.causality, offers.causality, "{}", protocol.name());
        assert_eq!(promises.snapshots, offers.snapshot_reads != SnapshotReads::None, "{}", protocol.name());
        let waits_in_vain = promises.availability == Availability::Blocks;
        assert_eq!(waits_in_vain, !offers.available, "{}", protocol.name());
        assert_eq!((promises.one_stream, promises.branches), (needs.one_stream, needs.branches));
        assert_eq!((promises.folds, promises.goes_by_times), (needs.siblings, protocol.goes_by_times()));
        assert!(!promises.writes_together() || offers.write_transactions, "{}", protocol.name());
    });
}

fn an_empty_past_waits_for_nothing(registration: &Registration) {
    each(registration, |protocol| {
        let context = Causes::Nothing;
        let dependencies = protocol.dependencies(&context, &[]);
        assert_eq!(protocol.visibility(operation(0, 0, 1), &dependencies), Ok(Visibility::Now));
        match past_of(protocol, &context) {
            Past::Operations(list) => assert_eq!(list, []),
            Past::Times(times) => assert!(times.is_zero()),
        }
        let zero = TimeVector::default();
        assert_ne!(protocol.choose(&mut Causes::Nothing, &at(5, &zero, &zero)), Choice::Wait);
    });
}

fn a_session_remembers_what_it_read_and_wrote(registration: &Registration) {
    causal(registration, |protocol| {
        let mut context = Causes::Nothing;
        let (one, other, own) = (write(0, 1, 4), write(1, 0, 9), write(0, 0, 17));
        protocol.record_reads(&mut context, &[one.clone(), other.clone()], &[]);
        let past = past_of(protocol, &context);
        assert!(holds(&past, &one) && holds(&past, &other), "{}", protocol.name());
        let carried = protocol.dependencies(&context, &[]);
        protocol.record_write(&mut context, &own);
        assert!(holds(&past_of(protocol, &context), &own), "{}", protocol.name());
        // Whoever reads the write has all that it carries, by name or in times.
        let mut reader = Causes::Nothing;
        protocol.record_reads(&mut reader, &[after(own.clone(), carried.clone())], &[]);
        let past = past_of(protocol, &reader);
        assert!(holds(&past, &own));
        match protocol.visibility(own.operation, &carried).expect("own bytes") {
            // What it carries was waited for where it is read.
            Visibility::After(list) => {
                let waits = |write: &Source| list.iter().any(|d| covers(d, &write.operation));
                assert!(waits(&one) && waits(&other), "{}", protocol.name());
            }
            Visibility::Now => assert!(holds(&past, &one) && holds(&past, &other), "{}", protocol.name()),
        }
    });
}

/// What a write replaced is waited for like what it depends on, and merged at once: a protocol that asks for it knows
/// dependencies, and is not asked for atomic writes, whose parts do not wait one by one.
fn who_asks_for_what_was_replaced_has_causality_and_no_write_transactions(registration: &Registration) {
    each(registration, |protocol| {
        let Capabilities { causality, write_transactions, .. } = protocol.capabilities();
        let needs = protocol.needs();
        if needs.previous_versions {
            assert!(causality && !write_transactions, "{}", protocol.name());
        }
        // Values stand beside each other by what they replaced, and in the rows, not among versions that a read
        // chooses from.
        if needs.siblings {
            assert!(needs.previous_versions && !needs.versions, "{}", protocol.name());
        }
    });
}

/// One stream keeps the order of what is written, and one owner has all keys: nothing is left to depend on or to
/// refuse.
fn who_has_one_stream_carries_nothing_and_refuses_nothing(registration: &Registration) {
    each(registration, |protocol| {
        if !protocol.needs().one_stream {
            return;
        }
        let mut context = Causes::Nothing;
        protocol.record_reads(&mut context, &[write(1, 0, 3)], &[]);
        protocol.record_write(&mut context, &write(0, 0, 4));
        assert!(context.is_empty() && protocol.dependencies(&context, &[write(1, 0, 3)]).is_empty());
        let offer = protocol.capabilities();
        assert!(offer.write_transactions && offer.snapshot_reads != SnapshotReads::None);
    });
}

/// What every datacenter has may be forgotten, and nothing else is.
fn forgetting_what_is_everywhere_keeps_the_rest(registration: &Registration) {
    causal(registration, |protocol| {
        let (everywhere, here) = (write(0, 1, 4), write(1, 0, 9));
        let mut context = Causes::Nothing;
        protocol.record_reads(&mut context, &[everywhere.clone(), here.clone()], &[]);
        protocol.forget(&mut context, &|operation| *operation == everywhere.operation);
        let past = past_of(protocol, &context);
        assert!(holds(&past, &here), "{}", protocol.name());
    });
}

fn what_a_write_itself_read_goes_with_it(registration: &Registration) {
    causal(registration, |protocol| {
        let read = write(0, 1, 4);
        let carried = protocol.dependencies(&Causes::Nothing, std::slice::from_ref(&read));
        let carried = match protocol.visibility(operation(1, 0, 9), &carried).expect("own bytes") {
            Visibility::After(list) => Past::Operations(list),
            Visibility::Now => {
                let mut reader = Causes::Nothing;
                protocol.record_reads(&mut reader, &[after(write(1, 0, 9), carried)], &[]);
                past_of(protocol, &reader)
            }
        };
        assert!(holds(&carried, &read), "{}", protocol.name());
    });
}

fn a_long_context_stays_bounded_and_forgets_nothing(registration: &Registration) {
    each(registration, |protocol| {
        let mut context = Causes::Nothing;
        let writes: Vec<Source> = (1..=100).map(|time| write(0, (time % 3) as u16, time)).collect();
        writes.iter().for_each(|write| protocol.record_reads(&mut context, std::slice::from_ref(write), &[]));
        assert!(context.encoded_bytes() <= 200, "{} remembers {context:?}", protocol.name());
        if protocol.capabilities().causality {
            let past = past_of(protocol, &context);
            assert!(writes.iter().all(|write| holds(&past, write)), "{} forgot", protocol.name());
        }
    });
}

fn joining_is_monotone_and_refuses_other_families(registration: &Registration) {
    causal(registration, |protocol| {
        let (first, second) = (write(0, 0, 1), write(1, 1, 2));
        let (mut one, mut other) = (Causes::Nothing, Causes::Nothing);
        protocol.record_reads(&mut one, std::slice::from_ref(&first), &[]);
        protocol.record_reads(&mut other, std::slice::from_ref(&second), &[]);
        protocol.merge(&mut one, &other).expect("own bytes");
        let past = past_of(protocol, &one);
        assert!(holds(&past, &first) && holds(&past, &second), "{}", protocol.name());
        let families = one_of_each_family();
        let accepted =
            |accepts: &dyn Fn(&Causes) -> bool| families.iter().filter(|causes| accepts(causes)).count();
        let merges = |causes: &Causes| protocol.merge(&mut one.clone(), causes).is_ok();
        assert!(accepted(&merges) <= 1, "{}", protocol.name());
        assert!(accepted(&|causes| protocol.past(causes).is_ok()) <= 1, "{}", protocol.name());
        let waits = |causes: &Causes| protocol.visibility(operation(0, 0, 1), causes).is_ok();
        assert!(accepted(&waits) <= 1, "{}", protocol.name());
        let foreign: Vec<&Causes> = families.iter().filter(|causes| !merges(causes)).collect();
        assert!(
            foreign.iter().all(|causes| protocol.merge(&mut one, causes).is_err()),
            "{}",
            protocol.name()
        );
        assert_eq!(past_of(protocol, &one), past);
    });
}

/// A past as each family remembers it.
fn one_of_each_family() -> [Causes; 6] {
    let one = Dependency { operation: operation(0, 0, 1), extent: Extent::Exact };
    [
        Causes::Operations(vec![one]),
        Vector { times: times(1, 1), ..Vector::default() }.into(),
        TimedMatrix { time: LogicalTime(1), ..TimedMatrix::default() }.into(),
        Lists { nearest: vec![one], ..Lists::default() }.into(),
        Anchor { open: true, ..Anchor::default() }.into(),
        Causes::Extension(Opaque(vec![EXTENSION])),
    ]
}

fn a_session_sees_its_own_write_and_never_less_than_its_past(registration: &Registration) {
    // What the first datacenter wrote at 10 has arrived here, up to 12, and is not yet stable.
    let (received, stable) = (times(12, 0), times(3, 0));
    causal(registration, |protocol| {
        let state = at(50, &received, &stable);
        let mut context = Causes::Nothing;
        let mut seen = write(0, 0, 0);
        seen.stamp.time = LogicalTime::from_ms(10);
        let mut own = write(1, 0, 0);
        own.stamp.time = LogicalTime::from_ms(40);
        protocol.record_reads(&mut context, std::slice::from_ref(&seen), &[]);
        let own = after(own, protocol.dependencies(&context, &[]));
        protocol.record_write(&mut context, &own);
        match protocol.choose(&mut context.clone(), &state) {
            Choice::Newest => {}
            Choice::Wait => panic!("{} waits for what is here", protocol.name()),
            Choice::Shown(predicate) | Choice::NewestIfWhole(predicate) => {
                assert!(
                    protocol.is_visible(&predicate, &seen) && protocol.is_visible(&predicate, &own),
                    "{}",
                    protocol.name()
                );
            }
        }
        if protocol.capabilities().snapshot_reads == SnapshotReads::OneRound {
            // None: it is read in two rounds, which show what is visible here.
            let Some(cut) = protocol.snapshot_vector(&context, &state) else { return };
            let predicate =
                VisibilityPredicate { datacenter: DatacenterId(1), times: cut.clone(), whole: true };
            assert!(
                protocol.is_visible(&predicate, &seen) && protocol.is_visible(&predicate, &own),
                "{}",
                protocol.name()
            );
            // Nothing that a new cut shows is below what is folded.
            assert!(cut.covers(&protocol.floor(&state)), "{}", protocol.name());
        }
    });
}

/// Versions are not looked at one by one where all of them are within.
fn what_is_within_the_times_of_a_predicate_is_visible(registration: &Registration) {
    each(registration, |protocol| {
        let carried = Vector { times: times(3, 4), ..Vector::default() };
        for (whole, datacenter) in [(false, 0), (true, 0), (false, 1), (true, 1)] {
            let version = after(write(datacenter, 0, LogicalTime::from_ms(4).0), carried.clone().into());
            let predicate = VisibilityPredicate { datacenter: DatacenterId(1), times: times(4, 4), whole };
            assert!(protocol.is_visible(&predicate, &version), "{}", protocol.name());
        }
    });
}

/// Nor are those looked at that are later. What the own datacenter wrote may be shown to its own clients all the same.
fn what_others_wrote_after_the_times_of_a_predicate_is_hidden(registration: &Registration) {
    each(registration, |protocol| {
        if !protocol.needs().snapshot_vectors {
            return;
        }
        for (whole, datacenter) in [(false, 0), (true, 0), (true, 1)] {
            let version = after(write(datacenter, 0, LogicalTime::from_ms(5).0), Vector::default().into());
            let predicate = VisibilityPredicate { datacenter: DatacenterId(1), times: times(4, 4), whole };
            assert!(!protocol.is_visible(&predicate, &version), "{}", protocol.name());
        }
    });
}

fn a_cut_is_served_when_everything_within_it_is_there(registration: &Registration) {
    causal(registration, |protocol| {
        if protocol.capabilities().snapshot_reads != SnapshotReads::OneRound {
            return;
        }
        let (ahead, behind) = (times(30, 0), times(20, 0));
        let mut context = Causes::Nothing;
        let mut seen = write(0, 0, 0);
        seen.stamp.time = LogicalTime::from_ms(30);
        protocol.record_reads(&mut context, &[seen], &[]);
        let cut = protocol.snapshot_vector(&context, &at(40, &ahead, &ahead)).expect("everything is here");
        assert!(!protocol.has_all(&cut, &at(40, &behind, &behind)), "{}", protocol.name());
        let all = times(cut.at(DatacenterId(0)).ms() + 1, 0);
        assert!(protocol.has_all(&cut, &at(40, &all, &all)), "{}", protocol.name());
        // However little is here, no session is shown less than its past. Who reads in two rounds does not wait.
        let cut = protocol.snapshot_vector(&context, &at(40, &behind, &behind));
        assert_eq!(cut.is_none(), protocol.needs().second_rounds, "{}", protocol.name());
        assert!(
            cut.is_none_or(|cut| cut.at(DatacenterId(0)) >= LogicalTime::from_ms(30)),
            "{}",
            protocol.name()
        );
    });
}

/// Where a past is times, they tell what may depend on what a dead datacenter took with it: sessions and writes alike.
fn who_may_have_seen_what_is_lost_begins_anew_once(registration: &Registration) {
    causal(registration, |protocol| {
        let name = protocol.name();
        let (datacenter, whole) = (DatacenterId(0), LogicalTime(50));
        let failed = [datacenter].into_iter().collect();
        let loss = Loss { datacenter, whole, doubtful: LogicalTime(60), failed };
        for (time, is_lost) in [(50, false), (70, true)] {
            let seen = [write(0, 0, time)];
            let mut context = Causes::Nothing;
            protocol.record_reads(&mut context, &seen, &[]);
            let times = matches!(past_of(protocol, &context), Past::Times(_));
            assert_eq!(protocol.goes_by_times(), times, "{name}");
            if !times {
                return;
            }
            let dependencies = protocol.dependencies(&context, &seen);
            assert_eq!(protocol.depends_on_lost(DatacenterId(1), &dependencies, &loss), is_lost, "{name}");
            let parted = protocol.reset_if_lost(&mut context, &loss);
            let is_told = matches!(&parted, Err(Reply::Error(words)) if words.starts_with("DISCARDED "));
            assert_eq!((parted.is_err(), is_told), (is_lost, is_lost), "{name}: {parted:?}");
            assert_eq!(context == Causes::Nothing, is_lost, "{name}");
            assert_eq!(protocol.reset_if_lost(&mut context, &loss), Ok(()), "{name}: told twice");
            // What leaves a partition that has discarded it all is never taken for lost again.
            protocol.record_reads(&mut context, &[write(0, 0, 50)], &[]);
            protocol.strip_lost(&mut context, &loss);
            let Past::Times(times) = past_of(protocol, &context) else { return };
            assert!(times.at(datacenter) > LogicalTime(70), "{name}");
            assert_eq!(protocol.reset_if_lost(&mut context, &loss), Ok(()), "{name}");
            assert!(!protocol.shows_lost(&times, &loss), "{name}");
        }
    });
}

fn a_read_says_what_is_missing_before_its_client_gives_up(registration: &Registration) {
    for request_timeout_ms in [100, 511, 5_000] {
        let options = Options { block_ms: 500, request_timeout_ms, ..Options::default() };
        let name = registration.name;
        let waited_ms = (registration.make)(options).needs().patience_ms;
        assert!(waited_ms < request_timeout_ms, "{name}: {request_timeout_ms} ms");
        // Who waits does not give up long before it must.
        let least_ms = 500.min(request_timeout_ms * 3 / 4);
        assert!(waited_ms == 0 || waited_ms >= least_ms, "{name}: {request_timeout_ms} ms");
    }
}

/// Of a datacenter that was declared dead everything has been received for ever. A cut beyond the present would pull
/// the clock along.
fn no_cut_is_beyond_the_present_where_nothing_more_is_expected(registration: &Registration) {
    each(registration, |protocol| {
        let received = TimeVector::from_iter([LogicalTime::MAX, LogicalTime::ZERO]);
        let state = at(100, &received, &received);
        let cut = protocol.snapshot_vector(&Causes::Nothing, &state);
        for cut in [cut.unwrap_or_default(), protocol.floor(&state)] {
            assert!(cut.at(state.datacenter) <= state.now, "{}: {cut:?}", protocol.name());
        }
    });
}

fn a_session_that_cannot_wait_gets_an_error_and_can_go_on_where_that_is_promised(
    registration: &Registration,
) {
    causal(registration, |protocol| {
        let (received, stable) = (times(20, 0), times(20, 0));
        let mut context = Causes::Nothing;
        let mut seen = write(0, 0, 0);
        seen.stamp.time = LogicalTime::from_ms(30);
        protocol.record_reads(&mut context, &[seen], &[]);
        if protocol.choose(&mut context, &at(40, &received, &stable)) != Choice::Wait {
            return;
        }
        let reply = protocol.timed_out(&mut context, "updates of dc1");
        assert!(reply.is_error());
        let goes_on = protocol.choose(&mut context, &at(5_000, &received, &stable)) != Choice::Wait;
        // A session of this datacenter can meet what it waits for only with a token where the datacenter is available.
        let falls_back = registration.promises.availability == Availability::FallsBack;
        assert_eq!(goes_on, falls_back, "{}", protocol.name());
    });
}

static NOTHING: Causes = Causes::Nothing;

fn share(earliest: u64, latest: u64) -> Share<'static> {
    let (partition, seen) = (PartitionId(0), &NOTHING);
    Share { partition, earliest: Some(LogicalTime(earliest)), latest: LogicalTime(latest), seen }
}

fn again(share: usize, at: u64) -> SnapshotCheck {
    SnapshotCheck::ReadAgain(vec![Again { share, at: LogicalTime(at), with: Vec::new() }])
}

fn shares_valid_at_one_time_belong_together(registration: &Registration) {
    each(registration, |protocol| {
        assert_eq!(protocol.check_snapshot(&[share(10, 30), share(20, 40)]), SnapshotCheck::Consistent);
        // Trap 62: the only common time is both an earliest and a latest valid time.
        assert_eq!(protocol.check_snapshot(&[share(20, 20), share(10, 20)]), SnapshotCheck::Consistent);
    });
}

/// The protocols that read in two rounds, if only when all else has failed.
fn two_rounds(registration: &Registration, check: impl Fn(&dyn Protocol)) {
    each(registration, |protocol| {
        if protocol.needs().second_rounds {
            check(protocol);
        }
    });
}

fn shares_without_a_common_time_are_read_again(registration: &Registration) {
    two_rounds(registration, |protocol| {
        // Figure 4(b): location 1 answered at 10, location 2 was overwritten at 12.
        let check = protocol.check_snapshot(&[share(3, 10), share(12, 17), share(5, 15)]);
        assert_eq!(check, again(0, 15));
    });
}

fn a_pending_share_is_always_read_again(registration: &Registration) {
    two_rounds(registration, |protocol| {
        // Trap 61: the pending share promised 50, the other was valid from 30 to 40.
        let pending = Share { earliest: None, ..share(0, 50) };
        let check = protocol.check_snapshot(&[pending, share(30, 40)]);
        assert_eq!(check, again(0, 40));
        let check = protocol.check_snapshot(&[pending]);
        assert_eq!(check, again(0, 50));
    });
}
