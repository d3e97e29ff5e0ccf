//! What a member is to its group: for figures, and in words.

use super::Member;
use crate::members;
use crate::replica::Role;

impl Member {
    pub(crate) fn role(&self) -> Role {
        match &self.leading {
            Some(leading) if leading.has_partition() => Role::Leader,
            Some(_) => Role::Leaderless,
            None if self.fetching.is_some() => Role::Learner,
            None if !self.trust.is_whole() => Role::Recovering,
            None if self.raw.raft.leader_id == 0 => Role::Leaderless,
            None if !self.has_vote() => Role::Learner,
            None => Role::Follower,
        }
    }

    pub(crate) fn describe(&self) -> &'static str {
        if self.fetching.is_none() && members::is_joint(&self.raw) {
            return "changes the members";
        }
        match self.role() {
            Role::Leader => "leads",
            Role::Follower => "follows",
            Role::Learner if self.fetching.is_some() => "is sent the directory",
            Role::Learner => "follows, without a vote",
            Role::Recovering => "may lack what it had before its power failed",
            Role::Leaderless if self.leading.is_some() => "takes the lead",
            Role::Leaderless => "knows of no leader",
            Role::Starting => "starts",
            Role::Stopped => "stopped",
        }
    }
}
