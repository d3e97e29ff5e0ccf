//! Who of those that have proved nothing yet makes room, when there are more of them than may stand at the door.
//!
//! A real peer says its hello as soon as it is connected and its proof as soon as it has our answer. So those who are
//! silent go first, and of those who said a hello the ones from the address that has the most connections here: whoever
//! fills the door from one place pushes out its own. Nobody else goes before it had the time that a real peer needs; of
//! a crowd from one network one goes at once, so that a peer does not wait behind it until it gives up. Which one is
//! drawn: a peer from the same network stays, most of the time, for as long as it needs.

use crate::bounds::{CROWD_MIN, STRANGER_CLAIMED_US, STRANGER_SILENT_US};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A connection that was accepted and has proved nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stranger {
    pub(super) id: usize,
    pub(super) source: Option<IpAddr>,
    /// It has said who it is.
    pub(super) claims: bool,
    pub(super) age_us: u64,
}

/// Who makes room; nobody where all are so new that each may be a real peer.
pub(super) fn who_gives_way(strangers: &[Stranger]) -> Option<usize> {
    let had_its_time = |stranger: &&Stranger| {
        stranger.age_us > if stranger.claims { STRANGER_CLAIMED_US } else { STRANGER_SILENT_US }
    };
    let neighbours = |source| strangers.iter().filter(|other| other.source == source).count();
    let first = strangers.iter().filter(had_its_time);
    first.max_by_key(|one| (!one.claims, neighbours(one.source), one.age_us)).map(|one| one.id)
}

/// One of the network with the most connections here, as a random number has it; nobody if none has so many that it is
/// a crowd.
pub(super) fn one_of_a_crowd(strangers: &[Stranger], drawn: u64) -> Option<usize> {
    let mut networks: BTreeMap<IpAddr, Vec<usize>> = BTreeMap::new();
    for stranger in strangers {
        let Some(source) = stranger.source else { continue };
        networks.entry(network(source)).or_default().push(stranger.id);
    }
    let fullest = networks.into_values().max_by_key(Vec::len)?;
    (fullest.len() >= CROWD_MIN).then(|| fullest[(drawn % fullest.len() as u64) as usize])
}

/// What one attacker may have many addresses of: 256 of IPv4, or what a subscriber gets of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            IpAddr::from([a, b, c, 0])
        }
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(id: usize, host: u8, claims: bool, age_ms: u64) -> Stranger {
        Stranger { id, source: Some(IpAddr::from([10, 0, 0, host])), claims, age_us: 1_000 * age_ms }
    }

    #[test]
    fn the_silent_go_first_and_a_crowd_before_a_guest() {
        let silent = stranger(1, 1, false, 160);
        let claims = stranger(2, 2, true, 900);
        assert_eq!(who_gives_way(&[claims, silent]), Some(1));
        let crowd: Vec<Stranger> = (10..20).map(|id| stranger(id, 9, true, 600 + id as u64)).collect();
        assert_eq!(who_gives_way(&[&[claims], &crowd[..]].concat()), Some(19), "the oldest of the crowd");
    }

    #[test]
    fn everybody_has_the_time_of_a_real_peer() {
        let new: Vec<Stranger> = (0..64).map(|id| stranger(id, 1, id % 2 == 0, 20)).collect();
        assert_eq!(who_gives_way(&new), None);
        assert_eq!(who_gives_way(&[stranger(1, 1, true, 400)]), None, "its proof is on its way");
        assert_eq!(who_gives_way(&[]), None);
    }

    #[test]
    fn a_crowd_of_one_network_makes_room_at_once() {
        let crowd = |hosts: std::ops::Range<u8>| {
            (hosts.start..hosts.end).map(|n| stranger(n.into(), n, true, 90 - u64::from(n)))
        };
        let peer = Stranger { id: 99, source: Some(IpAddr::from([10, 0, 1, 7])), claims: true, age_us: 0 };
        let all: Vec<Stranger> = crowd(0..63).chain([peer]).collect();
        assert_eq!(who_gives_way(&all), None);
        let drawn: Vec<usize> = (0..63).filter_map(|drawn| one_of_a_crowd(&all, drawn)).collect();
        assert_eq!(drawn, (0..63).collect::<Vec<_>>(), "each of the crowd, and not the peer");
        let few: Vec<Stranger> = crowd(0..CROWD_MIN as u8 - 1).chain([peer]).collect();
        assert_eq!(one_of_a_crowd(&few, 3), None, "so many may be the cores of a node");
        let v6 = |subnet: u16, host: u16| IpAddr::from([0x2001, 0xdb8, 0, subnet, 0, 0, 0, host]);
        assert_eq!(network(v6(1, 2)), network(v6(1, 3)));
        assert_ne!(network(v6(1, 2)), network(v6(2, 2)));
    }
}
