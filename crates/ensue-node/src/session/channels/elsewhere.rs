//! Subscriptions of sessions of other cores, as those cores report them, within the bounds of one core each.

use super::{KINDS, bytes_of, is_within_bounds, place};
use bytes::Bytes;
use ensue_resp::glob;
use ensue_types::DatacenterId;
use ensue_wire::{ChannelKind, CoreName, Interest};
use std::collections::BTreeMap;

/// By name, which cores have how many subscribers.
#[derive(Clone, Debug, Default)]
pub(super) struct Elsewhere {
    wanted: [BTreeMap<Bytes, BTreeMap<CoreName, u32>>; KINDS.len()],
    kept: BTreeMap<CoreName, Kept>,
}

/// What is kept of one core.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    names: usize,
    bytes: usize,
}

impl Elsewhere {
    /// False if the core has more names than any core may.
    pub(super) fn learn(&mut self, core: CoreName, interest: Interest) -> bool {
        let Interest { kind, name, sessions } = interest;
        let kept = self.kept.entry(core).or_default();
        let wanted = &mut self.wanted[place(kind)];
        if sessions == 0 {
            let Some(cores) = wanted.get_mut(&name) else { return true };
            if cores.remove(&core).is_some() {
                kept.names -= 1;
                kept.bytes -= bytes_of(&name);
            }
            if cores.is_empty() {
                wanted.remove(&name);
            }
            return true;
        }
        if let Some(known) = wanted.get_mut(&name).and_then(|cores| cores.get_mut(&core)) {
            *known = sessions;
            return true;
        }
        if !is_within_bounds(kept.names + 1, kept.bytes + bytes_of(&name)) {
            return false;
        }
        kept.names += 1;
        kept.bytes += bytes_of(&name);
        // The message's own bytes would keep all of it in memory.
        wanted.entry(Bytes::copy_from_slice(&name)).or_default().insert(core, sessions);
        true
    }

    /// Nothing is known of a core any more.
    pub(super) fn forget(&mut self, core: CoreName) {
        if self.kept.remove(&core).is_none() {
            return;
        }
        for wanted in &mut self.wanted {
            wanted.retain(|_, cores| {
                cores.remove(&core);
                !cores.is_empty()
            });
        }
    }

    /// Panics if what is kept of a core is counted wrong: its bound would refuse too much or nothing.
    pub(super) fn check_invariants(&self) {
        let mut counted: BTreeMap<CoreName, (usize, usize)> = BTreeMap::new();
        for (name, cores) in self.wanted.iter().flatten() {
            assert!(!cores.is_empty(), "a name is kept that nobody wants");
            for core in cores.keys() {
                let (names, bytes) = counted.entry(*core).or_default();
                *names += 1;
                *bytes += bytes_of(name);
            }
        }
        for (core, kept) in &self.kept {
            let counted = counted.remove(core).unwrap_or_default();
            assert_eq!((kept.names, kept.bytes), counted, "what {core:?} subscribes to is counted wrong");
        }
        assert!(counted.is_empty(), "a core that is forgotten is sent messages");
    }

    pub(super) fn targets(&self, kind: ChannelKind, channel: &[u8]) -> Vec<(CoreName, u32)> {
        let mut targets: BTreeMap<CoreName, u32> = BTreeMap::new();
        let mut add = |cores: &BTreeMap<CoreName, u32>| {
            for (core, sessions) in cores {
                let count = targets.entry(*core).or_default();
                *count = count.saturating_add(*sessions);
            }
        };
        self.wanted[place(kind)].get(channel).into_iter().for_each(&mut add);
        if kind == ChannelKind::Channel {
            let patterns = self.wanted[place(ChannelKind::Pattern)].iter();
            patterns.filter(|(pattern, _)| glob::matches(pattern, channel)).for_each(|(_, cores)| add(cores));
        }
        targets.into_iter().collect()
    }

    /// Whether any session elsewhere subscribes to a name of this kind.
    pub(super) fn has(&self, kind: ChannelKind) -> bool {
        !self.wanted[place(kind)].is_empty()
    }

    /// The names of a kind to which a datacenter's cores subscribe.
    pub(super) fn of_kind(
        &self,
        kind: ChannelKind,
        datacenter: DatacenterId,
    ) -> impl Iterator<Item = &Bytes> {
        let is_of =
            move |cores: &BTreeMap<CoreName, u32>| cores.keys().any(|core| core.datacenter == datacenter);
        self.wanted[place(kind)].iter().filter(move |(_, cores)| is_of(cores)).map(|(name, _)| name)
    }

    /// How many sessions of a datacenter's other cores subscribe to a name.
    pub(super) fn sessions_of(&self, kind: ChannelKind, name: &[u8], datacenter: DatacenterId) -> u64 {
        let Some(cores) = self.wanted[place(kind)].get(name) else { return 0 };
        let of_datacenter = cores.iter().filter(|(core, _)| core.datacenter == datacenter);
        of_datacenter.map(|(_, sessions)| u64::from(*sessions)).sum()
    }

    /// Whether a core with a lower number than this one, of its datacenter, has a subscriber.
    pub(super) fn has_before(&self, kind: ChannelKind, name: &[u8], own: CoreName) -> bool {
        let cores = self.wanted[place(kind)].get(name);
        let is_before = |core: &CoreName| core.datacenter == own.datacenter && core.core < own.core;
        cores.is_some_and(|cores| cores.keys().any(is_before))
    }
}
