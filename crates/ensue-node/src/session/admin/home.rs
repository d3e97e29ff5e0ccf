//! `CAUSAL HOME`: where the homes of keys are, and that one moves (decision 56).
//!
//! - Alone: every partition says where homes are, and how far moves have come.
//! - With a pattern and a datacenter, at the present home: every partition is asked whether the home can move there. If
//!   all say so, every partition begins, which nobody can take back. Where some have begun and others have not, since
//!   one did not answer, the others do so.
//! - With a home that was declared dead, at the datacenter that shall be the new one: the same, confirmed by a digest,
//!   because what the dead one had granted may be granted again.

use super::dead::Known;
use crate::homes::Home;
use crate::session::core_state::CoreState;
use crate::session::failure::UNANSWERED;
use crate::session::plan::Plan;
use crate::session::plan::combine::Combination;
use bytes::Bytes;
use ensue_types::{Args, HomeStep, KeyspaceId, Reply};

/// An operator asks about homes, or has one moved.
#[derive(Clone, Debug)]
pub(crate) enum Homes {
    List,
    Move { pattern: Bytes, to: Bytes, is_claim: bool, digest: Option<Bytes> },
}

impl Homes {
    /// `CAUSAL HOME`, and the plan that asks every partition; none for every other command.
    pub(crate) fn begin(
        core: &CoreState,
        keyspace: KeyspaceId,
        args: &Args,
    ) -> Option<Result<(Homes, Plan), Reply>> {
        match &args[1..] {
            [subcommand, words @ ..] if subcommand.eq_ignore_ascii_case(b"home") => {
                Some(Homes::ask(core, keyspace, words))
            }
            _ => None,
        }
    }

    fn ask(core: &CoreState, keyspace: KeyspaceId, words: &[Bytes]) -> Result<(Homes, Plan), Reply> {
        let (pattern, to, digest) = match words {
            [] => return Ok((Homes::List, plan(core, Combination::Concatenate, false, &[]))),
            [pattern, to] => (pattern, to, None),
            [pattern, to, confirm, digest] if confirm.eq_ignore_ascii_case(b"confirm") => {
                (pattern, to, Some(digest.clone()))
            }
            _ => return Err(USAGE),
        };
        let topology = &core.config.topology;
        let Some(datacenter) = topology.datacenter_named(to) else {
            return Err(Reply::error("ERR there is no datacenter of this name"));
        };
        let is_it = |home: &&Home| home.keyspace == keyspace && home.pattern == *pattern;
        let Some(home) = core.homes.lines().iter().find(is_it) else {
            let shown = String::from_utf8_lossy(pattern);
            let number = keyspace.0;
            return Err(error(format!("ERR keyspace {number} has no home with exactly the pattern {shown}")));
        };
        let (own, shown) = (topology.datacenter, topology.name_of(home.datacenter));
        let is_claim = home.datacenter != own;
        if home.datacenter == datacenter && !is_claim {
            return Err(error(format!("ERR {shown} is the home already")));
        }
        if is_claim && datacenter != own {
            return Err(error(format!(
                "ERR the home is {shown}: say it at a node of {shown}, or, when {shown} was declared dead, at a node \
                 of the datacenter that shall be the home"
            )));
        }
        let plan = plan(core, Combination::Concatenate, false, &[pattern, to]);
        Ok((Homes::Move { pattern: pattern.clone(), to: to.clone(), is_claim, digest }, plan))
    }

    /// All partitions have answered: the plan that begins the move, or the answer if nothing begins.
    pub(crate) fn into_beginning(self, core: &CoreState, reply: Reply) -> Result<Plan, Reply> {
        let Reply::Array(said) = &reply else {
            return Err(if reply.is_error() { reply } else { UNANSWERED });
        };
        match self {
            Homes::List => Err(list(core, said)),
            Homes::Move { pattern, to, is_claim, digest } => {
                let version = version(said, &to)?;
                if is_claim {
                    confirm(&pattern, &to, version, digest.as_deref())?;
                }
                let number = Bytes::from(version.to_string());
                Ok(plan(core, Combination::AllOk, true, &[&pattern, &to, &number]))
            }
        }
    }
}

fn plan(core: &CoreState, how: Combination, writes: bool, words: &[&Bytes]) -> Plan {
    let mut args: Args = [&b"causal"[..], b"home"].map(Bytes::from_static).to_vec();
    args.extend(words.iter().copied().cloned());
    Plan::fan_out(how, writes, core.partitions(), &args)
}

/// The number of the move, from what partitions say; or why one of them refuses. One that has begun goes on.
fn version(said: &[Reply], to: &[u8]) -> Result<i64, Reply> {
    let (mut latest, mut begun) = (0, None);
    for partition in said.chunks(3) {
        let [Reply::Integer(version), Reply::Integer(has_begun), Reply::Bulk(reason)] = partition else {
            return Err(UNANSWERED);
        };
        if !reason.is_empty() {
            let (to, reason) = (String::from_utf8_lossy(to), String::from_utf8_lossy(reason));
            return Err(error(format!("NOMOVE the home cannot move to {to} now: {reason}")));
        }
        latest = latest.max(*version);
        begun = begun.max((*has_begun > 0).then_some(*version));
    }
    Ok(begun.unwrap_or(latest + 1))
}

/// A dead home may have granted what it is about to grant again.
fn confirm(pattern: &Bytes, to: &[u8], version: i64, digest: Option<&[u8]>) -> Result<(), Reply> {
    let shown = format!("{}{version:04x}", Known::whose(to));
    let (pattern, to) = (String::from_utf8_lossy(pattern), String::from_utf8_lossy(to));
    match digest {
        Some(digest) if digest.eq_ignore_ascii_case(shown.as_bytes()) => Ok(()),
        Some(_) => Err(error(format!(
            "CHANGED this is no digest of the home as it is now; CAUSAL HOME {pattern} {to} shows it"
        ))),
        None => {
            let lines = [
                shown.clone(),
                format!(
                    "the home of {pattern} was declared dead. What it executed and no other datacenter has received \
                     is lost, and {to} may grant it again: a lock, a number, an element. If a node of the dead one \
                     runs, it goes on granting, too: make sure that none does"
                ),
                format!("CAUSAL HOME {pattern} {to} CONFIRM {shown} begins the move"),
            ];
            Err(Reply::Array(lines.into_iter().map(Reply::bulk).collect()))
        }
    }
}

/// One array a pattern: its keyspace, the pattern, the home, the number of its latest move, and how far that is.
fn list(core: &CoreState, said: &[Reply]) -> Reply {
    let homes = &core.config.homes;
    let partitions: Vec<&[Reply]> = said.chunks(3 * homes.len().max(1)).collect();
    let line = |(place, home): (usize, &Home)| {
        let of = |partition: &&[Reply]| match partition.get(3 * place..3 * place + 3) {
            Some([Reply::Integer(version), Reply::Integer(home), Reply::Integer(step)]) => {
                Some((*version, *step, *home))
            }
            _ => None,
        };
        let known: Vec<(i64, i64, i64)> = partitions.iter().filter_map(of).collect();
        let (version, _, datacenter) = known.iter().copied().max().unwrap_or_default();
        let started = i64::from(HomeStep::Started.number());
        let here = known.iter().filter(|one| (one.0, one.1) >= (version, started)).count();
        let all = known.len();
        let state = match here == all && all == usize::from(core.partitions()) {
            true => "serves".to_owned(),
            false => format!("moves: {here} of {all} partitions know that it has started"),
        };
        let name = core.config.topology.name_of(ensue_types::DatacenterId(datacenter as u8));
        Reply::Array(vec![
            Reply::Integer(i64::from(home.keyspace.0)),
            Reply::Bulk(home.pattern.clone()),
            Reply::bulk(name),
            Reply::Integer(version),
            Reply::bulk(state),
        ])
    };
    Reply::Array(homes.iter().enumerate().map(line).collect())
}

fn error(words: String) -> Reply {
    Reply::Error(words.into())
}

const USAGE: Reply =
    Reply::error("ERR syntax error: CAUSAL HOME [<pattern> <datacenter> [CONFIRM <digest>]]");
