//! `CAUSAL REPLICAS` and `CAUSAL MOVE`: who replicates a partition inside this datacenter, and on which nodes.
//!
//! The owner of the partition answers, wherever it is. A move is a wish that lasts for seconds: `ensue cluster` repeats
//! it until it has come true.

use super::errand::{Outcome, Then, Waiting};
use crate::errand::{Errand, ErrandDone};
use crate::session::cx::Cx;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::{CommandError, number};
use ensue_types::{Args, CoreId, PartitionId, Reply};

/// Whether this is one of these commands.
pub(crate) fn is_command(args: &Args) -> bool {
    let is = |name: &[u8]| args.get(1).is_some_and(|word| word.eq_ignore_ascii_case(name));
    is(b"replicas") || is(b"move")
}

/// `CAUSAL REPLICAS partition` and `CAUSAL MOVE partition from to`.
pub(crate) fn on_command(cx: &mut Cx<'_>, args: &Args) -> Step<Outcome> {
    match errand(cx, args) {
        Ok(errand) => Step::Waits(Outcome::Waits(Waiting::begin(cx, errand, Then::Group))),
        Err(refusal) => Step::answer(refusal),
    }
}

fn errand(cx: &Cx<'_>, args: &Args) -> Result<Errand, Reply> {
    let topology = &cx.core.config.topology;
    let (partition, places) = match (&args[2..], args[1].len()) {
        ([partition], 8) => (partition, None),
        ([partition, from, to], 4) => (partition, Some((from, to))),
        (_, 8) => return Err(CommandError::wrong_arity("causal|replicas").reply()),
        _ => return Err(CommandError::wrong_arity("causal|move").reply()),
    };
    let partition = number::parse_i64(partition).and_then(|number| u16::try_from(number).ok());
    let partition = partition.filter(|number| *number < topology.partitions).map(PartitionId);
    let partition = partition.ok_or_else(|| {
        let words = format!("ERR partitions are 0 to {}", topology.partitions - 1);
        Reply::Error(words.into())
    })?;
    if !topology.is_replicated(topology.datacenter, partition) {
        return Err(NOT_REPLICATED);
    }
    let core = |node: &Bytes| -> Result<CoreId, Reply> {
        let number = number::parse_i64(node).and_then(|number| usize::try_from(number).ok());
        let core = number.and_then(|number| topology.core_on(topology.datacenter, number, partition));
        core.ok_or_else(|| {
            let last = topology.datacenters[usize::from(topology.datacenter.0)].nodes.len() - 1;
            Reply::Error(format!("ERR nodes of this datacenter are 0 to {last}").into())
        })
    };
    let wish = match places {
        Some((from, to)) => Some((core(from)?, core(to)?)),
        None => None,
    };
    Ok(Errand::Group { partition, wish })
}

pub(super) fn on_done(done: ErrandDone) -> Step<Outcome> {
    Step::answer(match done {
        ErrandDone::Group(Ok(text)) => Reply::Bulk(text),
        ErrandDone::Group(Err(why)) => Reply::Error(String::from_utf8_lossy(&why).into_owned().into()),
        _ => UNEXPECTED,
    })
}

const NOT_REPLICATED: Reply = Reply::error(
    "ERR partitions are not replicated inside this datacenter: `replicas` in the configuration is 1",
);
pub(super) const TIMEOUT: Reply = Reply::error(
    "TIMEOUT the owner of the partition did not answer in time; a move that was asked for may happen",
);
const UNEXPECTED: Reply = Reply::error("ERR the question was answered with something else");
