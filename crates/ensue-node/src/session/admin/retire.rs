//! `CAUSAL RETIRE`: whether the own datacenter can be removed, and, confirmed by a digest, that it shall be.
//!
//! - Asked without a confirmation: every partition says whether it can be. The answer is a digest, and what happens.
//! - With one: they are asked the same first. If one of them says that it cannot be, or the digest is another one,
//!   nothing happens. Then every partition begins, which nobody can take back.
//! - Where some partitions have begun and others have not, since one did not answer: the others do so, whatever is
//!   confirmed.

use super::dead::Known;
use crate::session::core_state::CoreState;
use crate::session::failure::UNANSWERED;
use crate::session::plan::Plan;
use crate::session::plan::combine::Combination;
use bytes::Bytes;
use ensue_types::{Args, Reply};

/// An operator wants this datacenter to be removed, or to know what that means.
#[derive(Clone, Debug)]
pub(crate) struct Retiring {
    name: Bytes,
    digest: Option<Bytes>,
}

/// What all partitions know together.
#[derive(Clone, Debug, Default)]
struct Readiness {
    partitions: u16,
    state: u64,
    begun: u16,
    /// Why it cannot be removed now.
    reason: Option<String>,
}

impl Retiring {
    /// `CAUSAL RETIRE name`, and the plan that asks every partition; none for every other command.
    pub(crate) fn begin(core: &CoreState, args: &Args) -> Option<Result<(Retiring, Plan), Reply>> {
        match &args[1..] {
            [subcommand, words @ ..] if subcommand.eq_ignore_ascii_case(b"retire") => {
                Some(Retiring::ask(core, words))
            }
            _ => None,
        }
    }

    fn ask(core: &CoreState, words: &[Bytes]) -> Result<(Retiring, Plan), Reply> {
        let (name, digest) = match words {
            [name] => (name.clone(), None),
            [name, confirm, digest] if confirm.eq_ignore_ascii_case(b"confirm") => {
                (name.clone(), Some(digest.clone()))
            }
            _ => return Err(USAGE),
        };
        let topology = &core.config.topology;
        let Some(datacenter) = topology.datacenter_named(&name) else {
            return Err(Reply::error("ERR there is no datacenter of this name"));
        };
        let shown = String::from_utf8_lossy(&name);
        if datacenter != topology.datacenter {
            return Err(error(format!("ERR this is another datacenter; say it at a node of {shown}")));
        }
        if topology.others().next().is_none() {
            return Err(refused(&shown, "it is the only datacenter"));
        }
        if let Some(home) = core.homes.lines().iter().find(|home| home.datacenter == datacenter) {
            let pattern = String::from_utf8_lossy(&home.pattern);
            let reason = format!("it is the home of {pattern} in keyspace {}", home.keyspace.0);
            return Err(refused(&shown, &reason));
        }
        let plan = plan(core, Combination::Concatenate, false, &name, &[]);
        Ok((Retiring { name, digest }, plan))
    }

    /// All partitions have answered: the plan that begins it, or the answer if nothing begins.
    pub(crate) fn into_beginning(self, core: &CoreState, reply: Reply) -> Result<Plan, Reply> {
        let Some(readiness) = Readiness::of(&reply) else {
            return Err(if reply.is_error() { reply } else { UNANSWERED });
        };
        readiness.admits(self.digest.as_deref(), &self.name)?;
        Ok(plan(core, Combination::AllOk, true, &self.name, &[b"confirm"]))
    }
}

fn plan(core: &CoreState, how: Combination, writes: bool, name: &Bytes, words: &[&'static [u8]]) -> Plan {
    let mut args: Args = [&b"causal"[..], b"retire"].map(Bytes::from_static).to_vec();
    args.push(name.clone());
    args.extend(words.iter().map(|word| Bytes::from_static(word)));
    Plan::fan_out(how, writes, core.partitions(), &args)
}

impl Readiness {
    /// What the partitions have answered, one after the other.
    fn of(reply: &Reply) -> Option<Readiness> {
        let Reply::Array(items) = reply else { return None };
        let mut readiness = Readiness::default();
        for said in items.chunks(3) {
            let [Reply::Bulk(state), Reply::Bulk(reason), Reply::Integer(begun)] = said else { return None };
            let state = u64::from_str_radix(std::str::from_utf8(state).ok()?, 16).ok()?;
            readiness.partitions += 1;
            readiness.state = readiness.state.wrapping_add(state);
            readiness.begun += u16::from(*begun > 0);
            if readiness.reason.is_none() && !reason.is_empty() {
                readiness.reason = Some(String::from_utf8_lossy(reason).into_owned());
            }
        }
        Some(readiness)
    }

    /// Which datacenter it is, and without which others, half and half.
    fn digest(&self, name: &[u8]) -> String {
        format!("{}{:08x}", Known::whose(name), (self.state >> 32) as u32 ^ self.state as u32)
    }

    /// Whether it is to begin now; the answer if it is not.
    fn admits(&self, confirmed: Option<&[u8]>, name: &[u8]) -> Result<(), Reply> {
        let (digest, shown) = (self.digest(name), String::from_utf8_lossy(name));
        let Readiness { partitions, begun, .. } = self;
        if *begun > 0 {
            let line = format!(
                "{begun} of {partitions} partitions of {shown} take no more writes: it is being removed"
            );
            let answer = [digest, line].into_iter().map(Reply::bulk).collect();
            return if confirmed.is_some() { Ok(()) } else { Err(Reply::Array(answer)) };
        }
        if let Some(reason) = &self.reason {
            return Err(refused(&shown, reason));
        }
        match confirmed {
            None => Err(Reply::Array(
                [
                    digest.clone(),
                    format!(
                        "{shown} would take no more writes, for ever. When the others have everything, it answers \
                         nothing any more, and its nodes may be stopped"
                    ),
                    format!("CAUSAL RETIRE {shown} CONFIRM {digest} begins that"),
                ]
                .into_iter()
                .map(Reply::bulk)
                .collect(),
            )),
            Some(confirmed) if confirmed.eq_ignore_ascii_case(digest.as_bytes()) => Ok(()),
            Some(_) => Err(error(format!(
                "CHANGED this is no digest of {shown} as it is now; CAUSAL RETIRE {shown} shows it"
            ))),
        }
    }
}

fn error(words: String) -> Reply {
    Reply::Error(words.into())
}

fn refused(name: &str, reason: &str) -> Reply {
    error(format!("NORETIRE {name} cannot be removed now: {reason}"))
}

const USAGE: Reply = Reply::error("ERR syntax error: CAUSAL RETIRE <datacenter> [CONFIRM <digest>]");

#[cfg(test)]
mod tests {
    use super::*;

    fn readiness(reasons: &[&'static str], begun: i64) -> Readiness {
        let said = |reason: &&'static str| {
            [Reply::bulk("00000000000000ff"), Reply::bulk(*reason), Reply::Integer(begun)]
        };
        Readiness::of(&Reply::Array(reasons.iter().flat_map(said).collect())).expect("three words each")
    }

    fn code(readiness: &Readiness, confirmed: Option<&str>) -> String {
        match readiness.admits(confirmed.map(str::as_bytes), b"dc3") {
            Ok(()) => "OK".to_owned(),
            Err(Reply::Error(words)) => words.split(' ').next().unwrap_or_default().to_owned(),
            Err(Reply::Array(lines)) => format!("{} lines", lines.len()),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_was_shown_confirms_and_a_reason_to_stay_refuses() {
        let ready = readiness(&["", ""], 0);
        let digest = ready.digest(b"dc3");
        assert_eq!(code(&ready, None), "3 lines");
        assert_eq!(code(&ready, Some(&digest)), "OK");
        assert_eq!(code(&ready, Some(&digest.to_ascii_uppercase())), "OK");
        assert_eq!(code(&ready, Some(&ready.digest(b"dc2"))), "CHANGED");
        assert_eq!(code(&ready, Some("")), "CHANGED");
        let other = Readiness { state: 1, ..ready };
        assert_eq!(code(&other, Some(&digest)), "CHANGED", "another datacenter has gone since");
        let unready = readiness(&["", "dc2 was declared dead"], 0);
        assert_eq!(code(&unready, None), "NORETIRE");
        assert_eq!(code(&unready, Some(&digest)), "NORETIRE");
        let begun = readiness(&["", "dc2 is not linked"], 1);
        assert_eq!(
            (code(&begun, None), code(&begun, Some("whatever"))),
            ("2 lines".to_owned(), "OK".to_owned())
        );
    }
}
