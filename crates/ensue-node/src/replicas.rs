//! What the replicas of a core are to their groups, as figures that are added up over cores.

use ensue_replica::{Report, Role};

/// How long the figures that are shown may be old.
pub(crate) const TOLD_EVERY_US: u64 = 250_000;

/// The figures of one core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplicaFigures {
    /// By role, in the order of `ROLES`.
    replicas: [u64; ROLES.len()],
    /// Of the groups that are led here.
    votes_missing: usize,
    fragile: u64,
    lag_entries_max: u64,
}

const ROLES: [(Role, &str); 7] = [
    (Role::Leader, "leader"),
    (Role::Follower, "follower"),
    (Role::Learner, "learner"),
    (Role::Recovering, "recovering"),
    (Role::Leaderless, "leaderless"),
    (Role::Starting, "starting"),
    (Role::Stopped, "stopped"),
];

impl ReplicaFigures {
    /// Counts a replica, and its group, of so many replicas, if it leads it.
    pub(crate) fn add(&mut self, role: Role, report: Option<&Report>, wanted: usize) {
        for (count, (known, _)) in self.replicas.iter_mut().zip(ROLES) {
            *count += u64::from(known == role);
        }
        if let Some(report) = report {
            self.votes_missing += report.votes_missing(wanted);
            self.fragile += u64::from(report.is_fragile());
            self.lag_entries_max = self.lag_entries_max.max(report.lag_entries());
        }
    }

    /// The metrics, by name.
    pub(crate) fn metrics(&self) -> Vec<(String, i64)> {
        let roles = ROLES.iter().zip(self.replicas);
        let mut metrics: Vec<(String, i64)> =
            roles.map(|((_, name), count)| (format!("replica_{name}_partitions"), count as i64)).collect();
        metrics.push(("replica_votes_missing".to_owned(), self.votes_missing as i64));
        metrics.push(("replica_fragile_partitions".to_owned(), self.fragile as i64));
        metrics.push(("replica_lag_entries_max".to_owned(), self.lag_entries_max as i64));
        metrics
    }
}

#[cfg(test)]
mod tests;
