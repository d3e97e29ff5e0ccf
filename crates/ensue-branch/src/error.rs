//! Why a transaction, or a question about states, gets no answer.

use crate::constraint::Constraint;
use crate::id::StateId;
use ensue_types::limits;
use std::fmt;

/// The transaction left nothing. The text is what a client is told, its first word the kind of error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Abort {
    #[error("ABORT no state satisfies {constraint}{}{}", of(.anchors), way_on(.constraint))]
    NoReadState { constraint: Constraint, anchors: Vec<StateId> },
    #[error("ABORT a merge takes at least two states, and {constraint} is satisfied by {found} only")]
    NothingToMerge { constraint: Constraint, found: usize },
    #[error("ABORT no state since {} satisfies {constraint}", List(.read))]
    NoCommitState { constraint: Constraint, read: Vec<StateId> },
    #[error("NOSTATE {0} has not arrived here")]
    Unknown(StateId),
    #[error("COLLECTED {0} is not kept: it was collected, or never was")]
    Collected(StateId),
    #[error("BRANCHFULL {0} states: place a ceiling (BRANCH CEILING), or merge")]
    States(usize),
    #[error("BRANCHFULL {0} leaves: merge some (BRANCH MERGE)")]
    Leaves(usize),
    #[error(
        "BRANCHFULL merges crossed so often that no number holds a fork point's weight: join the branches"
    )]
    Weights,
    #[error("BRANCHFULL these branches take too long to compare: name fewer of them, or merge some")]
    Steps,
    #[error("BRANCHFULL a merge of {0} branches: a state has {max} parents at most, so merge some of them first", max = u16::MAX)]
    TooManyBranches(usize),
    #[error("BRANCHFULL the keyspace has given 2^40 names to states: there are no more")]
    Names,
    #[error("TOOLONG a transaction that writes {0} bytes: a state holds {max} at most", max = limits::ENTRY_BYTES_MAX)]
    TooLong(usize),
    #[error("TOOLONG a transaction that has read keys of {0} bytes: {max} at most are told apart", max = limits::BRANCH_READ_BYTES_MAX)]
    ReadsTooLong(usize),
    #[error("NOTRANSACTION there is no transaction: BRANCH BEGIN first")]
    NoTransaction,
}

fn of(anchors: &[StateId]) -> String {
    if anchors.is_empty() { String::new() } else { format!(" of {}", List(anchors)) }
}

fn way_on(constraint: &Constraint) -> &'static str {
    match constraint.names_the_parent() {
        true => {
            ": it was collected, is above a ceiling, or is one of several; BRANCH CHECKOUT a state to go on"
        }
        false => "",
    }
}

struct List<'a>(&'a [StateId]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, id) in self.0.iter().enumerate() {
            write!(f, "{}{id}", if place == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Bytes that are not the encoding of anything here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes that no branching keyspace wrote")]
pub struct Malformed;
