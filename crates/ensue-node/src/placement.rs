//! Where partitions live: where the configuration puts them, or, where they are replicated, with their leaders.

use crate::config::Topology;
use ensue_types::{CoreId, DatacenterId, PartitionId};
use std::collections::BTreeMap;

/// Who owns a replicated partition, as far as a core has heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leader {
    core: CoreId,
    term: u64,
    /// It has said that it leads no more, and nobody else has said that it does.
    gone: bool,
    /// It could not be reached since it said so.
    was_away: bool,
}

/// The owners of partitions that are not where the configuration puts them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placement {
    leaders: BTreeMap<(DatacenterId, PartitionId), Leader>,
}

impl Placement {
    /// The core to ask. It may not be the owner any more, or not yet.
    pub(crate) fn owner(
        &self,
        topology: &Topology,
        datacenter: DatacenterId,
        partition: PartitionId,
    ) -> CoreId {
        let leader = self.leaders.get(&(datacenter, partition));
        leader.map_or_else(|| topology.owner(datacenter, partition), |leader| leader.core)
    }

    /// Whether somebody is known to own the partition: one that is not replicated is always owned.
    pub(crate) fn is_owned(
        &self,
        topology: &Topology,
        datacenter: DatacenterId,
        partition: PartitionId,
    ) -> bool {
        match self.leaders.get(&(datacenter, partition)) {
            Some(leader) => !leader.gone,
            None => !topology.is_replicated(datacenter, partition),
        }
    }

    /// Whether another core than this one is known to own a replicated partition, or to have owned it last.
    pub(crate) fn has_other_owner(
        &self,
        datacenter: DatacenterId,
        partition: PartitionId,
        core: CoreId,
    ) -> bool {
        self.leaders.get(&(datacenter, partition)).is_some_and(|leader| leader.core != core)
    }

    /// A core says that it leads in this term. Says whether that is news. Terms begin anew where all replicas of a
    /// partition were lost: one whose core was away counts no more. If it leads all the same, it says so when its link
    /// is up.
    pub(crate) fn on_leader(
        &mut self,
        datacenter: DatacenterId,
        partition: PartitionId,
        core: CoreId,
        term: u64,
    ) -> bool {
        let leader = Leader { core, term, gone: false, was_away: false };
        let known = self.leaders.get_mut(&(datacenter, partition));
        let is_news = match known {
            Some(known) if (known.core, known.term) == (core, term) => {
                known.was_away = false;
                false
            }
            Some(known) => known.term < term || known.was_away,
            None => true,
        };
        if is_news {
            self.leaders.insert((datacenter, partition), leader);
        }
        is_news
    }

    /// A core cannot be reached.
    pub(crate) fn on_link_down(&mut self, datacenter: DatacenterId, core: CoreId) {
        let leaders =
            self.leaders.iter_mut().filter(|((of, _), leader)| *of == datacenter && leader.core == core);
        leaders.for_each(|(_, leader)| leader.was_away = true);
    }

    /// The owner that is known leads no more.
    pub(crate) fn on_gone(&mut self, datacenter: DatacenterId, partition: PartitionId, core: CoreId) {
        if let Some(leader) =
            self.leaders.get_mut(&(datacenter, partition)).filter(|leader| leader.core == core)
        {
            leader.gone = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_leader_takes_the_place_of_an_earlier_one_and_never_the_other_way_round() {
        let mut placement = Placement::default();
        let (here, first) = (DatacenterId(0), PartitionId(0));
        assert!(placement.on_leader(here, first, CoreId(1), 3));
        assert!(!placement.on_leader(here, first, CoreId(2), 2), "an announcement that was late");
        assert!(!placement.on_leader(here, first, CoreId(1), 3), "the same again");
        assert!(placement.on_leader(here, first, CoreId(2), 4));
        placement.on_gone(here, first, CoreId(1));
        assert!(
            placement.leaders.values().all(|leader| !leader.gone),
            "another one than the one that has gone"
        );
    }

    #[test]
    fn terms_may_begin_anew_when_the_last_owner_was_away() {
        let mut placement = Placement::default();
        let (here, first) = (DatacenterId(0), PartitionId(0));
        placement.on_leader(here, first, CoreId(1), 9);
        placement.on_link_down(DatacenterId(1), CoreId(1));
        assert!(!placement.on_leader(here, first, CoreId(2), 2), "a core of another datacenter was away");
        placement.on_link_down(here, CoreId(1));
        assert!(!placement.has_other_owner(here, first, CoreId(1)), "it may come back");
        assert!(placement.on_leader(here, first, CoreId(2), 2), "all of its directories were lost");
        assert!(placement.has_other_owner(here, first, CoreId(1)));
        assert!(placement.on_leader(here, first, CoreId(1), 9), "or not");
        placement.on_link_down(here, CoreId(1));
        assert!(!placement.on_leader(here, first, CoreId(1), 9), "it is back, and leads as before");
        assert!(!placement.on_leader(here, first, CoreId(2), 2), "so that is old");
    }

    #[test]
    fn who_is_gone_is_heard_until_another_one_owns_the_partition() {
        let mut placement = Placement::default();
        let (here, first) = (DatacenterId(0), PartitionId(0));
        assert!(!placement.has_other_owner(here, first, CoreId(1)), "nobody has said anything");
        placement.on_leader(here, first, CoreId(1), 3);
        placement.on_gone(here, first, CoreId(1));
        assert!(!placement.has_other_owner(here, first, CoreId(1)));
        placement.on_leader(here, first, CoreId(2), 4);
        assert!(placement.has_other_owner(here, first, CoreId(1)));
        assert!(!placement.has_other_owner(here, first, CoreId(2)));
        assert!(!placement.has_other_owner(here, PartitionId(1), CoreId(1)), "of another partition");
    }
}
