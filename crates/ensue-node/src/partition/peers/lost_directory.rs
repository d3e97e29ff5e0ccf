//! Whether a directory that was lost can be had again.

use super::Peers;
use crate::partition::cx::Cx;
use crate::partition::failover::is_given_up;
use crate::partition::others::Others;
use ensue_types::{DatacenterId, DirectoryId, Position};
use ensue_wire::{Introduction, PeerStage};

/// A directory that was lost, and can be had again.
pub(in crate::partition) enum Lost {
    /// The others' logs still have everything.
    InLogs(DirectoryId),
    /// Their logs begin later: what one of them holds is copied, or, if it cannot be, this is said.
    InCopies(DirectoryId, String),
}

impl Peers {
    /// The directory that was lost, if all that it held can be had again.
    pub(in crate::partition) fn lost_directory(
        &self,
        cx: &Cx,
        others: &Others,
        gone: u16,
        answers: &[(DatacenterId, Introduction)],
    ) -> Result<Lost, String> {
        let known = answers.iter().map(|(d, i)| (*d, i.known)).filter(|(_, k)| *k != DirectoryId::UNKNOWN);
        let mut known: Vec<(DatacenterId, DirectoryId)> = known.collect();
        let (first, lost) = known.pop().expect("the caller has found one");
        let names = |datacenters: &[DatacenterId]| {
            datacenters.iter().map(|d| cx.name_of(*d)).collect::<Vec<_>>().join(" and ")
        };
        if let Some((other, _)) = known.iter().find(|(_, directory)| *directory != lost) {
            let (first, other) = (cx.name_of(first), cx.name_of(*other));
            return Err(format!(
                "{first} and {other} know different earlier directories of this datacenter: put the right one back, or \
                 declare this datacenter lost on one of them, see CAUSAL DEAD"
            ));
        }
        if lost == self.identity.own() && cx.position > Position(0) {
            return Err("the directory is an old copy on which writes were taken that nobody else has. Put it away \
                        (the log of the process that noticed says how to list those writes) and put the newest one \
                        back, or start with an \
                        empty one"
                .to_owned());
        }
        let from_others = |datacenter| others.replication.received(datacenter) > Position(0);
        let has_anything = cx.position > Position(0) || others.replication.datacenters().any(from_others);
        if lost != self.identity.own() && has_anything {
            return Err(format!(
                "the directory is of another cluster, was exchanged, or was started empty by an operator's word: the \
                 others know another one ({lost}). Put that one back, or, if it is lost, start with an empty \
                 directory"
            ));
        }
        let lacking: Vec<DatacenterId> =
            answers.iter().filter(|(_, i)| !i.is_whole).map(|(d, _)| *d).collect();
        let open = |i: &Introduction| i.stage != PeerStage::Serving || i.applied < i.received;
        let waiting: Vec<DatacenterId> = answers.iter().filter(|(_, i)| open(i)).map(|(d, _)| *d).collect();
        let knowing: Vec<DatacenterId> =
            answers.iter().filter(|(_, i)| i.known == lost).map(|(d, _)| *d).collect();
        let whose = format!("the directory is empty, and {} know an earlier one ({lost})", names(&knowing));
        let dead: Vec<DatacenterId> =
            others.replication.datacenters().filter(|d| is_given_up(gone, *d)).collect();
        if !dead.is_empty() {
            let dead = names(&dead);
            return Err(format!(
                "{whose}: put that one back. If it is lost, it cannot be made again, for {dead} was declared dead \
                 since, and what was discarded with that is not sent again: run `CAUSAL DEAD` for this datacenter on \
                 another one"
            ));
        }
        if !waiting.is_empty() {
            let waiting = names(&waiting);
            return Err(format!(
                "{whose}: everything is taken back as soon as {waiting} has applied what it received; if that does not \
                 come, put the earlier directory back, or run `CAUSAL DEAD` for this datacenter on another one"
            ));
        }
        if lacking.is_empty() {
            return Ok(Lost::InLogs(lost));
        }
        Ok(Lost::InCopies(lost, no_copy(&whose, &names(&lacking))))
    }
}

/// What is said of a lost directory if there can be no copy, either.
fn no_copy(whose: &str, lacking: &str) -> String {
    format!(
        "{whose}: put that one back (a volume that is not mounted, a wrong `dir`). If it is lost, its data cannot be had \
         again from the logs, which {lacking} trimmed, nor by a copy, which cannot hold branches: run \
         `CAUSAL DEAD` for this datacenter on another one, and the others go on without it"
    )
}
