//! Bounded counters alone: any order, any losses on the way, any mixture of what was received.

use super::*;
use crate::LogicalTime;
use proptest::prelude::*;

const ONE: DatacenterId = DatacenterId(0);
const TWO: DatacenterId = DatacenterId(1);
const THREE: DatacenterId = DatacenterId(2);
const ALL: [DatacenterId; 3] = [ONE, TWO, THREE];

fn stock(initial: i64) -> Escrow {
    Escrow::new(Terms { maker: ONE, initial, lower: Some(0), upper: None })
}

fn others(of: DatacenterId) -> Vec<DatacenterId> {
    ALL.into_iter().filter(|one| *one != of).collect()
}

#[test]
fn names_say_which_counter_and_whose_share() {
    let stamp = |time, datacenter| Stamp {
        time: LogicalTime(time),
        datacenter: DatacenterId(datacenter),
        ..Stamp::ZERO
    };
    let counter = counter_name(stamp(7, 1));
    assert!(counter < counter_name(stamp(7, 2)) && counter < counter_name(stamp(300, 0)));
    let share = share_name(&counter, THREE);
    assert_eq!(share_of(&share), Some((&counter[..], THREE)));
    assert_eq!(share_of(&counter), None);
    let terms = Terms { maker: TWO, initial: -5, lower: None, upper: Some(9) };
    assert_eq!(Terms::of_bytes(&terms.to_bytes()), Some(terms));
    assert_eq!(Terms::of_bytes(&terms.to_bytes()[..9]), None);
}

#[test]
fn who_has_no_rights_is_refused_and_who_is_given_some_is_not() {
    let mut counter = stock(10);
    assert_eq!(counter.change(TWO, -1), Err(Refused::Spent(Side::Down, 0)));
    counter.give(ONE, Gift { to: TWO, side: Side::Down, amount: 4 }).expect("ONE has all");
    assert_eq!(counter.change(ONE, -7), Err(Refused::Spent(Side::Down, 6)));
    assert_eq!(counter.change(TWO, -4), Ok(()));
    assert_eq!(counter.change(ONE, -6), Ok(()));
    assert_eq!(counter.value(), 0);
    // What is added may be taken where it was added.
    assert_eq!(counter.change(THREE, 2), Ok(()));
    assert_eq!(counter.change(ONE, -1), Err(Refused::Spent(Side::Down, 0)));
    assert_eq!(counter.change(THREE, -2), Ok(()));
    assert_eq!(
        counter.give(ONE, Gift { to: TWO, side: Side::Down, amount: 1 }),
        Err(Refused::Spent(Side::Down, 0))
    );
}

#[test]
fn a_side_without_a_bound_ends_before_the_value_leaves_64_bits() {
    let mut counter = stock(ESCROW_MAX);
    for datacenter in (0..16).map(DatacenterId) {
        assert_eq!(counter.change(datacenter, 1 << 57), Ok(()));
        assert_eq!(counter.change(datacenter, 1), Err(Refused::TooFar));
    }
    assert_eq!(i128::from(counter.value()), (1 << 62) + (16_i128 << 57));
    assert!(counter.value() < i64::MAX);
}

#[test]
fn rights_move_to_whoever_has_few_and_then_rest() {
    let mut counter = stock(90);
    for _ in 0..20 {
        for own in ALL {
            for gift in counter.gifts(own, &others(own)) {
                counter.give(own, gift).expect("nobody gives what it has not");
            }
        }
    }
    let rights = ALL.map(|of| counter.rights(of, Side::Down).unwrap_or_default());
    assert_eq!(rights.iter().sum::<i128>(), 90);
    assert!(rights.iter().all(|one| *one >= 20), "{rights:?}");
    assert!(ALL.into_iter().all(|own| counter.gifts(own, &others(own)).is_empty()));
    let mut last = stock(1);
    assert!(last.gifts(ONE, &others(ONE)).is_empty(), "the last right does not wander");
    for gift in last.all_to(ONE, TWO) {
        last.give(ONE, gift).expect("it has one");
    }
    assert_eq!(last.rights(TWO, Side::Down), Some(1));
}

#[cfg(feature = "breakable")]
#[test]
fn without_its_rules_more_is_sold_than_there_is() {
    use crate::Breaking;
    let sold = |broken| {
        let _breaking = Breaking::only(broken);
        let mut here = stock(4);
        here.give(ONE, Gift { to: TWO, side: Side::Down, amount: 2 }).expect("ONE has all");
        let mut there = here.clone();
        let sell = |counter: &mut Escrow, own| (0..50).filter(|_| counter.change(own, -1).is_ok()).count();
        sell(&mut here, ONE) + sell(&mut there, TWO)
    };
    assert_eq!(sold(None), 4);
    assert_eq!(sold(Some(Rule::RightsCountOnce)), 6);
    assert_eq!(sold(Some(Rule::RightsAreChecked)), 100);
}

/// What happens to a counter that three datacenters change.
#[derive(Clone, Copy, Debug)]
enum Event {
    Change(usize, i64),
    Give(usize),
    /// A share as it is now reaches another datacenter.
    Deliver(usize, usize),
    /// An old one does, again or late.
    Repeat(usize, usize),
    /// A datacenter forgets all that it has received, and nothing of its own.
    Forget(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..3_usize, -9..9_i64).prop_map(|(at, amount)| Event::Change(at, amount)),
        2 => (0..3_usize).prop_map(Event::Give),
        3 => (0..3_usize, 0..3_usize).prop_map(|(from, to)| Event::Deliver(from, to)),
        1 => (0..64_usize, 0..3_usize).prop_map(|(old, to)| Event::Repeat(old, to)),
        1 => (0..3_usize).prop_map(Event::Forget),
    ]
}

/// Plays events with every rule kept; answers each share that was ever written, and the sum of what was acknowledged.
fn played(terms: Terms, events: &[Event]) -> (Vec<Bytes>, i128) {
    let mut at = [Escrow::new(terms), Escrow::new(terms), Escrow::new(terms)];
    let mut shares: Vec<Bytes> = Vec::new();
    let mut own: [Option<Bytes>; 3] = [None, None, None];
    let mut acknowledged = 0;
    for event in events {
        match *event {
            Event::Change(place, amount) => {
                if at[place].change(ALL[place], amount.into()).is_ok() {
                    acknowledged += i128::from(amount);
                    own[place] = Some(at[place].share());
                }
            }
            Event::Give(place) => {
                for gift in at[place].gifts(ALL[place], &others(ALL[place])) {
                    at[place].give(ALL[place], gift).expect("nobody gives what it has not");
                    own[place] = Some(at[place].share());
                }
            }
            Event::Deliver(from, to) => {
                if let Some(share) = &own[from] {
                    at[to].join(share);
                }
            }
            Event::Repeat(old, to) => {
                if let Some(share) = shares.get(old) {
                    at[to].join(share);
                }
            }
            Event::Forget(place) => {
                at[place] = Escrow::new(terms);
                if let Some(share) = &own[place] {
                    at[place].join(share);
                }
            }
        }
        shares.extend(own.iter().flatten().cloned());
    }
    (shares, acknowledged)
}

fn joined<'a>(terms: Terms, shares: impl Iterator<Item = &'a Bytes>) -> Escrow {
    let mut counter = Escrow::new(terms);
    shares.for_each(|share| counter.join(share));
    counter
}

proptest! {
    #[test]
    fn the_bound_is_never_passed(
        initial in 0..20_i64, up in proptest::option::of(0..20_i64),
        events in proptest::collection::vec(event(), 0..60),
        chosen in proptest::collection::vec(any::<bool>(), 0..180),
    ) {
        let terms = Terms { maker: TWO, initial, lower: Some(0), upper: up.map(|up| initial + up) };
        let (shares, acknowledged) = played(terms, &events);
        let all = joined(terms, shares.iter());
        prop_assert_eq!(i128::from(all.value()), i128::from(initial) + acknowledged);
        // So does any mixture of what was ever written.
        let some = shares.iter().zip(&chosen).filter(|(_, is_chosen)| **is_chosen).map(|(share, _)| share);
        for counter in [all, joined(terms, some)] {
            prop_assert!(counter.value() >= 0, "{} is below the bound", counter.value());
            prop_assert!(terms.upper.is_none_or(|upper| counter.value() <= upper));
            prop_assert!(ALL.into_iter().all(|of| counter.rights(of, Side::Down).is_some_and(|has| has >= 0)));
            let rights: i128 = ALL.into_iter().filter_map(|of| counter.rights(of, Side::Down)).sum();
            prop_assert_eq!(rights, i128::from(counter.value()));
        }
    }

    #[test]
    fn any_order_of_arrival_ends_in_the_same(
        events in proptest::collection::vec(event(), 0..60), turn in 0..180_usize,
    ) {
        let terms = Terms { maker: ONE, initial: 12, lower: Some(0), upper: Some(30) };
        let (shares, _) = played(terms, &events);
        let turn = turn.min(shares.len());
        let turned = shares[turn..].iter().chain(&shares[..turn]);
        let there = joined(terms, shares.iter().rev());
        prop_assert_eq!(&there, &joined(terms, turned));
        prop_assert_eq!(&there, &joined(terms, shares.iter().chain(&shares)));
        prop_assert_eq!(&there, &joined(terms, [there.share()].iter()));
    }

    #[test]
    fn no_bytes_do_harm(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut counter = stock(3);
        counter.join(&bytes);
        let _ = Terms::of_bytes(&bytes);
        prop_assert!(share_of(&bytes).is_none_or(|(counter, _)| counter.len() == NAME_BYTES));
    }
}
