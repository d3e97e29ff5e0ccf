//! `CAUSAL BACKUP`: a copy of what this datacenter's disks hold at one moment, which a client reads file by file.
//!
//! The node's threads stop between two turns, all at once, and give the files second names; a moment later they go on.
//! What is read afterwards is what a machine that died in that moment would have left, so it is closed under causality
//! whatever carried it: nothing that happened in one partition before the moment is missing in another one.
//!
//! `NODE n` has another node of the datacenter do it. `HOLD` keeps the cores still for some milliseconds, and the
//! answer says when they were: whoever has all nodes hold at once knows whether there was a moment at which all stood
//! still.

use super::errand::{Outcome, Then, Waiting};
use crate::errand::backup::{USAGE, errand, reply};
use crate::errand::{BackupErrand, Errand, ErrandDone};
use crate::session::cx::Cx;
use crate::session::step::Step;
use bytes::Bytes;
use ensue_resp::number;
use ensue_types::{Args, PartitionId, Reply};

/// Whether this is a command of a backup.
pub(crate) fn is_command(args: &Args) -> bool {
    args.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"backup"))
}

/// `CAUSAL BACKUP` and its words.
pub(crate) fn on_command(cx: &mut Cx<'_>, args: &Args) -> Step<Outcome> {
    if args.len() == 3 && args[2].eq_ignore_ascii_case(b"nodes") {
        return Step::answer(Reply::Integer(nodes(cx) as i64));
    }
    match asked(cx, &args[2..]) {
        Ok(errand) => Step::Waits(Outcome::Waits(Waiting::begin(cx, errand, Then::Backup))),
        Err(refusal) => Step::answer(refusal),
    }
}

/// What is to be done, here or elsewhere.
fn asked(cx: &Cx<'_>, words: &[Bytes]) -> Result<Errand, Reply> {
    let topology = &cx.core.config.topology;
    let here = topology.datacenter;
    let [word, number, words @ ..] = words else { return Err(USAGE) };
    if !word.eq_ignore_ascii_case(b"node") {
        let words = [std::slice::from_ref(word), std::slice::from_ref(number), words].concat();
        return match errand(&words)? {
            BackupErrand::Begin { hold_ms: 0, .. } if nodes(cx) > 1 => Err(SEVERAL_NODES),
            errand => Ok(Errand::Backup(errand)),
        };
    }
    let number = number::parse_i64(number).and_then(|number| usize::try_from(number).ok());
    let core = number.and_then(|number| topology.core_on(here, number, PartitionId(0)));
    let core = core.ok_or_else(|| {
        Reply::Error(format!("ERR nodes of this datacenter are 0 to {}", nodes(cx) - 1).into())
    })?;
    let errand = errand(words)?;
    let is_here = topology.node_of(here, core) == topology.node_of(here, cx.core.config.core);
    Ok(if is_here { Errand::Backup(errand) } else { Errand::BackupElsewhere { core, words: words.to_vec() } })
}

/// How many nodes this datacenter has.
fn nodes(cx: &Cx<'_>) -> usize {
    let topology = &cx.core.config.topology;
    topology.datacenters[usize::from(topology.datacenter.0)].nodes.len()
}

pub(super) fn on_done(done: ErrandDone) -> Step<Outcome> {
    Step::answer(reply(done))
}

const SEVERAL_NODES: Reply = Reply::error(
    "ERR this datacenter has several nodes, and a backup is of one moment of all of them: `ensue backup` has all of them \
     hold at once",
);
/// What was begun may be kept all the same, until another one is begun.
pub(super) const TIMEOUT: Reply = Reply::error(
    "TIMEOUT the disk did not answer in time; what was asked for may happen later, begin the backup again",
);
