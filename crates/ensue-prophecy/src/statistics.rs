//! What a sketcher counts, in all and by replica.
//!
//! A failed fast answer is judged when the replicated read that follows it is accepted. It was *fresh* if it equals
//! the new response (the service had changed, and the replica was right); *stale* if it equals a response that was
//! accepted earlier; and *unagreed* if no accepted response of the request is known to have been so. An unagreed answer
//! is what a lying replica gives, but no proof: a state that lasted between two replicated reads is known to nobody. A
//! proof is another answer than the accepted one at the same sequence number, which `lied` counts.

/// Counts of one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaStatistics {
    /// The replica's name, as the configuration has it.
    pub name: String,
    /// Fast reads sent to it.
    pub asked: u64,
    /// Its fast answers that were returned to clients.
    pub accepted: u64,
    /// Its fast answers that showed a change which the replicated read confirmed.
    pub fresh: u64,
    /// Its fast answers that were replaced ones.
    pub stale: u64,
    /// Its fast answers that no replicated read is known to have given.
    pub unagreed: u64,
    /// Fast reads that it did not answer in time.
    pub silent: u64,
    /// Its answers to replicated requests that differ from the accepted one at the same sequence number.
    pub lied: u64,
}

/// Counts of a sketcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests that were read requests.
    pub reads: u64,
    /// Requests that were not.
    pub writes: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Reads that one replica answered, and the history table confirmed.
    pub fast: u64,
    /// Reads that needed a replicated read after a fast one.
    pub failed_fast: u64,
    /// Reads that were replicated at once: unknown, blacklisted, or evicted.
    pub replicated: u64,
    /// Replicated reads whose response differs from the one before.
    pub transitions: u64,
    /// Requests that were put on the blacklist for changing too often.
    pub blacklisted: u64,
    /// Requests that came off it again.
    pub unlisted: u64,
    /// Each replica, by its number.
    pub replicas: Vec<ReplicaStatistics>,
}

impl Statistics {
    /// Nothing counted, of replicas with these names.
    pub fn of(names: &[String]) -> Statistics {
        let replica =
            |name: &String| ReplicaStatistics { name: name.clone(), ..ReplicaStatistics::default() };
        Statistics { replicas: names.iter().map(replica).collect(), ..Statistics::default() }
    }

    /// Fast answers of replicas that were caught to be old ones.
    pub fn stale_caught(&self) -> u64 {
        self.replicas.iter().map(|replica| replica.stale).sum()
    }

    /// The names of the replicas that are proved to have lied.
    pub fn liars(&self) -> Vec<&str> {
        self.replicas.iter().filter(|replica| replica.lied > 0).map(|replica| &replica.name[..]).collect()
    }
}
