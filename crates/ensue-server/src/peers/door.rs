//! Who of those that have proved nothing yet makes room, when there are more of them than may stand at the door.
//!
//! A real peer says its hello as soon as it is connected and its proof as soon as it has our answer. So those who are
//! silent go first, and of those who said a hello the ones from the address that has the most connections here: whoever
//! fills the door from one place pushes out its own. Nobody goes before it had the time that a real peer needs.

use crate::bounds::{STRANGER_CLAIMED_US, STRANGER_SILENT_US};
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
}
