//! Shares of the ring, moves step by step, and failures in each step.

use super::*;

fn notices(partition: &mut Partition) -> Vec<Notice> {
    std::iter::from_fn(|| partition.take_notice()).collect()
}

/// Sketchers that answer at once. Nobody serves a region beside an owner, who may not know yet that it is to move only
/// as long as all requests are routed there.
fn settle(partition: &mut Partition, failed: &[Member], known: &mut BTreeMap<(Member, Region), Ownership>) {
    while let Some(notice) = partition.take_notice() {
        match notice {
            Notice::Set { member, .. } | Notice::Drain { member, .. } if failed.contains(&member) => {}
            Notice::Set { member, region, ownership } => {
                known.insert((member, region), ownership);
                if ownership == Ownership::Moving {
                    partition.on_acknowledged(member, region);
                }
            }
            Notice::Drain { member, region } => {
                known.insert((member, region), Ownership::Foreign);
                partition.on_drained(member, region);
            }
        }
        let owned = known.iter().filter(|(_, ownership)| **ownership == Ownership::Owned);
        for (&(owner, region), _) in owned.filter(|((owner, _), _)| !failed.contains(owner)) {
            let moved = partition.moves.get(&region);
            let is_announced_only =
                moved.is_some_and(|moved| !moved.is_draining) && partition.route(region) == Some(owner);
            let serves = |((other, of), ownership): (&(Member, Region), &Ownership)| {
                *of == region
                    && *other != owner
                    && *ownership != Ownership::Foreign
                    && !failed.contains(other)
            };
            assert!(
                is_announced_only || !known.iter().any(serves),
                "{region:?} is served beside its owner {owner:?}"
            );
        }
    }
}

fn owners(partition: &Partition) -> Vec<Member> {
    (0..=255).map(|region| partition.route(Region(region)).expect("every region is served")).collect()
}

#[test]
fn regions_are_shared_and_few_move_when_a_sketcher_joins() {
    let (mut partition, mut known) = (Partition::new(), BTreeMap::new());
    (0..3).for_each(|member| partition.on_join(Member(member)));
    settle(&mut partition, &[], &mut known);
    let three = owners(&partition);
    for member in 0..3 {
        let share = three.iter().filter(|owner| **owner == Member(member)).count();
        assert!((40..130).contains(&share), "sketcher {member} has {share} of 256 regions");
    }
    partition.on_join(Member(3));
    settle(&mut partition, &[], &mut known);
    let four = owners(&partition);
    let moved: Vec<Member> =
        three.iter().zip(&four).filter(|(one, other)| one != other).map(|both| *both.1).collect();
    assert!((20..110).contains(&moved.len()), "{} regions moved", moved.len());
    assert!(moved.iter().all(|member| *member == Member(3)), "only to the new one");
    partition.on_leave(Member(3));
    settle(&mut partition, &[], &mut known);
    assert_eq!(owners(&partition), three);
    assert_eq!(partition.moving(), 0);
}

#[test]
fn a_region_moves_step_by_step() {
    let (mut partition, mut known) = (Partition::new(), BTreeMap::new());
    partition.on_join(Member(0));
    settle(&mut partition, &[], &mut known);
    partition.on_join(Member(1));
    let both = notices(&mut partition);
    let Notice::Set { region, ownership: Ownership::Moving, .. } = both[0] else { panic!("{both:?}") };
    partition.on_acknowledged(Member(1), region);
    assert_eq!(partition.route(region), Some(Member(0)), "the former owner does not know yet");
    assert_eq!(notices(&mut partition), []);
    partition.on_acknowledged(Member(0), region);
    assert_eq!(partition.route(region), Some(Member(1)));
    assert_eq!(notices(&mut partition), [Notice::Drain { member: Member(0), region }]);
    partition.on_drained(Member(0), region);
    let owned = Notice::Set { member: Member(1), region, ownership: Ownership::Owned };
    assert_eq!(notices(&mut partition), [owned]);
}

#[test]
fn a_failed_sketcher_is_waited_for_by_nobody() {
    for failed in [Member(0), Member(1)] {
        for steps in 0..3 {
            let (mut partition, mut known) = (Partition::new(), BTreeMap::new());
            partition.on_join(Member(0));
            partition.on_join(Member(2));
            settle(&mut partition, &[], &mut known);
            partition.on_join(Member(1));
            let pending = notices(&mut partition);
            for notice in pending {
                let Notice::Set { member, region, .. } = notice else { panic!("{notice:?}") };
                if steps > 0 || member != failed {
                    known.insert((member, region), Ownership::Moving);
                    partition.on_acknowledged(member, region);
                }
            }
            if steps == 2 {
                settle(&mut partition, &[failed], &mut known);
            }
            partition.on_fail(failed);
            settle(&mut partition, &[failed], &mut known);
            assert!(owners(&partition).iter().all(|owner| *owner != failed), "{failed:?} in step {steps}");
            assert_eq!(partition.moving(), 0, "{failed:?} in step {steps}");
        }
    }
}
