//! `CAUSAL HOME`: where the homes of keys are, and that one moves (decision 56).
//!
//! - Alone: every partition says where homes are, and how far moves have come.
//! - With a pattern and a datacenter, at the present home: every partition is asked whether the home can move there. If
//!   all say so, partition 0 begins, which nobody can take back, and the others hear of it from there. So of two moves
//!   that are asked for at once one is refused.
//! - With a home that was declared dead, at the datacenter that shall be the new one: the same, confirmed by a digest,
//!   because what the dead one had granted may be granted again. It can be said again where it has begun already.

use crate::homes::Home;
use crate::partition::state_hash;
use crate::session::core_state::CoreState;
use crate::session::failure::UNANSWERED;
use crate::session::plan::Plan;
use crate::session::plan::combine::Combination;
use bytes::Bytes;
use ensue_types::{Args, HomeMove, HomeStep, KeyspaceId, PartitionId, Reply};

/// An operator asks about homes, or has one moved.
#[derive(Clone, Debug)]
pub(crate) enum Homes {
    List,
    Move { keyspace: KeyspaceId, pattern: Bytes, to: Bytes, is_claim: bool, digest: Option<Bytes> },
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
            [] => return Ok((Homes::List, question(core, &[]))),
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
        // Who asks at the new home has the old one declared dead; some partitions may know of the move already.
        let is_claim = datacenter == own;
        if home.datacenter != own && !is_claim {
            return Err(error(format!(
                "ERR the home is {shown}: say it at a node of {shown}, or, when {shown} was declared dead, at a node \
                 of the datacenter that shall be the home"
            )));
        }
        let plan = question(core, &[pattern, to]);
        let (pattern, to) = (pattern.clone(), to.clone());
        Ok((Homes::Move { keyspace, pattern, to, is_claim, digest }, plan))
    }

    /// All partitions have answered: the plan that begins the move, or the answer if nothing begins.
    pub(crate) fn into_beginning(self, core: &CoreState, reply: Reply) -> Result<Plan, Reply> {
        let Reply::Array(said) = &reply else {
            return Err(if reply.is_error() { reply } else { UNANSWERED });
        };
        match self {
            Homes::List => Err(list(core, said)),
            Homes::Move { keyspace, pattern, to, is_claim, digest } => {
                let version = version(said, &to)?;
                if is_claim {
                    confirm(keyspace, [&pattern, &to], version, digest.as_deref())?;
                }
                let number = Bytes::from(version.to_string());
                let first = std::iter::once(PartitionId(0));
                let mut plan = Plan::single(core.partitions());
                plan.add_for_each(Combination::AllOk, true, first, &args(&[&pattern, &to, &number]));
                Ok(plan)
            }
        }
    }
}

/// What every partition is asked.
fn question(core: &CoreState, words: &[&Bytes]) -> Plan {
    Plan::fan_out(Combination::Concatenate, false, core.partitions(), &args(words))
}

fn args(words: &[&Bytes]) -> Args {
    let mut args: Args = [&b"causal"[..], b"home"].map(Bytes::from_static).to_vec();
    args.extend(words.iter().copied().cloned());
    args
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
    match begun.unwrap_or(latest.saturating_add(1)) {
        version if version <= i64::from(HomeMove::VERSION_MAX) => Ok(version),
        _ => Err(Reply::error("NOMOVE the home cannot move now: it has moved as often as can be counted")),
    }
}

/// A dead home may have granted what it is about to grant again.
fn confirm(
    keyspace: KeyspaceId,
    words: [&[u8]; 2],
    version: i64,
    digest: Option<&[u8]>,
) -> Result<(), Reply> {
    let [pattern, to] = words;
    let lengths = words.map(|word| word.len().to_le_bytes());
    let parts = [&[keyspace.0][..], &lengths[0], pattern, &lengths[1], to, &version.to_le_bytes()];
    let shown = format!("{:016x}", state_hash(parts));
    let [pattern, to] = words.map(String::from_utf8_lossy);
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
