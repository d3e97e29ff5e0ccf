//! The protocols that there are, each as one value.
//!
//! A module registers what it is called, what it offers and promises, and how it is made. Names, configuration,
//! command line, simulator and the contract tests follow from the list. A protocol from elsewhere is registered in a
//! list of its own.

use crate::{Capabilities, Needs, Options, Profile, Promises, Protocol};
use crate::{cops, cops_cd, cops_gt, cure, eiger, eventual, ha_pocc, log, orbe_clock, orbe_dm, pocc, tardis};

/// A protocol, as it is registered.
#[derive(Debug)]
pub struct Registration {
    /// The name in the configuration.
    pub name: &'static str,
    /// What it offers; what it lacks is refused by name.
    pub capabilities: Capabilities,
    /// What it is held to.
    pub promises: Promises,
    /// Makes it, for what the configuration says.
    pub make: fn(Options) -> Box<dyn Protocol>,
}

impl Registration {
    /// What the protocol says of itself.
    pub fn profile(&self, needs: Needs) -> Profile {
        Profile { name: self.name, capabilities: self.capabilities, needs }
    }
}

/// Protocols that can be named.
pub type Registry = &'static [Registration];

/// The protocols of this crate, the default first.
pub static REGISTRY: [Registration; 12] = [
    eiger::REGISTRATION,
    eventual::REGISTRATION,
    log::REGISTRATION,
    cops::REGISTRATION,
    cops_gt::REGISTRATION,
    cops_cd::REGISTRATION,
    orbe_dm::REGISTRATION,
    orbe_clock::REGISTRATION,
    cure::REGISTRATION,
    pocc::REGISTRATION,
    ha_pocc::REGISTRATION,
    tardis::REGISTRATION,
];

/// The names of all protocols of this crate.
pub const ALL_NAMES: [&str; count(true)] = names(true);

/// The names of those whose keyspaces are rows, the default first.
pub const NAMES: [&str; count(false)] = names(false);

/// The protocol of this name among those of this crate.
pub fn find(name: &str) -> Option<&'static Registration> {
    find_in(&REGISTRY, name)
}

/// The protocol of this name among these.
pub fn find_in(registry: Registry, name: &str) -> Option<&'static Registration> {
    registry.iter().find(|registration| registration.name == name)
}

/// Makes the protocol of this name, one of this crate.
pub fn by_name(name: &str, options: Options) -> Option<Box<dyn Protocol>> {
    find(name).map(|registration| (registration.make)(options))
}

const fn count(with_branches: bool) -> usize {
    let (mut count, mut place) = (0, 0);
    while place < REGISTRY.len() {
        if with_branches || !REGISTRY[place].promises.branches {
            count += 1;
        }
        place += 1;
    }
    count
}

const fn names<const COUNT: usize>(with_branches: bool) -> [&'static str; COUNT] {
    let mut names = [""; COUNT];
    let (mut count, mut place) = (0, 0);
    while place < REGISTRY.len() {
        if with_branches || !REGISTRY[place].promises.branches {
            names[count] = REGISTRY[place].name;
            count += 1;
        }
        place += 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_own_name_and_is_found_by_it() {
        for name in ALL_NAMES {
            assert_eq!(find(name).map(|registration| registration.name), Some(name));
            assert_eq!(REGISTRY.iter().filter(|registration| registration.name == name).count(), 1, "{name}");
        }
        assert_eq!((NAMES[0], ALL_NAMES[0]), ("eiger", "eiger"));
        assert_eq!(ALL_NAMES.iter().filter(|name| !NAMES.contains(name)).count(), 1, "that with branches");
        assert!(find("paxos").is_none() && by_name("paxos", Options::default()).is_none());
    }
}
